"""The documentation builds without a broken link, and says what holds."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from in_browser import PHONE, opened, require_black_on_white, require_keyboard, require_whole

import fkl
from fkl.config import choices
from fkl.screen.columns import COLUMNS, KINDS

ROOT = Path(__file__).resolve().parents[2]


def build(pages: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` does with pages that are written."""
    options = ["-q", "-W", "--keep-going", "-c", str(ROOT / "docs"), str(pages), str(site)]
    command = [sys.executable, "-m", "sphinx", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    pages, folder = tmp_path_factory.mktemp("pages") / "docs", tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, str(ROOT / "docs" / "pages.py"), str(pages)], check=True)
    built = build(pages, folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index", "methods/pof_mkl"])
def test_a_page_of_the_site_is_whole_in_a_browser(browser: Any, site: Path, page: str) -> None:
    file = site / f"{page}.html"
    require_whole(browser, file, site)
    with opened(browser, file, PHONE) as tab:
        assert "Skip to main content" in require_keyboard(tab)[0]
        require_black_on_white(tab)


@pytest.mark.slow
def test_the_site_is_darkened_by_its_button_and_searched_by_keyboard(browser: Any, site: Path) -> None:
    with opened(browser, site / "index.html") as tab:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(ground)
        tab.locator("button.theme-switch-button").locator("visible=true").press("Enter")
        tab.get_by_text("Dark", exact=True).locator("visible=true").press("Enter")
        assert tab.evaluate(ground) != light
        tab.keyboard.press("Control+k")
        tab.keyboard.type("pof")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/search.html?q=pof*")


@pytest.mark.slow
def test_the_site_has_a_page_for_every_method_and_data_set(site: Path) -> None:
    for group, folder in {"algo": "methods", "dataset": "datasets"}.items():
        for name in choices.files(group):
            assert name in (site / folder / f"{name}.html").read_text(encoding="utf-8")
    records = re.sub("<[^>]+>", "", (site / "records.html").read_text(encoding="utf-8"))
    assert all(name in records for name in (COLUMNS | KINDS | {"uplink_bytes": "", "..._gini": ""}))
    assert "privacy.clip" in (site / "conditions" / "privacy=central.html").read_text(encoding="utf-8")
    # What a reader searches for, and nothing from another host
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{word}"' in index or f"{word}:" in index for word in ("epsilon", "pof"))
    scripts = re.compile(r'(?:src|href)="(https?:)?//[^"]+\.(?:js|css|woff2?)"')
    assert not [page.name for page in site.rglob("*.html") if scripts.search(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_a_broken_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Start\n\n[there is no such page](nowhere.md)\n")
    built = build(tmp_path / "pages", tmp_path / "site")
    assert built.returncode != 0
    assert "nowhere.md" in built.stdout + built.stderr


def test_the_citation_is_of_this_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == fkl.__version__


@pytest.mark.parametrize(
    "file", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]), ids=lambda file: file.name
)
def test_files_that_are_linked_to_are_there(file: Path) -> None:
    """Also those of the source, which the site has no page for."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", file.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (file.parent / link).exists()]
    assert not missing
