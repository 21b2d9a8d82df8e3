"""The loss of every judged row, kept with its number, and metrics of a user's own, of every kind of method."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fkl
from fkl.basics.errors import FklError
from fkl.basics.files import read_arrays
from fkl.data.dealt_rows import in_part
from fkl.report.compare import compare
from fkl.runs.tables import LOSSES, TIMING_COLUMNS

OWN = """
import numpy as np

FIRST = []


def squares(y, y_hat):
    y -= y_hat  # what it does to its arrays is its own business
    return y**2


def wrong(y, y_hat):
    return 1.0 * (np.sign(y_hat) != y)


def one(y, y_hat):
    return [0.5]


def fails(y, y_hat):
    raise ValueError("no\\nthanks")
"""
SHARED = ("dataset=diabetes", "partition=iid", "partition.clients=4", "partition.rounds=50", "kernels.D=8")
CLASSES = ("dataset=ellipses", "dataset.rows=90", "scaling=none")
JUDGED = {
    "pof_mkl": ("mse", "squares", *SHARED, "algo.eta=0.3"),
    "coke": ("test_mse", "squares", *SHARED, "partition=quantity_skew", "algo.iterations=60", "chunk=2"),
    "dekrr_ddrf": ("test_mse", "squares", *SHARED),
    "cascade_svm": ("test_error", "wrong", *CLASSES),
    "fdskl": ("test_error", "wrong", *CLASSES, "partition=vertical", "partition.parties=2"),
}
"""Of one method of each judge the error that fkl tells itself, and the same as a metric of the user's own."""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_losses.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)


def played(name: str, *words: str) -> fkl.Result:
    return fkl.run("replicates=2", *words, "figures=none", f"out={name}", quiet=True)


def losses(run: fkl.Result) -> pd.DataFrame:
    return pd.DataFrame(read_arrays(run.folder / LOSSES))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", JUDGED)
def test_a_metric_that_fkl_has_itself_is_the_same_and_changes_nothing_else(method: str) -> None:
    """So is the mean over the losses of rows, which are of the judged part."""
    error, function, *words = JUDGED[method]
    column = f"test_{function}" if error.startswith("test_") else function
    words = [f"algo={method}", "rows=judge_3", *words]
    own = played("own", *words, f"metrics.{function}=own_losses.{function}")
    without = played("without", *words)
    for with_it, before in ((own.rounds, without.rounds), (own.summary, without.summary)):
        np.testing.assert_allclose(with_it[column], with_it[error], rtol=1e-9)
        kept = [name for name in before if name not in TIMING_COLUMNS]
        pd.testing.assert_frame_equal(with_it[kept], before[kept], rtol=1e-9)
        assert {*with_it} - {*before} == {column}
    assert own.digest != without.digest
    assert compare(["own"], column).pivot.means.size == 1
    kept = losses(own)
    np.testing.assert_allclose(kept.groupby("replicate").loss.mean(), own.summary[error], rtol=1e-9)
    assert not kept.duplicated(["replicate", "row"]).any()
    if "dataset=diabetes" in words:
        assert in_part("judge_3", np.zeros(442, int))[kept.row].all()


def test_losses_of_rows_are_kept_in_order_however_many_replicates_run_together() -> None:
    one, two = (played(f"{n}", "algo=pof_mkl", *SHARED, "rows=judge_0", f"chunk={n}") for n in (1, 2))
    assert (one.folder / LOSSES).read_bytes() == (two.folder / LOSSES).read_bytes()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("metrics.b=own_losses.one", r"a finite loss for each of \d+ samples, not array of shape \(1,\)"),
        ("metrics.b=own_losses.fails", r"metrics.b=own_losses.fails: own_losses.py, line 21: ValueError: no thanks"),
        ("metrics.b=own_losses.FIRST", "metrics.b=own_losses.FIRST: must be a function"),
        ("metrics.b=mae", "MODULE.FUNCTION"),
        ("metrics.mse=own_losses.squares", "differs from fkl's columns"),
        ("metrics.mae=own_losses.squares engine=jax", "numba or numpy for POF-MKL: .*metrics"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(word: str, said: str) -> None:
    with pytest.raises(FklError, match=said) as refused:
        played("run", "algo=pof_mkl", *SHARED, *word.split())
    assert "\n" not in str(refused.value)
