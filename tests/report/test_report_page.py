"""The page of `fkl report`: from runs that the tests make, looked at by a parser and, where there is one, a browser."""

import base64
import io
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import blank
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.papers import PAPERS, paper_module

SWEEPS = (
    ("+graph_omkl/data=airfoil", "+graph_omkl/exact=poly_2,rbf_1"),
    ("algo=dkla", "+coke/data=synthetic", "dataset.rows=2000", "partition.rounds=80", "algo.iterations=5"),
)
PHONE, DESK = 375, 1280
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BACKGROUND = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
"""Of the browser's own errands nothing shall be seen here."""


@pytest.fixture(scope="module")
def outputs(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that fill a few cells of graph-aided OMKL, one that belongs to no table, a failed one, and the page."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "files").mkdir()
    np.savetxt(folder / "files" / "airfoil_self_noise.dat", np.random.default_rng(0).random((1503, 6)), delimiter="\t")
    with blank.drawn_after_all():
        sweeping(folder, *(("replicates=2", *sweep) for sweep in SWEEPS))
    failed = folder / "outputs" / "failed" / "naval-mine"
    failed.mkdir(parents=True)
    (failed / "error.txt").write_text("Traceback\nFloatingPointError: <mine> diverged in round 3\n")
    with pytest.MonkeyPatch.context() as patch, blank.drawn_after_all():
        patch.chdir(folder)
        patch.delenv("FKL_DATA", raising=False)
        patch.setattr(sys, "argv", ["fkl", "report"])
        cli.main()
    return folder / "outputs"


@pytest.fixture(scope="module")
def page(outputs: Path) -> Element:
    """The page as a tree; the parser finds nothing to mend."""
    parser = HTMLParser(namespace_html_elements=False)
    tree = parser.parse((outputs / "report.html").read_text(encoding="utf-8"))
    assert parser.errors == []
    return tree


def text(element: Element) -> str:
    """All words of an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def by_id(page: Element, name: str) -> Element:
    """The one element of this id."""
    [found] = [element for element in page.iter() if element.get("id") == name]
    return found


def test_an_empty_folder_gives_a_page_that_says_what_to_do(fkl: Callable) -> None:
    """Every table and figure that wants runs names a command."""
    answer = fkl("report")
    assert (answer.code, answer.out.split(":")[0]) == (0, "outputs/report.html")
    parser = HTMLParser(namespace_html_elements=False)
    page = parser.parse(Path("outputs/report.html").read_text(encoding="utf-8"))
    assert parser.errors == []
    assert "Nothing was run yet" in text(by_id(page, "summary"))
    table = by_id(page, "pof_mkl-table-1")
    assert "Not run yet" in text(table)
    assert [text(code) for code in table.iter("code")] == ["fkl run -m +experiment=pof_mkl/table1"]


def test_report_takes_no_arguments(fkl: Callable) -> None:
    assert fkl("report", "pof_mkl").code == 2
    assert not Path("outputs").exists()


def test_everything_is_on_the_page(page: Element, outputs: Path) -> None:
    """Every paper with all its tables and figures and its differences, and every run."""
    for paper in PAPERS:
        module = paper_module(paper)
        assert module.TITLE in text(by_id(page, paper))
        for kind, numbers in (("table", module.TABLES), ("figure", module.FIGURES)):
            for number, title in numbers.items():
                assert title in text(by_id(page, f"{paper}-{kind}-{number}"))
        differences = by_id(page, f"{paper}-differences")
        first = (Path(module.__file__).parent / "differences.md").read_text(encoding="utf-8").split("\n\n")[1:2]
        assert all(re.findall(r"\w+", words)[0] in text(differences) for words in first)
    folders = sorted((outputs / "runs").glob("[!.]*"))
    assert len(folders) == 3
    for folder in folders:
        run = by_id(page, f"run-{folder.name}")
        assert folder.name in text(run)
        assert len(list(run.iter("img"))) == len(list(folder.glob("*.png"))) > 0
        assert (folder / "config.yaml").read_text().split() == "".join(next(run.iter("pre")).itertext()).split()
    assert "<mine> diverged in round 3" in text(by_id(page, "summary"))


def test_tables_are_the_same_on_the_page_and_in_all_files(page: Element, outputs: Path) -> None:
    """Cell by cell the words of the Markdown and LaTeX tables, made of the numbers of the CSV table."""
    path = outputs / "tables" / "graph_omkl" / "table1"
    [body] = by_id(page, "graph_omkl-table-1").iter("tbody")
    lines = [line for line in path.with_suffix(".md").read_text().split("\n") if line.startswith("|")]
    markdown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    latex = path.with_suffix(".tex").read_text().split("\\midrule")[1].split("\\bottomrule")[0]
    numbers = pd.read_csv(
        path.with_suffix(".csv"),
        keep_default_na=False,
        na_values={name: [""] for name in ("ours", "difference_percent")},
    )
    assert len(list(body)) == len(markdown) == latex.count("\\\\") == len(numbers) > 30
    ran = 0
    for row, words, line, number in zip(
        body, markdown, latex.strip().split("\n"), numbers.to_dict("records"), strict=True
    ):
        header, *cells = row
        assert header.get("scope") == "row"
        assert text(header).startswith(f"{words[1]} {words[0]}")
        shown = [text(cell).replace("−", "-").split(" ")[0] for cell in cells[:4]]
        assert shown == words[5:9] == [cell.strip() for cell in line.removesuffix("\\\\").split("&")][5:9]
        assert text(cells[-1]) == words[-1]
        if number["ours"] == number["ours"]:
            ran += 1
            assert float(words[6].replace(",", "")) == pytest.approx(number["ours"], rel=1e-3)
            assert float(words[9].replace(",", "")) == pytest.approx(number["difference_percent"], rel=1e-2, abs=1e-2)
            assert words[9].replace("-", "−") in text(cells[4])
    assert ran == 2


def test_the_summary_counts_what_the_tables_show(page: Element, outputs: Path) -> None:
    """Two cells of 32 were run, and random numbers are nothing like airfoil's."""
    table = pd.read_csv(outputs / "tables" / "graph_omkl" / "table1.csv")
    [row] = [
        row
        for row in by_id(page, "summary").iter("tr")
        if any(link.get("href") == "#graph_omkl-table-1" for link in row.iter("a"))
    ]
    assert [text(cell) for cell in row][1:] == ["", "", "", "", "2", "", "", "30"]
    assert table["ours"].notna().sum() == 2
    assert table[table["ours"].notna()]["verdict"].tolist() == ["differs", "differs"]
    shares = next(one for one in page.iter("dl") if one.get("class") == "shares")
    assert [text(one) for one in shares] == [
        "as described in the paper0 (0 %)", "by one reading for the whole paper0 (0 %)", "by some reading0 (0 %)",
        "not2 (100 %)",
    ]  # fmt: skip
    assert "These are shares of 2 printed cells whose data are at hand" in text(by_id(page, "summary"))
    statement = next(one for one in page.iter("table") if one.get("class") == "statement")
    [line] = list(statement.iter("tr"))[1:]
    assert [text(cell) for cell in line] == [
        "Graph-aided OMKL", "2", "0", "0", "0", "2", "0", "0", "0.0 of 2", "2", "0.1", "as stated, of 17",
    ]  # fmt: skip
    told = pd.read_csv(outputs / "tables" / "shares.csv").to_dict("records")
    assert [(one["paper"], one["cells"], one["by_one_reading"]) for one in told] == [("graph_omkl", 2, 0)]
    card = next(one for one in page.iter("article") if one.get("aria-labelledby") == "graph_omkl-summary")
    assert "In short." in text(card)
    assert "fkl data fetch naval" in text(card)


def test_what_is_pointed_at_is_there_and_named_once(page: Element) -> None:
    names = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(names) == len(set(names))
    inside = [link.get("href", "")[1:] for link in page.iter("a") if link.get("href", "").startswith("#")]
    assert len(inside) > 50
    assert set(inside) <= set(names)
    labels = {element.get("aria-labelledby") for element in page.iter()} - {None}
    assert labels <= set(names)


def test_nothing_is_loaded_and_nothing_is_run(page: Element) -> None:
    """One file: pictures inside, no script, no address that a browser would ask for."""
    assert list(page.iter("script")) == []
    for element in page.iter():
        for name, value in element.items():
            loads = name in ("src", "srcset", "poster", "data") or (name == "href" and element.tag == "link")
            assert not loads or value.startswith("data:"), (element.tag, value)
            assert not name.startswith("on"), "no script in an attribute"
    style = "".join(element.text or "" for element in page.iter("style"))
    assert "url(" not in style and "@import" not in style


def test_pictures_are_whole_and_described(page: Element) -> None:
    pictures = list(page.iter("img"))
    assert len(pictures) > 6
    for picture in pictures:
        kind, _, data = picture.get("src", "").partition(",")
        assert kind == "data:image/png;base64"
        pixels = matplotlib.image.imread(io.BytesIO(base64.b64decode(data)))
        assert pixels.std() > 0.01
        assert len(picture.get("alt", "")) > 8
        ratio = int(picture.get("width", "")) / int(picture.get("height", ""))
        assert ratio == pytest.approx(pixels.shape[1] / pixels.shape[0], rel=0.01)


def test_downloads_are_the_files(page: Element, outputs: Path) -> None:
    links = {link.get("download"): link.get("href", "") for link in page.iter("a") if link.get("download")}
    text = base64.b64decode(links["graph_omkl-table-1.csv"].partition(",")[2]).decode()
    assert text == (outputs / "tables" / "graph_omkl" / "table1.csv").read_text()


def test_people_with_a_screen_reader_find_their_way(page: Element) -> None:
    """A language, headings that skip no level, header cells with a scope, areas that scroll in the order of tabs."""
    assert page.get("lang") == "en"
    levels = [int(element.tag[1]) for element in page.iter() if re.fullmatch("h[1-6]", str(element.tag))]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(cell.get("scope") in ("col", "row") for cell in page.iter("th"))
    areas = [element for element in page.iter() if "scroll" in element.get("class", "").split()]
    assert len(areas) > 5
    assert all(area.get("tabindex") == "0" for area in areas)
    assert all(area.get("aria-label") for area in areas if area.get("role") == "region")
    [viewport] = [meta for meta in page.iter("meta") if meta.get("name") == "viewport"]
    assert "width=device-width" in viewport.get("content", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        own = engine.chromium.executable_path
        found = own if Path(own).exists() else next(filter(None, map(shutil.which, BROWSERS)), None)
        if found is None:
            pytest.skip(f"no browser on this machine: neither playwright's own nor {', '.join(BROWSERS)}")
        chromium = engine.chromium.launch(executable_path=found, args=list(BACKGROUND))
        yield chromium
        chromium.close()


def faults(browser: Any, file: Path, width: int, scheme: str) -> set[str]:
    """What is wrong with a page in the browser: kinds of faults."""
    found: set[str] = set()
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.route(lambda url: not url.startswith(("file:", "data:")), lambda route: route.abort())
    tab = context.new_page()
    inside = (file.as_uri(), "data:")
    tab.on("request", lambda asked: None if asked.url.startswith(inside) else found.add("request"))
    tab.on("pageerror", lambda error: found.add("script"))
    tab.on("console", lambda message: found.add("console") if message.type in ("error", "warning") else None)
    tab.goto(file.as_uri())
    overflows = "document.documentElement.scrollWidth > window.innerWidth"
    for opened in ("false", "true"):
        tab.evaluate(f"document.querySelectorAll('details').forEach(one => one.open = {opened})")
        found.update({"overflow"} if tab.evaluate(overflows) else ())
    broken = "Promise.all([...document.images].map(one => one.decode().then(() => one.naturalWidth > 1, () => false)))"
    found.update(set() if all(tab.evaluate(broken)) else {"image"})
    context.close()
    return found


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_browser_finds_no_fault(browser: Any, outputs: Path, width: int, scheme: str) -> None:
    """No broken image, no error, no request, nothing wider than the screen, all closed and all open."""
    assert faults(browser, outputs / "report.html", width, scheme) == set()


@pytest.mark.parametrize(
    ("fault", "markup"),
    [
        ("image", '<img src="data:image/png;base64,iVBORw0KGgo=" alt="cut short">'),
        ("script", "<script>nothing.at.all</script>"),
        ("console", "<script>console.error('mine')</script>"),
        ("request", '<img src="https://example.org/a.png" alt="from elsewhere">'),
        ("overflow", '<details><summary>wide</summary><p style="width: 500px">wide</p></details>'),
    ],
)
def test_the_browser_finds_each_fault(browser: Any, outputs: Path, tmp_path: Path, fault: str, markup: str) -> None:
    """What the test above would not forgive."""
    page = (outputs / "report.html").read_text(encoding="utf-8")
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(page.replace("</main>", f"{markup}</main>"), encoding="utf-8")
    assert fault in faults(browser, spoilt, PHONE, "light")


def test_a_link_to_a_difference_leads_there(browser: Any, outputs: Path) -> None:
    """From the summary to what is not settled."""
    tab = browser.new_page(viewport={"width": PHONE, "height": 800})
    tab.goto((outputs / "report.html").as_uri())
    tab.emulate_media(reduced_motion="reduce")
    tab.locator("#summary a[href^='#pof_mkl-differences-']").last.click()
    top = tab.evaluate("document.querySelector(':target').getBoundingClientRect().top")
    assert 0 <= top < 800
    tab.close()
