"""What becomes of a printed number: its outcome by each reading, the counts of a paper, its place in tables."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fkl.config import experiments
from fkl.papers import PAPERS
from fkl.papers.cells import (
    AGREES_BY_CHOSEN,
    AGREES_OTHERWISE,
    AS_STATED,
    DIFFERENT,
    EARLY,
    FOLLOWS,
    MISSING,
    TIME,
    UNCLEAR,
    WITHIN_SPREAD,
    CellAnswer,
    PublishedCell,
    add_answers,
    rounding_of,
)
from fkl.papers.cells import published_cells as read_published
from fkl.papers.evidence import Evidence, shares_table
from fkl.papers.tables import not_run, table_layout, table_sheets, table_verdict, wide_frame

VARIANT, BETTER = "as published", "half"
BUILDS_ON = {BETTER: VARIANT}
FAR, WIDE = 150.0, 40.0


def printed(value: float | str, digits: str = "", **other: Any) -> PublishedCell:
    """A published cell."""
    cell = PublishedCell("mine", "1", "naval", "Raker", "", "mse", "", value, rounding=rounding_of(digits))
    return replace(cell, **other)


def published(value: float | str, *ours: CellAnswer, tried: int = 1, **other: Any) -> list[PublishedCell]:
    """One published cell with our answers to it, in units of 1."""
    return add_answers([printed(value, **other)], lambda _: [*ours], tried)


def answer(ours: float, reading: str = AS_STATED, spread: float = 0.1, runs: int = 20) -> CellAnswer:
    """Twenty replicates with this mean and spread."""
    values = np.arange(20.0) - 9.5
    values *= spread / values.std(ddof=1)
    return CellAnswer.from_values("x=1", pd.Series(ours + values), reading, runs)


def outcome(*ours: CellAnswer, value: float | str = 100.0, reading: str = AS_STATED, **other: Any) -> object:
    """What becomes of a published cell where the paper is read so."""
    [cell] = published(value, *ours, **other)
    return cell.judged_by(reading, BUILDS_ON, [AS_STATED]).mark


@pytest.mark.parametrize(
    ("answers", "reading", "found"),
    [
        ((answer(102.0), answer(FAR, VARIANT)), AS_STATED, AGREES_BY_CHOSEN),
        (
            (answer(102.0), answer(FAR, VARIANT)),
            VARIANT,
            AGREES_OTHERWISE,
        ),  # no choice cell by cell for the one reading
        ((answer(102.0),), BETTER, AGREES_BY_CHOSEN),  # and the text's where the variant has none
        ((answer(FAR), answer(100.0, VARIANT), answer(FAR, BETTER)), BETTER, AGREES_OTHERWISE),
        ((answer(FAR), answer(100.0, "")), VARIANT, DIFFERENT),  # what has no name is shown alone
        ((answer(110.0, spread=WIDE), answer(FAR, VARIANT)), VARIANT, UNCLEAR),
        ((answer(FAR), answer(110.0, VARIANT, WIDE)), VARIANT, WITHIN_SPREAD),  # no evidence that it agrees
        ((answer(100.0, runs=21), answer(FAR, VARIANT)), VARIANT, DIFFERENT),  # a preview is no evidence
        ((answer(100.0, runs=21),), VARIANT, EARLY),
        ((), AS_STATED, MISSING),
    ],
)
def test_what_becomes_of_a_published_cell(answers: tuple[CellAnswer, ...], reading: str, found: object) -> None:
    assert outcome(*answers, reading=reading) == found


def test_a_printed_number_is_all_that_rounds_to_it() -> None:
    """A printed 1.2 is any value from 1.15 to 1.25, and 1.20 is not."""
    assert [rounding_of(words) for words in ("1.2", "1.20", "5600", "-3.", ">900")] == [0.05, 0.005, 0.5, 0.5, 0.0]
    assert outcome(answer(1.11, spread=0.01), value=1.2, digits="1.20") == AGREES_BY_CHOSEN
    assert outcome(answer(1.11, spread=0.01), value=1.2, digits="1.2") == DIFFERENT


def test_times_bounds_and_what_follows_from_other_cells_are_no_evidence() -> None:
    assert outcome(answer(100.0), unit="s") == outcome(answer(100.0), value=">900", unit="min") == TIME
    assert outcome(answer(100.0), value=">900") is None
    assert Evidence("mine", published(">900", answer(100.0))).claims == []
    follows = {"follows_from": "Table 1"}
    assert [outcome(answer(100.0), **follows), outcome(answer(200.0), **follows), outcome(**follows)] == [
        FOLLOWS, FOLLOWS, MISSING,
    ]  # fmt: skip
    times = Evidence("mine", published(60.0, answer(60.0), unit="min"))  # as FDSKL, whose errors are figures
    assert times.only_times and not times.counted and shares_table([times]).empty


def test_a_number_agrees_within_the_margin_by_the_errors_and_by_fewer_readings() -> None:
    """Published 28.64, ours 29.99 +- 0.99 of 20: more than 5 % of it are not excluded, less than 10 % are."""
    [cell] = published(28.64, answer(29.99, spread=0.99), digits="28.64")
    [one] = cell.answers
    assert (one.verdict, one.why) == ("agrees", "to within 6.6 %, though not the same, off by +4.7 % [+2.4, +7.0]")
    assert outcome(answer(32.0, spread=0.99), value=28.64) == DIFFERENT
    tried = [published(100.0, answer(106.0, spread=7.0), tried=count)[0].verdicts[AS_STATED] for count in (1, 25)]
    assert tried == ["agrees", "differs"]
    accuracy = {"value": 98.0, "unit": "%", "metric": "accuracy"}  # 98 and 96 % are within 10 %, and the errors are not
    assert (outcome(answer(96.0, spread=0.01), **accuracy), outcome(answer(97.9, spread=0.01), **accuracy)) == (
        DIFFERENT,
        AGREES_BY_CHOSEN,
    )
    some = replace(answer(100.0), n=19, replicates=20)  # one replicate never gets there
    assert published(100.0, some)[0].verdicts == {AS_STATED: "cannot tell"}


def test_points_of_one_run_are_one_cell() -> None:
    """Of a curve that is right but at one point nothing agrees."""
    points = {f"k={k}": printed(value, setting=f"k={k}", curve="1") for k, value in ((1, 100.0), (2, 50.0), (3, 25.0))}
    for last, mark, word in ((25.0, AGREES_BY_CHOSEN, "agrees"), (30.0, DIFFERENT, "differs")):
        ours = {"k=1": 100.0, "k=2": 50.0, "k=3": last}
        cells = add_answers(points.values(), lambda cell, ours=ours: [answer(ours[cell.setting])])
        assert [claim[0].outcome(AS_STATED, {}) for claim in Evidence("mine", cells).claims] == [mark]
        assert [cell.answers[0].verdict for cell in cells] == 3 * [word]


def test_a_paper_has_one_reading_and_false_numbers_stand_beside_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.9 times a number is 11 % less than ours, 1.1 times 9.1 % more; of others only A's and B's on air are alike."""
    told = {"variants": {VARIANT: "it", BETTER: "it and more"}, "builds_on": BUILDS_ON, "readings_tried": 2}
    monkeypatch.setattr(experiments, "of_paper", lambda _: told)
    numbers = {("naval", "A"): 10.0, ("naval", "B"): 20.0, ("naval", "C"): 20.0, ("air", "A"): 30.0, ("air", "B"): 31.0}
    made = [printed(value, dataset=data, algorithm=name) for (data, name), value in numbers.items()]

    def answers(cell: PublishedCell) -> list[CellAnswer]:
        """Of C as stated, of others by the variant, which is twice as much otherwise."""
        values = [2 * cell.number, cell.number][:: -1 if cell.algorithm == "C" else 1]
        return [answer(values[0], spread=0.01), answer(values[1], VARIANT, 0.01)]

    paper = Evidence("mine", add_answers(made, answers, 2))
    assert paper.reading == VARIANT and not paper.only_times
    shares = paper.shares
    assert [shares[name] for name in ("cells", "as_described", "by_one_reading", "by_some_reading", "not")] == [
        5, 1, 4, 5, 0,
    ]  # fmt: skip
    assert (shares["differ_by_one_reading"], shares["differ_by_chance"]) == (1, 0.25)
    assert paper.tally_outcomes() == {AGREES_BY_CHOSEN: 4, AGREES_OTHERWISE: 1} and paper.tally_outcomes("2") == {}
    assert (shares["by_one_reading_if_times_0.9"], shares["by_one_reading_if_times_1.1"]) == (0, 4)
    assert (shares["as_described_if_times_1.1"], shares["by_some_reading_if_times_1.1"]) == (1, 5)
    assert (shares["by_one_reading_if_another_methods"], shares["of_cells"]) == (2, 5)
    table = shares_table([paper, Evidence("none", []), paper])
    assert (table["paper"].tolist(), table["by_one_reading"].tolist()) == (["mine", "mine", "all"], [4, 4, 8])
    said = "1 of 5 numbers that were run come out as described; 4 by another reading."
    assert table_verdict(paper, "1") == said


def test_a_cell_has_the_number_and_the_mark_that_settled_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one reading's, but for cells that only another one makes agree; with the decimals of the printed number."""
    told = {"variants": {VARIANT: "it"}, "builds_on": {}, "readings_tried": 2}
    told["tables"] = {"1": {"rows": ["algorithm"], "columns": ["metric", "dataset"]}}
    monkeypatch.setattr(experiments, "of_paper", lambda _: told)
    ours = {
        ("A", "naval", "runtime"): ("5", [answer(9.0)]),
        ("A", "naval", "mse"): ("100.0", [answer(150.0), answer(101.0, VARIANT)]),
        ("A", "air", "mse"): ("100.0", [answer(102.25), answer(150.0, VARIANT)]),
        ("B", "naval", "mse"): ("100.0", [answer(150.0), answer(151.0, VARIANT)]),
        ("B", "air", "mse"): ("100.0", []),
        ("C", "naval", "mse"): ("90.00", [answer(150.0), answer(91.0, VARIANT)]),
        ("D", "sea", "mse"): ("1.0", []),
    }
    cells = [
        printed(float(number), number, dataset=name, algorithm=method, metric=metric, unit="s" * (metric != "mse"))
        for (method, name, metric), (number, _) in ours.items()
    ]
    made = Evidence("mine", add_answers(cells, lambda cell: ours[cell.algorithm, cell.dataset, cell.metric][1], 2))
    assert [(cell.mark, cell.decided_by) for cell in made.judged_cells("1")][:6] == [
        (TIME, AS_STATED), (AGREES_BY_CHOSEN, VARIANT), (AGREES_OTHERWISE, AS_STATED), (DIFFERENT, VARIANT),
        (MISSING, AS_STATED), (AGREES_BY_CHOSEN, VARIANT),
    ]  # fmt: skip
    [errors], [times] = table_sheets(made, "1"), table_sheets(made, "1", times=True)
    assert errors.headings == ["MSE", "naval", "air"]
    assert [[cell.text for cell in row] for row in errors.rows] == [
        ["A", "101.0", "102.2"], ["B", "151.0", "–"], ["C", "91.00", ""]
    ]  # fmt: skip
    assert [[cell.above for cell in row] for row in errors.rows][1:] == [["", "100.0", "100.0"], ["", "90.00", ""]]
    assert [[cell.mark for cell in row] for row in errors.rows] == [["", "✓", "v"], ["", "✗", ""], ["", "✓", ""]]
    assert [cell.text for row in errors.rows for cell in row if cell.weight == "best"] == ["91.00"]
    assert not_run(made, "1") == {"air": 1, "sea": 1}
    assert times.headings[0] == "run time (s)" and [cell.mark for row in times.rows for cell in row] == ["", ""]


@pytest.mark.parametrize("paper", PAPERS)
def test_sheets_and_wide_tables_hold_every_published_cell_once(paper: str) -> None:
    """So rows and columns tell all cells of a table apart."""
    cells = read_published(paper)
    made = Evidence(paper, add_answers(cells, lambda cell: [answer(1.0)]))
    for number in dict.fromkeys(cell.table for cell in cells):
        mine = [cell for cell in cells if cell.table == number]
        shown = [*table_sheets(made, number), *table_sheets(made, number, times=True)]
        assert sum(bool(cell.above) for sheet in shown for row in sheet.rows for cell in row) == len(mine)
        if (side := table_layout(paper, number)) is not None:
            numbers = wide_frame(mine, side).drop(columns=[*side[0], "reading"], errors="ignore")
            assert numbers.notna().to_numpy().sum() == len(mine)
