"""The page of `fkl report`, of runs that a test makes up, looked at by a parser and, where there is one, a browser."""

import re
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import blank
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from in_browser import DESK, PHONE, faults, opened, require_black_on_white, require_keyboard
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.papers import PAPERS, declared_paper
from fkl.report import html


def report(folder: Path, *words: str) -> Path:
    """The page in this folder, as the command makes it."""
    with pytest.MonkeyPatch.context() as patch, blank.drawn_after_all():
        patch.chdir(folder)
        patch.delenv("FKL_DATA", raising=False)
        patch.setattr(sys, "argv", ["fkl", "report", *words])
        cli.main()
    return folder / "outputs"


@pytest.fixture(scope="module")
def outputs(of_airfoil: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that fill two cells of graph-aided OMKL, one that belongs to no table, a failed one, and the page."""
    folder = tmp_path_factory.mktemp("page")
    with blank.drawn_after_all():
        of_airfoil(folder / "outputs", pictures=True)
    failed = folder / "outputs" / "failed" / "naval-mine"
    failed.mkdir(parents=True)
    (failed / "error.txt").write_text("Traceback\nFloatingPointError: <mine> diverged in round 3\n")
    return report(folder)


def parsed(file: Path) -> Element:
    """A page as a tree; the parser finds nothing to mend."""
    parser = HTMLParser(namespace_html_elements=False)
    tree = parser.parse(file.read_text(encoding="utf-8"))
    assert parser.errors == []
    return tree


@pytest.fixture(scope="module")
def page(outputs: Path) -> Element:
    return parsed(outputs / "report.html")


@pytest.fixture(scope="module")
def details(outputs: Path) -> Element:
    """The page of all runs' details."""
    return parsed(outputs / "report" / "runs.html")


def text(element: Element) -> str:
    """All words of an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def by_id(page: Element, name: str) -> Element:
    """The one element of this id."""
    [found] = [element for element in page.iter() if element.get("id") == name]
    return found


def test_an_empty_folder_gives_a_page_that_says_what_to_do(fkl: Callable) -> None:
    answer = fkl("report")
    said = "warning: outputs/runs: no such folder, so the page has no runs; fkl run makes it\n"
    assert (answer.code, answer.err) == (0, said)
    page = parsed(Path("outputs/report.html"))
    assert "Nothing was run yet" in text(by_id(page, "summary"))
    table = by_id(page, "pof_mkl-table-1")
    assert "Not run yet" in text(table)
    assert [text(code) for code in table.iter("code")] == ["fkl run -m +experiment=pof_mkl/table1"]


def test_everything_is_on_the_page(page: Element, details: Element, outputs: Path) -> None:
    """Every paper with all its tables and figures and its differences, and every run with its numbers."""
    for paper in PAPERS:
        told = declared_paper(paper)
        assert told["title"] in text(by_id(page, paper)) and by_id(page, f"{paper}-differences") is not None
        for kind in ("table", "figure"):
            for number, one in told[f"{kind}s"].items():
                assert one["title"] in text(by_id(page, f"{paper}-{kind}-{number}"))
    for folder in (outputs / "runs").iterdir():
        row, run = by_id(page, f"run-{folder.name}"), by_id(details, f"details-{folder.name}")
        assert [link.get("href") for link in row.iter("a")] == [f"report/runs.html#details-{folder.name}"]
        assert folder.name in text(run) and len(list(run.iter("img"))) == 1
        assert (folder / "config.yaml").read_text().split() == "".join(next(run.iter("pre")).itertext()).split()
    assert "<mine> diverged in round 3" in text(by_id(page, "left-out"))
    [folder] = (outputs / "runs").glob("*omkr*")
    _, method, _, error, baseline, sent, time, _ = by_id(page, f"run-{folder.name}")
    assert text(method) == "OMKR" and text(error).endswith("mse") and text(error)[0] in "✓▲"
    values = [float(cell.get("data-value", "")) for cell in (error, baseline, sent, time)]
    assert values == pytest.approx([0.055, 0.065, 20.0, 2.0])


def test_a_papers_table_has_its_printed_layout_and_is_the_same_in_all_files(page: Element, outputs: Path) -> None:
    """Ours under the published number in one cell, with the mark that settled it; what was not run is a line."""
    section = by_id(page, "graph_omkl-table-1")
    grid = next(one for one in section.iter("div") if one.get("class") == "scroll grid")
    head, *rows = grid.iter("tr")
    assert [text(cell) for cell in head] == ["MSE (× 10⁻³)", "airfoil"]
    shown = [re.fullmatch(r"(OMKR|RBF-1) ?(32.68|33.17) ?(55.00|75.00).*[✗?]", text(row)) for row in rows]
    assert [row and row.groups() for row in shown] == [("OMKR", "32.68", "55.00"), ("RBF-1", "33.17", "75.00")]
    assert "Not run: bias (8 cells), concrete (8 cells), naval (8 cells), airfoil (6 cells)" in text(section)
    path = outputs / "tables" / "graph_omkl" / "table1"
    *_, body = section.iter("tbody")
    lines = [line for line in path.with_suffix(".md").read_text().split("\n") if line.startswith("|")]
    markdown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    empty = {name: [""] for name in ("ours", "difference_percent")}
    numbers = pd.read_csv(path.with_suffix(".csv"), keep_default_na=False, na_values=empty)
    assert len(markdown) == len(numbers) > 30
    ran = np.flatnonzero(numbers["ours"].notna())
    assert len(ran) == len(list(body)) == 2
    for k, row in zip(ran, body, strict=True):
        words, number, (header, *cells) = markdown[k], numbers.iloc[k], row
        assert header.get("scope") == "row" and text(header).startswith(f"{words[1]} on {words[0]}")
        assert [text(cell).replace("−", "-").split(" ")[0] for cell in cells[:4]] == words[5:9]
        assert float(words[6].replace(",", "")) == pytest.approx(number["ours"], rel=1e-3)
        assert words[9].replace("-", "−") in text(cells[4])


def loaded(page: Element) -> set[str]:
    """What a browser asks for to show a page; no script of another file, and none in an attribute."""
    asked = set()
    for element in page.iter():
        for name, value in element.items():
            if name in ("src", "srcset", "poster", "data") or (name == "href" and element.tag == "link"):
                asked.add(value)
            assert not name.startswith("on")
    assert all(script.get("src") is None for script in page.iter("script"))
    style = "".join(element.text or "" for element in page.iter("style"))
    assert "url(" not in style and "@import" not in style
    return {value for value in asked if not value.startswith("data:")}


def test_what_is_pointed_at_is_there_and_nothing_else_is_loaded(page: Element, details: Element, outputs: Path) -> None:
    """Pictures beside the page, by relative addresses, so that the folder can be moved; whole and described."""
    levels = [int(element.tag[1]) for element in page.iter() if re.fullmatch("h[1-6]", str(element.tag))]
    assert page.get("lang") == "en" and levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))
    assert all(cell.get("scope") in ("col", "row") for cell in page.iter("th"))
    names = [element.get("id") for element in page.iter() if element.get("id")]
    inside = [link.get("href", "")[1:] for link in page.iter("a") if link.get("href", "").startswith("#")]
    assert len(names) == len(set(names)) and len(inside) > 50 and {*inside} <= {*names}
    assert {element.get("aria-labelledby") for element in page.iter()} - {None} <= {*names}
    asked = [outputs / one for one in loaded(page)] + [outputs / "report" / one for one in loaded(details)]
    assert len(asked) > 3
    assert all(file.resolve().is_relative_to(outputs.resolve()) and file.is_file() for file in asked)
    for folder, one in ((outputs, page), (outputs / "report", details)):
        for picture in one.iter("img"):
            pixels = matplotlib.image.imread(folder / picture.get("src", ""))
            ratio = int(picture.get("width", "")) / int(picture.get("height", ""))
            assert pixels.std() > 0.01 and ratio == pytest.approx(pixels.shape[1] / pixels.shape[0], rel=0.02)
            assert len(picture.get("alt", "")) > 8 and picture.get("loading") == "lazy"
    lists = [element for element in page.iter("p") if element.get("class") == "quiet files"]
    assert all((outputs / link.get("href", "")).is_file() for one in lists for link in one.iter("a"))


TEMPLATES = Path(html.__file__).parent / "templates"


def test_a_browser_finds_no_fault_and_people_can_use_the_page(
    browser: Any, outputs: Path, page: Element, details: Element, tmp_path: Path
) -> None:
    """On a phone and a desk, in light and dark, by keyboard and printed; also as a single file, alone in a folder."""
    shutil.copytree(outputs, tmp_path / "outputs")
    single = (report(tmp_path, "--single") / "report.html").rename(tmp_path / "alone.html")
    alone = parsed(single)
    assert loaded(alone) == set() and {link.get("href", "#")[0] for link in alone.iter("a")} == {"#"}
    assert len([*alone.iter("img")]) == len([*page.iter("img")]) + len([*details.iter("img")])
    whole, runs = outputs / "report.html", outputs / "report" / "runs.html"
    for file, width, scheme in ((whole, PHONE, "dark"), (single, DESK, "light"), (runs, DESK, "dark")):
        assert faults(browser, file, width, scheme, outputs) == set(), (file.name, width, scheme)
    markup = (
        '<script>nothing.at.all</script><img src="https://example.org/a.png" alt="x"><p style="color: #aaa">faint</p>'
    )
    (tmp_path / "spoilt.html").write_text(single.read_text(encoding="utf-8").replace("</main>", f"{markup}</main>"))
    found = faults(browser, tmp_path / "spoilt.html", PHONE, "light")
    assert {"script", "request"} < found and any(one.endswith("faint") for one in found), "it would not forgive these"
    with opened(browser, outputs / "report.html", DESK) as tab:
        assert require_keyboard(tab)[0].startswith("A ")
        folded = tab.locator("summary").first
        folded.press("Enter")
        assert folded.evaluate("one => one.parentElement.open")
        tab.locator("table.runs thead button", has_text="error").press("Enter")
        assert tab.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        tab.locator(".filter input").fill("dkla synth")
        assert tab.locator("table.runs tbody tr").locator("visible=true").count() == 1
        assert tab.locator(".filter output").text_content() == "1 of 3 runs, those with dkla synth"
        require_black_on_white(tab)
        assert tab.evaluate("getComputedStyle(document.querySelector('.filter label')).display") == "none"


ROWS = (
    "POF-MKL,seed=1,0.5", "POF-MKL,seed=10,0.4", "POF-MKL,,", "vM-KOFL,algo.eta=0.1 seed=1,nan", "DKLA,eta=0.15,2e-3",
)  # fmt: skip
"""Rows of a table of runs: method, keys, error."""
FILTERS = {
    "seed=1": [0, 3], "seed=": [0, 1, 3], "eta=0.1": [3], "algo.eta=0.1": [3], "SEED=1, pof": [0], "eta=0": [],
    "mkl": [0, 1, 2], " ": [0, 1, 2, 3, 4],
}  # fmt: skip


def test_a_filter_finds_whole_values_and_empty_cells_are_sorted_last(browser: Any) -> None:
    """In a small table of runs, with the page's own script."""
    cells = [
        f"<th>{a}</th><td>{b}</td><td data-value='{c}'>{c if c != 'nan' else '–'}</td><td>details</td>"
        for a, b, c in (line.split(",") for line in ROWS)
    ]
    body = "".join(f"<tr id={number}>{row}</tr>" for number, row in enumerate(cells))
    head = "".join(f"<th>{name}</th>" for name in ("method", "keys", "error", "details"))
    table = f"<table class=runs><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    script = (TEMPLATES / "runs.js").read_text()
    whole = f"<div>{table}</div><script>const R = (i) => document.getElementById(i);{script}</script>"
    tab = browser.new_page()
    tab.set_content(whole)
    ids = "[...document.querySelectorAll('tbody tr')].map(r => +r.id)"
    for words, rows in FILTERS.items():
        tab.locator(".filter input").fill(words)
        assert tab.evaluate(f"{ids}.filter(i => !R(i).hidden)") == rows, words
        said = " ".join(word.rstrip(",") for word in words.lower().split())
        output = tab.locator("[aria-live=polite]").text_content()
        assert output == (f"{len(rows)} of 5 runs, those with {said}" if said else "")
    for column, up, down in (("keys", [3, 4, 0, 1, 2], [1, 0, 4, 3, 2]), ("error", [4, 1, 0, 2, 3], [0, 1, 4, 2, 3])):
        tab = browser.new_page()
        tab.set_content(whole)
        for rows in (up, down):
            tab.locator("thead button", has_text=column).click()
            assert tab.evaluate(ids) == rows
