"""engine=numpy is the reference: the same numbers but for rounding, and nothing compiled."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from conftest import Answer, small

from fkl.basics.errors import BadValue
from fkl.conformance import quick_run

COMPILED = ("dsg", "fd_svrg", "fdskl", "omkl_gf", "omkl_sfg", "omkl_sfg_r", "omkr", "parsimonious_centralized")
COMPILED += ("parsimonious_federated", "poly_2", "pooled_omkl_gf", "rbf_1", "secureboost")
"""Whose loops exist only compiled."""


@pytest.mark.parametrize("algo", COMPILED)
def test_what_is_only_compiled_refuses_numpy(algo: str) -> None:
    """In one line that names the key and the method."""
    with pytest.raises(BadValue, match=r"engine=numpy: must be numba for [A-Z]"):
        quick_run(f"algo={algo}", "engine=numpy")


@pytest.mark.parametrize("algo", ["pof_mkl", "em_kofl", "raker", "dkla"])
def test_both_engines_make_the_same_run(algo: str, fkl: Callable[..., Answer]) -> None:
    """In doubles all columns agree to 1e-9; the folder is another, since last digits may differ."""
    tables, folders = [], set()
    for engine in ("numba", "numpy"):
        answer = fkl("run", *small(algo), "precision=float64", f"engine={engine}")
        assert answer.code == 0, answer.err
        folder = re.findall("^  run  +(.*)$", answer.out, re.MULTILINE)[-1]
        folders.add(folder)
        tables.append(pd.read_csv(f"{folder}/rounds.csv").drop(columns="runtime_s", errors="ignore"))
    assert len(folders) == 2
    mine, reference = tables
    assert list(mine) == list(reference)
    np.testing.assert_allclose(mine.to_numpy(), reference.to_numpy(), rtol=1e-9, atol=1e-12)
