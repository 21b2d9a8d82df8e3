"""PF and PC: duality, sums of agents' duals, the slips of Theorems 3 and 4, and planted faults."""

from pathlib import Path

import numpy as np
import pytest
from theory.test_theory import found, held

from fkl.algorithms.parsimonious.dual import Dual, maximise_dual
from fkl.algorithms.parsimonious.parsimonious import Centralized, FederatedParsimonious
from fkl.algorithms.parsimonious.solver import Quadrature
from fkl.data.ellipses import Ellipses
from fkl.data.partition import Sites
from fkl.data.problem import PerReplicate
from fkl.data.store import Store
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.theory import parsimonious
from fkl.theory.answer import TheoremsAnswer, by_theory

KEYS = {"eps": 0.9, "steps": 300, "centres": 196, "box": [[-18.0, -8.0], [10.0, 20.0]]}


def answer(method, rows=180, seed=0) -> TheoremsAnswer:
    """Verdicts and identities of nine agents in the plane."""
    rng = np.random.default_rng(seed)
    table = Ellipses(rows=rows, test_rows=20, per_side=3).load(Store(Path("nowhere")), rng)
    problem = PerReplicate((method.batch(Sites().split(table, rng), rng),))
    given = Experiment(problem, Dictionary(), Network(), method, 0, 1, "float64")
    return by_theory(given)


@pytest.mark.parametrize("gamma", [0.0, 0.3, 5.0])
def test_bounds_and_identities_hold(gamma) -> None:
    for seed in range(3):
        told = answer(FederatedParsimonious(gamma=gamma, **KEYS), seed=seed)
        assert not told.wrong
        assert all(held(told).values())
        duality = found(told, "Theorem 1", "derived")
        assert 1 - 1e-9 <= duality.factor < 1 + (1e-6 if gamma == 0 else 0.1)
        assert "supports overlap" in found(told, "Lemma 2", "printed").form.unmet[0]
    assert [one.theorem.name for one in answer(Centralized(gamma=gamma, **KEYS)).verdicts] == ["Theorem 1"]


def two_agents(gamma: float, apart: float, eps: float = 0.0) -> parsimonious.ParsimoniousRecord:
    """With one sample each, of class 1."""
    quadrature = Quadrature.over_box(np.array([[-5.0], [apart + 5]]), 20001, [1.0])
    x, y = np.array([[0.0], [apart]]), np.ones(2)
    whole = maximise_dual(Dual.single_problem(quadrature, x, y, gamma, eps), 1000, 1e-12)
    own = maximise_dual(Dual.of_agents(quadrature, x, y, np.arange(2), gamma, eps), 1000, 1e-12)
    sums = [
        (parsimonious.DualSum.compare_problems(own.problem, mu, whole.problem),)
        for mu in (own.mu, whole.mu.reshape(own.mu.shape))
    ]
    return parsimonious.ParsimoniousRecord((whole,), (own,), (whole,), *sums)


def test_theorems_3_and_4_of_two_samples_in_closed_form() -> None:
    """Without a threshold: lambda, Q and alpha of one Gaussian a sample, whose products have known integrals."""
    apart, eps, weight = 2.0, 0.1, 1 / 12  # of the box
    found = {one.name: one for one in parsimonious.theorems(two_agents(0.0, apart, eps))}
    same, other = weight * np.sqrt(np.pi), weight * np.sqrt(np.pi) * np.exp(-(apart**2) / 4)
    own, whole = (1 - eps) / same, (1 - eps) / (same + other)  # lambda / N of a sample
    xi, mu = np.exp(-(apart**2) / 2), (same - other) / 4
    third, mean, fourth = (found[f"Theorem {name}"] for name in ("3", "3, root mean square", "4"))
    s = np.linspace(-5, 7, 200001)
    k = np.exp(-(s**2) / 2), np.exp(-((s - apart) ** 2) / 2)
    assert third.left == pytest.approx((own - whole) * max(k[0] + k[1]), rel=1e-5)
    assert third.forms[0].right == pytest.approx(2 * np.sqrt(2 * xi * 2 * own**2 / (mu * 2)), rel=1e-5)
    assert mean.left == pytest.approx((own - whole) * np.sqrt(2 * (same + other)), rel=1e-5)
    assert mean.forms[0].right == pytest.approx(np.sqrt(2 * other * (own**2 + whole**2)), rel=1e-4)
    node = np.abs(k[0] - k[1]).argmax()
    values = np.array([k[0][node], k[1][node]])
    skew = np.mean(values**3) / np.mean(values**2) ** 1.5
    assert fourth.left == pytest.approx(own * np.abs(k[0] - k[1]).max(), rel=1e-5)
    assert fourth.forms[0].right == pytest.approx(2 * (2 * own + 0.4748 * skew), rel=1e-3)
    # two kernels at distance d have a product of at most sqrt(xi), which the proof of Lemma 2 takes for xi
    assert max(k[0] * k[1]) == pytest.approx(np.sqrt(xi)) and np.sqrt(xi) > xi


@pytest.mark.parametrize("gamma", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("apart", [0.5, 2.0, 6.0])
def test_the_corrected_form_of_theorem_3_holds_with_a_threshold(gamma: float, apart: float) -> None:
    """And is close to equality where the two samples nearly coincide."""
    [mean] = [one for one in parsimonious.theorems(two_agents(gamma, apart)) if one.name.endswith("square")]
    left, right = float(mean.left[0, 0]), float(mean.forms[0].right[0, 0])
    assert left <= right * (1 + 1e-9)
    if gamma == 0 and apart < 1:
        assert right < 4 * left
