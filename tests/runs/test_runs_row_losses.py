"""The loss of every judged row, kept with its number: what comparisons over rows that seeds share are made from."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fkl
from fkl.basics.files import read_arrays
from fkl.data.dealt_rows import in_part
from fkl.runs.tables import LOSSES

ONE_OF_EACH_TASK = {
    "pof_mkl": ("mse", "dataset=diabetes", "partition=iid", "partition.clients=4", "partition.rounds=50"),
    "coke": ("test_mse", "dataset=diabetes", "partition=iid", "partition.clients=4", "partition.rounds=50"),
    "dekrr_ddrf": ("test_mse", "dataset=diabetes", "partition=iid", "partition.clients=4", "partition.rounds=50"),
    "cascade_svm": ("test_error", "dataset=ellipses", "dataset.rows=400"),
    "fdskl": ("test_error", "dataset=ellipses", "dataset.rows=400", "partition=vertical", "partition.parties=2"),
}


def losses(folder: Path) -> pd.DataFrame:
    return pd.DataFrame(read_arrays(folder / LOSSES))


@pytest.mark.parametrize("method", ONE_OF_EACH_TASK)
def test_their_mean_is_the_error_and_their_rows_are_of_the_judged_part(method: str, tmp_path: Path) -> None:
    error, *words = ONE_OF_EACH_TASK[method]
    common = ("replicates=2", "rows=judge_3", "figures=none", f"out={tmp_path / 'run'}")
    run = fkl.run(f"algo={method}", *words, *common, quiet=True)
    kept = losses(run.folder)
    np.testing.assert_allclose(kept.groupby("replicate").loss.mean(), run.summary[error], rtol=1e-9)
    assert not kept.duplicated(["replicate", "row"]).any()
    if "dataset=diabetes" in words:
        assert in_part("judge_3", np.zeros(442, int))[kept.row].all()


def test_they_are_kept_in_order_however_many_replicates_run_together(tmp_path: Path) -> None:
    _, *words = ONE_OF_EACH_TASK["pof_mkl"]
    common = ("algo=pof_mkl", *words, "replicates=3", "rows=judge_0", "figures=none")
    one, all_ = (fkl.run(*common, f"chunk={n}", f"out={tmp_path / str(n)}", quiet=True) for n in (1, 3))
    assert (one.folder / LOSSES).read_bytes() == (all_.folder / LOSSES).read_bytes()
