"""Parallel work in forked copies of this process."""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from fkl.basics.errors import FklError

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
    # A Pool would wait forever for a copy that is killed, and would end copies by SIGTERM, which they may ignore.
    with (
        warnings.catch_warnings(),
        ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _work.update, (work,)) as pool,
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a copy does not use BLAS's and Arrow's
        try:
            return dict(zip(work, pool.map(_make_named, work), strict=True))
        except BrokenProcessPool:
            raise FklError("a copy of this process was killed, perhaps because memory ran out") from None


def _make_named(name: Any) -> Any:
    return _work[name]()
