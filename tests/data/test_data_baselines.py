"""Baselines of classes name a class: counted by hand, on labels of every kind; and no tick above the best constant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.pointwise import pointwise_loss
from fkl.data.baselines import baseline_errors, best_constant
from fkl.data.problem import Problem
from fkl.runs.command import BELOW, NOT_BELOW, judge_summary


def problem_of(labels, classes):
    """Streams (T, K) of labels 0, 1, ..., as a task hands them to methods."""
    loss = pointwise_loss("logistic")._replace(several=classes if classes > 2 else 0)
    values = loss.class_values if classes > 2 else np.array([-1.0, 1.0])
    y = values[np.array(labels)]
    return Problem(x=y[..., None], y=y, present=np.ones(y.shape, bool), site=np.zeros(y.shape[1], int), loss=loss)


def mistakes_by_hand(labels, classes):
    """Mistakes of the majority so far and of the last class, of one client: right by chance before the first label."""
    majority, last = [], []
    for t, label in enumerate(labels):
        seen = labels[:t]
        if not seen:
            majority.append(1 - 1 / classes)
            last.append(1 - 1 / classes)
            continue
        most = max(map(seen.count, seen))
        among = [one for one in seen if seen.count(one) == most]
        majority.append(float(among[-1] != label))
        last.append(float(seen[-1] != label))
    return majority, last


@given(st.integers(2, 4), st.data())
def test_baselines_of_classes_are_those_counted_by_hand(classes, data):
    labels = data.draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=12))
    majority, last = mistakes_by_hand(labels, classes)
    problem = problem_of([[one] for one in labels], classes)
    found = baseline_errors(problem)
    assert found["error_last_class"][:, 0].tolist() == pytest.approx(last)
    assert found["error_majority"][:, 0].tolist() == pytest.approx(majority)
    share = max(map(labels.count, labels)) / len(labels)
    assert best_constant(problem)["error_best_constant"] == pytest.approx(1 - share)


rng = np.random.default_rng(0)
NOTHING_TO_LEARN = {
    "coin": rng.integers(0, 2, (20, 30)),
    "alternating": np.tile(np.arange(20)[:, None] % 2, 30),
    "rare class": (rng.random((20, 30)) < 0.1).astype(int),
    "four rows a site": np.stack([rng.permutation([0, 0, 1, 1]) for _ in range(150)], axis=1),
    "drift": np.tile(np.repeat([0, 1], 10)[:, None], 30),
    "three faces": rng.integers(0, 3, (20, 30)),
}


@pytest.mark.parametrize("kind", NOTHING_TO_LEARN)
def test_no_tick_for_an_error_above_the_best_constant(kind):
    labels = NOTHING_TO_LEARN[kind]
    problem = problem_of(labels, int(labels.max()) + 1)
    means = {name: np.array([error.mean()]) for name, error in baseline_errors(problem).items()}
    means |= {name: np.array([error]) for name, error in best_constant(problem).items()}
    assert means["error_majority"] < 1 - 1e-9 and means["error_best_constant"] <= 1 - 1 / (labels.max() + 1)
    above = means["error_best_constant"] * 1.001
    mark, words = judge_summary({"error": above, **means})
    assert mark == NOT_BELOW and "the best constant" in words
    least = min(float(value[0]) for value in means.values())
    assert judge_summary({"error": np.array([0.9 * least]), **means}).mark == BELOW


@pytest.mark.parametrize(("name", "keys"), [("quantile", {"level": 0.9}), ("huber", {"delta": 0.1}), ("square", {})])
def test_no_constant_of_a_grid_is_better_than_the_best_one(name, keys):
    loss, y = pointwise_loss(name, **keys), rng.gamma(2.0, 1.0, (40, 3))
    problem = Problem(x=y[..., None], y=y, present=rng.random(y.shape) < 0.8, site=np.zeros(3, int), loss=loss)
    [(column, best)] = best_constant(problem).items()
    main = column.removesuffix("_best_constant")
    targets = y[problem.present]
    grid = np.linspace(0, 8, 2001)
    least = min(loss.errors_of_predictions(np.full(len(targets), one), targets)[main].mean() for one in grid)
    assert main == loss.columns[0] and least - 1e-4 < best <= least + 1e-12


def test_a_prediction_that_names_no_class_is_right_by_chance():
    two, three = pointwise_loss("hinge"), pointwise_loss("hinge")._replace(several=3)
    assert two.errors_of_predictions(np.array([0.0, 2.0, -1.0]), np.array([1.0, 1.0, 1.0]))["error"].tolist() == [
        0.5,
        0,
        1,
    ]
    said = three.errors_of_predictions(np.array([3.0, 2.0, -2.0]), np.array([0.0, 2.0, 2.0]), 0.0)["error"]
    assert said.tolist() == pytest.approx([2 / 3, 0, 1])
