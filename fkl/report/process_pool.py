"""Parallel work in forked copies of this process."""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

Name = TypeVar("Name", bound=Hashable)
Made = TypeVar("Made")
_work: dict[Any, Callable[[], Any]] = {}
"""Functions of a forked copy, by name."""


def in_forks(work: Mapping[Name, Callable[[], Made]]) -> dict[Name, Made]:
    """Results of these functions, by name. They run one after another if fork is not safe, or on one processor.

    A fork needs neither imports nor a transfer of its input, which takes longer than a figure for a thousand runs.
    """
    processes = min(len(work), len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)
    if processes < 2:
        return {name: make() for name, make in work.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a copy does not use BLAS's and Arrow's
        pool = multiprocessing.get_context("fork").Pool(processes, _work.update, (work,))
    with pool:
        return dict(zip(work, pool.map(_make, work, chunksize=1), strict=True))


def _make(name: Any) -> Any:
    return _work[name]()
