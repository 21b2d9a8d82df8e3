"""Available memory, one-line errors for arrays that do not fit, and work on blocks of rows.

For example, a container has a limit of 4 GiB and uses 3.5 GiB, and 0.5 GiB of these only cache files. Then 1 GiB is
left, whatever the machine has. `available_bytes` is the minimum of what the machine, the limits of the process and
its cgroups leave. `require_memory` compares it with an array's size before the array exists, and its error names the
keys to lower; without this check, the kernel would kill the process without a message. `row_blocks` and `by_block`
process 2^17 rows at a time, so temporary arrays stay small.
"""

import os
import resource
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fkl.basics.errors import FklError

PROC = Path("/proc")
LIMITS = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}
USED = {"cgroup2": "memory.current", "cgroup": "memory.usage_in_bytes"}
FILE_CACHE = {"cgroup2": "inactive_file", "cgroup": "total_inactive_file"}
"""For each version of cgroups: files of limits and use, and the line of memory.stat about reclaimable memory."""
ROWS = 2**17
"""Number of rows that are processed at a time."""


def available_bytes() -> int:
    """Bytes that this process may still allocate: the minimum over its cgroups, its own limits and the machine."""
    # The remainder of the limits that a shell's `ulimit -v` and `ulimit -d` set
    left = []
    for limit, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            left.append(soft - (_bytes_in_statm(column) or 0))
    return max(0, min([_free_in_machine(), *left, *_free_in_cgroups(PROC)]))


def require_memory(needed: int, what: str, keys: str) -> None:
    """Refuse arrays that do not fit.

    Parameters
    ----------
    needed : int
        Bytes, at least.
    what : str
        Their purpose, as the beginning of a sentence, for example ``"the 3000 rows of 48 features"``.
    keys : str
        Keys to lower, for example ``"dataset.rows or dataset.dimension"``.
    """
    # Free memory now; the array does not exist yet
    available = available_bytes()
    if needed > available:
        raise FklError(
            f"out of memory: {what} would take at least {shown_bytes(needed)}, and {shown_bytes(available)} is free; "
            f"lower {keys}"
        )


def shown_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB" if size < 1e6 else f"{size:.1e} TiB"


def count_bytes(holder: Any) -> int:
    """Bytes of all arrays in an object: itself, items of a list, tuple or dict, fields of a dataclass."""
    # Arrays, containers of arrays, and dataclasses with arrays as fields
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    if isinstance(holder, list | tuple | dict):
        return sum(map(count_bytes, holder.values() if isinstance(holder, dict) else holder))
    return sum(count_bytes(getattr(holder, field.name)) for field in fields(holder)) if is_dataclass(holder) else 0


def peak_bytes(work: Callable[[], object]) -> int:
    """Peak of the bytes that numpy and Python allocated while `work` ran, in addition to those before."""
    # Somebody may be tracing already, and then must not be stopped
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if started:
            tracemalloc.stop()


@contextmanager
def limited_to_free_memory(most: int = sys.maxsize) -> Iterator[None]:
    """Raise MemoryError if this block needs more than `available_bytes` or `most`, before the kernel kills the process.

    Only where the system counts a process's own data (Linux); elsewhere nothing changes.
    """
    # The limit is on what the process has now plus what is free; afterwards the old limit returns
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    held = _bytes_in_statm(5)
    if held is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (held + min(available_bytes(), most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _free_in_machine() -> int:
    """Free memory of the machine; its total memory if that is unknown, and no limit if both are unknown."""
    # Linux knows what is available without swapping
    with suppress(OSError):
        for line in (PROC / "meminfo").read_text(encoding="utf-8").splitlines():
            name, _, size = line.partition(":")
            if name == "MemAvailable":
                return int(size.split()[0]) * 1024
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return sys.maxsize


def _bytes_in_statm(column: int) -> int | None:
    """Bytes of address space (column 0) or own data (5) of this process; None where the system does not count them."""
    try:
        return int((PROC / "self" / "statm").read_text(encoding="utf-8").split()[column]) * resource.getpagesize()
    except OSError:
        return None


def _free_in_cgroups(proc: Path) -> Iterator[int]:
    """Bytes left in each memory cgroup of this process and in its parents."""
    with suppress(OSError, ValueError):
        # Which memory group this process is in, for either version
        paths = {}
        for line in (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0" or "memory" in controllers.split(","):
                paths["cgroup2" if number == "0" else "cgroup"] = PurePosixPath(path)
        # Mount points of cgroups, version 1 or 2: the group at the root, and the folder
        for line in (proc / "self" / "mountinfo").read_text(encoding="utf-8").splitlines():
            of_place, _, of_system = line.partition(" - ")
            kind, _, options = of_system.split(" ", 2)
            has_memory = kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(" ")[-1].split(","))
            if kind in paths and has_memory:
                root, place = of_place.split(" ")[3:5]
                yield from _free_in_nested(kind, PurePosixPath(root), Path(place), paths[kind])


def _free_in_nested(kind: str, root: PurePosixPath, place: Path, path: PurePosixPath) -> Iterator[int]:
    inner = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()  # in a container, its own root
    folder = place / inner
    # Limits of all parents apply, not only those of the group itself
    for group in [folder, *folder.parents][: len(inner.parts) + 1]:
        limits = []
        for name in LIMITS[kind]:
            with suppress(OSError, ValueError):  # there is no such file, or it holds max
                limits.append(int((group / name).read_text(encoding="utf-8")))
        limits = [limit for limit in limits if limit < 2**62]  # nearly 2^63 means max in the first version
        with suppress(OSError, ValueError):
            if limits:  # otherwise skip the kernel's count, which takes milliseconds
                # Memory of cached files can be taken back, so it does not count as used
                used = int((group / USED[kind]).read_text(encoding="utf-8"))
                stat = dict(
                    line.split(" ") for line in (group / "memory.stat").read_text(encoding="utf-8").splitlines()
                )
                free = int(stat.get(FILE_CACHE[kind], 0)) - used
                yield from (limit + free for limit in limits)


def row_blocks(rows: int, size: int | None = None) -> Iterator[slice]:
    """Slices that cover all rows, `size` (or `ROWS`) rows each; the last slice has up to twice as many."""
    # The last block takes the rest, so no block is shorter than `size`
    size = size or ROWS
    for start in range(0, max(rows - size, 0) + 1, size):
        yield slice(start, start + size if start + 2 * size <= rows else rows)


def by_block(work: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """`work(values)`, a block of rows at a time: the result has a row for each row of `values`."""
    # The result is allocated when the first block shows its shape and type
    made = None
    for some in row_blocks(len(values)):
        part = work(values[some])
        made = np.empty((len(values), *part.shape[1:]), part.dtype) if made is None else made
        made[some] = part
    assert made is not None
    return made


def take_values(values: NDArray[Any], which: NDArray[np.bool_], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """`values[which]` for an array whose first axes are those of `which`."""
    rows = values.reshape(which.size, *values.shape[which.ndim :])
    marks, kind = which.reshape(-1), values.dtype if dtype is None else dtype
    # Without a choice or a change of type, no copy is needed
    if marks.all() and rows.dtype == kind:
        return rows
    made, count = np.empty((int(np.count_nonzero(marks)), *rows.shape[1:]), kind), 0
    for some in row_blocks(len(rows)):
        part = rows[some][marks[some]]
        made[count : count + len(part)] = part
        count += len(part)
    return made


def spread_values(values: NDArray[Any], which: NDArray[np.bool_]) -> NDArray[Any]:
    """An array like `which` with these values where it is true, in order, and 0 elsewhere."""
    if which.all():
        return values.reshape(which.shape)
    # The first value goes to the first true place, and so on
    made, marks, count = np.zeros(which.size, values.dtype), which.reshape(-1), 0
    for some in row_blocks(which.size):
        here = int(np.count_nonzero(marks[some]))
        made[some][marks[some]] = values[count : count + here]
        count += here
    return made.reshape(which.shape)


def row_variance(values: NDArray[np.float64]) -> Any:
    """`values.var(axis=0)`, with the same bytes."""
    mean = values.sum(axis=0) / len(values)
    return by_block(lambda some: np.square(some - mean), values).sum(axis=0) / len(values)
