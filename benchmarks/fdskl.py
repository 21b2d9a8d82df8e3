"""FDSKL with one sample and one feature per iteration, for one pass over a9a's training rows.

Its floor is the products w'x and the sines of the T^2 / 2 features that such a pass takes, float32, on all threads:
iteration t needs the t earlier features at its one row.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.floor import parts_seconds, replicate_bytes, run_seconds, sincos_seconds
from fkl.algorithms.vertical.dsg import BLOCK, TILE
from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

ROWS, FEATURES, ONES, WORKERS = 48842, 123, 14, 8
PASS = 36631
KERNEL = Dictionary(N=1, smallest=3.0, largest=3.0, bandwidth_convention="deviation")


def floor_seconds() -> float:
    """Time for the products and sines of all features in a pass, in float32."""
    random = np.random.default_rng(1)
    x, w = random.random((TILE, FEATURES), np.float32), random.random((BLOCK, FEATURES), np.float32)
    elements = PASS**2 // 2
    tiles = elements // (TILE * BLOCK)

    def products(begin: int, end: int) -> None:
        out = np.empty((TILE, BLOCK), np.float32)
        for _ in range(begin, end):
            np.matmul(x, w.T, out=out)

    return parts_seconds(products, tiles) + sincos_seconds(elements, np.float32)


def cases() -> list[Case]:
    """One pass over the rows."""
    # Rows of 0 and 1, as in a9a
    random = np.random.default_rng(0)
    x = np.zeros((ROWS, FEATURES))
    x[np.arange(ROWS)[:, None], random.integers(FEATURES, size=(ROWS, ONES))] = 1
    y = (x[:, : FEATURES // 2].sum(axis=1) > ONES / 2).astype(float)
    problem = FeatureGroups(WORKERS).split(Table.of_one_site(x, y, tuple(map(str, range(FEATURES)))), random)

    def experiment(iterations: int) -> Experiment:
        method: Any = Fdskl(iterations=iterations, marks=1, gamma=0.03, batch=1, features=1)
        given = Vertical(problem.x, problem.y, problem.groups, problem.active, problem.test_share, method.rounds)
        return Experiment(given, KERNEL, Network(), method, 0, 1, "float32")

    run_seconds(experiment(64))  # compiles
    whole = experiment(PASS)
    shape = f"one pass of {PASS} iterations, d={FEATURES}, {WORKERS} workers"
    work, memory = (partial(run_seconds, whole), floor_seconds), partial(replicate_bytes, whole)
    return [Case("FDSKL", shape, "products and sines", *work, 2.5, 3, memory)]
