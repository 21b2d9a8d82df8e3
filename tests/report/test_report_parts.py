"""Parts of the page: verdicts, words, prose and pictures."""

import base64
import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from fkl.composing import experiments
from fkl.papers import PAPERS, differences, paper_module
from fkl.papers.beside import AS_STATED, INTERVAL, Answer, beside, rounding, wide
from fkl.papers.beside import published as read_published
from fkl.report import prose
from fkl.report.figures import COLOURS, spread_over
from fkl.report.page import _typeset
from fkl.report.pictures import REDUCED, embedded
from fkl.report.runs import in_words
from fkl.report.tables import Table, percent, word
from fkl.report.verdicts import (
    CLOSE,
    FAR,
    FOLLOWS,
    INSIDE,
    MISSING,
    NEAR,
    PARTLY,
    PREVIEW,
    STATED,
    TIME,
    UNEXPLAINED,
    VARIANT,
    cells,
    explained,
    judge,
    tally,
)


def published(value: float | str, *ours: float | Answer, unit: str = "", printed: str = "") -> pd.DataFrame:
    """A table of one published cell and our answers to it, in units of 1; plain numbers are as the text has it."""
    cell = {"dataset": "naval", "algorithm": "Raker", "setting": "", "metric": "mse", "unit": unit}
    cell |= {"value": value, "spread": np.nan, "rounding": rounding(printed)}
    return beside([cell], lambda _: [one if isinstance(one, Answer) else answer(one) for one in ours])


def answer(ours: float, reading: str = AS_STATED, preview: bool = False, values: tuple[float, ...] = ()) -> Answer:
    return Answer("x=1", ours, n=1, reading=reading, preview=preview, values=values)


def outcomes(table: pd.DataFrame) -> list[object]:
    return judge(table)["outcome"].tolist()


@pytest.mark.parametrize(
    ("value", "ours", "verdict"),
    [
        (100.0, 101.0, NEAR),
        (100.0, 98.999, CLOSE),
        (-100.0, -104.9, CLOSE),
        (100.0, 105.1, FAR),
        (0.0, 0.0, NEAR),
        (0.0, 1e-9, FAR),
        (100.0, np.nan, FAR),  # run, but it never got there
    ],
)
def test_a_verdict_is_by_the_relative_difference(value: float, ours: float, verdict: object) -> None:
    assert judge(published(value, ours))["verdict"].tolist() == [verdict]


def test_a_printed_number_is_all_that_rounds_to_it() -> None:
    """The issue's example: a printed 1.2 is any value from 1.15 to 1.25, and 1.20 is not."""
    assert [rounding(words) for words in ("1.2", "1.20", "5600", "-3.", ">900")] == [0.05, 0.005, 0.5, 0.5, 0.0]
    assert judge(published(1.2, 1.25, printed="1.2"))["verdict"].tolist() == [NEAR]
    assert judge(published(1.2, 1.25, printed="1.20"))["verdict"].tolist() == [CLOSE]
    assert judge(published(0.0, 0.004, printed="0.00"))["verdict"].tolist() == [NEAR]


def test_what_was_not_run_takes_time_or_is_a_bound_is_not_compared() -> None:
    assert outcomes(published(1.0)) == [MISSING]
    assert outcomes(published(1.0, 1.0, unit="s")) == [TIME]
    assert outcomes(published(">900", 1.0, unit="min")) == [TIME]
    assert outcomes(published(">900", 1.0)) == [None]
    assert outcomes(pd.DataFrame({"mine": [1.0]})) == [None]


@pytest.mark.parametrize(
    ("answers", "outcome", "row"),
    [
        ((102.0, answer(100.0, "variant")), STATED, 0),  # the text first, even where a variant is nearer
        ((answer(100.0, "variant"), 102.0), STATED, 1),
        ((150.0, answer(102.0, "variant")), VARIANT, 1),
        ((150.0, answer(100.0, "")), UNEXPLAINED, 0),  # what has no name is shown alone
        ((150.0, answer(140.0, "variant")), UNEXPLAINED, 0),
        ((answer(100.0, ""),), MISSING, 0),
        ((answer(100.0, preview=True),), PREVIEW, 0),
        ((answer(100.0, preview=True), answer(150.0, "variant")), UNEXPLAINED, 1),  # a preview is no evidence
        ((answer(150.0, values=(90.0, 150.0, 210.0)), answer(100.0, "variant")), INSIDE, 0),
        ((answer(150.0, values=(149.0, 150.0, 151.0)), answer(120.0, "variant", values=(90.0, 150.0))), VARIANT, 1),
    ],
)
def test_what_becomes_of_a_published_cell(answers: tuple[float | Answer, ...], outcome: object, row: int) -> None:
    judged = judge(published(100.0, *answers))
    assert judged["outcome"].tolist() == [outcome if i == row else None for i in range(len(answers))]
    assert tally([judged, judge(published(1.0))])[MISSING] == 1 + (outcome == MISSING)
    assert len(cells(judged, outcome)) == 1  # type: ignore[arg-type]


def test_how_many_cells_are_explained_of_those_that_are_evidence() -> None:
    """What follows from others, was not run, or run too seldom, is no evidence for or against."""
    numbers = {STATED: 5, INSIDE: 3, VARIANT: 2, UNEXPLAINED: 1, FOLLOWS: 70, PREVIEW: 80, MISSING: 90}
    assert explained(numbers) == (10, 11)
    assert explained({MISSING: 4}) == (0, 0)


@pytest.mark.parametrize("paper", PAPERS)
def test_what_was_tried_is_an_item_of_the_differences(paper: str) -> None:
    """So that the page has something to link to."""
    told = prose.render(differences(paper_module(paper)), paper, level=4)
    items = {words for group in told.groups for _, words in group.items}
    assert {*experiments.tried(paper).values()} <= items


@pytest.mark.parametrize(
    ("values", "verdict"), [((), PARTLY), ((110.0, 120.0, 130.0), PARTLY), ((90.0, 100.0, 999.0), INSIDE)]
)
def test_a_mean_over_those_that_reach_an_error_is_not_compared(values: tuple[float, ...], verdict: object) -> None:
    """They are the lucky ones; that all enclose the printed number, the others with a bound, is another matter."""
    judged = judge(published(100.0, Answer("x=1", 100.0, n=2, reading=AS_STATED, values=values, replicates=3)))
    assert judged["verdict"].tolist() == [verdict]
    assert judged["outcome"].tolist() == [UNEXPLAINED if verdict == PARTLY else INSIDE]
    whole = Answer("x=1", 100.0, n=3, reading=AS_STATED, replicates=3)
    assert judge(published(100.0, whole))["verdict"].tolist() == [NEAR]


@pytest.mark.parametrize(("ours", "outcome"), [((100.0,), FOLLOWS), ((200.0,), FOLLOWS), ((), MISSING)])
def test_what_follows_from_other_cells_is_no_evidence(ours: tuple[float, ...], outcome: object) -> None:
    assert outcomes(published(100.0, *ours).assign(follows_from="the method")) == [outcome]


def test_one_printed_run_lies_somewhere_among_ours() -> None:
    """Central 95 % and share below, of 0, 1, ..., 100."""
    [row] = published(75.0, answer(50.0, values=tuple(map(float, range(101)))))[INTERVAL].to_numpy().tolist()
    assert row == pytest.approx([2.5, 97.5, 75.5 / 101])


def test_fewer_replicates_than_the_papers_are_a_preview() -> None:
    values = pd.Series([1.0, 2.0, 3.0])
    assert not Answer.of("", values, AS_STATED, replicates=3).preview
    assert Answer.of("", values, AS_STATED, replicates=4).preview
    assert Answer.of("", values, AS_STATED, replicates=3, of=2).preview  # three clients of two replicates


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (np.nan, ""), (0.123456, "0.1235"), (999.96, "1000"), (10783.4, "10,783"), (12345, "12,345"),
     (3.787e-5, "3.787e-05"), ("M=1", "M=1"), (True, "True"), (np.int64(2000), "2,000"), (-1234.5, "-1,234")],
)  # fmt: skip
def test_numbers_for_people(value: object, words: str) -> None:
    assert word(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.234, "+1.23"), (-0.001, "+0.00"), (-12.34, "-12.3"), (1490.2, "+1,490"), (np.nan, "")],
)
def test_differences_for_people(value: float, words: str) -> None:
    assert percent(value) == words


@pytest.mark.parametrize(
    ("words", "shown"),
    [("-1,234", "−1,234"), ("3.787e-05", "3.787 × 10⁻⁵"), ("1e-3", "10⁻³"), ("POF-MKL", "POF-MKL"), ("min", "min")],
)
def test_numbers_on_the_page(words: str, shown: str) -> None:
    assert _typeset(words) == shown


def test_a_table_says_the_same_in_every_language(tmp_path: Path) -> None:
    """Column names that mean something to LaTeX or Markdown stay text."""
    frame = pd.DataFrame({"a_b": ["x_1", "y"], "published": [">900", 2.0], "difference_percent": [np.nan, 12.345]})
    table = Table(frame, "A title", "Notes.")
    assert table.numeric == [False, True, True]
    assert table.rows == [["x_1", ">900", ""], ["y", "2", "+12.3"]]
    files = table.write(tmp_path / "mine")
    assert [file.name for file in files] == ["mine.csv", "mine.md", "mine.tex"]
    assert files[0].read_text().splitlines() == ["a_b,published,difference_percent", "x_1,>900,", "y,2.0,12.345"]
    assert "| y" in table.markdown and files[1].read_text().endswith("\nNotes.\n")
    assert "x\\_1" in table.latex and "difference \\%" in table.latex
    assert Table(frame[:0], "Empty").rows == []
    assert "a b" in Table(frame[:0], "Empty").markdown


DIFFERENCES = """## Differences

**In short.** It *mostly* works.

Words with <script>alert(1)</script>.

### More

**Not settled**

- *The step* (`eta`). Twice.
- *The step.* Once.
- Nothing special.

**Chance**

- *Energy's limit* [21.5].
"""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_says_in_short_what_comes_out(paper: str) -> None:
    """Without it, the page's summary of a paper has no words."""
    made = prose.render(differences(paper_module(paper)), paper, level=4)
    assert len(made.in_short.split()) > 20


def test_prose_names_what_can_be_pointed_at() -> None:
    made = prose.render(DIFFERENCES, "mine", level=4)
    assert made.in_short == "<strong>In short.</strong> It <em>mostly</em> works."
    assert "In short" not in made.html and "<h2" not in made.html
    assert "<h4>More</h4>" in made.html
    assert "<script" not in made.html
    assert [(group.title, [words for _, words in group.items]) for group in made.groups] == [
        ("Not settled", ["The step", "The step"]),
        ("Chance", ["Energy's limit"]),
    ]
    anchors = [anchor for group in made.groups for anchor, _ in group.items]
    assert anchors[0] == "mine-the-step" and len(set(anchors)) == 3
    assert all(f'<li id="{anchor}">' in made.html for anchor in anchors)
    assert prose.render("## Differences\n", "mine", level=4).html == ""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_papers_differences_can_be_shown(paper: str) -> None:
    made = prose.render(differences(paper_module(paper)), paper, level=4)
    assert "<h1" not in made.html and "<h2" not in made.html and "<h3" not in made.html


def test_a_band_says_how_many_replicates_it_is_over() -> None:
    """Not the most of any run, where others of the figure have fewer."""
    assert spread_over([20, 20]) == 20
    assert spread_over([3, 10, 5]) == "mean ± 1 sd over 3 to 10 replicates"


@pytest.mark.drawn
def test_reduced_pictures_keep_the_colours_of_thin_lines(tmp_path: Path) -> None:
    """The usual way to few colours makes blue and green one; a legend is then no use."""
    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    for height, colour in enumerate(COLOURS):
        axes.plot([0, 1], [height, height], color=colour)
    figure.savefig(tmp_path / "lines.png", dpi=150)
    plt.close(figure)
    picture = embedded(tmp_path / "lines.png", "lines", REDUCED)
    assert (picture.width, picture.height) == (300, 225)
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(picture.uri.partition(",")[2]))).convert("RGB")) / 255
    nearest = [np.abs(pixels - to_rgb(colour)).max(axis=-1).min() for colour in COLOURS]
    assert max(nearest) < 0.15
    assert len(picture.uri) < 20_000


def test_provenance_in_words() -> None:
    assert in_words({"a": 1, "b": [2, 3]}) == "a 1, b 2, 3"
    assert in_words(None) == "not known"
    assert in_words(list(range(30))) == "30 entries, 0 the first"


def test_a_wide_table_has_the_printed_layout() -> None:
    """Rows and columns as asked, published first, then each reading that was run; nothing without a name."""
    cells = [
        {"dataset": d, "algorithm": a, "setting": "", "metric": "mse", "unit": "1e-3", "value": v, "spread": np.nan}
        for a, d, v in (("CTA", "air", 1.0), ("CTA", "sea", ">900"), ("COKE", "air", 3.0))
    ]

    def answers(cell: dict) -> list[Answer]:
        ours = [Answer("", 0.002, n=1, reading=AS_STATED), Answer("", 0.5, n=1), Answer("", 0.6, n=1, reading="b")]
        return ours if (cell["algorithm"], cell["dataset"]) == ("CTA", "air") else []

    made = wide(beside(cells, answers), (("algorithm",), ("dataset",)))
    assert list(made) == ["algorithm", "reading", "air (1e-3)", "sea (1e-3)"]
    assert made.fillna("").to_numpy().tolist() == [
        ["CTA", "published", 1.0, ">900"],
        ["CTA", AS_STATED, 2.0, ""],
        ["CTA", "b", 600.0, ""],
        ["COKE", "published", 3.0, ""],
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_layouts_hold_every_published_cell_once(paper: str) -> None:
    """So rows and columns tell all cells of a table apart."""
    module = paper_module(paper)
    for number, layout in getattr(module, "WIDE", {}).items():
        cells = read_published(module.__file__, number if paper != "pof_mkl" or number != "2" else "1")
        made = wide(beside(cells, lambda _: []), layout)
        assert made.drop(columns=[*layout[0], "reading"]).notna().to_numpy().sum() == len(cells)
