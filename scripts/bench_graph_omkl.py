"""Time Raker and OMKL-GF on the airfoil shape beside the floor of their arithmetic and beside literal transcriptions.

All run in this one process, in turn, several times; ratios are medians. `fkl.bench.graph_omkl` says what the floor is.
How many kernels OMKL-GF chooses is counted in the literal run, and the floor of that part alone is shown too. At the
end, OMKR on the naval shape.
"""

import resource

import numpy as np
from literal import omkl_gf, raker
from literal.common import frequencies
from literal.online import OnlineRun

from fkl.algorithms.online.omkr import Omkr
from fkl.bench.floor import run_seconds, seconds
from fkl.bench.graph_omkl import DIMENSION, FEATURES, R, T, cases, make_problem
from fkl.engines.experiment import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.streams import Role, Streams

NAVAL = 11934, 17
EXACT = Dictionary(N=76, laplacians=25, bandwidth_convention="divisor")


def main() -> None:
    """Print the times and the ratios."""
    problem = make_problem(T, DIMENSION)
    long, y = problem.x[:, 0].astype(float), problem.y[:, 0]
    streams = Streams(0, tuple(range(R)))
    bank = FEATURES.bank(DIMENSION, streams, "float64")
    omega = frequencies(bank.rho[0], bank.scale)
    draws = next(iter(streams.generators(Role.SELECTION)))
    graph_draws, node_draws = draws.random((300, 2, 10)), draws.random(T)

    def literal_raker() -> object:
        return raker.run(long, y, omega, eta=0.1, lam=1e-3)

    def literal_gf() -> OnlineRun:
        return omkl_gf.run(long, y, omega, graph_draws, node_draws, eta=0.1, lam=1e-3)

    part = np.mean([len(S) for S in literal_gf().chosen]) / FEATURES.N
    of_raker, of_gf = cases()
    figures = []
    for repeat, (one, other) in enumerate(zip(of_raker.turns(), of_gf.turns(), strict=True), 1):
        literal = [R * seconds(literal_raker), R * seconds(literal_gf)]
        gf_to_floor = other[0] / other[1]
        figures.append([one[0] / one[1], gf_to_floor, gf_to_floor / part, literal[0] / one[0], literal[1] / other[0]])
        print(
            f"{repeat}: floor {one[1]:.3f} s, Raker {one[0]:.3f} s, OMKL-GF {other[0]:.3f} s, literal "
            f"{literal[0]:.0f} and {literal[1]:.0f} s (both from one replicate)",
            flush=True,
        )
    to_floor, gf_to_floor, gf_to_part, to_literal, gf_to_literal = np.median(figures, axis=0)
    print(f"Raker and OMKL-GF, {of_raker.shape}: medians of {of_raker.repeats}")
    print(f"  Raker   / floor of all features:                  {to_floor:.2f} (goal: at most {of_raker.goal})")
    print(f"  OMKL-GF / floor of all features:                  {gf_to_floor:.2f} (goal: at most {of_gf.goal})")
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
