"""The loss in hindsight is computed once for data, dictionary and lambda, and kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary, make_problem
from numpy.typing import NDArray

from fkl.algorithms.online.learners import Raker, Rfomkr
from fkl.basics.files import write_sealed
from fkl.engines.base import Experiment
from fkl.kernels import hindsight
from fkl.kernels.hindsight import best_loss, linear_loss
from fkl.network import Network

SIZE = Size(K=1, N=5, T=40)


@pytest.fixture
def given() -> Experiment:
    """A small experiment."""
    return Experiment(make_problem(SIZE, seed=1), make_dictionary(SIZE), Network(), Raker(), 0, 2, "float64")


def hindsight_loss(given: Experiment, cache: Path | None) -> NDArray[np.float64]:
    """What an experiment's records compare with."""
    loss: NDArray[np.float64] = given.task.hindsight_losses(given.algorithm, given.dictionary, cache)
    return loss


def test_kept_and_not_computed_twice(given: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is read, to the bit; one file lies there, and nothing half-written."""
    first = hindsight_loss(given, tmp_path)
    best = best_loss(given.dictionary, given.problem.x[:, 0], given.problem.y[:, 0], given.algorithm.lam)
    np.testing.assert_array_equal(first[:, 0], best)
    monkeypatch.setattr(hindsight, "best_loss", None)
    np.testing.assert_array_equal(hindsight_loss(replace(given, seed=9, replicates=7), tmp_path), first)
    assert [file.suffix for file in tmp_path.rglob("*") if file.is_file()] == [".npz"]


def test_whatever_changes_the_fit_is_another(given: Experiment, tmp_path: Path) -> None:
    """Data, kernels and lambda are all part of the name."""
    problem = given.problem
    others = [
        given,
        replace(given, problem=replace(problem, x=0.9 * problem.x)),
        replace(given, problem=replace(problem, y=0.9 * problem.y)),
        replace(given, dictionary=make_dictionary(SIZE, smallest=0.15, largest=3.0)),
        replace(given, algorithm=Raker(lam=0.1)),
    ]
    assert len({hindsight_loss(other, tmp_path).tobytes() for other in others}) == len(others)
    assert len(list(tmp_path.rglob("*.npz"))) == len(others)


def test_nothing_to_compare_with_where_nothing_is_regularised(given: Experiment) -> None:
    """The best function would go through every sample."""
    assert np.isnan(hindsight_loss(replace(given, algorithm=Rfomkr()), None)).all()


def test_what_is_not_as_it_was_kept_is_computed_again(given: Experiment, tmp_path: Path) -> None:
    """Whatever lies in the cache, no wrong regret comes of it."""
    right = hindsight_loss(given, tmp_path)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    whole = file.read_bytes()
    for wrong in (np.where(np.arange(40) == 3, np.nan, right[:, 0]), right[:7, 0], np.array(["a"] * 40), None):
        if wrong is None:
            file.write_bytes(whole[:300] + bytes([whole[300] ^ 4]) + whole[301:])
        else:
            write_sealed(file, {hindsight.LOSSES: wrong})
        np.testing.assert_array_equal(hindsight_loss(given, tmp_path), right)
        assert file.read_bytes() == whole


def test_a_linear_fit_leaves_what_no_linear_function_explains() -> None:
    """Least squares over all clients that are present; a feature that never changes and a repeated one do no harm."""
    problem = make_problem(Size(K=3, N=5, T=40, d=4), seed=2, absent=0.3)
    problem.x[..., 2], problem.x[..., 3] = 0.25, problem.x[..., 0]
    loss, here = linear_loss(problem), problem.present
    x = np.column_stack([problem.x[here], np.ones(here.sum())]).astype(np.float64)
    slope = np.linalg.lstsq(x, problem.y[here], rcond=None)[0]
    np.testing.assert_allclose(loss[here], (x @ slope - problem.y[here]) ** 2, atol=1e-10)
    assert (loss[~here] == 0).all()
    problem.y[:] = 3 - 2 * problem.x[..., 1]
    assert linear_loss(problem).max() < 1e-20
    wide = replace(problem, x=np.broadcast_to(np.float32(0), (40, 3, 40_000)))
    assert np.isnan(linear_loss(wide)).all()
