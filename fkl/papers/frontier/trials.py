"""What is tuned for the frontier, what came of it, and which values are judged."""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fkl.config.experiments import of_paper

HERE = Path(__file__).parent
TUNED, TRIALS = HERE / "tuned.yaml", HERE / "trials.csv"
COLUMNS = ("dataset", "method", "trial", "values", "error")
BUDGET = 12
"""Trials of every method on every data set."""
HEADER = f"""\
# Written by `python -m fkl.papers.frontier search` from trials.csv:
# of {BUDGET} trials each the best, on rows and a seed that are not judged.
"""
PRIVATE_ON = ("wave_farm", "energy")
EPSILONS = (1, 4, 16)
"""Epsilons of a sample, for delta = 1e-5."""
CLIP = "privacy.clip"
CLIPS = (0.03, 30.0)


@dataclass(frozen=True)
class Entry:
    """A method on a data set, which is tuned by itself.

    Parameters
    ----------
    dataset, method : str
        Choices of the groups frontier/data and frontier/method.
    privacy : str
        ``central`` or ``local``; empty for none.
    epsilon : int or None
    """

    dataset: str
    method: str
    privacy: str = ""
    epsilon: int | None = None

    @property
    def setting(self) -> str:
        """The method, and the privacy that it has."""
        return "-".join(map(str, (self.method, *((self.privacy, self.epsilon) if self.privacy else ()))))

    @property
    def name(self) -> str:
        """Of its choice in the group frontier/tuned."""
        return f"{self.dataset}-{self.setting}"

    @property
    def choices(self) -> dict[str, str]:
        """Choice of each group that it is composed of."""
        found = {"frontier/data": self.dataset, "frontier/method": self.method}
        return found | ({"privacy": self.privacy} if self.privacy else {})

    @property
    def space(self) -> dict[str, tuple[float, float]]:
        """Keys that are tuned, and the ends of what is tried."""
        own = {key: (low, high) for key, (low, high) in cell_of(self.method)["search"].items()}
        return own | ({CLIP: CLIPS} if self.privacy else {})


def cell_of(method: str) -> dict[str, Any]:
    """What experiments.yaml tells of a method."""
    found: dict[str, Any] = of_paper("frontier")["options"]["frontier/method"][method]["cell"]
    return found


def entries() -> Iterator[Entry]:
    """All entries, data set by data set; those with noise last."""
    methods = list(of_paper("frontier")["options"]["frontier/method"])
    datasets = list(of_paper("frontier")["options"]["frontier/data"])
    for dataset in datasets:
        yield from (Entry(dataset, method) for method in methods if dataset in cell_of(method)["data"])
    for dataset in PRIVATE_ON:
        for method in methods:
            for privacy in cell_of(method).get("private", ()):
                yield from (Entry(dataset, method, privacy, epsilon) for epsilon in EPSILONS)


def read_trials() -> list[tuple[str, str, int, str, float]]:
    """Rows of trials.csv; none where it is not there yet."""
    if not TRIALS.exists():
        return []
    with TRIALS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [(dataset, method, int(trial), values, float(error)) for dataset, method, trial, values, error in rows]


def append(rows: list[tuple[Any, ...]]) -> None:
    """Add the rows of one search to trials.csv."""
    new = not TRIALS.exists()
    with TRIALS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows] if new else rows)


def best_of(trials: list[tuple[str, str, int, str, float]]) -> list[tuple[str, str, int, str, float]]:
    """The best trial of each entry that has all its trials."""
    of_entry: dict[tuple[str, str], list[tuple[str, str, int, str, float]]] = {}
    for row in trials:
        of_entry.setdefault(row[:2], []).append(row)
    return [min(rows, key=lambda row: row[-1]) for rows in of_entry.values() if len(rows) == BUDGET]


def tuned(trials: list[tuple[str, str, int, str, float]]) -> str:
    """Content of tuned.yaml: a choice for each entry, with its best values."""
    best = {row[:2]: row for row in best_of(trials)}
    options: dict[str, Any] = {}
    for entry in entries():
        row = best.get((entry.dataset, entry.setting))
        if row is None or not math.isfinite(row[-1]):
            continue
        config: dict[str, Any] = {}
        for word in row[3].split("; "):
            key, _, value = word.partition("=")
            group, _, name = key.partition(".")
            config.setdefault(group, {})[name] = int(value) if value.isdigit() else float(value)
        if "smallest" in config.get("kernels", {}):
            config["kernels"]["largest"] = config["kernels"]["smallest"]  # one kernel
        over = [{"override /privacy": entry.privacy}] if entry.privacy else []
        parts = [f"/{group}/{choice}" for group, choice in entry.choices.items() if group != "privacy"]
        cell: dict[str, Any] = {"dataset": entry.dataset, "searched": row[-1], "tuned": row[3]}
        cell |= {"privacy": entry.privacy, "epsilon": entry.epsilon} if entry.privacy else {}
        options[entry.name] = {"defaults": [*parts, *over], **config, "cell": cell}
    lines = [
        f"  {name}: {yaml.safe_dump(node, default_flow_style=True, width=10_000, sort_keys=False)}"
        for name, node in options.items()
    ]
    return HEADER + "frontier/tuned:\n" + "".join(lines)
