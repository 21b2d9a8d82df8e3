"""RF-GP with a message about every sample in every round.

Its floor is the indispensable arithmetic of a round, with the same threads: one projection of every sample on every
frequency, and one sine and one cosine of every projection. For each kernel's features Z (K, P) it has the products Z'Z,
for learning, and Z root', for the variance of predictions, in double precision by BLAS. The floor leaves out one
factorization per kernel and round, whose time grows with P^3 and not with the clients.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.floor import parts_seconds, random_stream, replicate_bytes, run_seconds, sincos_seconds
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.basics.random_streams import Streams
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

K, T, N, D, R, DIMENSION = 240, 200, 51, 20, 2, 14
FLOOR_ROUNDS = 50
DICTIONARY = Dictionary(N=N, bandwidth_convention="variance", D=D)


def cases() -> list[Case]:
    """The run, and its floor."""
    problem = random_stream(T, K, DIMENSION, noise=0.05)
    algorithm: Any = RfGp()
    experiment = Experiment(problem, DICTIONARY, Network(), algorithm, 0, R, "float32")
    rho = DICTIONARY.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").rho
    generator = np.random.default_rng(1)
    z, root = generator.standard_normal((R, N, K, 2 * D)), generator.standard_normal((R, N, 2 * D, 2 * D))
    x = problem.x[0]

    def products(begin: int, end: int) -> None:
        some = slice(begin, end)
        for _ in range(FLOOR_ROUNDS):
            np.matmul(x, rho.reshape(R * N, DIMENSION, D)[some])
            own = z.reshape(R * N, K, -1)[some]
            np.matmul(own.swapaxes(1, 2), own)
            np.matmul(own, root.reshape(R * N, 2 * D, 2 * D)[some].swapaxes(1, 2))

    def floor() -> float:
        multiply = parts_seconds(products, R * N)
        return (multiply + sincos_seconds(R * K * N * D * FLOOR_ROUNDS, np.float32)) * T / FLOOR_ROUNDS

    shape = f"K={K} T={T} N={N} D={D} R={R} d={DIMENSION}"
    words, memory = "projections, sines, Z'Z and Z root'", partial(replicate_bytes, experiment)
    return [Case("RF-GP", shape, words, partial(run_seconds, experiment), floor, 3.0, memory=memory)]
