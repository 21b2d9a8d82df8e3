"""Tables of papers as they are printed: which number stands in a cell, with which mark."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from fkl.config import experiments
from fkl.papers import PAPERS
from fkl.papers.cells import (
    AS_STATED,
    DIFFERENT,
    MISSING,
    ONE,
    OTHER,
    TIME,
    Answer,
    Cell,
    answered,
    published,
    rounding,
)
from fkl.papers.evidence import Evidence
from fkl.papers.tables import not_run, sheets

LAYOUT = {"rows": ["algorithm"], "columns": ["metric", "dataset"]}
VARIANT = "as published"


def answer(ours: float, reading: str = AS_STATED) -> Answer:
    return Answer.from_values("", ours + pd.Series(np.linspace(-0.1, 0.1, 20)), reading, 20)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Evidence]:
    """A paper with one table of these cells and answers, whose one reading is the variant."""
    told = {"variants": {VARIANT: "it"}, "builds_on": {}, "readings_tried": 2, "tables": {"1": LAYOUT}}
    monkeypatch.setattr(experiments, "of_paper", lambda _: told)

    def judged(answers: dict[tuple[str, str, str], tuple[str, list[Answer]]]) -> Evidence:
        cells = [
            Cell("mine", "1", dataset, algorithm, "", metric, "s" if metric == "runtime" else "", float(printed),
                 rounding=rounding(printed))
            for (algorithm, dataset, metric), (printed, _) in answers.items()
        ]  # fmt: skip
        return Evidence("mine", answered(cells, lambda cell: answers[cell.algorithm, cell.dataset, cell.metric][1], 2))

    return judged


def test_a_cell_has_the_number_and_the_mark_that_settled_it(judged: Callable[..., Evidence]) -> None:
    """The one reading's, but for cells that only another one makes agree; with the decimals of the printed number."""
    made = judged({
        ("A", "naval", "runtime"): ("5", [answer(9.0)]),
        ("A", "naval", "mse"): ("100.0", [answer(150.0), answer(101.0, VARIANT)]),
        ("A", "air", "mse"): ("100.0", [answer(102.25), answer(150.0, VARIANT)]),
        ("B", "naval", "mse"): ("100.0", [answer(150.0), answer(151.0, VARIANT)]),
        ("B", "air", "mse"): ("100.0", []),
        ("C", "naval", "mse"): ("90.00", [answer(150.0), answer(91.0, VARIANT)]),
    })  # fmt: skip
    marks = {(*cell.key[:2], cell.metric): (cell.mark, cell.decided_by) for cell in made.judged("1")}
    assert marks == {
        ("naval", "A", "runtime"): (TIME, AS_STATED), ("naval", "A", "mse"): (ONE, VARIANT),
        ("air", "A", "mse"): (OTHER, AS_STATED), ("naval", "B", "mse"): (DIFFERENT, VARIANT),
        ("air", "B", "mse"): (MISSING, AS_STATED), ("naval", "C", "mse"): (ONE, VARIANT),
    }  # fmt: skip
    [errors], [times] = sheets(made, "1"), sheets(made, "1", times=True)
    assert errors.headings == ["MSE", "naval", "air"]
    assert [[cell.text for cell in row] for row in errors.rows] == [
        ["A", "101.0", "102.2"], ["B", "151.0", "–"], ["C", "91.00", ""]
    ]  # fmt: skip
    assert [[cell.above for cell in row] for row in errors.rows][1:] == [["", "100.0", "100.0"], ["", "90.00", ""]]
    assert [[cell.mark for cell in row] for row in errors.rows] == [["", "✓", "v"], ["", "✗", ""], ["", "✓", ""]]
    assert errors.rows[0][1].small == "0.03"
    assert [cell.text for row in errors.rows for cell in row if cell.weight == "best"] == ["91.00"]
    assert not_run(made, "1") == {"air": 1}
    assert times.headings[0] == "run time (s)" and [cell.mark for row in times.rows for cell in row] == ["", ""]


def test_what_was_not_run_is_left_out(judged: Callable[..., Evidence]) -> None:
    made = judged({("A", "naval", "mse"): ("1.0", [answer(1.0)]), ("B", "air", "mse"): ("1.0", [])})
    [sheet] = sheets(made, "1")
    assert (sheet.headings, [row[0].text for row in sheet.rows], not_run(made, "1")) == (
        ["MSE", "naval"],
        ["A"],
        {"air": 1},
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_sheets_hold_every_published_cell_once(paper: str) -> None:
    cells = published(paper)
    made = Evidence(paper, answered(cells, lambda cell: [answer(1.0)]))
    for number in dict.fromkeys(cell.table for cell in cells):
        shown = [*sheets(made, number), *sheets(made, number, times=True)]
        filled = [cell for sheet in shown for row in sheet.rows for cell in row if cell.above]
        assert len(filled) == sum(cell.table == number for cell in cells)
