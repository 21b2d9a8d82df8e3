"""Parts of the page: words, sheets, prose and pictures."""

import base64
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from fkl.basics.errors import FklError
from fkl.report import markdown as prose
from fkl.report.html import SMALL, picture_of_png
from fkl.screen.sheet import Sheet, SheetColumn
from fkl.screen.sheet import SheetCell as Shown
from fkl.screen.units import cell_text, percent_text, typeset_number


def test_numbers_for_people() -> None:
    words = {0.0: "0", 0.123456: "0.1235", 999.96: "1000", 10783.4: "10,783", 3.787e-5: "3.787e-05", -1234.5: "-1,234"}
    assert {value: cell_text(value) for value in words} == words
    assert [cell_text(value) for value in (np.nan, True, np.int64(2000), "M=1")] == ["", "True", "2,000", "M=1"]
    assert [percent_text(value) for value in (1.234, -0.001, -12.34, 1490.2, np.nan)] == [
        "+1.23", "+0.00", "-12.3", "+1,490", "",
    ]  # fmt: skip
    assert [typeset_number(words) for words in ("-1,234", "3.787e-05", "1e-3", "POF-MKL")] == [
        "−1,234", "3.787 × 10⁻⁵", "10⁻³", "POF-MKL",
    ]  # fmt: skip


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
    assert "x\\_1" in table.latex_floats() and "difference \\\\ \\%" in table.latex_floats()
    rows = [[Shown("A|B"), Shown("1e-05", "best", "▲", "2")], [Shown("C"), Shown("3")]]
    sheet = Sheet([SheetColumn("method"), SheetColumn("error", True)], rows, "Title", "Means.", groups={0: "air & sea"})
    assert "| **air & sea** |" in sheet.markdown and r"| A\|B " in sheet.markdown
    assert "**1e-05** ± 2 ▲" in sheet.markdown and "<b>10⁻⁵</b>" in sheet.html
    assert sheet.csv == "method,error\nA|B,*1e-05* ± 2 ▲\nC,3\n"
    assert r"\textbf{1e-05} {\scriptsize$\pm$ 2} $\triangle$" in sheet.latex_floats()


DIFFERENCES = """## Differences

**In short.** It *mostly* works <script>.

### More

**Not settled**

- *The step* (`eta`). Twice.
- *The step.* Once.
- Nothing special.
"""


def test_prose_names_what_can_be_pointed_at() -> None:
    made = prose.render_markdown(DIFFERENCES, "mine", level=4)
    assert made.in_short == "<strong>In short.</strong> It <em>mostly</em> works &lt;script&gt;."
    assert "In short" not in made.html and "<h2" not in made.html and "<h4>More</h4>" in made.html
    [group] = made.groups
    assert (group.title, [words for _, words in group.items]) == ("Not settled", ["The step", "The step"])
    (first, second) = (anchor for anchor, _ in group.items)
    assert first == "mine-the-step" != second
    assert all(f'<li id="{anchor}">' in made.html for anchor in (first, second))


@pytest.mark.drawn
def test_a_picture_is_linked_where_it_lies(tmp_path: Path) -> None:
    """By a relative address without signs that mean something in one; or as a whole, in a single page."""
    file = tmp_path / "a run <1>" / "mse.png"
    file.parent.mkdir()
    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    axes.plot([0, 1])
    figure.savefig(file, dpi=150)
    plt.close(figure)
    one = picture_of_png(file, "lines", SMALL)
    assert (one.width, one.height) == (300, 225)
    assert one.source(tmp_path / "report") == "../a%20run%20%3C1%3E/mse.png"
    assert base64.b64decode(one.source(None).partition(",")[2]) == file.read_bytes()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(FklError, match=r"mse\.png: cannot be shown, because"):
        picture_of_png(file, "lines")
