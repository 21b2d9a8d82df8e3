"""The worst tenth of clients, and the Gini coefficient of their errors, by closed forms and from a run's own tables."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fkl.tasks.task import fairness_columns, gini_coefficient, worst_tenth

ERRORS = arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 25)), elements=st.floats(0, 1e6))


def pairs(errors: np.ndarray) -> float:
    """Gini's coefficient by its definition."""
    return float(np.abs(errors[:, None] - errors).sum() / (2 * len(errors) * errors.sum()))


@given(ERRORS)
def test_gini_is_its_definition_whatever_the_unit_and_the_order(errors: np.ndarray) -> None:
    found = gini_coefficient(errors)
    assert ((found >= -1e-12) & (found < 1)).all()
    for row, one in zip(errors, found, strict=True):
        if row.sum() > 1e-100:
            assert one == pytest.approx(pairs(row), abs=1e-9)
    assert gini_coefficient(7 * errors[:, ::-1]) == pytest.approx(found, abs=1e-9)
    assert (worst_tenth(errors) >= errors.mean(axis=1) * (1 - 1e-12)).all()


def test_sites_have_the_error_of_all_their_samples_and_clients_without_any_have_none() -> None:
    sums, count = np.array([[2.0, 9.0, 0.0, 8.0]]), np.array([1, 3, 0, 2])
    told = fairness_columns("mse", sums, count, np.array([0, 0, 0, 2]))
    assert told["mse_worst_tenth"] == pytest.approx([4.0])
    assert told["mse_gini"] == pytest.approx([pairs(np.array([2.0, 3.0, 4.0]))])
    assert told["mse_worst_tenth_sites"] == pytest.approx([4.0])
    assert told["mse_gini_sites"] == pytest.approx([pairs(np.array([11 / 4, 4.0]))])
    assert list(fairness_columns("mse", sums, count, np.zeros(4, np.int64))) == ["mse_worst_tenth", "mse_gini"]
    assert np.isnan(fairness_columns("mse", sums, 0 * count, np.zeros(4, np.int64))["mse_gini"]).all()


@pytest.mark.parametrize(("algo", "error"), [("pof_mkl", "mse"), ("dkla", "test_mse")])
def test_a_run_s_summary_is_made_of_its_clients(fkl: Callable, algo: str, error: str) -> None:
    """With the samples of two sites, from columns of clients.csv."""
    rows = "\n".join(f"{n % 7},{n % 5},{'ab'[n // 60]},{(n % 11) * (1 + n // 60)}" for n in range(120))
    Path("table.csv").write_text("u,v,place,y\n" + rows + "\n")
    words = ["dataset=file", "dataset.path=table.csv", "dataset.target=y", "dataset.site=place", "partition=by_site"]
    words += ["partition.clients_per_site=2", "partition.own=20", "partition.other=5", "kernels.D=4", "replicates=2"]
    words += ["out=here"] if algo == "pof_mkl" else ["out=here", "algo.iterations=5"]
    answer = fkl("run", f"algo={algo}", *words)
    assert answer.code == 0, answer.err
    clients, summary = pd.read_csv("here/clients.csv"), pd.read_csv("here/summary.csv").set_index("replicate")
    count = "rounds" if algo == "pof_mkl" else "test_samples"
    assert clients["site"].nunique() == 2
    for replicate, rows_of in clients.groupby("replicate"):
        row = summary.loc[replicate]
        assert row[f"{error}_worst_tenth"] == pytest.approx(rows_of[error].max(), rel=1e-6)
        assert row[f"{error}_gini"] == pytest.approx(pairs(rows_of[error].to_numpy()), rel=1e-6)
        totals = (rows_of[error] * rows_of[count]).groupby(rows_of["site"]).sum()
        sites = (totals / rows_of.groupby("site")[count].sum()).to_numpy()
        assert row[f"{error}_worst_tenth_sites"] == pytest.approx(sites.max(), rel=1e-6)
        assert row[f"{error}_gini_sites"] == pytest.approx(pairs(sites), rel=1e-6)
