"""The page of `fkl report`: from runs that the tests make, looked at by a parser and, where there is one, a browser."""

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
from in_browser import DESK, PHONE, faults, opened, require_black_on_white, require_keyboard, require_whole
from tinyhtml5.parser import HTMLParser

from fkl import cli
from fkl.papers import PAPERS, declared, differences
from fkl.report import page as page_module

SWEEPS = (
    ("+graph_omkl/data=airfoil", "+graph_omkl/exact=poly_2,rbf_1"),
    ("algo=dkla", "+coke/data=synthetic", "dataset.rows=2000", "partition.rounds=80", "algo.iterations=5"),
)


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


def test_everything_is_on_the_page(page: Element, details: Element, outputs: Path) -> None:
    """Every paper with all its tables and figures and its differences, and every run."""
    for paper in PAPERS:
        told = declared(paper)
        assert told["title"] in text(by_id(page, paper))
        for kind in ("table", "figure"):
            for number, one in told[f"{kind}s"].items():
                assert one["title"] in text(by_id(page, f"{paper}-{kind}-{number}"))
        assert by_id(page, f"{paper}-differences") is not None
        first = differences(paper).split("\n\n")[1:2]
        assert all(re.findall(r"\w+", words)[0] in text(by_id(page, paper)) for words in first)
    folders = sorted((outputs / "runs").glob("[!.]*"))
    assert len(folders) == 3
    for folder in folders:
        row = by_id(page, f"run-{folder.name}")
        [link] = row.iter("a")
        assert link.get("href") == f"report/runs.html#details-{folder.name}"
        run = by_id(details, f"details-{folder.name}")
        assert folder.name in text(run)
        assert len(list(run.iter("img"))) == len(list(folder.glob("*.png"))) > 0
        assert (folder / "config.yaml").read_text().split() == "".join(next(run.iter("pre")).itertext()).split()
    assert "<mine> diverged in round 3" in text(by_id(page, "left-out"))


def test_a_run_has_a_row_with_its_numbers(page: Element, outputs: Path) -> None:
    """Error, baseline, bytes and time, which a program can sort by."""
    [folder] = (outputs / "runs").glob("*dkla*")
    summary = pd.read_csv(folder / "summary.csv")
    row = by_id(page, f"run-{folder.name}")
    _, method, _, error, baseline, sent, time, _ = row
    assert text(method) == "DKLA"
    assert float(error.get("data-value", "")) == pytest.approx(summary["test_mse"].mean())
    assert text(error).endswith("test_mse") and text(error)[0] in "✓▲"
    assert float(baseline.get("data-value", "")) == pytest.approx(summary["test_mse_training_mean"].mean())
    assert float(sent.get("data-value", "")) == pytest.approx(summary["link_bytes"].mean())
    assert float(time.get("data-value", "")) == pytest.approx(summary["runtime_s"].mean())


def test_a_papers_table_has_its_printed_layout(page: Element) -> None:
    """Ours under the published number in one cell, with the mark that settled it; what was not run is a line."""
    section = by_id(page, "graph_omkl-table-1")
    grid = next(one for one in section.iter("div") if one.get("class") == "scroll grid")
    head, *rows = grid.iter("tr")
    assert [text(cell) for cell in head] == ["MSE (× 10⁻³)", "airfoil"]
    assert [text(row[0]) for row in rows] == ["RBF-1", "POLY-2"]
    assert all(re.fullmatch(r"[\d.]+ ?[\d.,]+ ✗", text(row[1])) for row in rows)
    assert "Not run: airfoil (6 cells), bias (8 cells)" in text(section)


def test_tables_are_the_same_on_the_page_and_in_all_files(page: Element, outputs: Path) -> None:
    """Cell by cell the words of the Markdown table, made of the numbers of the CSV table; what was run, on the page."""
    path = outputs / "tables" / "graph_omkl" / "table1"
    *_, body = by_id(page, "graph_omkl-table-1").iter("tbody")
    lines = [line for line in path.with_suffix(".md").read_text().split("\n") if line.startswith("|")]
    markdown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    numbers = pd.read_csv(
        path.with_suffix(".csv"),
        keep_default_na=False,
        na_values={name: [""] for name in ("ours", "difference_percent")},
    )
    assert len(markdown) == len(numbers) > 30
    ran = [k for k, number in enumerate(numbers.to_dict("records")) if number["ours"] == number["ours"]]
    assert len(ran) == len(list(body)) == 2
    for k, row in zip(ran, body, strict=True):
        words, number = markdown[k], numbers.iloc[k]
        header, *cells = row
        assert header.get("scope") == "row"
        assert text(header).startswith(f"{words[1]} on {words[0]}")
        assert [text(cell).replace("−", "-").split(" ")[0] for cell in cells[:4]] == words[5:9]
        assert text(cells[-1]) == words[-1]
        assert float(words[6].replace(",", "")) == pytest.approx(number["ours"], rel=1e-3)
        assert float(words[9].replace(",", "")) == pytest.approx(number["difference_percent"], rel=1e-2, abs=1e-2)
        assert words[9].replace("-", "−") in text(cells[4])


def test_the_summary_counts_what_the_tables_show(page: Element, outputs: Path) -> None:
    """Two cells of 32 were run, and random numbers are nothing like airfoil's."""
    table = pd.read_csv(outputs / "tables" / "graph_omkl" / "table1.csv")
    [row] = [
        row
        for row in by_id(page, "graph_omkl").iter("tr")
        if any(link.get("href") == "#graph_omkl-table-1" for link in row.iter("a"))
    ]
    assert [text(cell) for cell in row][1:] == ["", "", "", "", "2", "", "", "30"]
    assert table["ours"].notna().sum() == 2
    assert table[table["ours"].notna()]["verdict"].tolist() == ["differs", "differs"]
    shares = next(one for one in page.iter("table") if one.get("class") == "shares")
    head, *lines = shares.iter("tr")
    assert "of 2 printed cells that were run" in text(head)
    assert [" ".join(map(text, line)).strip() for line in lines] == [
        "0 % 0 come out as described in the paper 0 0 0", "0 % 0 by one reading for the whole paper 0 0 0",
        "0 % 0 by some reading, cell by cell 0 0 0", "100 % 2 do not come out by any reading",
        "0 % 0 undecided",
    ]  # fmt: skip
    statement = next(one for one in page.iter("table") if one.get("class") == "statement")
    lines = {text(line[0]): [text(cell) for cell in line][1:] for line in list(statement.iter("tr"))[1:]}
    assert [*lines] == [declared(paper)["title"].partition(" (")[0] for paper in PAPERS]
    assert lines["Graph-aided OMKL"][:7] == ["2", "0", "0", "0", "2", "0", "180"]
    assert lines["FDSKL"][-1].startswith("No cells to compare: its only printed table is of run times")
    assert all(len(words[-1].split()) > 5 for words in lines.values())
    told = pd.read_csv(outputs / "tables" / "shares.csv").to_dict("records")
    assert [(one["paper"], one["cells"], one["by_one_reading"]) for one in told] == [("graph_omkl", 2, 0)]
    assert "In short." in text(by_id(page, "graph_omkl"))
    assert "fkl data fetch naval" in text(by_id(page, "summary"))


def test_what_is_pointed_at_is_there_and_named_once(page: Element) -> None:
    names = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(names) == len(set(names))
    inside = [link.get("href", "")[1:] for link in page.iter("a") if link.get("href", "").startswith("#")]
    assert len(inside) > 50
    assert set(inside) <= set(names)
    labels = {element.get("aria-labelledby") for element in page.iter()} - {None}
    assert labels <= set(names)


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


def test_only_pictures_beside_the_page_are_loaded(page: Element, details: Element, outputs: Path) -> None:
    """By relative addresses, so that the folder can be moved; they are linked where they lie."""
    asked = [outputs / one for one in loaded(page)] + [outputs / "report" / one for one in loaded(details)]
    assert len(asked) > 6
    assert all(file.resolve().is_relative_to(outputs.resolve()) and file.is_file() for file in asked)
    assert not [*(outputs / "report").glob("*.png")]
    assert [*details.iter("script")] == [] and len([*page.iter("script")]) == 1


def test_pictures_are_whole_and_described(page: Element, details: Element, outputs: Path) -> None:
    pictures = [(outputs, one) for one in page.iter("img")] + [(outputs / "report", one) for one in details.iter("img")]
    assert len(pictures) > 6
    for folder, picture in pictures:
        pixels = matplotlib.image.imread(folder / picture.get("src", ""))
        assert pixels.std() > 0.01
        assert len(picture.get("alt", "")) > 8 and picture.get("loading") == "lazy"
        ratio = int(picture.get("width", "")) / int(picture.get("height", ""))
        assert ratio == pytest.approx(pixels.shape[1] / pixels.shape[0], rel=0.01)


def test_files_that_are_linked_are_there(page: Element, outputs: Path) -> None:
    lists = [element for element in page.iter("p") if element.get("class") == "quiet files"]
    links = {link.get("href", "") for one in lists for link in one.iter("a")}
    assert "tables/graph_omkl/table1.csv" in links and len(links) > 5
    assert all((outputs / link).is_file() for link in links)


@pytest.fixture(scope="module")
def single(outputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same page as one file, alone in a folder."""
    folder = tmp_path_factory.mktemp("single")
    shutil.copytree(outputs, folder / "outputs")
    with pytest.MonkeyPatch.context() as patch, blank.drawn_after_all():
        patch.chdir(folder)
        patch.delenv("FKL_DATA", raising=False)
        patch.setattr(sys, "argv", ["fkl", "report", "--single"])
        cli.main()
    return (folder / "outputs" / "report.html").rename(folder / "alone.html")


def test_a_single_file_has_all_inside(single: Path, page: Element, details: Element) -> None:
    alone = parsed(single)
    assert loaded(alone) == set()
    assert len([*alone.iter("img")]) == len([*page.iter("img")]) + len([*details.iter("img")])
    names = [element.get("id") for element in alone.iter() if element.get("id")]
    assert len(names) == len(set(names))
    assert {link.get("href", "#")[0] for link in alone.iter("a")} == {"#"}


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


TEMPLATES = Path(page_module.__file__).parent / "templates"
STYLE = (TEMPLATES / "style.css").read_text()


def luminance(colour: np.ndarray) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def colours_of(scheme: str) -> dict[str, np.ndarray]:
    """The colours that the style sheet's :root has in a scheme, by name."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    words = dict(re.findall(r"--([\w-]+): (#\w+)", light + (dark if scheme == "dark" else "")))
    long = {
        name: "".join(2 * sign for sign in word[1:]) if len(word) == 4 else word[1:] for name, word in words.items()
    }
    return {name: np.array([*bytes.fromhex(word)]) / 255 for name, word in long.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_the_contrast_that_wcag_asks_for(scheme: str) -> None:
    """4.5 to 1: marks on their colours, words on each background, and in cells that are mixed with a colour."""
    colours = colours_of(scheme)
    pairs = {
        (f"--{text}", f"--{on}"): (colours[text], colours[on])
        for text in ("ink", "quiet", "link", "near", "far")
        for on in ("paper", "card", "shade")
    }
    for mark, share in re.findall(r"\.cell\.(\w+) \{ background: color-mix\(in srgb, var\(--\w+\) (\d+)%", STYLE):
        mixed = colours["paper"] + int(share) / 100 * (colours[mark] - colours["paper"])
        pairs |= {(text, f"cell {mark}"): (colours[text], mixed) for text in ("ink", "quiet")}
    own = re.search(r"\.mark \{.*?color: (.*?);", STYLE)[1]
    for mark, rest in re.findall(r"\.mark\.(\w+) \{ background: var\(--\w+\);(.*?)\}", STYLE):
        word = re.search(r"color: (.*?);", rest)
        word = own if word is None else word[1]
        pairs[f"mark {mark}", word] = colours[mark], colours[re.fullmatch(r"var\(--([\w-]+)\)", word)[1]]
    assert {("mark near", "var(--on)"), ("mark far", "var(--on)"), ("ink", "cell close")} <= {*pairs}
    assert {pair: contrast(*both) for pair, both in pairs.items() if contrast(*both) < 4.5} == {}
    assert "opacity" not in STYLE


def test_the_browser_finds_no_fault(browser: Any, outputs: Path, single: Path) -> None:
    """No broken image, no error, no request elsewhere, nothing wider than the screen, no faint text."""
    for file in (outputs / "report.html", outputs / "report" / "runs.html", single):
        require_whole(browser, file, outputs)


def test_a_phone_shows_papers_and_runs_whole(browser: Any, outputs: Path) -> None:
    """Their tables fold into the width that there is, and rows that the filter hides stay hidden."""
    tab = browser.new_page(viewport={"width": PHONE, "height": 800})
    tab.goto((outputs / "report.html").as_uri())
    for name in ("statement", "runs"):
        assert tab.evaluate(
            f"(one => one.scrollWidth <= one.clientWidth)(document.querySelector('table.{name}').parentElement)"
        )
    tab.locator(".filter input").fill("dkla synth")
    assert tab.locator("table.runs tbody tr").locator("visible=true").count() == 1
    tab.close()


def test_runs_are_sorted_and_filtered(browser: Any, outputs: Path) -> None:
    tab = browser.new_page(viewport={"width": DESK, "height": 800})
    tab.goto((outputs / "report.html").as_uri())
    rows = tab.locator("table.runs tbody tr")

    def errors() -> list[float]:
        return tab.evaluate(
            "[...document.querySelectorAll('table.runs tbody td:nth-child(4)')].map(c => +c.dataset.value)"
        )

    button = tab.locator("table.runs thead button", has_text="error")
    button.click()
    assert errors() == sorted(errors())
    button.click()
    assert errors() == sorted(errors(), reverse=True)
    tab.locator(".filter input").fill("dkla synth")
    assert rows.locator("visible=true").count() == 1
    assert tab.locator(".filter output").text_content() == "1 of 3 runs, those with dkla synth"
    tab.close()


def test_the_printed_page_is_black_on_white(browser: Any, outputs: Path) -> None:
    """Also where the screen is dark; what scrolls on the screen is whole, what is a control is not there."""
    tab = browser.new_page(color_scheme="dark")
    tab.goto((outputs / "report.html").as_uri())
    require_black_on_white(tab)
    style = "getComputedStyle(document.querySelector('{}')).{}"
    assert tab.evaluate(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert tab.evaluate(style.format(".scroll", "overflowX")) == "visible"
    assert tab.evaluate(style.format(".filter label", "display")) == "none"
    tab.locator(".filter input").evaluate("one => { one.value = 'dkla'; one.dispatchEvent(new Event('input')); }")
    assert tab.locator(".filter output").inner_text() == "1 of 3 runs, those with dkla"
    assert tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--far')") == "#b84f00"
    tab.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_is_used_by_keyboard(browser: Any, outputs: Path, width: int) -> None:
    """What has the focus is seen; Enter opens what is folded and sorts, and the filter takes letters."""
    with opened(browser, outputs / "report.html", width) as tab:
        assert require_keyboard(tab)[0].startswith("A ")
        folded = tab.locator("summary").first
        folded.press("Enter")
        assert folded.evaluate("one => one.parentElement.open")
        if width == DESK:  # on a phone, the table has no head
            tab.locator("table.runs thead button", has_text="error").press("Enter")
            assert tab.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        tab.locator(".filter input").focus()
        tab.keyboard.type("dkla synth")
        assert tab.locator("table.runs tbody tr").locator("visible=true").count() == 1


def test_a_page_follows_the_screen_into_the_dark(browser: Any, outputs: Path) -> None:
    with opened(browser, outputs / "report.html") as tab:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(ground)
        tab.emulate_media(color_scheme="dark")
        assert tab.evaluate(ground) != light


ROWS = (
    "POF-MKL,seed=1,0.5",
    "POF-MKL,seed=10,0.4",
    "POF-MKL,,",
    "vM-KOFL,algo.eta=0.1 seed=1,nan",
    "DKLA,eta=0.15,2e-3",
)
"""Rows of a table of runs: method, keys, error."""


@pytest.mark.parametrize(
    ("filter_", "rows"),
    [
        ("seed=1", [0, 3]),
        ("seed=10", [1]),
        ("seed=", [0, 1, 3]),
        ("eta=0.1", [3]),
        ("algo.eta=0.1", [3]),
        ("SEED=1, pof", [0]),
        ("eta=0", []),
        ("mkl", [0, 1, 2]),
        (" ", [0, 1, 2, 3, 4]),
    ],
)
def test_a_filter_finds_whole_values_and_says_how_many(browser: Any, filter_: str, rows: list[int]) -> None:
    tab = table_of_runs(browser)
    tab.locator(".filter input").fill(filter_)
    assert tab.evaluate("[...document.querySelectorAll('tbody tr')].map(r => +r.id).filter(i => !R(i).hidden)") == rows
    words = " ".join(word.rstrip(",") for word in filter_.lower().split())
    output = tab.locator("[aria-live=polite]")
    assert output.text_content() == (f"{len(rows)} of 5 runs, those with {words}" if words else "")
    tab.close()


@pytest.mark.parametrize(
    ("column", "up", "down"),
    [("keys", [3, 4, 0, 1, 2], [1, 0, 4, 3, 2]), ("error", [4, 1, 0, 2, 3], [0, 1, 4, 2, 3])],
)
def test_empty_cells_are_last_however_a_table_is_sorted(
    browser: Any, column: str, up: list[int], down: list[int]
) -> None:
    tab = table_of_runs(browser)
    for order, rows in (("ascending", up), ("descending", down)):
        tab.locator("thead button", has_text=column).click()
        assert tab.locator("th[aria-sort]").get_attribute("aria-sort") == order
        assert tab.evaluate("[...document.querySelectorAll('tbody tr')].map(r => +r.id)") == rows
    tab.close()


def table_of_runs(browser: Any) -> Any:
    """A tab with a small table of runs, and the page's own script."""
    rows = [line.split(",") for line in ROWS]
    cells = [
        f"<th>{a}</th><td>{b}</td><td data-value='{c}'>{c if c != 'nan' else '–'}</td><td>details</td>"
        for a, b, c in rows
    ]
    body = "".join(f"<tr id={number}>{row}</tr>" for number, row in enumerate(cells))
    head = "".join(f"<th>{name}</th>" for name in ("method", "keys", "error", "details"))
    script = (TEMPLATES / "runs.js").read_text()
    table = f"<table class=runs><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    tab = browser.new_page()
    tab.set_content(f"<div>{table}</div><script>const R = (i) => document.getElementById(i);{script}</script>")
    return tab


@pytest.mark.parametrize(
    ("fault", "markup"),
    [
        ("image", '<img src="data:image/png;base64,iVBORw0KGgo=" alt="cut short">'),
        ("script", "<script>nothing.at.all</script>"),
        ("console", "<script>console.error('mine')</script>"),
        ("request", '<img src="https://example.org/a.png" alt="from elsewhere">'),
        ("contrast of P  2.32: faint", '<p style="color: #aaa; background: #fff">faint</p>'),
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
    tab.locator("#pof_mkl a[href^='#pof_mkl-differences-']").last.click()
    top = tab.evaluate("document.querySelector(':target').getBoundingClientRect().top")
    assert 0 <= top < 800
    tab.close()
