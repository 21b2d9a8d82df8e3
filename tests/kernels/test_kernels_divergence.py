"""Inner products of kernels in closed form: against quadrature; divergences in order: against exact arithmetic."""

from collections.abc import Iterator
from decimal import localcontext
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal.divergence import divergences
from numpy.typing import NDArray
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


def kernel(family: str, scale: float, rho: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its values at the points rho (..., d)."""
    if family == "rbf":
        return np.exp(-(scale**2) * (rho**2).sum(axis=-1) / 2)
    return np.exp(-scale * np.abs(rho).sum(axis=-1))


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


@pytest.mark.parametrize(("one", "other"), [("rbf", "rbf"), ("rbf", "laplacian"), ("laplacian", "laplacian")])
@pytest.mark.parametrize("dimension", [2, 3])
def test_divergence_is_the_integral_over_all_of_space(one: str, other: str, dimension: int) -> None:
    """Eq. (27) as it stands: |k_i - k_j|^2 summed over R^2 and R^3, quadrant by quadrant, which are all alike."""
    nodes, weights = np.polynomial.legendre.leggauss(28)
    ends = np.array([0.0, 2.0, 8.0, 30.0])
    half = np.diff(ends)[:, None] / 2
    line, weight = ((ends[:-1, None] + half) + half * nodes).ravel(), (half * weights).ravel()
    rho = np.stack(np.meshgrid(*[line] * dimension), axis=-1)
    each = np.prod(np.stack(np.meshgrid(*[weight] * dimension), axis=-1), axis=-1)
    s, r = 1.3, 0.7
    integral = 2**dimension * (each * (kernel(one, s, rho) - kernel(other, r, rho)) ** 2).sum()
    inner = np.exp(log_inner_products([one, other], np.array([s, r]), dimension))
    assert inner[0, 0] + inner[1, 1] - 2 * inner[0, 1] == pytest.approx(integral, rel=1e-9)


@given(st.lists(KERNELS, min_size=3, max_size=3), st.integers(1, 9))
def test_its_root_is_a_distance(kernels: list[tuple[str, float]], dimension: int) -> None:
    """The triangle inequality of the L2 norm, symmetric, and 0 between a kernel and itself."""
    families, scales = zip(*kernels, strict=True)
    delta = divergences(families, scales, dimension, 60)
    for i, j, k in permutations(range(3)):
        assert delta[i][j] == delta[j][i] and abs(delta[i][i]) < 1e-50
        assert float(delta[i][k]) ** 0.5 <= (float(delta[i][j]) ** 0.5 + float(delta[j][k]) ** 0.5) * (1 + 1e-12)


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


def test_nothing_overflows_in_hundreds_of_dimensions() -> None:
    """520 features of UJI's: the logarithms are d times the line's."""
    dictionary = Dictionary(N=76, laplacians=25, bandwidth_convention="variance")
    line = log_inner_products(dictionary.families, dictionary.scales, 1)
    far = log_inner_products(dictionary.families, dictionary.scales, 520)
    np.testing.assert_allclose(far, 520 * line, rtol=1e-15)
    sign, size = farthest_first(far, far, 1)
    assert np.isfinite(size).all() and set(np.unique(sign)) == {-1, 1}


def test_a_kernel_without_an_integral_is_refused() -> None:
    """A polynomial grows for ever."""
    with pytest.raises(BadValue, match=r"kernels.family=polynomial: must be rbf or laplacian"):
        log_inner_products(["rbf", "polynomial"], np.ones(2), 1)
