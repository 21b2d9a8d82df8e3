"""The dual ascent of parsimonious functions.

Its floor is the two matrix products per width of a step with all nodes and all samples (numpy). With few samples the
ascent uses few nodes and is faster than this floor. Both use one BLAS thread.
"""

from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from fkl.algorithms.parsimonious.dual import Dual, solve
from fkl.algorithms.parsimonious.quadrature import Quadrature, smallest_box
from fkl.bench.case import Case
from fkl.bench.floor import seconds
from fkl.data.ellipses import BOX, Ellipses
from fkl.data.store import Store

STEPS = 300
FLOOR_STEPS = 10
GAMMA, EPS = 25.0, 0.01


def problems() -> dict[str, Dual]:
    """The largest problems of the simulated set, and one as large as WISDM's with all participants available."""
    table = Ellipses(rows=900, test_rows=0).load(Store(Path()), np.random.default_rng(0))
    quadrature = Quadrature.over_box(BOX, 576, (1.0, 2.0, 4.0))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1100, 3))
    y = np.where(x[:, 0] + np.sin(3 * x[:, 1]) > 0, 1.0, -1.0)
    of_wisdm = Quadrature.over_box(smallest_box(x), 1728, (0.25, 0.5, 1.0))
    return {
        "9 agents, 100 samples each": Dual.of_agents(quadrature, table.x, table.y, table.site, GAMMA, EPS),
        "one learner, 900 samples": Dual.single(quadrature, table.x, table.y, GAMMA, EPS),
        "one learner, 1100 samples of 3 features": Dual.single(of_wisdm, x, y, 100.0, 0.5),
    }


def case(words: str, problem: Dual) -> Case:
    """Steps of all problems."""
    start = problem.random_start(np.random.default_rng(1))
    kernels = [problem.kernel(number) for number in range(len(problem.x))]
    alpha = np.ones(problem.quadrature.block)

    def products() -> None:
        for _ in range(FLOOR_STEPS):
            for kernel in kernels:
                np.matmul(kernel.first.swapaxes(1, 2), kernel.rest)
                np.matmul(kernel.rest, alpha.swapaxes(1, 2))

    def ours() -> float:
        with threadpool_limits(1, user_api="blas"):
            return seconds(lambda: solve(problem, start, STEPS, rule="ascent", tolerance=0))

    def floor() -> float:
        with threadpool_limits(1, user_api="blas"):
            return seconds(products) * STEPS / FLOOR_STEPS

    shape = f"{words}, {problem.quadrature.size} nodes, {STEPS} steps"
    return Case("parsimonious ascent", shape, "two products a width and step", ours, floor)


def cases() -> list[Case]:
    """Agents, one learner, and three features."""
    return [case(words, problem) for words, problem in problems().items()]
