"""Inner products of kernels in closed form: against quadrature; divergences in order: against exact arithmetic."""

from collections.abc import Iterator
from decimal import localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal.divergence import divergences
from scipy.integrate import quad

from fkl.algorithms.online.omkl_sfg import farthest_first, log_inner_products
from fkl.basics.errors import BadValue
from fkl.kernels import Dictionary

DIGITS = 250
FAMILIES = st.sampled_from(["rbf", "laplacian"])
KERNELS = st.tuples(FAMILIES, st.floats(-2, 2).map(lambda power: 10.0**power))


@pytest.fixture(autouse=True, scope="module")
def _many_digits() -> Iterator[None]:
    """Sums of divergences are exact."""
    with localcontext() as context:
        context.prec = DIGITS
        yield


def exponent(family: str, scale: float, rho: float) -> float:
    return -((scale * rho) ** 2) / 2 if family == "rbf" else -scale * rho


@given(KERNELS, KERNELS)
def test_inner_product_on_the_line_is_the_integral(one: tuple[str, float], other: tuple[str, float]) -> None:
    """Any two families and scales: quadrature over the half line, twice."""
    families, scales = zip(one, other, strict=True)
    log_inner = log_inner_products(families, np.array(scales), 1)
    assert (log_inner == log_inner.T).all()
    inner = float(np.exp(log_inner[0, 1]))
    ends = np.geomspace(1e-3 / max(scales), 50 / min(scales), 40)
    pieces = [
        quad(lambda rho: np.exp(exponent(*one, rho) + exponent(*other, rho)), a, b, epsabs=1e-13 * inner)[0]
        for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert inner == pytest.approx(2 * sum(pieces), rel=1e-9, abs=0)


@pytest.mark.parametrize("dimension", [1, 8, 17])
def test_totals_have_the_order_of_exact_arithmetic(dimension: int) -> None:
    """76 kernels, totals over random sets of them; sums of float64 do not: they tie from d = 8 on."""
    dictionary = Dictionary(N=76, laplacians=25, bandwidth_convention="variance")
    families, scales = dictionary.families, dictionary.scales
    delta = divergences(families, scales.tolist(), dimension, DIGITS)
    log_inner = log_inner_products(families, scales, dimension)
    rounded = np.array([[float(value) for value in row] for row in delta])
    random = np.random.default_rng(0)
    in_floats = []
    for members in (1, 2, 3, 9):
        S = random.choice(76, members, replace=False)
        exact = [sum(delta[m][j] for m in S) for j in range(76)]
        others = [j for j in range(76) if j not in S]
        sign, size = farthest_first(log_inner, np.logaddexp.reduce(log_inner[S], axis=0), members)
        in_order = sorted(others, key=lambda j: exact[j])
        assert sorted(others, key=lambda j: (sign[j], size[j])) == in_order
        in_floats.append(np.unique(rounded[S].sum(axis=0)[others]).size == len(others))
    assert all(in_floats) == (dimension < 8)


def test_a_kernel_without_an_integral_is_refused() -> None:
    """A polynomial grows for ever."""
    with pytest.raises(BadValue, match=r"kernels.family=polynomial: must be rbf or laplacian"):
        log_inner_products(["rbf", "polynomial"], np.ones(2), 1)
