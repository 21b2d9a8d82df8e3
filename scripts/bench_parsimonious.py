"""Time the dual ascent of parsimonious functions beside the floor of its arithmetic and a literal transcription.

The floor is the two matrix products a width that every step of every problem takes where no sample is left out (numpy,
one BLAS thread). The literal ascent goes from agent to agent and holds the kernel of every node and sample: a step is
two products with that matrix. All run in one thread of this one process, in turn, several times; ratios are medians.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from floor import seconds
from threadpoolctl import threadpool_limits

from fkl.algorithms.parsimonious.dual import Dual, solve
from fkl.algorithms.parsimonious.quadrature import Quadrature, box_of
from fkl.data.ellipses import BOX, Ellipses
from fkl.data.store import Store

STEPS = 300
LITERAL_STEPS = 10
REPEATS = 5
GAMMA, EPS = 25.0, 0.01


class Times(NamedTuple):
    """Seconds a step, of all problems."""

    ours: float
    floor: float
    literal: float


def ellipses() -> dict[str, Dual]:
    """Problems of the simulated set at its largest: the nine agents', and the centralized learner's."""
    table = Ellipses(rows=900, test_rows=0).load(Store(Path()), np.random.default_rng(0))
    quadrature = Quadrature.over(BOX, 576, (1.0, 2.0, 4.0))
    return {
        "9 agents, 100 samples each": Dual.of_agents(quadrature, table.x, table.y, table.site, GAMMA, EPS),
        "one learner, 900 samples": Dual.single(quadrature, table.x, table.y, GAMMA, EPS),
    }


def three_features() -> dict[str, Dual]:
    """One problem of the size of WISDM's with all participants at hand."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1100, 3))
    y = np.where(x[:, 0] + np.sin(3 * x[:, 1]) > 0, 1.0, -1.0)
    quadrature = Quadrature.over(box_of(x), 1728, (0.25, 0.5, 1.0))
    return {"one learner, 1100 samples of 3 features": Dual.single(quadrature, x, y, 100.0, 0.5)}


def timed(problem: Dual) -> Times:
    """One turn of all three."""
    start = problem.random_start(np.random.default_rng(1))
    ours = seconds(lambda: solve(problem, start, STEPS, rule="ascent", tolerance=0)) / STEPS
    return Times(ours, floor_seconds(problem), literal_seconds(problem, start) / LITERAL_STEPS)


def floor_seconds(problem: Dual) -> float:
    """Time of one step's products."""
    kernels = [problem.kernel(number) for number in range(len(problem.x))]
    alpha = np.ones(problem.quadrature.block)

    def work() -> None:
        for _ in range(LITERAL_STEPS):
            for kernel in kernels:
                np.matmul(kernel.first.swapaxes(1, 2), kernel.rest)
                np.matmul(kernel.rest, alpha.swapaxes(1, 2))

    return seconds(work) / LITERAL_STEPS


def literal_seconds(problem: Dual, start: np.ndarray) -> float:
    """Time of `LITERAL_STEPS` steps of eqs. (8) to (12) with the whole kernel of one agent after another."""
    threshold = np.sqrt(2 * problem.gamma)
    rates = problem.N[:, 0] ** 2 / problem.smoothness()
    matrices = [
        np.einsum("wng,wnh->wghn", kernel.first, kernel.rest).reshape(problem.quadrature.size, -1)
        for kernel in map(problem.kernel, range(len(start)))
    ]

    def work() -> None:
        for K, here, y, lam, rate in zip(matrices, problem.present, problem.y, start, rates, strict=True):
            lam, y, N = lam[here], y[here], here.sum()
            for _ in range(LITERAL_STEPS):
                alpha = K @ (lam * y) / N
                alpha[np.abs(alpha) <= threshold] = 0.0
                f = (alpha * problem.quadrature.weights) @ K
                lam = np.maximum(lam + rate * (1 - problem.eps - y * f) / N, 0.0)

    return seconds(work)


def main() -> None:
    """Print times a step and ratios."""
    with threadpool_limits(1, user_api="blas"):
        for words, problem in (ellipses() | three_features()).items():
            timed(problem)  # compiles
            turns = [timed(problem) for _ in range(REPEATS)]
            ours, floor, literal = np.median(turns, axis=0)
            to_floor = np.median([turn.ours / turn.floor for turn in turns])
            to_literal = np.median([turn.literal / turn.ours for turn in turns])
            print(f"{words}, {problem.quadrature.size} nodes, {STEPS} steps: medians of {REPEATS}")
            print(f"  a step {1e3 * ours:.3f} ms, its products {1e3 * floor:.3f} ms, literal {1e3 * literal:.3f} ms")
            print(f"  ascent / floor {to_floor:.2f}, literal / ascent {to_literal:.1f}", flush=True)


if __name__ == "__main__":
    main()
