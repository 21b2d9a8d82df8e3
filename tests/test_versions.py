"""What is installed: the lock file keeps to the ranges of pyproject.toml, and the commands keep to the lock file."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
MADE = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = MADE["project"], MADE["tool"]
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


def test_make_installs_the_locked_versions():
    """Where nothing is installed, whatever the make around these tests was told."""
    command = ["make", "--dry-run", "--always-make", "test", f"PYTHON={sys.executable}"]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "--constraint requirements.lock --editable" in done.stdout


def test_no_place_says_to_install_the_package_that_is_another_projects():
    """On the package index the name fkl belongs to somebody else."""
    assert PROJECT["name"] != "fkl"
    folders = [path for name in ("fkl", "conf", "docs", "examples", "scripts") for path in (ROOT / name).rglob("*.*")]
    texts = [path for path in (*ROOT.glob("*.md"), *folders) if path.suffix in (".md", ".py", ".yaml", ".ipynb")]
    named = {path: re.findall(r"fkl\[|pip install '?fkl\b", path.read_text("utf-8")) for path in texts}
    assert {path: found for path, found in named.items() if found} == {}


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    """Also what pyproject.toml takes into the wheel; and nothing runs as root."""
    steps = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    copied = [part for words in re.findall(r"^COPY (?!--)(.+) \S+$", steps, re.MULTILINE) for part in words.split()]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored and sorted(kept) == sorted(copied)
    assert all((ROOT / name).exists() for name in copied)
    wheel = TOOLS["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], PROJECT["readme"]} <= {*copied}
    assert re.findall(r"^USER (\S+)$", steps, re.MULTILINE) == ["1000"]
    [extras] = re.findall(r"'\.\[([\w,]+)\]'", steps)
    assert {*extras.split(",")} <= {*PROJECT["optional-dependencies"]}
