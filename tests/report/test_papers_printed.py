"""Tables of papers as they are printed: which number stands in a cell, with which mark."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from fkl.config import experiments
from fkl.papers import PAPERS, paper_module
from fkl.papers.printed import DEFAULT, grids
from fkl.papers.published import AS_STATED, Answer, beside, rounding
from fkl.papers.published import published as read_published
from fkl.papers.verdicts import DIFFERENT, MISSING, ONE, OTHER, TIME, Judged

ROWS, COLUMNS = ("algorithm",), ("metric", "dataset")
VARIANT = "as published"


def answer(ours: float, reading: str = AS_STATED) -> Answer:
    return Answer.from_values("", ours + pd.Series(np.linspace(-0.1, 0.1, 20)), reading, 20)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judged]:
    """A paper with one table of these cells and answers, whose one reading is the variant."""
    told = {"variants": {VARIANT: "it"}, "builds_on": {}, "readings_tried": 2}
    monkeypatch.setattr(experiments, "of_paper", lambda _: told)

    def judged(answers: dict[tuple[str, str, str], tuple[str, list[Answer]]]) -> Judged:
        cells = {
            key: {"dataset": key[1], "algorithm": key[0], "setting": "", "metric": key[2], "spread": np.nan}
            | {"unit": "s" if key[2] == "runtime" else "", "value": float(printed), "rounding": rounding(printed)}
            for key, (printed, _) in answers.items()
        }
        made = beside(
            cells.values(), lambda cell: answers[cell["algorithm"], cell["dataset"], cell["metric"]][1], 2
        )  # fmt: skip
        return Judged("mine", {"1": made})

    return judged


def test_a_cell_has_the_number_and_the_mark_that_settled_it(judged: Callable[..., Judged]) -> None:
    """The one reading's, but for cells that only another one makes agree; with the decimals of the printed number."""
    made = judged({
        ("A", "naval", "runtime"): ("5", [answer(9.0)]),
        ("A", "naval", "mse"): ("100.0", [answer(150.0), answer(101.0, VARIANT)]),
        ("A", "air", "mse"): ("100.0", [answer(102.25), answer(150.0, VARIANT)]),
        ("B", "naval", "mse"): ("100.0", [answer(150.0), answer(151.0, VARIANT)]),
        ("B", "air", "mse"): ("100.0", []),
        ("C", "naval", "mse"): ("90.00", [answer(150.0), answer(91.0, VARIANT)]),
    })  # fmt: skip
    errors, times = grids(made, "1", (ROWS, COLUMNS))
    assert (errors.rows, errors.columns, errors.of_times) == (["A", "B", "C"], ["naval", "air"], False)
    assert [[cell and (cell.ours, cell.mark, cell.reading) for cell in row] for row in errors.cells] == [
        [("101.0", ONE, VARIANT), ("102.2", OTHER, AS_STATED)],
        [("151.0", DIFFERENT, VARIANT), ("", MISSING, "")],
        [("91.00", ONE, VARIANT), None],
    ]
    assert errors.cells[0][0] is not None and errors.cells[0][0].half == "0.03"
    assert (errors.not_run, errors.best()) == ({"air": 1}, {(2, 0)})
    assert (times.metric, times.of_times) == ("run time", True)
    assert [cell.mark for cell in times.all_cells] == [TIME]


def test_what_was_not_run_can_be_left_out(judged: Callable[..., Judged]) -> None:
    made = judged({("A", "naval", "mse"): ("1.0", [answer(1.0)]), ("B", "air", "mse"): ("1.0", [])})
    [grid] = grids(made, "1", (ROWS, COLUMNS))
    assert (grid.run_part.rows, grid.run_part.columns, grid.not_run) == (["A"], ["naval"], {"air": 1})


@pytest.mark.parametrize("paper", PAPERS)
def test_grids_hold_every_published_cell_once(paper: str) -> None:
    module = paper_module(paper)
    for number in module.TABLES:
        cells = read_published(module.__file__, number) if paper not in ("fomd_oms", "fed_poe") else []
        if cells:
            made = Judged(paper, {number: beside(cells, lambda _: [])})
            shown = grids(made, number, getattr(module, "WIDE", {}).get(number, DEFAULT))
            assert sum(len(grid.all_cells) for grid in shown) == len(cells)
