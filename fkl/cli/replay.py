"""`fkl replay`: repeat a finished run from its folder, and compare its tables digit by digit."""

import csv
import re
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fkl.basics.errors import FklError, in_one_line
from fkl.engines.base import DivergedError
from fkl.report import draw_figures
from fkl.runs.finished_runs import CONFIG_FILE, FinishedRun, read_run
from fkl.runs.folder import read_provenance
from fkl.runs.play import execute_run
from fkl.runs.prepare import to_play_again
from fkl.runs.tables import TABLES, TIMING_COLUMNS
from fkl.screen.messages import print_lines

DIGEST = re.compile("[0-9a-f]{12}")
FILES = tuple(f"{name}.csv" for name in TABLES)
PLACES = ("replicate", "round", "client")
"""Columns that identify a row."""
SURROUNDINGS = ("fkl", "code", "data", "python", "processor", "blas")
"""Keys of provenance.json that can change results, in addition to package versions and the configuration."""


class Replay(NamedTuple):
    """Result of repeating a run.

    Parameters
    ----------
    first : str
        Place and size of the first difference; empty if there is none.
    words : str
        Summary in one line.
    """

    first: str
    words: str

    @property
    def same(self) -> bool:
        """Whether all digits are the same."""
        return not self.first


def replay_command(which: str, outputs: Path = Path("outputs")) -> bool:
    """Repeat a run, print one line about it, and return whether its digits are the same."""
    replayed = replay_run(find_run(which, outputs))
    print_lines(f"{'✓' if replayed.same else '✗'} {replayed.words}")
    return replayed.same


def find_run(which: str, outputs: Path) -> FinishedRun:
    """Find a run by its digest or its folder.

    Its tables may have changed since it ended, because `replay_run` reports that; its configuration must not have.
    """
    folders = [Path(which)]
    if DIGEST.fullmatch(which) and not folders[0].exists():
        folders = sorted((outputs / "runs").glob(f"*-{which}"))
        if not folders:
            raise FklError(f"{which}: no run in {outputs / 'runs'} has this digest", help=["or name the run's folder"])
    try:
        return read_run(folders[0], only=(CONFIG_FILE,))
    except FklError as error:
        raise FklError(f"{in_one_line(folders[0])}: {error}") from None


def replay_run(run: FinishedRun, progress: bool = True) -> Replay:
    """Repeat a run in a temporary folder, and compare every cell of its tables as text.

    Data are read from FKL_DATA, or from the run's own data folder. The user's own files and modules are read from the
    current folder, as in the run.
    """
    start = time.monotonic()
    with TemporaryDirectory(prefix="fkl-replay-") as place:
        again = Path(place) / "run"
        nothing_more = {"logger": None, "figures": "none", "save_model": False, "checkpoint_s": None, "objective": None}
        try:
            execute_run(to_play_again(run, place, out=str(again), **nothing_more), draw_figures, progress)
        except DivergedError as error:
            first, facts = f"the repeated run diverged ({error})", {}
        else:
            first = next((line for name in FILES for line in _table_differences(run.folder / name, again / name)), "")
            facts = read_provenance(again)
    name = run.folder.name
    if first:
        line = f"other digits in {name}: {first}"
    else:
        but = " and ".join(TIMING_COLUMNS)
        took = f"repeated in {time.monotonic() - start:.1f} s"
        line = f"same digits in {name}: all of {', '.join(FILES)} except {but}, {took}"
    return Replay(first, f"{line}; {_changed_surroundings(run.provenance, facts)}" if facts else line)


def _table_differences(then: Path, now: Path) -> Iterator[str]:
    """Differences between two tables of the same name, from the top, each with its size; only columns of the first."""
    name = then.name
    rows = zip_longest(_table_rows(then), _table_rows(now))
    before, after = next(rows, (None, None))
    places = [at for at, column in enumerate(after or ()) if column in (before or ())]  # a later fkl may add columns
    if not before or before != [(after or ())[at] for at in places]:
        apart = sorted({*(before or ())} ^ {*(after or ())})
        yield f"columns of {name} are not the same ({', '.join(apart) or 'another order'})"
        return
    columns = [number for number, column in enumerate(before) if column not in TIMING_COLUMNS]
    for number, (one, other) in enumerate(rows, start=1):
        if one == other:
            continue
        if one is None or other is None:
            count = "more" if one is None else "fewer"
            yield f"{name} has {count} rows when it is repeated, from row {number} on"
            return
        if len(one) != len(before) or len(other) != len(after or ()):
            yield f"row {number} of {name} has {len(one)} cells, {len(other)} when it is repeated"
            return
        other = [other[at] for at in places]
        where = ", ".join(f"{column} {other[before.index(column)]}" for column in PLACES if column in before)
        for at in columns:
            if one[at] != other[at]:
                yield f"{before[at]} of {name} ({where}) is {one[at] or 'empty'}, {_changed_value(one[at], other[at])}"


def _table_rows(file: Path) -> Iterator[list[str]]:
    """Cells of a table as text, starting with the headings."""
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            yield from csv.reader(stream)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FklError(f"{file}: cannot be read ({error})") from None


def _changed_value(then: str, now: str) -> str:
    """The new value of a cell, and its difference from the old one."""
    try:
        old, new = float(then), float(now)
    except ValueError:
        return f"{now or 'empty'} when it is repeated"
    share = f", {(new - old) / abs(old):+.2g} of its size" if old else ""
    return f"{now} when it is repeated ({new - old:+.3g}{share})"


def _changed_surroundings(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Text about what has changed since the run: code, data or versions."""
    if then["digest"] == now["digest"]:  # which also covers code and data
        then = {**then, **{key: now[key] for key in ("code", "data")}}
    recorded = [key for key in SURROUNDINGS if key in then]
    differ = [_changed_entry(key, then, now) for key in recorded]
    differ += [
        _changed_entry(name, then["packages"], now["packages"]) for name in {**then["packages"], **now["packages"]}
    ]
    difference = ", ".join(filter(None, differ))
    said = f"what differs: {difference}" if difference else "code, data and versions are those of the run"
    missing = [key for key in SURROUNDINGS if key not in recorded]
    if missing and not difference:
        said = "versions are those of the run"
    return said + f"; the run did not record {', '.join(missing)}" * bool(missing)


def _changed_entry(key: str, then: dict[str, Any], now: dict[str, Any]) -> str:
    """Old and new value of an entry; empty if it is unchanged."""
    old, new = then.get(key), now.get(key)
    if old == new:
        return ""
    if key == "code" and then.get("commit") != now.get("commit"):  # more useful for people than a hash
        old, new = (str(one.get("commit"))[:12] for one in (then, now))
    return f"{key} ({_entry_text(old)} then, {_entry_text(new)} now)"


def _entry_text(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)
