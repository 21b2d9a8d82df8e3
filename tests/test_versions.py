"""What is installed: the lock file keeps to the ranges of pyproject.toml, and the commands keep to the lock file."""

import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = itertools.chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
RANGES = [wanted for wanted in map(Requirement, LINES) if wanted.name != PROJECT["name"]]
LOCKED = [
    Requirement(line)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if not line.lstrip().startswith("#")
]


def test_the_lock_file_holds_exact_versions_and_nothing_else():
    """No address of an index or a file: `Requirement` reads no option, and `url` is where an address would be."""
    assert [str(pin) for pin in LOCKED if pin.url or [part.operator for part in pin.specifier] != ["=="]] == []


def test_one_locked_version_lies_in_each_range():
    """Whatever the system and the Python, one line counts; if not, `make lock` mends it."""
    for wanted, system, python in itertools.product(RANGES, ("linux", "darwin", "win32"), ("3.11", "3.12", "3.13")):
        here = {"sys_platform": system, "python_version": python, "python_full_version": f"{python}.0"}
        if wanted.marker is not None and not wanted.marker.evaluate(here):
            continue  # not wanted there
        of_that_name = [pin for pin in LOCKED if canonicalize_name(pin.name) == canonicalize_name(wanted.name)]
        pins = [pin for pin in of_that_name if pin.marker is None or pin.marker.evaluate(here)]
        assert len(pins) == 1, (wanted, here)
        assert wanted.specifier.contains(str(pins[0].specifier).removeprefix("==")), str(pins[0])


def would_do(target: str, python: Path | str = sys.executable) -> str:
    """What make would do where nothing is installed, whatever the make around these tests was told."""
    command = ["make", "--dry-run", "--always-make", target, f"PYTHON={python}"]
    kept = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", ["test"])
def test_make_installs_the_locked_versions(target: str, tmp_path: Path):
    """And says so; a Python that nobody made the lock file for gets the newest ones."""
    assert "--constraint requirements.lock --editable" in would_do(target)
    later = tmp_path / "python"
    later.write_text("#!/bin/sh\necho 3.99\n")
    later.chmod(0o755)
    done = would_do(target, later)
    assert "Python 3.99: installing the newest versions that pyproject.toml allows" in done
    assert "--constraint" not in done


def test_no_place_says_to_install_the_package_that_is_another_projects():
    """On the package index the name fkl belongs to somebody else."""
    assert PROJECT["name"] != "fkl"
    folders = [path for name in ("fkl", "conf", "docs", "examples", "scripts") for path in (ROOT / name).rglob("*.*")]
    texts = [path for path in (*ROOT.glob("*.md"), *folders) if path.suffix in (".md", ".py", ".yaml", ".ipynb")]
    named = {path: re.findall(r"fkl\[|pip install '?fkl\b", path.read_text("utf-8")) for path in texts}
    assert {path: found for path, found in named.items() if found} == {}


@pytest.mark.slow
def test_make_sbom_lists_the_locked_versions(tmp_path: Path):
    """All of them, and no other; `cyclonedx-py` compares the file with CycloneDX's own schema."""
    bin = Path(sys.executable).parent
    if not (bin / "cyclonedx-py").exists():
        pytest.skip("cyclonedx-bom is not installed: make test installs it")
    command = ["make", "--old-file=.venv/ready", "sbom", f"BIN={bin}", f"SBOM={tmp_path / 'sbom.json'}"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    made = json.loads((tmp_path / "sbom.json").read_text(encoding="utf-8"))
    assert made["bomFormat"] == "CycloneDX"
    assert made["metadata"]["component"]["name"] == PROJECT["name"]
    listed = {(canonicalize_name(one["name"]), one["version"]) for one in made["components"]}
    assert listed == {(canonicalize_name(pin.name), str(pin.specifier).removeprefix("==")) for pin in LOCKED}
