"""The rounds of all runs in one table: the runs' own rows, with what tells the runs apart."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import fkl
from fkl.basics.errors import FklError

SMALL = (
    "dataset=diabetes",
    "partition=iid",
    "partition.clients=4",
    "partition.rounds=20",
    "kernels.D=8",
    "figures=none",
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[fkl.Result]:
    """Two steps of a stream's method, and a batch, whose columns are others."""
    monkeypatch.chdir(tmp_path)
    words = (*SMALL, "replicates=2")
    runs = [fkl.run("algo=ofmkl_avg", *words, f"algo.eta={eta}", quiet=True) for eta in (0.25, 0.5)]
    return [*runs, fkl.run("algo=one_shot_ridge", *words, "algo.lam=0.1", quiet=True)]


@pytest.mark.filterwarnings("ignore")
def test_rows_are_those_of_the_files(made: list[fkl.Result]) -> None:
    frame = fkl.rounds("outputs")
    pd.testing.assert_frame_equal(fkl.rounds(made), frame)
    assert len(frame) == sum(len(run.rounds) for run in made)
    for run in made:
        rows = frame[frame["run"] == run.folder.name]
        found = rows[[*run.rounds]].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, run.rounds, check_dtype=False)
        assert rows.drop(columns=[*run.rounds]).nunique().max() == 1  # one label for all rows of a run
        others = rows.drop(columns=[*run.rounds, "run", "method", "dataset", "algorithm", "seed"])
        assert others[[*(name for name in others if not name.startswith("algo."))]].isna().all().all()
    assert {*frame["algo.eta"].dropna()} == {0.25, 0.5} and {*frame["dataset"]} == {"diabetes"}
    assert {*frame["method"]} == {"OFMKL-Avg (eta=0.25)", "OFMKL-Avg (eta=0.5)", "One-shot ridge (lam=0.1)"}


@pytest.mark.filterwarnings("ignore")
def test_words_choose_runs_as_for_a_comparison(made: list[fkl.Result]) -> None:
    frame = fkl.rounds(["outputs", "algo=ofmkl_avg", "algo.eta=0.5"])
    assert {*frame["run"]} == {made[1].folder.name} and "test_mse" not in frame


@pytest.mark.filterwarnings("ignore")
def test_the_command_writes_it_with_every_digit(made: list[fkl.Result], fkl: Callable, tmp_path: Path) -> None:
    answer = fkl("compare", str(made[0].folder.parent), "--rounds", "all.csv", "--metric", "mse")
    assert answer.code == 0, answer.err
    written = pd.read_csv(tmp_path / "all.csv", dtype=str)
    for run in made:
        own = pd.read_csv(run.folder / "rounds.csv", dtype=str)
        rows = written.loc[written["run"] == run.folder.name, [*own]].reset_index(drop=True)
        pd.testing.assert_frame_equal(rows.astype(float), own.astype(float), check_exact=True)


def test_a_run_whose_rounds_have_changed_is_left_out_and_named(made: list[fkl.Result]) -> None:
    with (made[0].folder / "rounds.csv").open("a") as stream:
        stream.write("\n")
    with pytest.warns(UserWarning, match=r"rounds\.csv has changed"):
        assert {*fkl.rounds("outputs")["run"]} == {run.folder.name for run in made[1:]}
    with (
        pytest.warns(UserWarning, match=r"rounds\.csv has changed"),
        pytest.raises(FklError, match="no finished run there"),
    ):
        fkl.rounds(made[0])
