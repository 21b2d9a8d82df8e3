"""Selection of finished runs for a comparison, by folders, sweeps, globs, and values of keys."""

import csv
import re
from collections.abc import Iterable
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from stat import S_ISREG
from typing import Any

import yaml

from fkl import conf_folder
from fkl.basics.errors import FklError, in_one_line, require
from fkl.report.compare.labels import CLASS, Flat, flat_config
from fkl.runs.finished_runs import CONFIG_FILE, Collected, DivergedRun, EndedRun, FinishedRun, folder_entries
from fkl.runs.folder import LAST_FILE

VERIFIED = (CONFIG_FILE, "summary.csv", "rounds.csv")
"""Files whose checksums are verified: those that a comparison reads."""
JOBS = "jobs.csv"
NAMED = ("algo", "dataset")
"""Groups whose choices users name, as in `algo=pof_mkl`."""
GLOB = re.compile(r"[*?\[]")
MOST_TOLD = 12


def choose_runs(where: Iterable[str | PathLike[str]]) -> Collected:
    """Read the runs named by some words.

    Parameters
    ----------
    where : iterable of str or Path
        Folders of runs, of sweeps, or with both, such as outputs; globs for these; and ``KEY=VALUE,VALUE``. The runs of
        all folders and globs are read (by default those of outputs), and must match every ``KEY=VALUE,VALUE``.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the word without a match.
    """
    # Words with = are filters, all others are places
    paths = [fspath(word) for word in where]
    filters = [word for word in paths if _is_filter(word)]
    places = [word for word in paths if not _is_filter(word)] or ["outputs"]
    # Read all folders once, even if several places name them
    collected = Collected()
    for folder in dict.fromkeys(folder.resolve() for place in places for folder in _run_folders(place)):
        collected.add(folder, VERIFIED)
    if not collected.whole:
        collected.warn_about_runs()
        diverged = len(collected.diverged)
        why = f"{diverged} diverged; lower the step size" if diverged else "fkl run makes one"
        raise FklError(f"{', '.join(map(in_one_line, places))}: no finished run there; {why}")
    # Newest last; then each filter in turn
    collected.whole.sort(key=lambda run: run.ended)
    ended: list[EndedRun] = [*collected.diverged, *collected.whole]
    for word in filters:
        ended = _runs_with_value(word, ended)
    collected.whole = [run for run in ended if isinstance(run, FinishedRun)]
    collected.diverged = [run for run in ended if isinstance(run, DivergedRun)]
    return collected


def _is_filter(word: str) -> bool:
    return re.match(r"[A-Za-z_][\w.]*=", word) is not None and not Path(word).exists()


def _run_folders(place: str) -> list[Path]:
    """Folders of runs at a path, or at every path that a glob matches."""
    if not GLOB.search(place) or Path(place).exists():
        return _of_one(Path(place))
    path = Path(place)
    root = Path(path.anchor) if path.is_absolute() else Path()
    matches = sorted(root.glob(str(path.relative_to(path.anchor))))
    require(bool(matches), "where", place, "a glob that matches a path")
    return [folder for one in matches if one.is_dir() for folder in _of_one(one)]


def _of_one(place: Path) -> list[Path]:
    """The folder of a run itself, or the runs of a sweep, in a folder, or in its subfolder `runs`."""
    # A sweep's table lists its runs; a run is a folder with provenance; anything else has runs in it
    table = place if place.name == JOBS else place / JOBS
    if table.is_file():
        return _of_sweep(table)
    require(place.is_dir(), "where", place, f"a folder, a glob, or KEY=VALUE; a sweep's folder has a {JOBS}")
    if (place / LAST_FILE).is_file():
        return [place]
    outputs = place.parent if place.name == "runs" else place
    there = outputs / "runs"
    several = [*folder_entries(there), *folder_entries(outputs / "failed")] if there.is_dir() else folder_entries(place)
    return [folder for folder in several if _may_be_run(folder)]


def _may_be_run(folder: Path) -> bool:
    """Whether a folder has the files of a finished run; also true for an unreadable one, which `read_run` names."""
    try:
        return S_ISREG((folder / LAST_FILE).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _of_sweep(table: Path) -> list[Path]:
    """Folders of a sweep's jobs, if they have one; paths are relative to the folder in which the sweep was started."""
    with table.open(encoding="utf-8", newline="") as stream:
        try:
            folders = [Path(row["folder"]) for row in csv.DictReader(stream) if row["state"] and row["folder"]]
        except (KeyError, AttributeError, csv.Error, UnicodeDecodeError):
            raise FklError(f"{table}: not the list of a sweep's jobs") from None
    above = [Path(), *table.resolve().parents]
    return [next((base / folder for base in above if (base / folder).is_dir()), folder) for folder in folders]


def _runs_with_value(word: str, runs: list[EndedRun]) -> list[EndedRun]:
    """Runs that have one of these values of a key."""
    key, _, text = word.partition("=")
    wanted = text.split(",")
    fitting = [run for run in runs if any(_has_value(run, key, one) for one in wanted)]
    if not fitting:
        there = sorted({name for run in runs for name in _values_of_key(run, key)})
        told = ", ".join(there[:MOST_TOLD]) + (", ..." if len(there) > MOST_TOLD else "")
        raise FklError(f"{word}: matches none of {len(runs)} runs; " + (f"there is {told}" if there else "no such key"))
    return fitting


def _has_value(run: EndedRun, key: str, wanted: str) -> bool:
    config = flat_config(run.config)
    if key in config:
        return bool(config[key] == _parse_value(wanted))
    return _normalised_name(wanted) in {_normalised_name(name) for name in _names_of_choice(run, key, config)}


def _values_of_key(run: EndedRun, key: str) -> list[str]:
    config = flat_config(run.config)
    return [str(config[key])] if key in config else _names_of_choice(run, key, config)[-1:]


def _names_of_choice(run: EndedRun, group: str, config: Flat) -> list[str]:
    """Names of a group's choice: its class and module, and its displayed name."""
    target = config.get(f"{group}.{CLASS}")
    if target is None:
        return []
    *_, module, name = ["", *str(target).split(".")]
    names_of_run = {"algo": run.algorithm, "dataset": run.dataset}
    return [
        name,
        *_choices_by_class(group).get(str(target), []),
        *([module, names_of_run[group]] if group in NAMED else []),
    ]


@cache
def _choices_by_class(group: str) -> dict[str, list[str]]:
    """Name of a group's choice by its class, without classes that several choices share."""
    choices_of: dict[str, list[str]] = {}
    for file in sorted((conf_folder() / group).glob("*.yaml")):
        if target := re.search(r"^_target_: *(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            choices_of.setdefault(target[1], []).append(file.stem)
    return {target: names for target, names in choices_of.items() if len(names) == 1}


def _normalised_name(name: str) -> str:
    """A normalised name, in which RBF-1 equals rbf_1."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _parse_value(text: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return int(value) if isinstance(value, float) and value.is_integer() else value
