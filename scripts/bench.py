"""Time POF-MKL on the air shape beside the floor of its own arithmetic and beside a literal transcription.

All three run in this one process, in turn, several times; ratios are medians. The floor is what the algorithm cannot do
without: one projection of every sample on every frequency (BLAS), one sine and one cosine of every projection (the
compiled kernel on blocks that stay in the cache), with the same threads. The literal transcription loops over clients,
as authors' scripts do, with arrays over kernels and features.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit, prange
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from literal.pof_mkl import per_client

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.compiled import sincos
from fkl.network import Network
from fkl.simulation import Experiment, simulate
from fkl.streams import Role, Streams

K, T, N, D, R, DIMENSION = 240, 500, 51, 100, 4, 14
REPEATS = 5
FLOOR_ROUNDS = 100
LITERAL_ROUNDS = 2
BLOCK = 16384


@njit(parallel=True)
def _sincos_blocks(angle, sine, cosine, count):
    """Sine and cosine of `count` blocks, each thread over and over in its own cached one."""
    for thread in prange(angle.shape[0]):
        for _ in range(count // angle.shape[0]):
            sincos(angle[thread], np.float32(1), sine[thread], cosine[thread])


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def make_problem() -> Problem:
    """Random samples of the air data's shape, norms at most 1."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((T, K, DIMENSION))
    x /= np.linalg.norm(x, axis=-1).max()
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1))
    return Problem(x.astype(np.float32), y, np.ones((T, K), bool), np.zeros(K, np.int64))


def main() -> None:
    """Print the three times and the two ratios."""
    problem = make_problem()
    algorithm, dictionary = PofMkl(M=1), Dictionary(N=N, D=D)
    experiment = Experiment(problem, dictionary, Network(), algorithm, 0, R, "float32")
    streams = Streams(0, tuple(range(R)))
    rho = dictionary.bank(DIMENSION, streams, "float32").rho
    wide = [np.ascontiguousarray(frequencies.transpose(1, 0, 2).reshape(DIMENSION, N * D)) for frequencies in rho]
    projection = np.empty((K, N * D), np.float32)

    def products() -> None:
        for t in range(FLOOR_ROUNDS):
            for frequencies in wide:
                np.matmul(problem.x[t], frequencies, out=projection)

    angle = 10 * np.random.default_rng(1).standard_normal((2, BLOCK)).astype(np.float32)
    sine, cosine = np.empty_like(angle), np.empty_like(angle)
    blocks = R * K * N * D * FLOOR_ROUNDS // BLOCK
    bank64 = dictionary.bank(DIMENSION, streams, "float64")
    uniform = np.stack([streams.uniform(Role.SELECTION, t, K)[0] for t in range(LITERAL_ROUNDS)])
    few = slice(0, LITERAL_ROUNDS)

    def literal() -> None:
        per_client(problem.x[few], problem.y[few], bank64.rho[0], uniform, M=1, xi=1.0, rounds=T, step_factor=2.0)

    def fast() -> float:
        return sum(chunk.seconds for chunk in simulate(experiment, None, None, lambda _: None))

    fast()
    _sincos_blocks(angle, sine, cosine, 2)
    figures = []
    for repeat in range(REPEATS):
        with threadpool_limits(2, user_api="blas"):
            multiply = seconds(products) * T / FLOOR_ROUNDS
        trigonometry = seconds(lambda: _sincos_blocks(angle, sine, cosine, blocks)) * T / FLOOR_ROUNDS
        ours = fast()
        slow = seconds(literal) * R * T / LITERAL_ROUNDS
        figures.append((multiply, trigonometry, ours, slow, ours / (multiply + trigonometry), slow / ours))
        print(
            f"{repeat + 1}: products {multiply:.2f} s, sin/cos {trigonometry:.2f} s, POF-MKL {ours:.2f} s, "
            f"literal {slow:.0f} s (from {LITERAL_ROUNDS} rounds)",
            flush=True,
        )
    *_, to_floor, to_literal = np.median(figures, axis=0)
    print(f"POF-MKL, K={K} T={T} N={N} D={D} R={R} d={DIMENSION}: medians of {REPEATS}")
    print(f"  time / floor of its arithmetic: {to_floor:.2f} (goal: at most 2.5)")
    print(f"  literal transcription / time:   {to_literal:.0f} (goal: at least 100)")


if __name__ == "__main__":
    main()
