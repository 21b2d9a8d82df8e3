"""POF-MKL on the shape of air quality's data.

Its floor: one projection of every sample on every frequency (BLAS), one sine and one cosine of every projection (the
compiled kernel on blocks that stay in the cache) and their inner products with theta (BLAS), with the same threads.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.floor import projections_seconds, random_stream, replicate_bytes, run_seconds, sincos_seconds
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.basics.random_streams import Streams
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

K, T, N, D, R, DIMENSION = 240, 500, 51, 100, 4, 14
FLOOR_ROUNDS = 100
ALGORITHM: Any = PofMkl(M=1)
DICTIONARY = Dictionary(N=N, bandwidth_convention="variance", D=D)


def cases() -> list[Case]:
    """The run, and its floor."""
    problem = random_stream(T, K, DIMENSION)
    experiment = Experiment(problem, DICTIONARY, Network(), ALGORITHM, 0, R, "float32")
    rho = DICTIONARY.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").rho

    def floor() -> float:
        multiply = projections_seconds(problem.x[:FLOOR_ROUNDS], rho)
        return (multiply + sincos_seconds(R * K * N * D * FLOOR_ROUNDS, np.float32, D)) * T / FLOOR_ROUNDS

    shape = f"K={K} T={T} N={N} D={D} R={R} d={DIMENSION}"
    words = "projections, sines and cosines, inner products"
    memory = partial(replicate_bytes, experiment)
    return [Case("POF-MKL", shape, words, partial(run_seconds, experiment), floor, 1.3, memory=memory)]
