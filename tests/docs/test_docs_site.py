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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it: a warning, as of a broken link, is an error."""
    pages, folder = tmp_path_factory.mktemp("pages") / "docs", tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, str(ROOT / "docs" / "pages.py"), str(pages)], check=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs")]
    built = subprocess.run([*command, str(pages), str(folder)], capture_output=True, text=True, check=False)
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
def test_the_site_has_a_page_for_every_method_and_data_set(site: Path) -> None:
    for group, folder in {"algo": "methods", "dataset": "datasets"}.items():
        for name in choices.choice_files(group):
            assert name in (site / folder / f"{name}.html").read_text(encoding="utf-8")
    records = re.sub("<[^>]+>", "", (site / "records.html").read_text(encoding="utf-8"))
    assert all(name in records for name in (COLUMNS | KINDS | {"uplink_bytes": "", "..._gini": ""}))
    assert "privacy.clip" in (site / "conditions" / "privacy=central.html").read_text(encoding="utf-8")
    # What a reader searches for, and nothing from another host
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{word}"' in index or f"{word}:" in index for word in ("epsilon", "pof"))
    scripts = re.compile(r'(?:src|href)="(https?:)?//[^"]+\.(?:js|css|woff2?)"')
    assert not [page.name for page in site.rglob("*.html") if scripts.search(page.read_text(encoding="utf-8"))]


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
