"""The dual of federated classification with parsimonious functions, its quadrature, and what the paper claims of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fkl.algorithms.parsimonious import solver
from fkl.algorithms.parsimonious.dual import Dual, maximise_dual, model_size
from fkl.algorithms.parsimonious.solver import Quadrature, smallest_box
from fkl.data.ellipses import BOX, RADII, A, ellipse_labels

WIDTHS = (2.0, 4.0)
GRID = Quadrature.over_box(BOX, 20**2, WIDTHS)


def clean(size, seed=0):
    """Samples without noise that keep away from the ellipses' borders."""
    x = np.random.default_rng(seed).uniform(*BOX, (4 * size, 2))
    ratio = ((x[:, None] - [[3.0, 0.0], [-10.0, 6.0]]) ** 2 @ A) / RADII
    x = x[(np.abs(np.sqrt(ratio) - 1) > 0.15).all(axis=1)][:size]
    assert len(x) == size
    return x, ellipse_labels(x)


def solved(x, y, gamma=0.0, eps=0.5, steps=4000, grid=GRID, tolerance=1e-7):
    return maximise_dual(Dual.single_problem(grid, x, y, gamma, eps), steps, tolerance)


def kernel(x, s, w):
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, s, strict=True)) / (2 * w**2))


def values(nodes, x):
    """The kernel at every node and sample, (M, n), from its factors."""
    made = nodes.kernel_values(x)
    return np.einsum("wng,wnh->wghn", made.first, made.rest).reshape(nodes.size, len(x))


@pytest.mark.parametrize("dimension", [1, 3, 4])
def test_nodes_weights_and_factors_are_those_of_the_kernel_and_of_a_measure_of_one(dimension):
    rng = np.random.default_rng(0)
    box = np.stack([np.full(dimension, -1.0), np.full(dimension, 2.0)])
    nodes = Quadrature.over_box(box, 3**dimension, (0.5, 1.0), rng)
    assert nodes.size == 2 * 3**dimension
    assert nodes.nodes.shape == (nodes.size, dimension)
    assert nodes.weights.sum() == pytest.approx(1)
    assert bool(nodes.shape) == (dimension <= 3)
    x = rng.normal(size=(5, dimension))
    found = values(nodes, x)
    expected = [[kernel(s, row, w) for row in x] for s, w in zip(nodes.nodes, nodes.widths, strict=True)]
    assert np.allclose(found, expected, rtol=1e-13)


def test_grid_integrates_a_kernel_over_the_box():
    x, w = np.array([0.5, 3.0]), 2.0
    nodes = Quadrature.over_box(BOX, 40**2, (w,))
    sums = (nodes.weights * values(nodes, x[None])[:, 0]).sum()
    ends = [[math.erf((end - at) / (w * math.sqrt(2))) for end, at in zip(corner, x, strict=True)] for corner in BOX]
    exact = math.prod(w * math.sqrt(math.pi / 2) * (high - low) / 28 for low, high in zip(*ends, strict=True))
    assert sums == pytest.approx(exact, rel=1e-4)


def test_box_of_samples():
    x = np.array([[0.0, 5.0, 7.0], [10.0, 6.0, 7.0]])
    assert smallest_box(x).tolist() == [[0, 5, 6.5], [10, 6, 7.5]]
    assert smallest_box(x, 0.1).tolist() == [[-1, 4.9, 6.5], [11, 6.1, 7.5]]


def test_complementary_slackness():
    gamma, tolerance, (x, y) = 25.0, 0.02, clean(90)
    solution = solved(x, y, gamma, tolerance=1e-8)
    assert solution.finished.all()
    slack = 1 - 0.5 - y * solution.model().predict(x)  # eq. (13)
    critical = (solution.lam > 0)[0]
    assert 5 < critical.sum() < 90
    assert np.abs(slack[critical]).max() <= 1.001 * tolerance
    assert slack[~critical].max() <= tolerance
    assert solution.slackness[0] == pytest.approx(np.abs(slack[critical]).max(), abs=1e-9)
    assert solution.violation[0] == pytest.approx(max(slack.max(), 0), abs=1e-9)
    # No duality gap, as far as the constraints hold.
    gap = solution.problem.primal_cost(solution.alpha) - solution.value
    assert np.abs(gap) <= 2 * tolerance * solution.mu.sum()


@pytest.mark.parametrize("gamma", [0.0, 5.0])
def test_the_optimum_is_the_bidual_s(gamma):
    """Beside a general solver of convex programmes.

    Its variables are parts p - q + u - v of alpha, p and q of at most sqrt(2 gamma), all from 0 up, at the cost
    sqrt(2 gamma) (p + q + u + v) + (u^2 + v^2) / 2, whose least for a given alpha is the bidual's.
    """
    x, y = clean(14)
    nodes = Quadrature.over_box(BOX, 5**2, (3.0, 6.0))
    M, knee = nodes.size, math.sqrt(2 * gamma)
    rows = y[:, None] * values(nodes, x).T * nodes.weights
    parts = np.concatenate([rows, -rows, rows, -rows], axis=1)
    smooth = np.repeat([0.0, 1.0], 2 * M)
    weights = np.tile(nodes.weights, 4)
    primal = minimize(
        lambda part: weights @ (knee * part + smooth * part**2 / 2),
        np.full(4 * M, knee / 2),
        jac=lambda part: weights * (knee + smooth * part),
        bounds=[(0, knee)] * (2 * M) + [(0, None)] * (2 * M),
        constraints={"type": "ineq", "fun": lambda part: parts @ part - 0.5, "jac": lambda part: parts},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-13},
    )
    assert primal.success
    solution = solved(x, y, gamma, 0.5, 1000, nodes, tolerance=1e-8)
    assert solution.finished.all()
    assert solution.value[0] == pytest.approx(primal.fun, rel=1e-6)
    assert solution.cost[0] == pytest.approx(primal.fun, rel=1e-6)


def test_some_samples_first_come_to_the_optimum_of_all(monkeypatch):
    x, y = clean(150)
    few = solved(x, y, 25.0, tolerance=1e-6)
    assert few.finished.all()
    for near in (np.inf, 0.0):
        monkeypatch.setattr(solver, "NEAR", near)
        assert solved(x, y, 25.0, tolerance=1e-6).value[0] == pytest.approx(few.value[0], rel=2e-6)


def test_without_gamma_the_conditions_of_optimality_hold(monkeypatch):
    """Beside Q as it is written; columns of Q have room for all from the start, or get it as they come."""
    monkeypatch.setattr(solver, "COLUMNS", 1)
    x, y = clean(90)
    samples = solver.ProblemSamples(GRID, x, y)
    rows = y[:, None] * values(GRID, x).T
    assert np.allclose(samples.rows(np.array([3, 50])), rows[[3, 50]], rtol=1e-12, atol=1e-30)
    gram = (rows * GRID.weights) @ rows.T
    assert np.allclose(samples.gram(np.array([3, 50])), gram[:, [3, 50]], rtol=1e-12)
    mu, margin, steps = solver.without_gamma(samples, 0.5, 1e-7)
    critical = mu > 0
    assert 5 < critical.sum() <= steps
    assert critical.sum() < 90
    assert (mu >= 0).all()
    assert np.allclose(margin, gram @ mu, atol=1e-8)
    assert np.allclose(margin[critical], 0.5, atol=1e-8)
    assert margin.min() > 0.5 * (1 - 1e-7)
    assert np.allclose(samples.margins_at(mu @ rows), margin, atol=1e-8)


def test_a_constraint_that_cannot_hold_beside_another_leaves_the_rest_to_be_solved():
    x, y = clean(40)
    twice, labels_ = np.concatenate([x[:1], x]), np.concatenate([-y[:1], y])
    mu, margin, _ = solver.without_gamma(solver.ProblemSamples(GRID, twice, labels_), 0.5, 1e-7)
    broken = margin < 0.5 * (1 - 1e-6)
    assert broken.sum() == 1
    assert broken[:2].any()
    assert (mu[~broken] > 0).sum() > 5


def test_no_feasible_function_is_a_gap_of_one():
    """Two labels at one point; and no step at all."""
    x, y = clean(20)
    twice = np.concatenate([x, x[:1]]), np.concatenate([y, -y[:1]])
    assert solved(*twice, steps=60).gap.tolist() == [1]
    assert solved(x, y, steps=0).gap.tolist() == [1]


def test_a_padded_batch_is_its_problems_one_by_one():
    gamma, (x, y) = 25.0, clean(60)
    agent = np.repeat([2, 0, 3], [25, 10, 25])  # agent 1 has no sample
    problem = Dual.of_agents(GRID, x, y, agent, gamma, 0.5)
    problem = replace(problem, y=np.where(problem.present, problem.y, np.nan))  # padding is not looked at
    batch = maximise_dual(problem, 300, tolerance=0.05)
    assert batch.finished[1]
    assert not batch.lam[~problem.present].any()
    assert len(set(batch.steps)) > 1
    for one in (0, 2, 3):
        here = problem.present[one]
        alone = Dual.single_problem(GRID, x[agent == one], y[agent == one], gamma, 0.5)
        single = maximise_dual(alone, 300, tolerance=0.05)
        assert batch.steps[one] == single.steps[0]
        assert np.allclose(batch.lam[one, here], single.lam[0], rtol=1e-6, atol=1e-6)
        assert np.allclose(batch.model(one).predict(x), single.model().predict(x), atol=1e-6)
        for name in ("finished", "value", "violation", "slackness"):
            assert np.allclose(getattr(batch, name)[one], getattr(single, name)[0], rtol=1e-6, atol=1e-6)


def test_representation_counts_nodes_regions_and_peaks():
    nodes = Quadrature.over_box(BOX, 10**2, (1.0, 2.0, 4.0))
    alpha = np.zeros(nodes.shape)
    assert model_size(nodes, alpha.ravel()) == (0, 0, 0)
    alpha[0, 1, 1:4] = 3, 2, 4  # two peaks, one region
    alpha[0, 2, 4] = -5  # another sign
    alpha[2, 1, 1] = 1  # not beside the first: the width between them is 0
    alpha[1, 7:9, 7:9] = 6  # level
    assert model_size(nodes, alpha.ravel()) == (9, 4, 5)
    alpha[1, 2, 2] = 3.5  # beside both peaks of the first region and the one above, lower than one only
    assert model_size(nodes, alpha.ravel()) == (10, 3, 3)
