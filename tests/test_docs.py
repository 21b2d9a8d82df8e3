"""The documentation builds without a broken link, and says what holds."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import fkl
from fkl.config import choices
from fkl.screen.columns import COLUMNS, KINDS

ROOT = Path(__file__).resolve().parent.parent
SECTION = re.compile(r"^(Raises|Parameters)\n-+\n(.*?)(?=\n\n\w[\w ]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
WITHOUT_WORDS = {"Raises": r"\S+(, \S+)*", "Parameters": r"\S+(, \S+)*( : [\w.\[\], ]+)?"}
"""Lines of a section that say no more than names and types."""


def build(site: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """What `make docs` does, into a folder of its own."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_site_has_a_page_for_every_method_and_data_set(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr
    for group, folder in {"algo": "methods", "dataset": "datasets"}.items():
        for name in choices.files(group):
            assert name in (tmp_path / folder / name / "index.html").read_text(encoding="utf-8")
    records = (tmp_path / "records" / "index.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in records for name in (COLUMNS | KINDS | {"uplink_bytes": "", "..._gini": ""}))
    assert "privacy.clip" in (tmp_path / "conditions" / "privacy=central" / "index.html").read_text(encoding="utf-8")


def test_a_broken_link_is_refused(tmp_path: Path) -> None:
    """In a copy of the site's sources with a page that links nowhere."""
    for folder in ("docs", "scripts", "conf"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "mkdocs.yml").write_text("docs_dir: docs\nsite_name: copy\nvalidation: {links: {not_found: warn}}\n")
    (tmp_path / "docs" / "index.md").write_text("[there is no such page](nowhere.md)\n")
    built = build(tmp_path / "site", tmp_path / "mkdocs.yml")
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


def test_no_section_of_a_docstring_says_nothing() -> None:
    """A section `Raises` that names a class alone, or `Parameters` with types alone, which the signature has."""
    empty = []
    for file in sorted(Path(fkl.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                for name, body in SECTION.findall(ast.get_docstring(node) or ""):
                    lines = [line for line in body.splitlines() if line.strip()]
                    if all(re.fullmatch(WITHOUT_WORDS[name], line) for line in lines):
                        empty.append(f"{file.name}: {getattr(node, 'name', 'module')}: {name}")
    assert empty == []
