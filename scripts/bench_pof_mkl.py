"""Time POF-MKL on the air shape beside the floor of its own arithmetic and beside literal transcriptions.

All run in this one process, in turn, several times; ratios are medians. The floor is what the algorithm cannot do
without: one projection of every sample on every frequency (BLAS), one sine and one cosine of every projection (the
compiled kernel on blocks that stay in the cache), with the same threads. Of the two transcriptions in tests/literal one
loops over clients and kernels as the paper is written, the other over clients with arrays over kernels and features.
"""

from collections.abc import Callable

import numpy as np
from floor import THREADS, run_seconds, seconds, sincos_seconds
from literal import pof_mkl
from threadpoolctl import threadpool_limits

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.simulation import Experiment
from fkl.streams import Role, Streams

K, T, N, D, R, DIMENSION = 240, 500, 51, 100, 4, 14
REPEATS = 5
FLOOR_ROUNDS = 100
LITERAL_ROUNDS = 2


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

    bank64 = dictionary.bank(DIMENSION, streams, "float64")
    uniform = np.stack([streams.uniform(Role.SELECTION, t, K)[0] for t in range(LITERAL_ROUNDS)])
    rounds = slice(0, LITERAL_ROUNDS)
    rate = {"eta": T**-0.5, "eta_k": T**-0.5, "lam": algorithm.lam, "step_factor": algorithm.step_factor}

    def transcription(run: Callable[..., object]) -> float:
        """Seconds of all rounds and replicates, from the first rounds of one replicate."""
        samples = problem.x[rounds].astype(float), problem.y[rounds], problem.present[rounds]
        rest = bank64.rho[0], bank64.scale, uniform
        once = seconds(lambda: run(*samples, *rest, M=algorithm.M, xi=algorithm.xi, **rate))
        return once * R * T / LITERAL_ROUNDS

    run_seconds(experiment)
    figures = []
    for repeat in range(REPEATS):
        with threadpool_limits(THREADS, user_api="blas"):
            multiply = seconds(products) * T / FLOOR_ROUNDS
        trigonometry = sincos_seconds(R * K * N * D * FLOOR_ROUNDS, np.float32) * T / FLOOR_ROUNDS
        ours = run_seconds(experiment)
        literal, by_client = transcription(pof_mkl.run), transcription(pof_mkl.per_client)
        figures.append((ours / (multiply + trigonometry), literal / ours, by_client / ours))
        print(
            f"{repeat + 1}: products {multiply:.2f} s, sin/cos {trigonometry:.2f} s, POF-MKL {ours:.2f} s, literal "
            f"{literal:.0f} s, literal with arrays over kernels {by_client:.0f} s (both from {LITERAL_ROUNDS} rounds)",
            flush=True,
        )
    to_floor, to_literal, to_by_client = np.median(figures, axis=0)
    print(f"POF-MKL, K={K} T={T} N={N} D={D} R={R} d={DIMENSION}: medians of {REPEATS}")
    print(f"  time / floor of its arithmetic:                    {to_floor:.2f} (goal: at most 2.5)")
    print(f"  literal, per client and kernel / time:             {to_literal:.0f} (goal: at least 100)")
    print(f"  literal, per client, arrays over kernels / time:   {to_by_client:.0f}")


if __name__ == "__main__":
    main()
