"""RF-GP with a message about every sample in every round.

Its floor is the indispensable arithmetic of a round, with the same threads: one projection of every sample on every
frequency, and one sine and one cosine of every projection. For each kernel's features Z (K, P) it has the products Z'Z,
for learning, and Z root', for the variance of predictions, in double precision by BLAS. The floor leaves out one
factorization per kernel and round, whose time grows with P^3 and not with the clients.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fkl.algorithms.federated.rf_gp import RfGp
from fkl.basics.random_streams import Streams
from fkl.bench.case import Case
from fkl.bench.floor import THREADS, random_stream, run_seconds, seconds, sincos_seconds
from fkl.engines.experiment import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

K, T, N, D, R, DIMENSION = 240, 200, 51, 20, 2, 14
FLOOR_ROUNDS = 50
DICTIONARY = Dictionary(N=N, D=D)


def cases() -> list[Case]:
    """The run, and its floor."""
    problem = random_stream(T, K, DIMENSION, noise=0.05)
    algorithm: Any = RfGp()
    experiment = Experiment(problem, DICTIONARY, Network(), algorithm, 0, R, "float32")
    rho = DICTIONARY.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").rho
    generator = np.random.default_rng(1)
    z, root = generator.standard_normal((R, N, K, 2 * D)), generator.standard_normal((R, N, 2 * D, 2 * D))
    x = problem.x[0]

    def products(some: slice) -> None:
        for _ in range(FLOOR_ROUNDS):
            np.matmul(x, rho.reshape(R * N, DIMENSION, D)[some])
            own = z.reshape(R * N, K, -1)[some]
            np.matmul(own.swapaxes(1, 2), own)
            np.matmul(own, root.reshape(R * N, 2 * D, 2 * D)[some].swapaxes(1, 2))

    def on_all_threads() -> None:
        ends = [R * N * part // THREADS for part in range(THREADS + 1)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(products, (slice(*both) for both in pairwise(ends))))

    def floor() -> float:
        with threadpool_limits(1, user_api="blas"):
            multiply = seconds(on_all_threads)
        return (multiply + sincos_seconds(R * K * N * D * FLOOR_ROUNDS, np.float32)) * T / FLOOR_ROUNDS

    shape = f"K={K} T={T} N={N} D={D} R={R} d={DIMENSION}"
    return [Case("RF-GP", shape, "projections, sines, Z'Z and Z root'", lambda: run_seconds(experiment), floor, 3.0)]
