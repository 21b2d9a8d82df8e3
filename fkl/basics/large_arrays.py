"""Arrays that grow with the number of clients: in memory or, if an engine asks for it, in files of this process."""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fkl.basics.files import writing
from fkl.basics.memory import require_memory

LEAST_BYTES = 2**20
"""Smaller arrays are always in memory."""
ROWS = 2**17
"""Rows that are worked on at a time."""
_on_disk = [False]


@contextmanager
def on_disk() -> Iterator[None]:
    """Put new large arrays into files in this block.

    The files are in the folder for temporary files, which the environment's TMPDIR names. They have no names there, so
    the system deletes them with their array or at the end of the process, however it ends.
    """
    before, _on_disk[0] = _on_disk[0], True
    try:
        yield
    finally:
        _on_disk[0] = before


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array without values, as `np.empty`; in a file it is full of zeros.

    Raises
    ------
    fkl.basics.files.CannotWriteError
        If the disk has no room for the file.
    """
    kind, count = np.dtype(dtype), prod((shape,) if isinstance(shape, int) else shape)
    if not _on_disk[0] or count * kind.itemsize < LEAST_BYTES:
        return np.empty(shape, kind)
    with writing(Path(gettempdir())), TemporaryFile(prefix="fkl-") as file:
        _reserve(file.fileno(), count * kind.itemsize)
        return np.frombuffer(mmap.mmap(file.fileno(), count * kind.itemsize), kind).reshape(shape)


def _reserve(file: int, size: int) -> None:
    """Give a file this size, and its room on the disk, without which a later write would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array of zeros, as `np.zeros`."""
    made = empty(shape, dtype) if _on_disk[0] else np.zeros(shape, dtype)
    if made.nbytes < LEAST_BYTES:
        made[...] = 0
    return made


def numbers(count: int) -> NDArray[np.int64]:
    """0, 1, ..., count - 1, as `np.arange`."""
    made = empty(count, np.int64)
    for some in blocks(count):
        made[some] = np.arange(some.start, some.stop)
    return made


def blocks(rows: int, size: int | None = None) -> Iterator[slice]:
    """Slices of all rows: each of `size` of them, or of `ROWS`, but the last of up to twice as many."""
    size = size or ROWS
    for start in range(0, max(rows - size, 0) + 1, size):
        yield slice(start, start + size if start + 2 * size <= rows else rows)


def by_block(work: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """`work(values)`, a block of rows at a time: the result has a row for each row of `values`."""
    made = None
    for some in blocks(len(values)):
        found = work(values[some])
        made = empty((len(values), *found.shape[1:]), found.dtype) if made is None else made
        made[some] = found
    assert made is not None
    return made


def chosen(values: NDArray[Any], which: NDArray[np.bool_], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """`values[which]` for an array whose first axes are those of `which`."""
    rows = values.reshape(which.size, *values.shape[which.ndim :])
    marks, kind = which.reshape(-1), values.dtype if dtype is None else dtype
    if marks.all() and rows.dtype == kind:
        return rows
    made, count = empty((int(np.count_nonzero(marks)), *rows.shape[1:]), kind), 0
    for some in blocks(len(rows)):
        found = rows[some][marks[some]]
        made[count : count + len(found)] = found
        count += len(found)
    return made


def spread(values: NDArray[Any], which: NDArray[np.bool_]) -> NDArray[Any]:
    """An array like `which` with these values where it is true, in order, and 0 elsewhere."""
    if which.all():
        return values.reshape(which.shape)
    made, marks, count = zeros(which.size, values.dtype), which.reshape(-1), 0
    for some in blocks(which.size):
        here = int(np.count_nonzero(marks[some]))
        made[some][marks[some]] = values[count : count + here]
        count += here
    return made.reshape(which.shape)


def variance(values: NDArray[np.float64]) -> Any:
    """`values.var(axis=0)`, with the same bytes."""
    mean = values.sum(axis=0) / len(values)
    return by_block(lambda some: np.square(some - mean), values).sum(axis=0) / len(values)


def require_room(needed: int, what: str, keys: str) -> None:
    """As `fkl.basics.memory.require_memory`, where large arrays are in memory; the disk refuses them one by one."""
    if not _on_disk[0]:
        require_memory(needed, what, keys)
