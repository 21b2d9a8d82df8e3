"""What a sweep refuses before its first job, and how long it says that the rest will take."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fkl.sweeps.job import LIST, time_left

SEARCH = ("hydra/sweeper=optuna", "objective=mse")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("seed=1,2", "algo.M=1,2"), "algo.M=1,2: more than 3 runs"),
        (("seed=range(1,1)",), "seed=range(1,1): no values"),
        ((*SEARCH, "algo.eta=interval(1,0.1)"), "algo.eta=interval(1,0.1): must have its smaller end first"),
        ((*SEARCH, "algo.eta=tag(log,interval(-1,1))"), "algo.eta=tag(log,interval(-1,1)): must have numbers > 0"),
        ((*SEARCH, "algo.eta=1"), "hydra/sweeper=optuna: no key to search over"),
        (
            (*SEARCH[:1], "objective=loss", "algo=raker", "algo.loss=huber", "algo.delta=interval(.1,1)"),
            "objective=loss: must be a column that is one function for all values of algo.delta",
        ),
        (
            (*SEARCH[:1], "objective=pinball", "algo=raker", "algo.loss=quantile", "algo.level=interval(.1,.9)"),
            "objective=pinball: must be a column that is one function for all values of algo.level",
        ),
        (
            (*SEARCH[:1], "objective=loss", "algo=raker", "algo.loss=logistic,hinge", "algo.eta=interval(.1,.9)"),
            "objective=loss: must be a column that is one function for all values of algo.loss",
        ),
        (
            (*SEARCH, "scaling=unit_ball,standardize", "algo.eta=interval(.1,.9)"),
            "objective=mse: must be a column that is one function for all values of scaling",
        ),
        (("seed=1,2", "hydra.sweep.dir=mine"), "hydra.sweep.dir=mine: must be a folder without a "),
    ],
)
def test_a_sweep_is_refused_in_a_line_before_anything_is_written(
    words: tuple[str, ...], line: str, fkl: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fkl.sweeps.count.MOST", 3)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / LIST).write_text("a,b\n1,2\n")
    told = fkl("run", "-m", "dataset=diabetes", "kernels.D=4", *words)
    assert (told.code, told.err.count("error: ")) == (2, 1)
    assert told.err.startswith(f"error: {line}")
    assert [file.name for file in tmp_path.rglob("*")] == ["mine", LIST]
    assert (tmp_path / "mine" / LIST).read_text() == "a,b\n1,2\n"


def test_the_time_left_follows_from_jobs_that_ran() -> None:
    ended = [{"state": "finished already"}] * 5 + [{"state": "finished"}]
    assert time_left(0.0, 10.0, ended, 8) == "20 s left"
    assert time_left(0.0, 10.0, ended[:5], 8) == time_left(0.0, 10.0, ended, 6) == ""
