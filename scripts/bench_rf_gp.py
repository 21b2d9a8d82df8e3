"""Time RF-GP, told of every sample in every round, beside the floor of its own products, in this one process.

The floor is what a round cannot do without, with the same threads: one projection of every sample on every frequency,
one sine and one cosine of every projection, and of each kernel's features Z (K, P) the products Z'Z, which learns, and
Z root', which says how sure a prediction is, in double precision by BLAS. What is not in it grows with P^3 and not
with the clients: factorizations, one a kernel and round.

Beside clocks on the wall, which others on the machine slow down, it tells processor time of all threads.

How much memory a replicate needs is told first: what the method says itself, and what a rehearsal finds.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from floor import THREADS, run_seconds, seconds, sincos_seconds
from threadpoolctl import threadpool_limits

from fkl.algorithms.federated.rf_gp import RfGp
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.memory import shown_bytes
from fkl.network import Network
from fkl.rehearsal import rehearse
from fkl.simulation import Experiment
from fkl.streams import Streams

K, T, N, D, R, DIMENSION = 240, 200, 51, 20, 2, 14
REPEATS = 5
FLOOR_ROUNDS = 50


def make_problem() -> Problem:
    """Random samples of the air data's shape, norms at most 1."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((T, K, DIMENSION))
    x /= np.linalg.norm(x, axis=-1).max()
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1)) + 0.05 * generator.standard_normal((T, K))
    return Problem(x.astype(np.float32), y, np.ones((T, K), bool), np.zeros(K, np.int64))


def main() -> None:
    """Print memory, the times and their ratio."""
    problem, algorithm, dictionary = make_problem(), RfGp(), Dictionary(N=N, D=D)
    experiment = Experiment(problem, dictionary, Network(), algorithm, 0, R, "float32")
    kept, peak = rehearse(experiment)
    least = algorithm.needs(dictionary, problem)
    print(f"a replicate takes at least {shown_bytes(least)}; keeps {shown_bytes(kept)}, most {shown_bytes(peak)}")
    rho = dictionary.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").rho
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

    run_seconds(experiment)
    figures = []
    for repeat in range(REPEATS):
        with threadpool_limits(1, user_api="blas"):
            multiply, of_products = clocks(lambda: seconds(on_all_threads))
        trigonometry, of_sines = clocks(lambda: sincos_seconds(R * K * N * D * FLOOR_ROUNDS, np.float32))
        ours, of_ours = clocks(lambda: run_seconds(experiment))
        rounds = T / FLOOR_ROUNDS
        multiply, trigonometry = multiply * rounds, trigonometry * rounds
        figures.append((ours / (multiply + trigonometry), of_ours / ((of_products + of_sines) * rounds)))
        print(f"{repeat + 1}: products {multiply:.2f} s, sin/cos {trigonometry:.2f} s, RF-GP {ours:.2f} s", flush=True)
    print(f"RF-GP, K={K} T={T} N={N} D={D} R={R} d={DIMENSION}: median of {REPEATS}")
    wall, processor = np.median(figures, axis=0)
    print(f"  time / floor of its products:           {wall:.2f} (goal: at most 3)")
    print(f"  processor time / that of its products:  {processor:.2f}")


def clocks(work: Callable[[], float]) -> tuple[float, float]:
    """The seconds that a timed call tells, and processor time of all threads meanwhile."""
    begin = time.process_time()
    told = work()
    return told, time.process_time() - begin


if __name__ == "__main__":
    main()
