"""docs/papers.md lists all that the five papers print, each with its command, its verdict, or the reason of a gap."""

from pathlib import Path

import pytest

from docs.figures import papers

PAGE = Path(papers.PAGE).read_text(encoding="utf-8").partition(papers.BEGIN)[2].partition(papers.END)[0]


def lines(paper: str) -> list[list[str]]:
    """Cells of the page's table of a paper."""
    heading = papers.declared_paper(paper)["title"]
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.parametrize("paper", papers.FIVE)
def test_every_row_of_a_paper_is_on_the_page_with_its_command_or_reason_and_a_verdict(paper: str) -> None:
    declared, shown = list(papers.rows(paper)), lines(paper)
    assert [row.name for row in declared] == [name for name, *_ in shown]
    for row, (_, _, command, verdict, gap) in zip(declared, shown, strict=True):
        assert row.command or row.gap, f"{paper}, {row.name}: neither a command nor a reason"
        assert command.strip("`") == row.command.replace("|", r"\|") and gap == row.gap
        assert verdict, f"{paper}, {row.name}: no verdict"
