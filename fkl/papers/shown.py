"""A paper's table in a terminal: a sentence, grids in the paper's layout, and the missing runs."""

from collections.abc import Iterator
from pathlib import Path

import click

from fkl.basics.environment import variable
from fkl.basics.errors import plural
from fkl.data import registry
from fkl.data.store import Store
from fkl.papers.printed import Grid, PrintedCell
from fkl.papers.published import AS_STATED
from fkl.papers.verdicts import COUNTED, DIFFERENT, EARLY, MISSING, TIME, Judged
from fkl.screen.messages import say
from fkl.screen.sheet import Sheet
from fkl.statistics.equivalence import AGREES

COLOURS = {"near": "green", "close": "yellow", "inside": "cyan", "far": "red"}
"""Colours of marks, by the names of `fkl.papers.verdicts.Mark`."""


def show_grids(title: str, judged: Judged, table: str, grids: list[Grid], unobtainable: dict[str, str]) -> None:
    """Print a paper's table in its layout, with our numbers below the published ones.

    Parameters
    ----------
    title : str
    judged : Judged
        The cells of all tables of the paper.
    table : str
        Its number.
    grids : list of Grid
        Grids of this table.
    unobtainable : dict of str to str
        Data sets that are not available, and why.
    """
    say(click.style(title, bold=True), verdict(judged, table))
    for grid in grids:
        if not (part := grid.run_part).rows:
            continue
        say("")
        rows = [
            [name, *(_shown(cell, grid.of_times) for cell in cells)]
            for name, cells in zip(part.rows, part.cells, strict=True)
        ]
        Sheet.from_rows([part.title, *part.columns], rows, range(1, 1 + len(part.columns))).show()
    say("", *(click.style(line, dim=True) for line in _legend(judged, grids, table)), *_not_run(grids, unobtainable))


def verdict(judged: Judged, table: str) -> str:
    """One sentence: the share of a table's numbers that agree as described, among those that were run.

    All points of a curve share one verdict, and count once.
    """
    marks = judged.tally(table)
    counted = [cell for cell, mark in judged.outcomes if cell.table == table and mark in COUNTED]
    if not counted:
        if EARLY in marks:
            return "No verdict: our runs have fewer replicates than the paper's."
        if {*marks} <= {MISSING}:
            return "No verdict: nothing was run."
        return "No verdict: run times alone." if {*marks} <= {TIME, MISSING} else "No verdict: nothing to compare."
    described = sum(cell.by(AS_STATED, judged.builds_on) == AGREES for cell in counted)
    some = sum(AGREES in cell.verdicts.values() for cell in counted)
    differ = marks.get(DIFFERENT, 0)
    rest = {
        "by another reading": some - described,
        "by none that was run": differ,
        "undecided": len(counted) - some - differ,
    }
    others = "; ".join(f"{count} {words}" for words, count in rest.items() if count)
    what = "curve" if all(cell.rows["curve"].ne("").all() for cell in counted) else "number"
    first = f"{described} of {plural(len(counted), what)} that were run come out as described"
    return f"{first}{'; ' * bool(others)}{others}."


def _shown(cell: PrintedCell | None, of_times: bool) -> str:
    """The published number, and ours on the next line, after its mark."""
    if cell is None:
        return ""
    published = click.style(cell.published, dim=True)
    if not cell.ours:
        return f"{published}\n–"
    if of_times or cell.mark is None:
        return f"{published}\n{cell.ours}"
    return f"{published}\n{click.style(f'{cell.mark.sign} {cell.ours}', fg=COLOURS.get(cell.mark.name))}"


def _legend(judged: Judged, grids: list[Grid], table: str) -> Iterator[str]:
    """Meanings of the marks that occur."""
    marks = {cell.mark: None for grid in grids for cell in grid.all_cells if cell.ours and cell.mark is not None}
    words = [f"{mark.sign} {mark.words}" for mark in marks if mark != TIME]
    if any(cell.ours for grid in grids for cell in grid.all_cells):
        yield "published, and ours below it" + "".join(f" · {one}" for one in words)
    counted = [cell for cell, mark in judged.outcomes if mark in COUNTED and cell.table == table]
    if counted:
        run = {reading for cell in counted for reading in cell.verdicts}
        replicates = sorted({cell.n for grid in grids for cell in grid.all_cells if cell.ours})
        many = " to ".join(map(str, dict.fromkeys((replicates[0], replicates[-1]))))
        yield f"{len(run)} of {plural(len(judged.readings), 'reading')} were run, with {many} replicates"
    if any(mark in COUNTED for mark in marks) and judged.reading != AS_STATED:
        yield f"the one reading is “{judged.reading}”: all readings are in the files"


def _not_run(grids: list[Grid], unobtainable: dict[str, str]) -> Iterator[str]:
    """Number of missing numbers by data set, with the reason if the data are not available."""
    counts: dict[str, int] = {}
    for grid in grids:
        for name, count in grid.not_run.items():
            counts[name] = counts.get(name, 0) + count
    why = {name: unobtainable.get(name) or _missing(name) for name in counts}
    if at_hand := [f"{count} of {name}" for name, count in counts.items() if not why[name]]:
        yield f"not run: {', '.join(at_hand)}"
    for name, count in counts.items():
        if why[name]:
            yield f"not run: {count} of {name} ({why[name]})"


def _missing(name: str) -> str:
    """How to get a data set that is not available; empty if it is."""
    store = Store(Path(variable("FKL_DATA", "data")))
    lacking = name in registry.names() and any(store.find(file) is None for file in registry.dataset(name).files)
    return f"data not available: fkl data fetch {name}" if lacking else ""
