"""stop_when: a run ends after the first round at which a condition holds, and is the run without it, cut there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fkl
from fkl.basics.errors import FklError
from fkl.runs.tables import TIMING_COLUMNS

STREAM = ("dataset=diabetes", "partition=iid", "partition.clients=4", "partition.rounds=50", "kernels.D=8")
PARTIES = ("dataset=ellipses", "dataset.rows=90", "scaling=none", "partition=vertical", "partition.parties=2")
POF_MKL = ("algo=pof_mkl", *STREAM, "algo.eta=0.5", "replicates=3")
ONE_OF_EACH_JUDGE = {
    "a stream": (*POF_MKL, "participation=share", "participation.share=0.5", "replicates=1"),
    "a variance": ("algo=rf_gp", *STREAM, "replicates=3"),
    "a batch": ("algo=coke", *STREAM, "algo.iterations=60", "replicates=3", "chunk=3"),
    "parties": ("algo=fdskl", *PARTIES),
}


def played(folder: Path, *words: str) -> fkl.Result:
    return fkl.run("replicates=1", *words, "figures=none", f"out={folder}", quiet=True)


def without_time(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=[*TIMING_COLUMNS], errors="ignore")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", ONE_OF_EACH_JUDGE.values(), ids=[*ONE_OF_EACH_JUDGE])
def test_it_is_the_run_without_it_cut_at_the_first_such_round(words: tuple[str, ...], tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", *words)
    column = next(name for name in ("test_error", "test_mse", "mse") if name in whole.rounds)
    means = whole.rounds.groupby("round")[column].mean()
    bound = float(means.iloc[: len(means) // 2].min()) * 1.0001  # which holds somewhere, and not first at once
    first = int(means.index[means < bound][0])
    cut = played(tmp_path / "cut", *words, f"stop_when={column}<{bound}")
    rows = whole.rounds["round"] <= first
    expected = without_time(whole.rounds[rows].reset_index(drop=True))
    pd.testing.assert_frame_equal(without_time(cut.rounds), expected, rtol=1e-9, check_exact=False)
    assert set(cut.summary["stopped_at"]) == {first} and cut.provenance["rounds"] == first
    last = cut.rounds[cut.rounds["round"] == first].reset_index(drop=True)
    for name in without_time(last).columns.drop("round"):
        pd.testing.assert_series_equal(cut.summary[name], last[name])
    assert [*cut.summary.columns.drop("stopped_at")] == [*whole.summary.columns]
    for name in {*cut.clients} & {*last}:  # clients' columns are of the same rounds
        one = cut.clients.assign(weighted=cut.clients[name] * cut.clients.get("rounds", 1)).groupby("replicate")
        if name.startswith("regret"):
            np.testing.assert_allclose(one[name].mean(), last[name], rtol=1e-7)
        elif name.endswith(("bytes", "scalars", "messages")):
            np.testing.assert_allclose(one[name].sum(), last[name])
        elif name in ("mse", "mse_running_mean", "mse_last_value", "log_score", "coverage_80"):
            np.testing.assert_allclose(one["weighted"].sum() / one["rounds"].sum(), last[name], rtol=1e-7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*POF_MKL, "stop_when=mse"), "a column of rounds.csv, < or >, and a number"),
        ((*POF_MKL, "stop_when=error<1"), "must be of a column of rounds.csv: mse, regret"),
        ((*POF_MKL, "chunk=2", "stop_when=mse<1"), "2 run at a time: set chunk=3"),
        ((*POF_MKL, "engine=jax", "stop_when=mse<1"), "stop_when checks each"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(FklError, match=said) as refused:
        played(tmp_path / "run", *words)
    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()
