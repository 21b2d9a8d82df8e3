"""Whoever says how sure it is, is judged by it."""

import numpy as np
import pytest
from scipy.stats import norm

from fkl.contract.world import Outcome
from fkl.data.problem import Problem
from fkl.tasks.stream import StreamJudge
from fkl.tasks.task import NOMINAL, Calibration


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_shares_and_scores_are_those_of_the_normal_distribution(factor: float) -> None:
    """By hand from all targets, of which some are missed; and about what a believer in another spread must find."""
    rng, shape = np.random.default_rng(0), (400, 5)
    problem = Problem(np.zeros((*shape, 1)), rng.standard_normal(shape), rng.random(shape) < 0.8, np.zeros(5, int))
    judge, y_hat = StreamJudge(problem, 2, 0.0), np.zeros((2, 5))
    for t in range(400):
        judge.enter(t, Outcome(y_hat, None, lambda: y_hat, np.full(y_hat.shape, factor**2)))
    told, here = judge.columns(np.zeros((1, 1))), problem.present
    for name, nominal in NOMINAL.items():
        inside = np.abs(problem.y) <= norm.ppf((1 + nominal) / 2, scale=factor)
        np.testing.assert_allclose(told.rounds[name][-1], inside[here].mean())
        np.testing.assert_allclose(told.rounds[name][9], inside[:10][here[:10]].mean())
        np.testing.assert_allclose(told.clients[name][0], (inside & here).sum(axis=0) / here.sum(axis=0))
        expected = 2 * norm.cdf(norm.ppf((1 + nominal) / 2) * factor) - 1
        assert told.rounds[name][-1, 0] == pytest.approx(expected, abs=0.04)
    density = norm.logpdf(problem.y, 0, factor)
    np.testing.assert_allclose(told.rounds["log_score"][-1], density[here].mean())
    np.testing.assert_allclose(told.clients["log_score"][1], (density * here).sum(axis=0) / here.sum(axis=0))


def test_the_score_of_a_mixture_is_its_own() -> None:
    """The mean of the densities that a method gives; without these, that of the normal distribution."""
    judge, here = Calibration.before_any_round(2, 1, 3), np.array([True, True, False])
    judge.enter(0, np.ones((1, 3)), np.ones((1, 3)), here, 2.0)
    judge.enter(1, np.ones((1, 3)), np.ones((1, 3)), here, 4.0, log_density=np.array([[-3.0, -5.0, 7.0]]))
    normal = norm.logpdf(1)
    np.testing.assert_allclose(judge.by_round()["log_score"][:, 0], [normal, normal])
    np.testing.assert_allclose(judge.by_round()["log_score_mixture"][:, 0], [normal, (2 * normal - 8) / 4])
    np.testing.assert_allclose(judge.by_client(np.array([2, 2, 0]))["log_score_mixture"][0, 1], (normal - 5) / 2)
