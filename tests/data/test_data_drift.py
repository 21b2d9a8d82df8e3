"""Streams that drift: what is expected of a target is known, and nobody's dynamic regret is below 0 for long."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary, run

from fkl.algorithms.federated.descent import Ofskl
from fkl.basics.errors import BadValue
from fkl.conformance import Conformance, scenario
from fkl.contract.world import Outcome
from fkl.data.drift import KINDS, Drift
from fkl.data.normalise import normalise
from fkl.data.partition import Sites
from fkl.data.problem import Problem, Table
from fkl.data.store import Store
from fkl.runs.prepare import prepare
from fkl.tasks.stream import StreamJudge

STORE: Any = Store


def table_of(**keys: Any) -> Table:
    """The rows of seed 0."""
    return Drift(**keys).load(STORE, np.random.default_rng(0))


def problem_of(**keys: Any) -> Problem:
    """The streams of seed 0, scaled."""
    return Sites().split(normalise(table_of(**keys)), np.random.default_rng(0))


SMALL = {"clients": 3, "rounds": 60, "every": 20}


def test_without_a_change_every_kind_but_gradual_is_one_function() -> None:
    """Bit for bit; a stretch as long as the stream."""
    sudden, recurring = (table_of(kind=kind, **SMALL | {"every": 60}) for kind in ("sudden", "recurring"))
    np.testing.assert_array_equal(sudden.y, recurring.y)
    alike, apart = (table_of(kind="sudden", clients_alike=one, **SMALL | {"every": 1}) for one in (True, False))
    np.testing.assert_array_equal(alike.y, apart.y)  # of stretches of one round nobody is ahead


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_the_target_is_what_is_expected(kind: str) -> None:
    """And noise does not depend on the kind."""
    quiet = table_of(kind=kind, noise_variance=0.0, **SMALL)
    np.testing.assert_array_equal(quiet.y, quiet.expected)
    loud, other = table_of(kind=kind, **SMALL), table_of(kind="sudden", **SMALL)
    assert loud.expected is not None
    assert other.expected is not None
    np.testing.assert_array_equal(loud.expected, quiet.expected)
    np.testing.assert_allclose(loud.y - loud.expected, other.y - other.expected, rtol=0, atol=1e-12)


def test_kinds_meet_where_they_should() -> None:
    """In the first stretch sudden and recurring are one; a gradual target is a sudden one where a stretch begins."""
    sudden, gradual, recurring = (table_of(kind=kind, **SMALL).expected.reshape(3, 60) for kind in KINDS)  # type: ignore[union-attr]
    np.testing.assert_array_equal(sudden[:, :40], recurring[:, :40])
    assert (sudden[:, 40:] != recurring[:, 40:]).all()
    np.testing.assert_array_equal(sudden[:, ::20], gradual[:, ::20])
    assert (sudden[:, 1:20] != gradual[:, 1:20]).all()


def test_a_client_ahead_is_in_the_next_stretch_earlier() -> None:
    """Until its own change it expects what all would; then what they expect after theirs."""
    alike = table_of(kind="sudden", **SMALL).expected.reshape(3, 60)  # type: ignore[union-attr]
    apart = table_of(kind="sudden", clients_alike=False, **SMALL).expected.reshape(3, 60)  # type: ignore[union-attr]
    changes = [np.flatnonzero(alike[k, :20] != apart[k, :20]) for k in range(3)]
    for change in changes:  # one stretch at the end of the first 20 rounds
        assert len(change) == 0 or (change == np.arange(change[0], 20)).all()
    assert len({len(change) for change in changes}) > 1


def judged(problem: Problem, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Dynamic regret by round, and by client, of predictions (T, K)."""
    judge = StreamJudge(problem, 1, 0.0)
    for t in range(problem.rounds):
        judge.enter(t, Outcome(guess[None, t], None, lambda: np.zeros((1, problem.clients))))
    columns = judge.columns(np.zeros((1, 1)))
    return columns.rounds["regret_dynamic"][:, 0], columns.clients["regret_dynamic"][0]


def test_the_best_prediction_has_no_dynamic_regret() -> None:
    """And its error is the noise's variance, to 4 standard deviations of a mean of squares of normals."""
    problem = problem_of(kind="gradual", clients=4, rounds=500, every=100, noise_variance=0.3)
    assert problem.expected is not None
    rounds, clients = judged(problem, problem.expected)
    np.testing.assert_allclose(rounds, 0, atol=1e-9)
    np.testing.assert_allclose(clients, 0, atol=1e-9)
    error = ((problem.expected - problem.y) ** 2).mean() * problem.scale.y_unit**2
    assert abs(error - 0.3) < 4 * 0.3 * np.sqrt(2 / 2000)


def test_dynamic_regret_is_the_squared_distance_on_average() -> None:
    """Of predictions off by c: c^2 a round, and noise of variance 4 c^2 sigma^2 a round and client."""
    problem = problem_of(kind="sudden", clients=4, rounds=500, every=100, noise_variance=0.3)
    assert problem.expected is not None
    sigma, c = np.sqrt(0.3) / problem.scale.y_unit, 0.1
    rounds, clients = judged(problem, problem.expected + c)
    assert abs(rounds[-1] - 500 * c**2) < 4 * 2 * c * sigma * np.sqrt(500 / 4)
    assert clients.mean() == pytest.approx(rounds[-1])


def test_data_without_a_known_best_prediction_have_no_such_column() -> None:
    """Whatever method."""
    problem = replace(problem_of(**SMALL), expected=None)
    trace = run(Ofskl(), problem, make_dictionary(Size(N=1, D=4, d=3)))
    judge = StreamJudge(problem, 2, 0.0)
    judge.enter(0, Outcome(trace.y_hat[:, 0], None, lambda: np.zeros((2, 3))))
    assert "regret_dynamic" not in judge.columns(np.zeros((1, 1))).rounds


def test_a_run_has_the_column() -> None:
    """From the configuration to the records, and no label is known early."""
    words = (
        "dataset=drift",
        "dataset.rounds=30",
        "dataset.clients=3",
        "dataset.every=10",
        "kernels.D=4",
        "kernels.N=3",
    )
    suite = Conformance.from_overrides("algo=pof_mkl", *words, "replicates=2")
    assert "regret_dynamic" in suite.tables["rounds"].splitlines()[0]
    assert "regret_dynamic" in suite.tables["clients"].splitlines()[0]
    suite.labels_are_not_known_before_they_are_shown()
    problem = prepare(scenario("algo=pof_mkl", *words)).problem
    assert problem.present.all()
    assert (problem.rounds, problem.clients) == (30, 3)


@pytest.mark.parametrize("key", [{"kind": "slow"}, {"every": 0}, {"clients": 0}, {"noise_variance": -1.0}])
def test_limits(key: dict[str, Any]) -> None:
    """By name."""
    with pytest.raises(BadValue, match=next(iter(key))):
        Drift(**key)
