"""Content of the page on each run, and on the machines, packages and data of all runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import pandas as pd
import yaml

from fkl.basics.errors import FklError
from fkl.data import registry
from fkl.data.baselines import CONSTANTS
from fkl.data.store import DataFile, Store
from fkl.report.compare.labels import flat_config, key_values, varying_keys
from fkl.report.html import SMALL, HtmlPicture, picture_of_png
from fkl.runs.command import SHORT, judge_summary
from fkl.runs.finished_runs import Collected, FinishedRun, folder_entries
from fkl.runs.metrics import main_metric
from fkl.screen.sheet import Sheet
from fkl.screen.units import cell_text, with_spread

ENVIRONMENT = ("fkl", "commit", "python", "processor", "cores", "machine", "blas", "packages")
"""Keys that runs share if they are from the same machine and installation."""

NOT_TOLD = ("state", "files")
"""Keys of a provenance.json that are only for programs."""

WAYS = ("uplink", "downlink", "link")
"""Directions whose bytes count; a broadcast is counted on its links."""
LONGEST_LIST = 8
LONGEST_ERROR = 2**16
"""Number of bytes that are read from the end of an error.txt."""
LETTERS_SHOWN = 2000


@dataclass(frozen=True)
class RunView:
    """A run for readers.

    Parameters
    ----------
    run : FinishedRun
    own : str
        The keys in which it differs from the other runs of its algorithm and data set.
    pictures : list of Picture
        Its figures.
    """

    run: FinishedRun
    own: str
    pictures: list[HtmlPicture]

    @property
    def summary(self) -> Sheet:
        """Mean and standard deviation over replicates."""
        frame = self.run.summary.drop(columns="replicate").select_dtypes("number")
        columns = {"at the end": frame.columns.str.replace("_", " "), "mean": frame.mean().to_numpy()}
        if len(frame) > 1:
            columns |= {"spread": frame.std(ddof=1).to_numpy()}
        return Sheet.from_frame(pd.DataFrame(columns), f"Summary over {len(frame)} replicates")

    @cached_property
    def _mean(self) -> dict[str, float]:
        return {str(name): float(value) for name, value in self.run.summary.mean(numeric_only=True).items()}

    @property
    def metric(self) -> str:
        """Its main error."""
        return main_metric(self.run.summary)

    @property
    def error(self) -> float:
        """Mean of its main error over replicates."""
        return self._mean[self.metric]

    @property
    def error_in_words(self) -> str:
        """Mean and standard deviation of its main error over replicates."""
        values = self.run.summary[self.metric]
        return with_spread(self.error, float(values.std(ddof=1)) if values.nunique() > 1 else 0.0)

    @property
    def baseline(self) -> tuple[str, float] | None:
        """Name and error of its best baseline; None if it has no baseline."""
        there = {name: self._mean[name] for name in CONSTANTS.get(self.metric, ()) if name in self._mean}
        best = min(there, key=there.__getitem__, default=None)
        return None if best is None else (SHORT[best], there[best])

    @property
    def mark(self) -> str:
        """Mark for whether it is better than every baseline; empty if it has no baseline."""
        return judge_summary(self.run.columns).mark if self.baseline is not None else ""

    @property
    def sent(self) -> float | None:
        """Bytes sent by all clients in all rounds, in all directions."""
        ways = [self._mean[name] for way in WAYS if (name := f"{way}_bytes") in self._mean]
        return sum(ways) if ways else None

    @property
    def time(self) -> float:
        """Seconds of computing for one replicate."""
        return self._mean.get("runtime_s", float("nan"))

    @property
    def config(self) -> str:
        """Its resolved configuration."""
        return yaml.safe_dump(self.run.config, sort_keys=False)

    @property
    def provenance(self) -> list[tuple[str, str]]:
        """Content of provenance.json as text."""
        told = {key: value for key, value in self.run.provenance.items() if key not in NOT_TOLD}
        return [(key.replace("_", " "), in_words(value)) for key, value in told.items()]


@dataclass(frozen=True)
class Environment:
    """Machine and installation of some runs.

    Parameters
    ----------
    facts : list of (str, str)
    runs : int
    first, last : str
        First and last day of these runs.
    """

    facts: list[tuple[str, str]]
    runs: int
    first: str
    last: str


@dataclass(frozen=True)
class DataSource:
    """A data set: description, availability, and how to get it."""

    name: str
    title: str
    licence: str
    files: tuple[DataFile, ...]
    missing: tuple[DataFile, ...]

    @property
    def remedy(self) -> str:
        """How to get missing files, in Markdown."""
        if not self.title:
            return "fkl has no data set with this name, see the differences"
        if not self.missing:
            return "available" if self.files else "needs no file"
        names = in_words([file.name for file in self.missing])
        if any(file.url for file in self.missing):
            return f"`fkl data fetch {self.name}` gets {names}"
        return f"no address is known for {names}; put a copy into the folder `{self.name}` of `FKL_DATA` (or `data/`)"


def add_pictures(pictures: dict[Path, list[HtmlPicture]], found: Collected) -> None:
    """Add the figures of runs, by the run's folder; a run with an unreadable figure counts as broken."""
    while new := [run for run in found.runs if run.folder not in pictures]:  # an older run may replace it
        for run in new:
            about = f"{run.algorithm} on {run.dataset}"
            files = [run.folder / name for name in sorted(run.provenance["files"]) if name.endswith(".png")]
            try:
                pictures[run.folder] = [picture_of_png(file, f"{about}: {file.stem}", SMALL) for file in files]
            except FklError as error:
                found.leave_out(run, str(error))


def run_views(runs: Iterable[FinishedRun], pictures: dict[Path, list[HtmlPicture]]) -> list[RunView]:
    """All runs in the order of data set and algorithm, with their figures."""
    found = sorted(runs, key=lambda run: (run.dataset, run.algorithm, run.ended))
    groups = groupby(found, key=lambda run: (run.dataset, run.algorithm))
    return [view for _, group in groups for view in _told_apart(list(group), pictures)]


def run_environments(runs: Iterable[FinishedRun]) -> list[Environment]:
    """The machines and installations of the runs, with the most frequent first."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in runs:
        facts = tuple((key, in_words(run.provenance.get(key))) for key in ENVIRONMENT)
        groups.setdefault(facts, []).append(f"{run.ended:%Y-%m-%d}")
    environments_found = [Environment(list(facts), len(days), min(days), max(days)) for facts, days in groups.items()]
    return sorted(environments_found, key=lambda environment: -environment.runs)


def data_source(name: str, store: Store) -> DataSource:
    """Facts about a data set; only the name of an unknown data set."""
    if name not in registry.dataset_names():
        return DataSource(name, "", "", (), ())
    data = registry.named_dataset(name)
    missing = tuple(file for file in data.data_files if store.find_file(file) is None)
    return DataSource(name, data.title, data.licence, tuple(data.data_files), missing)


def run_failures(outputs: Path) -> dict[str, str]:
    """Last line of each failed run's error, by folder."""
    return {folder.name: _last_line(folder / "error.txt") for folder in folder_entries(outputs / "failed")}


def _last_line(file: Path) -> str:
    try:
        if not file.is_file():
            return f"{file.name} is missing"
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - LONGEST_ERROR))
            text = stream.read().decode(errors="replace")
    except OSError as error:
        return f"{file.name} cannot be read ({error.strerror})"
    return text.rstrip().rpartition("\n")[2][:LETTERS_SHOWN] or f"{file.name} is empty"


def in_words(value: object) -> str:
    """A value of a provenance.json as text: long lists as their length, dictionaries as pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {in_words(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        if len(value) > LONGEST_LIST:
            return f"{len(value)} entries, {in_words(value[0])} the first"
        return ", ".join(in_words(one) for one in value)
    return "not known" if value is None else cell_text(value)


def _told_apart(runs: list[FinishedRun], pictures: dict[Path, list[HtmlPicture]]) -> list[RunView]:
    """Runs of one algorithm on one data set, with the keys that differ between them."""
    configs = [flat_config(run.config) for run in runs]
    keys = varying_keys(configs)
    pairs = zip(runs, configs, strict=True)
    return [RunView(run, key_values(config, keys), pictures[run.folder]) for run, config in pairs]
