"""Whatever change to a file fails, the same command again leads to the files of an undisturbed one."""

import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from every_write import CASES, FAULTS, KILLED, SIGNALS, Tried, published
from faulty_disk import NO_SHIM, FaultyDisk

pytestmark = pytest.mark.skipif(bool(NO_SHIM), reason=NO_SHIM)
SLOW = ("run, out=a", "run, model added", "run, diverges", "report", "data fetch", "predict", "flower init")
"""Beginnings of commands that `make test` leaves out; it tries one change of each other one."""
DAY = os.environ.get("FKL_TEST_DAY", "" if "CI" in os.environ else f"{datetime.now(UTC):%Y-%m-%d}")
"""The seed of that choice: other changes every day, and always the same ones in CI."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyDisk]:
    disk = FaultyDisk(tmp_path_factory.mktemp("disk") / "own")
    yield disk
    disk.close()


@pytest.mark.parametrize("case", [name for name in CASES if not name.startswith(SLOW)])
def test_a_change_that_fails_loses_nothing(case: str, disk: FaultyDisk, tmp_path: Path) -> None:
    draw = random.Random(f"{DAY} {case}")
    with published() as address:
        tried = Tried(disk, tmp_path / "it", CASES[case], address)
        assert tried.undisturbed.changes > 1, tried.undisturbed.err
        nth, fault = draw.randint(1, tried.undisturbed.changes), draw.choice(list(FAULTS))
        assert tried.defects(nth, FAULTS[fault]) == [], f"{fault}, n = {nth}; again by FKL_TEST_DAY={DAY}"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", CASES)
def test_each_change_that_fails_loses_nothing(case: str, fault: str, disk: FaultyDisk, tmp_path: Path) -> None:
    with published() as address:
        tried = Tried(disk, tmp_path / "it", CASES[case], address)
        found = {n: tried.defects(n, FAULTS[fault]) for n in range(1, tried.undisturbed.changes + 1)}
    assert not {n: said for n, said in found.items() if said}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("case", KILLED)
def test_what_is_killed_loses_nothing(case: str, name: str, disk: FaultyDisk, tmp_path: Path) -> None:
    """At random changes, and at random moments."""
    draw, began = random.Random(0), time.monotonic()
    with published() as address:
        tried = Tried(disk, tmp_path / "it", KILLED[case], address)
        seconds = time.monotonic() - began
        for _ in range(5):
            assert tried.killed(name, nth=draw.randint(1, tried.undisturbed.changes)) == []
            assert tried.killed(name, after_s=draw.uniform(0, seconds)) == []
