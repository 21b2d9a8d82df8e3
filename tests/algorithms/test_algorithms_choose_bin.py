"""Algorithm 1 of POF-MKL: properties of the bins and of the draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal.common import Array
from literal.pof_mkl import bins_and_pmf
from scipy.stats import chi2

from fkl.algorithms.federated.pof_mkl import choose_bin

EXPLORATION = st.one_of(st.just(1.0), st.floats(0.01, 1.0))


@st.composite
def selections(draw: st.DrawFn) -> tuple[Array, int, float]:
    """Log weights (N,), some of them equal, with M and xi."""
    kernels = draw(st.integers(1, 12))
    log_w = draw(arrays(np.float64, kernels, elements=st.integers(-40, 0).map(lambda value: value / 4)))
    return log_w, draw(st.integers(1, kernels)), draw(EXPLORATION)


@given(selections())
def test_bins_partition_the_kernels(selection: tuple[Array, int, float]) -> None:
    """Drawing in the middle of each bin's share of [0, 1) gives every bin of Algorithm 1 with its q, once.

    So bins have M kernels but for the last, hold each kernel once, and their probabilities sum to 1.
    """
    log_w, M, xi = selection
    bins, q = bins_and_pmf(log_w, M, xi)
    middle = np.cumsum(q) - np.array(q) / 2
    chosen, p = choose_bin(np.tile(log_w, (2, len(bins), 1)), M, xi, np.tile(middle, (2, 1)))
    assert chosen.shape == (2, len(bins), len(log_w))
    assert p.shape == (2, len(bins), 1)
    for r in range(2):
        assert [list(np.flatnonzero(row)) for row in chosen[r]] == [sorted(members) for members in bins]
        np.testing.assert_allclose(p[r, :, 0], q, rtol=1e-12)
        assert (chosen[r].sum(axis=0) == 1).all()
        assert chosen[r, :-1].sum(axis=1).tolist() == [M] * (len(bins) - 1)
        assert 1 <= chosen[r, -1].sum() <= M
        assert p[r].sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("N", "M", "xi"), [(7, 3, 1.0), (7, 3, 0.5), (6, 1, 0.2), (12, 5, 0.01), (9, 2, 1.0)])
def test_draws_follow_q(N: int, M: int, xi: float) -> None:
    """Frequencies of 20000 draws pass a chi-square test against eq. (8); E[1(i chosen) / p_i] = 1 for all i."""
    random, count = np.random.default_rng(N), 20000
    log_w = random.normal(0, 1, N)
    bins, q = bins_and_pmf(log_w, M, xi)
    chosen, p = choose_bin(np.broadcast_to(log_w, (1, count, N)), M, xi, random.random((1, count)))
    observed = np.array([chosen[0, :, members[0]].sum() for members in bins])
    assert observed.sum() == count
    statistic = ((observed - count * np.array(q)) ** 2 / (count * np.array(q))).sum()
    assert statistic < chi2.ppf(0.999, len(bins) - 1)
    weight = chosen[0] / p[0]
    allowance = 5 * weight.std(axis=0) / np.sqrt(count)
    assert (np.abs(weight.mean(axis=0) - 1) <= allowance).all()
