"""What memory is left, by fake file trees of the kernel's and by real limits; and what becomes of too large arrays."""

import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fkl.basics import memory
from fkl.basics.errors import FklError
from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary

MIB = 2**20


def write(folder: Path, **files: object) -> None:
    """Files of the kernel's, with _ for the point in their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{value}\n")


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, free: int, cgroup: str = "", mounts: str = "") -> None:
    """Pretend that the kernel's files say so."""
    write(folder / "proc" / "self", cgroup=cgroup, mountinfo=mounts, statm="0 0 0 0 0 0 0")
    write(folder / "proc", meminfo=f"MemTotal: 99 kB\nMemFree: 1 kB\nMemAvailable: {free // 1024} kB")
    monkeypatch.setattr(memory, "PROC", folder / "proc")


def unified(folder: Path, limit: str, used: int, cache: int = 0, high: str = "max") -> None:
    """One group of cgroups, version 2."""
    stat = f"anon 7\nfile 9\ninactive_file {cache}\nslab 1"
    write(folder, memory_max=limit, memory_high=high, memory_current=used, memory_stat=stat)


def split(folder: Path, limit: int, used: int, cache: int = 0) -> None:
    """One group of cgroups, version 1."""
    stat = f"inactive_file 3\ntotal_inactive_file {cache}"
    write(folder, memory_limit_in_bytes=limit, memory_usage_in_bytes=used, memory_stat=stat)


@pytest.mark.parametrize(
    ("job", "step", "expected", "name"),
    [
        (("1000", 900, 500), ("max", 10), 600, "/job/step"),
        (("1000", 100), ("500", 600), 0, "/job/step"),
        (("max", 100), ("max", 600), 8192, "/job/step"),
        (("max", 100, 0, "700"), ("max", 600), 600, "/job/step"),
        (("max", 100), ("5", 1), 4000, "/a container's"),
    ],
)
def test_the_tightest_of_nested_groups_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: tuple, step: tuple, expected: int, name: str
) -> None:
    """As under Slurm: the cache is given back, memory.high counts; a container without its own name takes its root."""
    place = tmp_path / "cgroup"
    machine(tmp_path, monkeypatch, 8192, f"0::{name}", f"30 29 0:26 / {place} rw shared:9 - cgroup2 cgroup2 rw")
    unified(place, "max" if name == "/job/step" else "5000", 1000)
    unified(place / "job", *job)
    unified(place / "job" / "step", *step)
    assert memory.available_bytes() == expected


@pytest.mark.parametrize(("root", "path"), [("/", "/slurm/job"), ("/docker/1", "/docker/1/slurm/job")])
def test_groups_of_the_first_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, path: str) -> None:
    """Also where a container sees a part of the tree as its root."""
    place = tmp_path / "memory"
    mounts = f"35 31 0:32 {root} {place} rw,relatime - cgroup cgroup rw,memory\n"
    mounts += "36 31 0:1 / /cpu rw - cgroup cgroup rw,cpu"
    machine(tmp_path, monkeypatch, 2**30, f"5:cpu:/other\n4:memory:{path}\n0::/", mounts)
    split(place, 2**63 - 4096, 5)
    split(place / "slurm" / "job", 10000, 4000, 1000)
    assert memory.available_bytes() == 7000


def test_a_system_without_proc_has_all_that_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "nowhere")
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__)
    assert memory.available_bytes() == 4096000


@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_a_limit_of_the_shell_counts(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """`ulimit -v` and `ulimit -d`, less what is held already."""
    held = memory._bytes_in_statm(0 if limit == resource.RLIMIT_AS else 5)
    assert held is not None
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (held + 300 * MIB, hard))
    try:
        assert 200 * MIB < memory.available_bytes() < 301 * MIB
    finally:
        resource.setrlimit(limit, (soft, hard))


def test_what_is_refused_says_how_much_for_what_and_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * 2**29)
    memory.require_memory(3 * 2**29, "this", "dataset.rows")
    with pytest.raises(FklError) as refused:
        memory.require_memory(10 * 2**30, "5 rows", "dataset.rows or chunk")
    said = "out of memory: 5 rows would take at least 10 GiB, and 1.5 GiB is free; lower dataset.rows or chunk"
    assert str(refused.value) == said


def in_a_compiled_loop() -> None:
    """Tiles of features, which compiled loops make for themselves."""
    bank = Dictionary(N=2, D=1_000_000).bank(1, Streams(0, (0,)), "float32")
    bank.predict(np.ones((256, 1)), np.zeros((1, 2, bank.width)))


@pytest.mark.parametrize("work", [lambda: np.ones(50 * MIB), in_a_compiled_loop])
def test_taking_more_than_there_is_is_a_memory_error(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]
) -> None:
    """Rather than the end of the process; and the limit is gone afterwards."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(memory, "available_bytes", lambda: 200 * MIB)
    with pytest.raises(MemoryError), memory.limited_to_free_memory():
        work()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with memory.limited_to_free_memory():
        np.ones(MIB)


@pytest.mark.parametrize("n", [1, 250])
def test_work_by_blocks_is_numpys(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROWS", 100)
    values, which = np.random.default_rng(n).random((n, 3)), np.random.default_rng(n).random((n, 3)) < 0.6
    np.testing.assert_array_equal(memory.by_block(np.sqrt, values), np.sqrt(values))
    np.testing.assert_array_equal(memory.take_values(values, which), values[which])
    np.testing.assert_array_equal(memory.spread_values(values[which], which), np.where(which, values, 0))
    np.testing.assert_array_equal(memory.row_variance(values), values.var(axis=0))
