"""Tables that ship with scikit-learn, or that it generates, as a user would bring them: a file and two words."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

SOME = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True, scaled=False),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "friedman2": lambda: datasets.make_friedman2(150, noise=0.1, random_state=2),
}


@pytest.mark.parametrize("name", SOME)
def test_the_default_beats_the_baselines_or_says_that_it_does_not(fkl: Callable, name: str) -> None:
    """Nothing is asked of the user but the file and the target."""
    x, y = SOME[name]()
    frame = pd.DataFrame(x, columns=[f"x{number + 1}" for number in range(x.shape[1])]).assign(y=y)
    frame = frame.sample(min(150, len(frame)), random_state=0)
    frame.to_csv("own.csv", index=False)
    few = ("replicates=1", "kernels.D=20")  # less work, and the same promise
    answer = fkl("run", "dataset=file", "dataset.path=own.csv", "dataset.target=y", "out=here", *few)
    assert answer.code == 0, answer.err
    [row] = pd.read_csv("here/summary.csv").to_dict("records")
    verdict = next(line for line in answer.out.splitlines() if line[:1] in "✓▲")
    for column, words in (("mse_running_mean", "mean target"), ("mse_last_value", "last target")):
        assert (verdict.startswith("▲") and words in verdict) == (row["mse"] >= row[column])
    assert row["r2"] == pytest.approx(1 - (row["rmse_in_units"] / frame["y"].std(ddof=0)) ** 2, abs=1e-6)
    assert pd.read_csv("here/clients.csv")["rmse_in_units"].tolist() == pytest.approx([row["rmse_in_units"]])


def test_what_a_run_would_see_is_described_in_the_file_s_units(fkl: Callable) -> None:
    """Numbers of the table, of clients, and a picture."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": 40 + rng.normal(size=30), "ward": ["a$b", "c", "c"] * 10, "stay": rng.normal(size=30)})
    frame.to_csv("own.csv", index=False)
    answer = fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.target=stay", "dataset.site=ward")
    assert "own: 30 rows, 1 feature, 2 sites" in answer.out, answer.err
    assert f"target: mean {frame['stay'].mean():.5g}, sd {frame['stay'].std(ddof=0):.5g}" in answer.out
    assert f"{frame['age'].mean():.5g}" in answer.out
    assert "2 clients, 20 rounds, 10 to 20 samples each, median 15" in answer.out
    assert all(Path(f"outputs/data/own-sites.{kind}").stat().st_size for kind in ("png", "pdf"))
    parties = fkl("data", "describe", "diabetes", "partition=vertical", "partition.parties=3")
    assert "party 2: 3 features: s4, s5, s6" in parties.out
