"""Numbers that docstrings and differences.md give of fkl beside papers and other programs."""

import numpy as np
import pytest

from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.basics.random_streams import Streams


def test_fdskl_draws_rows_without_replacement_unless_told_otherwise() -> None:
    """An epoch has every row once; i.i.d. draws of 60 of 60 rows would miss a third of them."""
    rows = np.arange(100, 160)
    batches = Fdskl(iterations=24, batch=5).batches(rows, Streams(0, (0,)))
    assert all(sorted(epoch.ravel()) == rows.tolist() for epoch in np.split(batches, 2))
    drawn = Fdskl(iterations=600, batch=5, rows="iid").batches(rows, Streams(0, (0,)))
    missed = np.mean([1 - len(np.unique(epoch)) / 60 for epoch in np.split(drawn, 50)])
    assert missed == pytest.approx((1 - 5 / 60) ** 12, abs=0.02)
