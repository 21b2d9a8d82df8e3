"""FDSKL with one sample and one feature an iteration, a pass over a9a's training rows.

Its floor is the products w'x and the sines of the T^2 / 2 features that such a pass takes, float32, on all threads:
iteration t asks for the t features before it at its one row.
"""

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fkl.algorithms.vertical.dsg import BLOCK, TILE
from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.bench.case import Case
from fkl.bench.floor import THREADS, sincos_seconds
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import simulate
from fkl.kernels import Dictionary
from fkl.kernels.threads import in_parts
from fkl.network import Network

ROWS, FEATURES, ONES, WORKERS = 48842, 123, 14, 8
PASS = 36631
KERNEL = Dictionary(N=1, smallest=3.0, largest=3.0, bandwidth_convention="deviation")


def make_problem(rows: int, features: int, workers: int, ones: int = ONES) -> Vertical:
    """Rows of 0 and 1 like a9a's."""
    random = np.random.default_rng(0)
    x = np.zeros((rows, features))
    x[np.arange(rows)[:, None], random.integers(features, size=(rows, ones))] = 1
    y = (x[:, : features // 2].sum(axis=1) > ones / 2).astype(float)
    table = Table.of_one_site(x, y, tuple(map(str, range(features))))
    return FeatureGroups(workers).split(table, random)


def run_seconds(problem: Vertical, method: Any, precision: str = "float32") -> float:
    """Time that a run spends in its algorithm."""
    given = Vertical(problem.x, problem.y, problem.groups, problem.active, problem.test_share, method.rounds)
    experiment = Experiment(given, KERNEL, Network(), method, 0, 1, precision)
    (chunk,) = simulate(experiment, None, None, lambda _: None)
    return chunk.seconds


def literal(iterations: int) -> Fdskl:
    """One sample and one feature an iteration."""
    return Fdskl(iterations=iterations, marks=1, gamma=0.03, batch=1, features=1)


def floor_seconds(iterations: int, features: int) -> float:
    """Time of the products and sines of iterations^2 / 2 features of float32."""
    random = np.random.default_rng(1)
    x, w = random.random((TILE, features), np.float32), random.random((BLOCK, features), np.float32)
    elements = iterations**2 // 2
    tiles = elements // (TILE * BLOCK)

    def products(begin: int, end: int) -> None:
        out = np.empty((TILE, BLOCK), np.float32)
        for _ in range(begin, end):
            np.matmul(x, w.T, out=out)

    with threadpool_limits(1, user_api="blas"):
        in_parts(products, THREADS)
        start = time.perf_counter()
        in_parts(products, tiles, elements)
        taken = time.perf_counter() - start
    return taken + sincos_seconds(elements, np.float32)


def cases() -> list[Case]:
    """One pass."""
    problem = make_problem(ROWS, FEATURES, WORKERS)
    run_seconds(problem, literal(64))  # compiles
    shape = f"one pass of {PASS} iterations, d={FEATURES}, {WORKERS} workers"

    def ours() -> float:
        return run_seconds(problem, literal(PASS))

    return [Case("FDSKL", shape, "products and sines", ours, lambda: floor_seconds(PASS, FEATURES), 2.5, 3)]
