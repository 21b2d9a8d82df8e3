"""The papers' experiments and the choices that they are made of, each paper's in one file: its experiments.yaml.

Such a file has, under `options`, groups of choices like those of conf/, each a configuration that belongs to no package
(``+graph_omkl/data=concrete``); under `experiments`, the choices of the group `experiment`; and under `variants`, what
the readings of the paper besides its text change; under `builds_on`, which of them share the runs of another one where
they have none of their own; under `readings_tried`, how many were tried, named or not; and under `tried`, which item of
differences.md tells of cells that differ. Some keys of a choice are no configuration:

about
    What it is, in one line; `fkl list` shows it.
sweep
    Of an experiment: what its jobs differ in, in the words of a command line (``hydra.sweeper.params``).
needed
    Of an experiment: false where no published number waits for it, but differences.md tells of other readings.
cell
    Of a job's run, where it stands in the paper's tables and figures; see `fkl.papers.our_runs`. One at the top of the
    file holds for all of the paper's experiments, unless they or their choices have another value.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

import fkl

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one, where there is one, is ten times faster
GROUP = "experiment"
NO_CONFIGURATION = ("about", "sweep", "needed", "cell")

Choices = dict[str, dict[str, dict[str, Any]]]
"""Groups, by their path; their choices, by name."""


def files() -> dict[str, Path]:
    """The file of each paper."""
    found = (Path(fkl.__file__).parent / "papers").glob("*/experiments.yaml")
    return {file.parent.name: file for file in sorted(found)}


@cache
def of_paper(paper: str) -> dict[str, Any]:
    """What a paper's file holds."""
    content: dict[str, Any] = yaml.load(files()[paper].read_text(encoding="utf-8"), LOADER)
    return content


def experiments(paper: str) -> dict[str, dict[str, Any]]:
    """A paper's experiments by their names, PAPER/NAME."""
    content = of_paper(paper)
    common = content.get("cell", {})
    return {name: {**node, "cell": {**common, **node.get("cell", {})}} for name, node in content["experiments"].items()}


def not_needed(paper: str) -> list[str]:
    """The paper's experiments that no published number waits for."""
    return [name for name, node in experiments(paper).items() if not node.get("needed", True)]


def variants(paper: str) -> dict[str, str]:
    """Readings of a paper besides its text, in their order, and what each changes."""
    return dict(of_paper(paper).get("variants", {}))


def builds_on(paper: str) -> dict[str, str]:
    """For each reading of a paper, the reading whose runs it uses where it has none; the others use the text's."""
    return dict(of_paper(paper).get("builds_on", {}))


def readings_tried(paper: str) -> int:
    """How many readings of a paper were tried, its text and those without a name among them."""
    return int(of_paper(paper).get("readings_tried", 1))


def tried(paper: str) -> dict[str, str]:
    """What is told of cells that differ, by algorithm or ``ALGORITHM on DATASET``: an item's first words."""
    return dict(of_paper(paper).get("tried", {}))


@cache
def choices() -> Choices:
    """All groups of all papers."""
    found: Choices = {}
    for paper in files():
        for group, options in of_paper(paper)["options"].items():
            found.setdefault(group, {}).update(options)
        for name, experiment in experiments(paper).items():
            group, _, option = f"{GROUP}/{name}".rpartition("/")
            found.setdefault(group, {})[option] = experiment
    return found


def groups_in(group: str) -> set[str]:
    """Names of the groups right inside a group, the topmost ones for an empty name."""
    start = f"{group}/" if group else ""
    return {path.removeprefix(start).partition("/")[0] for path in choices() if path.startswith(start)}


def is_group(path: str) -> bool:
    """Whether a path is that of a group, or of one that holds others."""
    return any(f"{group}/".startswith(f"{path}/") for group in choices())


def choice(path: str) -> dict[str, Any] | None:
    """A choice by its path, for example ``graph_omkl/data/concrete``; None where there is none."""
    group, _, option = path.removesuffix(".yaml").rpartition("/")
    return choices().get(group, {}).get(option)


def for_runs(node: dict[str, Any]) -> dict[str, Any]:
    """A choice as `fkl run` composes it."""
    config = {key: value for key, value in node.items() if key not in NO_CONFIGURATION}
    return config | ({"hydra": {"sweeper": {"params": node["sweep"]}}} if "sweep" in node else {})


def abouts(group: str) -> dict[str, str]:
    """What the choices of a group and of those inside it are, by their names from the group on."""
    found = {}
    for path, options in choices().items():
        if f"{path}/".startswith(f"{group}/"):
            for name, node in options.items():
                sweep = " (sweep: -m)" if "sweep" in node else ""
                found[f"{path}/{name}".removeprefix(f"{group}/")] = node.get("about", "") + sweep
    return found
