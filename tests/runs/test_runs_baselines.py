"""Every run stands beside what predicting without learning would have come to, and says when it is no better."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal.worlds import make_batch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import r2_score

from fkl.basics.pointwise import pointwise_loss
from fkl.contract.world import Outcome
from fkl.data.baselines import baseline_errors, constant_error, explained_variance
from fkl.data.problem import Problem, Scale
from fkl.tasks import batch as batches
from fkl.tasks.stream import StreamJudge

UNIT = 7.0
SHORT = ("dataset=diabetes", "kernels.D=4", "kernels.N=3", "replicates=2", "out=here")


def streams(y: np.ndarray, present: np.ndarray) -> Problem:
    """Streams of these targets, one feature."""
    site = np.zeros(y.shape[1], np.int64)
    return Problem(np.ones((*y.shape, 1)), y * present, present, site, scale=Scale(y_unit=UNIT))


@given(arrays(float, (7, 3), elements=st.floats(-9, 9)), arrays(bool, (7, 3)))
def test_baselines_know_each_client_s_past_and_nothing_else(y: np.ndarray, present: np.ndarray) -> None:
    """Each target is predicted from a list of those before it."""
    running_mean, last_value = baseline_errors(streams(y, present)).values()
    for k in range(3):
        past: list[float] = []
        for t in range(7):
            if not present[t, k]:
                assert running_mean[t, k] == last_value[t, k] == 0
                continue
            mean, last = (np.mean(past), past[-1]) if past else (0.0, 0.0)
            assert running_mean[t, k] == pytest.approx((y[t, k] - mean) ** 2, abs=1e-9)
            assert last_value[t, k] == pytest.approx((y[t, k] - last) ** 2, abs=1e-9)
            past.append(y[t, k])


@given(arrays(int, (7, 3), elements=st.integers(0, 2)), arrays(bool, (7, 3)))
def test_baselines_of_several_classes_are_counted(number: np.ndarray, present: np.ndarray) -> None:
    """The class that was seen most often, the last seen of ties, and the last one; before any, right by chance."""
    loss = pointwise_loss("logistic")._replace(several=3)
    majority, last = baseline_errors(replace(streams(2.0 * number - 2, present), loss=loss)).values()
    for k in range(3):
        past: list[int] = []
        for t in range(7):
            most = max(reversed(past), key=past.count) if past else None
            by_chance = present[t, k] * 2 / 3
            wrong = by_chance if most is None else present[t, k] and most != number[t, k]
            changed = present[t, k] and past[-1] != number[t, k] if past else by_chance
            assert majority[t, k] == pytest.approx(float(wrong)) and last[t, k] == pytest.approx(float(changed))
            past += [number[t, k]] * int(present[t, k])


def test_columns_of_a_stream_are_those_of_scikit_learn() -> None:
    """R2 of all clients and of each, errors in the target's units, baselines by round."""
    rng = np.random.default_rng(2)
    y, y_hat = rng.normal(size=(2, 30, 4))
    present = rng.random((30, 4)) < 0.8
    problem = streams(y, present)
    judge = StreamJudge(problem, 1, 0.0)
    for t in range(30):
        judge.enter(t, Outcome(y_hat[None, t], None, lambda: np.zeros((1, 4))))
    columns = judge.columns(np.zeros((1, 1)))
    assert columns.summary["r2"] == pytest.approx(r2_score(y[present], y_hat[present]))
    squares = np.square(y - y_hat)
    assert columns.summary["rmse_in_units"] == pytest.approx(UNIT * np.sqrt(squares[present].mean()))
    for k in range(4):
        here = present[:, k]
        assert columns.clients["r2"][0, k] == pytest.approx(r2_score(y[here, k], y_hat[here, k]))
    for name, errors in baseline_errors(problem).items():
        assert columns.rounds[name][11, 0] == pytest.approx(errors[:12][present[:12]].mean())
        assert columns.clients[name] == pytest.approx(errors.sum(axis=0) / present.sum(axis=0))


def test_the_constant_of_a_batch_is_the_mean_of_training_targets() -> None:
    batch = make_batch()
    (_, learned, _), (_, tested, _) = batch.part(True), batch.part(False)
    found = batches.TestedBooks(batch, 1).at_the_end["test_mse_training_mean"]
    assert found == pytest.approx(np.square(tested - learned.mean()).mean())


def test_constants_are_those_of_scikit_learn() -> None:
    """The mean, and the majority's class."""
    rng = np.random.default_rng(3)
    learned, tested = rng.normal(size=20), rng.normal(size=9)
    for classes, dummy in ((False, DummyRegressor()), (True, DummyClassifier())):
        if classes:
            learned, tested = np.sign(learned), np.sign(tested)
        predicted = dummy.fit(learned[:, None], learned).predict(tested[:, None])
        wanted = (predicted != tested).mean() if classes else np.square(predicted - tested).mean()
        assert constant_error(learned, tested, classes) == pytest.approx(wanted)
    assert np.isnan(constant_error(learned, tested[:0], False))
    assert np.isnan(explained_variance(np.array([1.0]), 0.0)).all()


@pytest.mark.parametrize("eta", [1e-9, 0.3])
def test_a_run_says_when_it_is_no_better(fkl: Callable, eta: float) -> None:
    """The verdict, and a line in the provenance; a method that learns nothing has it, one that learns has not."""
    answer = fkl("run", *SHORT, "algo=vm_kofl", f"algo.eta={eta}", "kernels.smallest=1", "kernels.largest=1")
    summary = pd.read_csv("here/summary.csv")
    warned = bool((summary["mse"].mean() >= summary[["mse_running_mean", "mse_last_value"]].iloc[0]).any())
    told = json.loads(Path("here/provenance.json").read_text()).get("warning", "")
    assert warned == ("each client's mean target so far" in told)
    assert warned == ("▲ not better than each client's mean target" in answer.out)
    assert warned == (eta == 1e-9)
