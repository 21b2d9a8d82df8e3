"""DKLA, COKE and CTA on the shape of energy's data.

The floor is one product of a matrix of every agent with a vector in every iteration, of DKLA's and COKE's inverses, and
of Phi'Phi in CTA (numpy, one BLAS thread, replicates in chunks as in the run). numpy reads both halves of a matrix; the
methods read one, as these are symmetric.
"""

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.case import Case
from benchmarks.floor import replicate_bytes, run_seconds, seconds
from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Cta, Dkla
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.network.topology import topology_of_graph

K, SIZE, DIMENSION, EDGES, T, R, L = 10, 1860, 25, 14, 2000, 20, 100
DICTIONARY = Dictionary(N=1, D=L, bandwidth_convention="deviation", smallest=1.0, largest=1.0)
CHUNK = 4


GRAPH = nx.gnm_random_graph(K, EDGES, seed=2)
"""Neighbours of each agent."""


def make_experiment(algorithm: Any) -> Experiment:
    """Agents with random samples."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 1, (SIZE, K, DIMENSION))
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1))
    stream = Problem(x, y, np.ones((SIZE, K), np.bool_), np.zeros(K, np.int64))
    batch = Batch.from_problem(stream, algorithm.iterations, algorithm.test_share, None, generator)
    return Experiment(batch, DICTIONARY, Network(), algorithm, 0, R, "float32", topology_of_graph(GRAPH))


def floor_seconds() -> float:
    """Time for the products of all agents' matrices with vectors in a whole run."""
    P = 2 * L
    matrix, vector = np.random.default_rng(0).standard_normal((CHUNK, K, P, P)), np.ones((CHUNK, K, P, 1))
    out = np.empty_like(vector)

    def work() -> None:
        for _ in range(T):
            np.matmul(matrix, vector, out=out)

    with threadpool_limits(1, user_api="blas"):
        return seconds(work) * R / CHUNK


def cases() -> list[Case]:
    """DKLA, COKE and CTA."""
    shape = f"{T} iterations, {K} agents, L={L} R={R}"
    words = "a product of matrix and vector an agent and iteration"
    methods: list[Any] = [Dkla(), Coke(censored="squared_norm"), Cta()]

    def case(method: Any) -> Case:
        experiment = make_experiment(method)
        work, memory = (partial(run_seconds, experiment), floor_seconds), partial(replicate_bytes, experiment)
        return Case(method.label, shape, words, *work, 1.5, 3, memory)

    return [*map(case, methods)]
