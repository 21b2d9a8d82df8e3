"""The lock file keeps to the ranges of pyproject.toml, and every range has a lower end."""

import itertools
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


@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_one_locked_version_lies_in_the_range(wanted: Requirement):
    """Whatever the system and the Python, one line counts; if not, `make lock` mends it."""
    for system, python in itertools.product(("linux", "darwin", "win32"), ("3.11", "3.12", "3.13")):
        here = {"sys_platform": system, "python_version": python, "python_full_version": f"{python}.0"}
        if wanted.marker is not None and not wanted.marker.evaluate(here):
            continue  # not wanted there
        of_that_name = [pin for pin in LOCKED if canonicalize_name(pin.name) == canonicalize_name(wanted.name)]
        pins = [pin for pin in of_that_name if pin.marker is None or pin.marker.evaluate(here)]
        assert len(pins) == 1, here
        assert wanted.specifier.contains(str(pins[0].specifier).removeprefix("==")), str(pins[0])


@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_a_range_has_a_lower_end(wanted: Requirement):
    """`make lowest` installs it."""
    assert [part.operator for part in wanted.specifier].count(">=") == 1
