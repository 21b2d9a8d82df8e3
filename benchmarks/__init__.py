"""`python -m benchmarks`: time of a run compared with the floor of its arithmetic, measured together on this machine.

The floor is the indispensable arithmetic of a method in its own libraries: products, sines and cosines. A module for
each paper defines the run and its floor (`Case`). The ratio of both times can be compared between machines; the times
alone cannot.
"""

import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import import_module, metadata

import numpy as np

from benchmarks.case import Case
from fkl import __version__
from fkl.basics.errors import FklError, requires_extra
from fkl.runs.folder import processor_name
from fkl.screen.units import bytes_of

BENCHES = ("pof_mkl", "federated", "graph_omkl", "coke", "fdskl", "rf_gp")
ON_REQUEST = ("gpu",)
"""Benchmarks that run only when they are named; they need JAX."""
FRAMEWORKS = "frameworks"
"""The benchmark of `benchmarks.frameworks`, which has a table of its own."""
HEADINGS = ("method", "what is run", "time, s", "floor, s", "time / floor", "goal", "memory", "the floor")
LIBRARIES = ("numpy", "scipy", "numba")


def checked(names: Iterable[str]) -> tuple[str, ...]:
    """The names, from `BENCHES` or `ON_REQUEST`; all of `BENCHES` if there is none."""
    wanted = tuple(names) or BENCHES
    for name in wanted:
        if name not in (*BENCHES, *ON_REQUEST):
            known = ", ".join((*BENCHES, *ON_REQUEST))
            raise FklError(f"{name}: must be one of {known}, or {FRAMEWORKS} by itself")
    if {*ON_REQUEST} & {*wanted}:
        with requires_extra("jax", "benchmarks gpu"):
            import jax  # noqa: F401
    return wanted


def bench(names: Iterable[str]) -> tuple[str, list[tuple[str, ...]]]:
    """Measure, and return a line about the machine and the rows of a table, with `HEADINGS`; names as in `checked`."""
    return this_machine(), [
        _row(case) for name in checked(names) for case in import_module(f"benchmarks.{name}").cases()
    ]


def this_machine() -> str:
    """A line about the day, the software and the processor."""
    versions = ", ".join(f"{library} {metadata.version(library)}" for library in LIBRARIES)
    today = datetime.now(UTC).strftime("%-d %B %Y")
    software = f"fkl {__version__}, Python {platform.python_version()}, {versions}"
    processor = processor_name() or platform.processor() or platform.machine()
    return f"{today}: {software}; {processor}, {os.cpu_count()} cores."


def _row(case: Case) -> tuple[str, ...]:
    """The medians of a case's repetitions, and of their ratios."""
    turns = []
    for number, turn in enumerate(case.turns(), 1):
        turns.append(turn)
        print(f"{case.name}, {number} of {case.repeats}: {turn[0]:.3g} s, floor {turn[1]:.3g} s", file=sys.stderr)
    ours, floor = np.transpose(turns)
    figures = f"{np.median(ours):.3g}", f"{np.median(floor):.3g}", f"{np.median(ours / floor):.2f}"
    goal, memory = f"{case.goal:g}" if case.goal else "", bytes_of(case.memory()) if case.memory else ""
    return case.name, case.shape, *figures, goal, memory, case.floor_is
