"""Time Raker and OMKL-GF on the airfoil shape beside the floor of their arithmetic and beside literal transcriptions.

All run in this one process, in turn, several times; ratios are medians. The floor is the projection of every sample on
the frequencies of all kernels (BLAS), and one sine and one cosine of every projection (the compiled kernel on blocks
that stay in the cache), with the same threads. OMKL-GF needs only the features of the kernels that it chose; how many
those are is counted in the literal run, and the floor of that part alone is shown too. At the end, OMKR on the naval
shape.
"""

import resource

import numpy as np
from floor import THREADS, run_seconds, seconds, sincos_seconds
from literal import omkl_gf, raker
from literal.common import frequencies
from literal.online import OnlineRun
from threadpoolctl import threadpool_limits

from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.online.omkr import Omkr
from fkl.algorithms.online.raker import Raker
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.simulation import Experiment
from fkl.streams import Role, Streams

T, DIMENSION, R = 1503, 5, 20
NAVAL = 11934, 17
REPEATS = 5
FEATURES = Dictionary(N=76, laplacians=25, D=50)
EXACT = Dictionary(N=76, laplacians=25, bandwidth_convention="divisor")


def make_problem(T: int, dimension: int) -> Problem:
    """Random samples of one learner's stream, norms at most 1."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((T, 1, dimension))
    x /= np.linalg.norm(x, axis=-1).max()
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1))
    return Problem(x.astype(np.float32), y, np.ones((T, 1), bool), np.zeros(1, np.int64))


def main() -> None:
    """Print the times and the ratios."""
    problem = make_problem(T, DIMENSION)
    x, y = problem.x[:, 0], problem.y[:, 0]
    methods = Raker(), OmklGf()
    experiments = [Experiment(problem, FEATURES, Network(), method, 0, R, "float32") for method in methods]
    streams = Streams(0, tuple(range(R)))
    narrow, wide = FEATURES.bank(DIMENSION, streams, "float32").draws
    flat = [np.ascontiguousarray(omega.transpose(0, 2, 1, 3)).reshape(R, DIMENSION, -1) for omega in (narrow, wide)]
    samples = [x.astype(omega.dtype) for omega in flat]

    def products() -> None:
        for stream, rho in zip(samples, flat, strict=True):
            for r in range(R):
                stream @ rho[r]

    bank = FEATURES.bank(DIMENSION, streams, "float64")
    omega = frequencies(bank.rho[0], bank.scale)
    draws = next(iter(streams.generators(Role.SELECTION)))
    graph_draws, node_draws = draws.random((300, 2, 10)), draws.random(T)
    long = x.astype(float)

    def literal_raker() -> object:
        return raker.run(long, y, omega, eta=0.1, lam=1e-3)

    def literal_gf() -> OnlineRun:
        return omkl_gf.run(long, y, omega, graph_draws, node_draws, eta=0.1, lam=1e-3)

    part = np.mean([len(S) for S in literal_gf().chosen]) / FEATURES.N
    for experiment in experiments:
        run_seconds(experiment)
    figures = []
    for repeat in range(REPEATS):
        with threadpool_limits(THREADS, user_api="blas"):
            multiply = seconds(products)
        elements = [R * T * rho.shape[-1] for rho in flat]
        trigonometry = sincos_seconds(elements[0], np.float32) + sincos_seconds(elements[1], np.float64)
        floor = multiply + trigonometry
        ours = [run_seconds(experiment) for experiment in experiments]
        literal = [R * seconds(literal_raker), R * seconds(literal_gf)]
        figures.append([ours[0] / floor, ours[1] / floor, ours[1] / (part * floor), *np.divide(literal, ours)])
        print(
            f"{repeat + 1}: products {multiply:.3f} s, sin/cos {trigonometry:.3f} s, Raker {ours[0]:.3f} s, OMKL-GF "
            f"{ours[1]:.3f} s, literal {literal[0]:.0f} and {literal[1]:.0f} s (both from one replicate)",
            flush=True,
        )
    to_floor, gf_to_floor, gf_to_part, to_literal, gf_to_literal = np.median(figures, axis=0)
    print(f"Raker and OMKL-GF, T={T} d={DIMENSION} N={FEATURES.N} D={FEATURES.D} R={R}: medians of {REPEATS}")
    print(f"  Raker   / floor of all features:                  {to_floor:.2f} (goal: at most 4)")
    print(f"  OMKL-GF / floor of all features:                  {gf_to_floor:.2f} (goal: at most 4)")
    print(f"  OMKL-GF / floor of the {100 * part:.0f} % it looks at:          {gf_to_part:.2f}")
    print(f"  literal Raker   / Raker:                          {to_literal:.0f} (goal: at least 40)")
    print(f"  literal OMKL-GF / OMKL-GF:                        {gf_to_literal:.0f} (goal: at least 40)")
    exact = Experiment(make_problem(*NAVAL), EXACT, Network(), Omkr(), 0, 1, "float32")
    taken = run_seconds(exact)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"OMKR, T={NAVAL[0]} d={NAVAL[1]} N={EXACT.N}: {taken:.1f} s (goal: 60), whole process at most {peak:.2f} GiB"
    )


if __name__ == "__main__":
    main()
