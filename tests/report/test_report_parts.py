"""Parts of the page: verdicts, words, prose and pictures."""

import base64
import io
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from fkl.config import experiments
from fkl.papers import PAPERS, differences, paper_module
from fkl.papers.published import AS_STATED, Answer, beside, rounding, wide
from fkl.papers.published import published as read_published
from fkl.papers.verdicts import (
    DIFFERENT,
    EARLY,
    FOLLOWS,
    MISSING,
    ONE,
    OTHER,
    SPREAD,
    TIME,
    UNCLEAR,
    Judged,
    cells,
    shares_table,
)
from fkl.report import markdown as prose
from fkl.report.colours import COLOURS
from fkl.report.embedded_images import REDUCED, embedded
from fkl.report.figures import spread_over
from fkl.report.run_rows import in_words
from fkl.screen.sheet import Sheet
from fkl.screen.units import percent, typeset, word

VARIANT, BETTER = "as published", "half"
BUILDS_ON = {BETTER: VARIANT}


def printed(value: float | str, digits: str = "", **other: object) -> dict[str, object]:
    """A published cell."""
    cell = {"dataset": "naval", "algorithm": "Raker", "setting": "", "metric": "mse", "unit": "", "spread": np.nan}
    return {**cell, "value": value, "rounding": rounding(digits), **other}


def published(value: float | str, *ours: Answer, tried: int = 1, **other: object) -> pd.DataFrame:
    """A table of one published cell and our answers to it, in units of 1."""
    return beside([printed(value, **other)], lambda _: [*ours], tried)  # type: ignore[arg-type]


def answer(ours: float, reading: str = AS_STATED, spread: float = 0.1, runs: int = 20) -> Answer:
    """Twenty replicates with this mean and spread."""
    values = np.arange(20.0) - 9.5
    values *= spread / values.std(ddof=1)
    return Answer.from_values("x=1", pd.Series(ours + values), reading, runs)


def outcome(*ours: Answer, value: float | str = 100.0, reading: str = AS_STATED, **other: object) -> object:
    """What becomes of a published cell where the paper is read so."""
    found = [cell.outcome(reading, BUILDS_ON) for cell in cells({"1": published(value, *ours, **other)})]
    return found[0] if found else None


def test_a_printed_number_is_all_that_rounds_to_it() -> None:
    """A printed 1.2 is any value from 1.15 to 1.25, and 1.20 is not."""
    assert [rounding(words) for words in ("1.2", "1.20", "5600", "-3.", ">900")] == [0.05, 0.005, 0.5, 0.5, 0.0]
    assert outcome(answer(1.11, spread=0.01), value=1.2, digits="1.20") == ONE
    assert outcome(answer(1.11, spread=0.01), value=1.2, digits="1.2") == DIFFERENT


def test_what_was_not_run_takes_time_or_is_a_bound_has_no_verdict() -> None:
    assert outcome() == MISSING
    assert outcome(answer(100.0), unit="s") == TIME
    assert outcome(answer(100.0), value=">900", unit="min") == TIME
    assert outcome(answer(100.0), value=">900") is None
    assert [*cells({"1": pd.DataFrame({"mine": [1.0]})})] == []


FAR, WIDE = 150.0, 40.0


@pytest.mark.parametrize(
    ("answers", "reading", "found"),
    [
        ((answer(102.0), answer(FAR, VARIANT)), AS_STATED, ONE),
        ((answer(102.0), answer(FAR, VARIANT)), VARIANT, OTHER),  # no choice cell by cell for the one reading
        ((answer(102.0), answer(FAR, VARIANT)), BETTER, OTHER),  # which has the variant's runs here
        ((answer(102.0),), BETTER, ONE),  # and the text's where the variant has none
        ((answer(FAR), answer(100.0, VARIANT), answer(FAR, BETTER)), BETTER, OTHER),
        ((answer(FAR), answer(FAR, VARIANT)), VARIANT, DIFFERENT),
        ((answer(FAR), answer(100.0, "")), VARIANT, DIFFERENT),  # what has no name is shown alone
        ((answer(110.0, spread=WIDE), answer(FAR, VARIANT)), VARIANT, UNCLEAR),
        ((answer(FAR), answer(110.0, VARIANT, WIDE)), VARIANT, SPREAD),  # no evidence that it agrees
        ((answer(100.0, ""),), VARIANT, MISSING),
        ((answer(100.0, runs=21),), VARIANT, EARLY),
        ((answer(100.0, runs=21), answer(FAR, VARIANT)), VARIANT, DIFFERENT),  # a preview is no evidence
    ],
)
def test_what_becomes_of_a_published_cell(answers: tuple[Answer, ...], reading: str, found: object) -> None:
    assert outcome(*answers, reading=reading) == found


def test_a_number_that_is_six_standard_errors_off_agrees_only_within_the_margin() -> None:
    """Published 28.64, ours 29.99 +- 0.99 of 20: more than 5 % of it are not excluded, less than 10 % are."""
    [row] = published(28.64, answer(29.99, spread=0.99), digits="28.64").to_dict("records")
    assert row["verdict"] == "agrees"
    assert row["why"] == "to within 6.6 %, though not the same, off by +4.7 % [+2.4, +7.0]"
    assert outcome(answer(32.0, spread=0.99), value=28.64) == DIFFERENT


def test_readings_that_were_tried_make_it_harder_to_agree() -> None:
    one = answer(106.0, spread=7.0)
    assert [published(100.0, one, tried=tried)["verdict"].item() for tried in (1, 25)] == ["agrees", "differs"]


def test_a_mean_of_ten_is_judged_as_one() -> None:
    """DKLA on air quality at D = 30: inside the spread of single draws, and a mean that may be 30 % off."""
    [row] = published(0.4455, answer(0.497, spread=0.082, runs=10), spread=0.1085).to_dict("records")
    assert (row["verdict"], row["published_n"]) == ("cannot tell", 10)
    assert row["why"].endswith("never: theirs alone is too wide")


def test_accuracies_are_compared_by_their_errors() -> None:
    """98 and 96 % are within 10 % of one another, and the errors are not."""
    wrong = outcome(answer(96.0, spread=0.01), value=98.0, unit="%", metric="accuracy")
    assert (wrong, outcome(answer(97.9, spread=0.01), value=98.0, unit="%", metric="accuracy")) == (DIFFERENT, ONE)


def test_points_of_one_run_are_one_cell() -> None:
    """Of a curve that is right but at one point nothing agrees."""
    points = {f"k={k}": printed(value, setting=f"k={k}", curve="1") for k, value in ((1, 100.0), (2, 50.0), (3, 25.0))}
    answers = {"k=1": 100.0, "k=2": 50.0, "k=3": 25.0}

    def judged(ours: dict[str, float]) -> tuple[list[object], list[str]]:
        table = beside(points.values(), lambda cell: [answer(ours[cell["setting"]])])  # type: ignore[arg-type]
        return [cell.outcome(AS_STATED, {}) for cell in cells({"1": table})], table["verdict"].tolist()

    assert judged(answers) == ([ONE], 3 * ["agrees"])
    assert judged(answers | {"k=3": 30.0}) == ([DIFFERENT], 3 * ["differs"])


@pytest.mark.parametrize(("ours", "found"), [((100.0,), FOLLOWS), ((200.0,), FOLLOWS), ((), MISSING)])
def test_what_follows_from_other_cells_is_no_evidence(ours: tuple[float, ...], found: object) -> None:
    assert outcome(*map(answer, ours), follows_from="Table 1") == found


def test_replicates_that_never_get_there_agree_with_nothing() -> None:
    some = replace(answer(100.0), n=19, replicates=20)
    assert published(100.0, some)["verdict"].tolist() == ["cannot tell"]


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """A paper of three methods on two data sets, with one variant that most cells need."""
    told = {"variants": {VARIANT: "it", BETTER: "it and more"}, "builds_on": BUILDS_ON, "readings_tried": 2}
    monkeypatch.setattr(experiments, "of_paper", lambda _: told)
    numbers = {("naval", "A"): 10.0, ("naval", "B"): 20.0, ("naval", "C"): 20.0, ("air", "A"): 30.0, ("air", "B"): 31.0}
    made = {(data, name): printed(value, dataset=data, algorithm=name) for (data, name), value in numbers.items()}

    def answers(cell: dict[str, object]) -> list[Answer]:
        value, name = float(str(cell["value"])), cell["algorithm"]
        stated = answer(value if name == "C" else 2 * value, spread=0.01)
        return [stated, answer(value if name != "C" else 2 * value, VARIANT, 0.01)]

    return Judged("mine", {"1": beside(made.values(), answers, 2)})  # type: ignore[arg-type]


def test_a_paper_that_prints_times_alone_has_no_cell_to_count(paper: Judged) -> None:
    """As FDSKL, whose errors are figures; the page says so."""
    times = Judged("mine", {"4": published(60.0, answer(60.0), unit="min")})
    assert times.only_times and not times.counted and shares_table([times]).empty
    assert not paper.only_times


def test_a_paper_has_one_reading(paper: Judged) -> None:
    """The one by which most cells agree, though another would suit some cells better."""
    assert paper.reading == VARIANT
    shares = paper.shares
    assert [shares[name] for name in ("cells", "as_described", "by_one_reading", "by_some_reading", "not")] == [
        5, 1, 4, 5, 0,
    ]  # fmt: skip
    assert (shares["differ_by_one_reading"], shares["differ_by_chance"]) == (1, 0.25)
    assert paper.tally() == {ONE: 4, OTHER: 1}
    assert paper.tally("2") == {}


def test_false_numbers_stand_beside_the_count(paper: Judged) -> None:
    """0.9 times a number is 11 % less than ours, 1.1 times 9.1 % more; of others only A's and B's on air are alike."""
    shares = paper.shares
    assert (shares["by_one_reading_if_times_0.9"], shares["by_one_reading_if_times_1.1"]) == (0, 4)
    assert (shares["as_described_if_times_1.1"], shares["by_some_reading_if_times_1.1"]) == (1, 5)
    assert (shares["by_one_reading_if_another_methods"], shares["of_cells"]) == (2, 5)
    table = shares_table([paper, Judged("none", {}), paper])
    assert table["paper"].tolist() == ["mine", "mine", "all"]
    assert table["by_one_reading"].tolist() == [4, 4, 8]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_was_tried_is_an_item_of_the_differences(paper: str) -> None:
    """So that the page has something to link to."""
    told = prose.render(differences(paper_module(paper)), paper, level=4)
    items = {words for group in told.groups for _, words in group.items}
    assert {*experiments.tried(paper).values()} <= items


def test_fewer_replicates_than_the_papers_are_a_preview() -> None:
    values = pd.Series([1.0, 2.0, 3.0])
    assert not Answer.from_values("", values, AS_STATED, replicates=3).preview
    assert Answer.from_values("", values, AS_STATED, replicates=4).preview
    assert Answer.from_values("", values, AS_STATED, replicates=3, of=2).preview  # three clients of two replicates


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
    assert typeset(words) == shown


def test_a_table_says_the_same_in_every_language(tmp_path: Path) -> None:
    """Column names that mean something to LaTeX or Markdown stay text."""
    frame = pd.DataFrame({"a_b": ["x_1", "y"], "published": [">900", 2.0], "difference_percent": [np.nan, 12.345]})
    table = Sheet.from_frame(frame, "A title", "Notes.")
    assert [column.number for column in table.columns] == [False, True, True]
    assert [[cell.text for cell in row] for row in table.rows] == [["x_1", ">900", ""], ["y", "2", "+12.3"]]
    files = table.write(tmp_path / "mine")
    assert [file.name for file in files] == ["mine.csv", "mine.md", "mine.tex"]
    assert files[0].read_text().splitlines() == ["a_b,published,difference_percent", "x_1,>900,", "y,2.0,12.345"]
    assert "| y" in table.markdown and files[1].read_text().endswith("\nNotes.\n")
    assert "x\\_1" in table.latex() and "difference \\\\ \\%" in table.latex()
    assert Sheet.from_frame(frame[:0], "Empty").rows == []
    assert "a b" in Sheet.from_frame(frame[:0], "Empty").markdown


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
    assert spread_over([3, 10, 5]) == "mean, and from 10 % to 90 % of 3 to 10 replicates"


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
