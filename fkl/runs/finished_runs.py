"""Finished runs of an outputs folder, and errors about runs that have changed since they were written."""

import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line, require
from fkl.config.digest import config_identity
from fkl.config.experiments import LOADER
from fkl.config.settings import MOST_REPLICATES, NODES
from fkl.data.baselines import blown_up
from fkl.runs.folder import DERIVED, DIVERGED, FAILED, LAST_FILE, find_damage, read_provenance, read_summary
from fkl.screen.messages import show_warning
from fkl.tasks.task import Values

if TYPE_CHECKING:
    import pandas as pd

CONFIG_FILE = "config.yaml"
FILES = {CONFIG_FILE, "rounds.csv", "clients.csv", "summary.csv"}
"""Files that every run has, in addition to its figures."""

PROVENANCE: dict[str, type] = {
    "digest": str, "dataset": str, "algorithm": str, "rounds": int, "clients": int, "features": int,
    "rows_left_out": int, "scalars_by_kind": dict, "fkl": str, "python": str, "packages": dict, "machine": str,
    "processor": str, "blas": list, "files": dict,
}  # fmt: skip
CONFIG: dict[str, type] = {
    "seed": int, "replicates": int, "precision": str, "scaling": str, **dict.fromkeys(NODES, dict),
}  # fmt: skip
"""Types of the keys that every run has, in its provenance and in its configuration."""

ALLOWED = {str: "text", int: "an integer >= 0, below 2^63", dict: "keys with values", list: "a list"}
DEEPEST = 20
"""Maximum depth of keys and lists."""
LARGEST_CONFIG = 2**20
"""Maximum size in bytes, a thousand times that of a usual configuration."""
LONGEST_HEADER = 2**16
MOST_NAMED = 5

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters, marks that reverse the direction of text, and code points that text files cannot contain."""


@dataclass(frozen=True)
class EndedRun:
    """A run that ended: a `FinishedRun`, or a `DivergedRun`, which has no complete replicate.

    Parameters
    ----------
    folder : Path
    config : dict
        Its resolved configuration.
    provenance : dict
        Content of provenance.json.
    """

    folder: Path
    config: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return str(self.provenance["dataset"])

    @property
    def algorithm(self) -> str:
        """Name of the method in its paper."""
        return str(self.provenance["algorithm"])

    @property
    def digest(self) -> str:
        """Hash of everything that decides its numbers; its folder's name ends with it."""
        return str(self.provenance["digest"])

    @property
    def words(self) -> tuple[str, ...]:
        """The user's settings, as KEY=VALUE words; none for a run of an older version of fkl."""
        words = self.provenance.get("words")
        return tuple(map(str, words)) if isinstance(words, list) else ()

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return int(self.config["replicates"])

    @cached_property
    def decisive(self) -> str:
        """Digest of its configuration; the versions of fkl and of its packages also decide numbers."""
        return config_identity(self.config)

    @cached_property
    def cell(self) -> str:
        """Digest without seed and number of replicates; runs with the same cell and source may be pooled."""
        return config_identity(self.config, ("seed", "replicates"))

    @property
    def source(self) -> tuple[str, str]:
        """Hashes of the code that executed it, fkl's and the user's, and of its data."""
        return str(self.provenance.get("code")), str(self.provenance.get("data"))

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """(R,) Whether each replicate diverged: all of them if none is complete."""
        return np.ones(self.replicates, dtype=bool)

    def values(self, metric: str, worst: float) -> NDArray[np.float64]:
        """(R,) A column of the summary, with `worst` for replicates that diverged."""
        return np.full(self.replicates, worst)

    @cached_property
    def ended(self) -> datetime:
        """Time at which its folder was finished."""
        return datetime.fromtimestamp((self.folder / LAST_FILE).stat().st_mtime, UTC)


class DivergedRun(EndedRun):
    """A run whose numbers grew without bound."""


@dataclass(frozen=True)
class FinishedRun(EndedRun):
    """One finished run; parameters as for `EndedRun`."""

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """(R,) Whether each replicate ended with an error as large as that of a diverged run."""
        return blown_up(self.columns)

    def values(self, metric: str, worst: float) -> NDArray[np.float64]:
        """(R,) A column of the summary, with `worst` for replicates that diverged."""
        return np.where(self.diverged, worst, self.columns[metric])

    @cached_property
    def columns(self) -> Values:
        """(R,) Each column of the summary."""
        return read_summary(self.folder)

    @cached_property
    def summary(self) -> "pd.DataFrame":
        """One row per replicate."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    @cached_property
    def clients(self) -> "pd.DataFrame":
        """One row per replicate and client."""
        import pandas as pd

        return pd.read_csv(self.folder / "clients.csv")

    @cached_property
    def rounds(self) -> "pd.DataFrame":
        """One row per replicate and round."""
        import pandas as pd

        return pd.read_csv(self.folder / "rounds.csv")

    def forget_tables(self) -> None:
        """Drop the tables that may be large; they are read again when they are needed."""
        for name in ("clients", "rounds"):
            self.__dict__.pop(name, None)


@dataclass
class Collected:
    """Content of an outputs folder.

    Parameters
    ----------
    whole : list of FinishedRun
        Oldest first.
    diverged : list of DivergedRun
    broken : dict of Path to str
        Folders of incomplete or damaged runs, with the error.
    """

    whole: list[FinishedRun] = field(default_factory=list)
    diverged: list[DivergedRun] = field(default_factory=list)
    broken: dict[Path, str] = field(default_factory=dict)

    @property
    def runs(self) -> list[FinishedRun]:
        """The newest complete run of each configuration, oldest first; only these count.

        Seeds of one configuration are pooled, so their code and data are the newest run's: see `of_other_code`.
        """
        newest: dict[str, FinishedRun] = {}
        for run in self.whole:
            newest.pop(run.decisive, None)
            newest[run.decisive] = run
        sources = self._sources()
        return [run for run in newest.values() if run.source == sources[run.cell]]

    def _sources(self) -> dict[str, tuple[str, str]]:
        """Code and data of the newest run of each cell."""
        return {run.cell: run.source for run in self.whole}

    @property
    def of_other_code(self) -> list[EndedRun]:
        """Runs with a seed that was not repeated with the newest code or data of their cell: they are omitted."""
        newest = {run.decisive: run for run in (*self.diverged, *self.whole)}
        sources = self._sources()
        return [run for run in newest.values() if run.source != sources.get(run.cell, run.source)]

    @property
    def lost(self) -> list[DivergedRun]:
        """The diverged runs, one for each configuration without a complete run."""
        finished, sources = {run.decisive for run in self.whole}, self._sources()
        lost = {run.decisive: run for run in self.diverged if run.decisive not in finished}
        return [run for run in lost.values() if run.source == sources.get(run.cell, run.source)]

    @property
    def older(self) -> int:
        """Number of complete runs with the same configuration as a newer run."""
        return len(self.whole) - len({run.decisive for run in self.whole})

    def add(self, folder: Path, only: Collection[str] | None = None) -> None:
        """Read a folder and add its run as complete, diverged or broken; other failed runs are omitted.

        Parameters
        ----------
        folder : Path
        only : collection of str, optional
            As for `read_run`.
        """
        # A diverged run is a result of its own kind
        if (diverged := read_diverged(folder)) is not None:
            self.diverged.append(diverged)
            return
        # Complete runs count; a folder that failed before its end is not broken, but never was a run
        try:
            self.whole.append(read_run(folder, only))
        except FklError as error:
            if read_provenance(folder).get("state") not in (FAILED, DERIVED):
                self.broken[folder] = str(error)

    def leave_out(self, run: FinishedRun, reason: str) -> None:
        """Move a run to the broken runs, with the reason."""
        self.whole = [other for other in self.whole if other is not run]
        self.broken[run.folder] = reason

    def warn_about_runs(self) -> None:
        """Print one line on stderr about broken runs, and one about runs of other code, if there are any."""
        # Of equal configurations with other code, only the newest counts
        if others := [run.folder.name for run in self.of_other_code]:
            more = f" and {len(others) - MOST_NAMED} more" * (len(others) > MOST_NAMED)
            show_warning(
                "omitted, because newer runs of the same configuration have other code or data: "
                f"{', '.join(others[:MOST_NAMED])}{more}; repeat their commands to run these seeds, too"
            )
        if not self.broken:
            return
        # The first few broken folders with their reasons
        named = [f"{folder}: {reason}" for folder, reason in [*self.broken.items()][:MOST_NAMED]]
        named += [f"{len(self.broken) - MOST_NAMED} more"] * (len(self.broken) > MOST_NAMED)
        warnings_text = "; ".join(" ".join(legible_text(one).split()) for one in named)
        show_warning(f"broken runs omitted; to repair one, run its command again: {warnings_text}")


def collect_runs(outputs: Path) -> Collected:
    """Find the finished runs under `outputs`/runs.

    Raises
    ------
    fkl.basics.errors.FklError
        If that is not a readable folder. A folder that does not exist has no runs yet.
    """
    collected = Collected()
    # Diverged and failed runs have a folder of their own; the newest run comes last
    for kind in ("runs", "failed"):
        for folder in folder_entries(outputs / kind):
            collected.add(folder)
    collected.whole.sort(key=lambda run: run.ended)
    return collected


def folder_entries(folder: Path) -> list[Path]:
    """Entries of a folder that are not hidden; several links to the same target count once."""
    # A link and its target are one run, shown under the target's name
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FklError(f"{folder}: cannot be read ({error.strerror})") from None
    by_place: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), path.name)):
        by_place.setdefault(os.path.realpath(path), path)
    return sorted(by_place.values())


def legible_text(words: str) -> str:
    """Text with a replacement character for each character in `UNSEEN`."""
    return UNSEEN.sub("\ufffd", words)


def read_run(folder: Path, only: Collection[str] | None = None) -> FinishedRun:
    """Read a run.

    Parameters
    ----------
    folder : Path
    only : collection of str, optional
        Files whose checksums are compared with those at the end of the run, instead of all of its files.

    Raises
    ------
    fkl.basics.errors.FklError
        The message says why the run cannot be used.
    """
    # The folder must exist and be readable before its checksums are compared
    try:
        if not folder.is_dir():
            raise FklError("not a folder")
        with suppress(FileNotFoundError):
            (folder / LAST_FILE).stat()
    except OSError as error:
        raise FklError(f"cannot be read ({error.strerror})") from None
    if (reason := find_damage(folder, only)) is not None:
        raise FklError(reason)
    # Provenance and configuration with the types that later code relies on
    with _name_in_errors(LAST_FILE):
        provenance = json.loads((folder / LAST_FILE).read_text(encoding="utf-8"))
        _require_types(provenance, PROVENANCE)
        lacking = sorted(FILES - {*provenance["files"]})
        require(not lacking, "files", "", f"with {', '.join(lacking)}")
        require(not any("/" in name for name in provenance["files"]), "files", "", "files of the folder itself")
    with _name_in_errors(CONFIG_FILE):
        config = _read_configuration(folder / CONFIG_FILE)
        _require_types(config, CONFIG)
    run = FinishedRun(folder, config, provenance)
    with _name_in_errors("summary.csv"):
        # One row of numbers per replicate, and the columns of the rounds
        summary = run.columns
        if "replicate" not in summary or [*summary["replicate"]] != [*range(run.replicates)]:
            raise FklError(f"must have one row for each of the {run.replicates} replicates")
        endless = [name for name, values in summary.items() if np.isinf(values).any()]
        require(not endless, "columns", ", ".join(endless), "finite numbers")
        # The columns of the rounds must also be in the summary
        with (folder / "rounds.csv").open(encoding="utf-8") as stream:
            of_rounds = stream.readline(LONGEST_HEADER).rstrip("\n").split(",")
        lacking = sorted({*of_rounds} - {*summary, "round"})
        if lacking:
            raise FklError(f"lacks columns of rounds.csv: {', '.join(lacking)}")
    return run


def read_diverged(folder: Path) -> DivergedRun | None:
    """Read the files of a diverged run; None if the folder has anything else, or is incomplete."""
    # Only a folder that says it diverged, with everything that a report needs
    facts = read_provenance(folder)
    if facts.get("state") != FAILED or facts.get(DIVERGED) is not True:
        return None
    try:
        config = _read_configuration(folder / CONFIG_FILE)
        _require_types(config, CONFIG)
        _require_types(facts, {"dataset": str, "algorithm": str})
        require(config["replicates"] <= MOST_REPLICATES, "replicates", config["replicates"], f"<= {MOST_REPLICATES}")
    except Exception:  # json and PyYAML can raise nearly any error for a malicious file
        return None
    return DivergedRun(folder, config, facts)


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Put the file's name before any error that this block raises."""
    try:
        yield
    except FklError as error:
        raise FklError(f"{name}: {error}") from None
    except Exception as error:  # json, PyYAML and pandas can raise nearly any error for a malicious file
        raise FklError(f"{name}: cannot be read ({in_one_line(error) or type(error).__name__})") from None


def _read_configuration(file: Path) -> Any:
    """Content of a file that `yaml.safe_dump` may have written as a configuration.

    Other files are refused: aliases can expand a few lines without limit, and nested brackets can crash the compiled
    parser and the process.
    """
    # A huge or deeply nested file could stop the program, so both are refused before it is parsed
    size = file.stat().st_size
    require(size <= LARGEST_CONFIG, "size", size, f"at most {LARGEST_CONFIG} bytes")
    text = file.read_text(encoding="utf-8")
    try:
        _require_shallow(text, LOADER)
    except yaml.YAMLError:  # the compiled parser also raises it for deep nesting, since PyYAML 6.0.4
        _require_shallow(text, yaml.SafeLoader)
    return yaml.load(text, LOADER)


def _require_shallow(text: str, loader: Any) -> None:
    """Refuse nesting deeper than `DEEPEST`, and aliases."""
    levels = 0
    for event in yaml.parse(text, loader):
        levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if levels > DEEPEST or isinstance(event, yaml.AliasEvent):
            raise FklError("is nested too deeply, or has aliases")


def _require_types(values: Any, types: dict[str, type]) -> None:
    """Refuse anything except a mapping of plain values whose keys have these types."""
    if not (isinstance(values, dict) and _is_plain(values)):
        raise FklError("is not keys with plain values")
    for key, wanted in types.items():
        value = values.get(key)
        require(type(value) is wanted, key, value, ALLOWED[wanted])  # true is not 1 here
        if isinstance(value, int):
            require(0 <= value < 2**63, key, value, ALLOWED[int])


def _is_plain(value: Any, levels: int = DEEPEST) -> bool:
    """Whether a value is a JSON value, without excessive nesting."""
    if isinstance(value, dict):
        names = all(isinstance(key, str) for key in value)
        return names and levels > 0 and all(_is_plain(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return value is None or isinstance(value, str | int | float)
