"""Streams that drift: what is expected of a target is known, and nobody's dynamic regret is below 0 for long."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fkl.contract.world import Outcome
from fkl.data.drift import KINDS, Drift
from fkl.data.normalise import normalise_table
from fkl.data.partition import Sites
from fkl.data.problem import Problem, Table
from fkl.data.store import Store
from fkl.tasks.stream import StreamJudge

STORE: Any = Store
SMALL = {"clients": 3, "rounds": 60, "every": 20}


def table_of(**keys: Any) -> Table:
    """The rows of seed 0."""
    return Drift(**keys).load(STORE, np.random.default_rng(0))


def expected_of(**keys: Any) -> np.ndarray:
    """Of three clients over sixty rounds."""
    expected = table_of(**SMALL | keys).expected
    assert expected is not None
    return expected.reshape(3, 60)


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_the_target_is_what_is_expected(kind: str) -> None:
    """And noise does not depend on the kind."""
    quiet = table_of(kind=kind, noise_variance=0.0, **SMALL)
    np.testing.assert_array_equal(quiet.y, quiet.expected)
    loud, other = table_of(kind=kind, **SMALL), table_of(kind="sudden", **SMALL)
    np.testing.assert_array_equal(loud.expected, quiet.expected)
    np.testing.assert_allclose(loud.y - loud.expected, other.y - other.expected, rtol=0, atol=1e-12)


def test_kinds_meet_where_they_should() -> None:
    """In the first stretch sudden and recurring are one; a gradual target is a sudden one where a stretch begins."""
    sudden, gradual, recurring = (expected_of(kind=kind) for kind in KINDS)
    np.testing.assert_array_equal(sudden[:, :40], recurring[:, :40])
    assert (sudden[:, 40:] != recurring[:, 40:]).all()
    np.testing.assert_array_equal(sudden[:, ::20], gradual[:, ::20])
    assert (sudden[:, 1:20] != gradual[:, 1:20]).all()


def test_a_client_ahead_is_in_the_next_stretch_earlier() -> None:
    """Until its own change it expects what all would; then what they expect after theirs."""
    alike, apart = (expected_of(kind="sudden", clients_alike=one) for one in (True, False))
    changes = [np.flatnonzero(alike[k, :20] != apart[k, :20]) for k in range(3)]
    for change in changes:  # one stretch at the end of the first 20 rounds
        assert len(change) == 0 or (change == np.arange(change[0], 20)).all()
    assert len({len(change) for change in changes}) > 1


def judged(problem: Problem, guess: np.ndarray) -> dict[str, np.ndarray]:
    """Columns by round of predictions (T, K)."""
    judge = StreamJudge(problem, 1, 0.0)
    for t in range(problem.rounds):
        judge.enter(t, Outcome(guess[None, t], None, lambda: np.zeros((1, problem.clients))))
    return judge.columns(np.zeros((1, 1))).rounds


def test_the_best_prediction_has_no_dynamic_regret() -> None:
    """Its error is the noise's variance, and who is off by c has c^2 a round more: to 4 standard deviations."""
    table = table_of(kind="gradual", clients=4, rounds=500, every=100, noise_variance=0.3)
    problem = Sites().split(normalise_table(table), np.random.default_rng(0))
    assert problem.expected is not None
    np.testing.assert_allclose(judged(problem, problem.expected)["regret_dynamic"], 0, atol=1e-9)
    error = ((problem.expected - problem.y) ** 2).mean() * problem.scale.y_unit**2
    assert abs(error - 0.3) < 4 * 0.3 * np.sqrt(2 / 2000)
    sigma, c = np.sqrt(0.3) / problem.scale.y_unit, 0.1
    regret = judged(problem, problem.expected + c)["regret_dynamic"][-1, 0]
    assert abs(regret - 500 * c**2) < 4 * 2 * c * sigma * np.sqrt(500 / 4)
    assert "regret_dynamic" not in judged(replace(problem, expected=None), problem.y)
