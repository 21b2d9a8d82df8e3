"""Time the dual ascent of parsimonious functions beside the floor of its arithmetic and a literal transcription.

`fkl.bench.parsimonious` says what the floor is. The literal ascent goes from agent to agent and holds the kernel of
every node and sample: a step is two products with that matrix. All run in one thread of this one process, in turn,
several times; ratios are medians.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from fkl.algorithms.parsimonious.dual import Dual
from fkl.bench.floor import seconds
from fkl.bench.parsimonious import STEPS, case, ellipses, three_features

LITERAL_STEPS = 10


def literal_seconds(problem: Dual) -> float:
    """Time of a step of eqs. (8) to (12) with the whole kernel of one agent after another."""
    start = problem.random_start(np.random.default_rng(1))
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

    return seconds(work) / LITERAL_STEPS


def main() -> None:
    """Print times a step and ratios."""
    with threadpool_limits(1, user_api="blas"):
        for words, problem in (ellipses() | three_features()).items():
            timed = case(words, problem)
            turns = [(ours / STEPS, floor / STEPS, literal_seconds(problem)) for ours, floor in timed.turns()]
            ours, floor, literal = np.median(turns, axis=0)
            to_floor = np.median([ours / floor for ours, floor, _ in turns])
            to_literal = np.median([literal / ours for ours, _, literal in turns])
            print(f"{timed.shape}: medians of {timed.repeats}")
            print(f"  a step {1e3 * ours:.3f} ms, its products {1e3 * floor:.3f} ms, literal {1e3 * literal:.3f} ms")
            print(f"  ascent / floor {to_floor:.2f}, literal / ascent {to_literal:.1f}", flush=True)


if __name__ == "__main__":
    main()
