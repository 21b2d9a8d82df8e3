"""Divergences of kernels in closed form: against quadrature, and as the squared distance that they are."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from fkl.errors import BadValue
from fkl.kernels import Dictionary
from fkl.kernels.divergence import divergence

KERNELS = st.tuples(st.sampled_from(["rbf", "laplacian"]), st.floats(-2, 2).map(lambda power: 10.0**power))
NEAR = st.floats(-10, -1).map(lambda power: 1 + 10.0**power)


def exponent(family: str, scale: float, rho: float) -> float:
    return -((scale * rho) ** 2) / 2 if family == "rbf" else -scale * rho


def difference(one: tuple[str, float], other: tuple[str, float], rho: float) -> float:
    """|k_i - k_j| at rho >= 0; of one family, to all digits however near the two are."""
    (family, s), (_, r) = one, other
    larger, smaller = sorted((exponent(*one, rho), exponent(*other, rho)), reverse=True)
    gap = larger - smaller
    if family == other[0]:
        gap = abs(s - r) * ((s + r) * rho**2 / 2 if family == "rbf" else rho)
    return float(np.exp(larger) * -np.expm1(-gap))


def assert_is_the_integral(one: tuple[str, float], other: tuple[str, float]) -> None:
    """Quadrature over the half line, twice; cut where both kernels have died out."""
    families, scales = zip(one, other, strict=True)
    delta = float(divergence(families, np.array(scales))[0, 1])
    ends = np.geomspace(1e-3 / max(scales), 50 / min(scales), 40)
    pieces = [
        quad(lambda rho: difference(one, other, rho) ** 2, a, b, epsabs=1e-12 * delta, epsrel=1e-11)[0]
        for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert delta == pytest.approx(2 * sum(pieces), rel=1e-9, abs=0)
    assert (delta == 0) == (one == other)


@given(KERNELS, KERNELS)
def test_closed_form_is_the_integral(one: tuple[str, float], other: tuple[str, float]) -> None:
    """Any two families and scales; 0 only between a kernel and itself."""
    assert_is_the_integral(one, other)


@given(KERNELS, NEAR)
def test_neighbours_lose_no_digits(one: tuple[str, float], ratio: float) -> None:
    """Scales that differ by 10 % down to 1e-10, where subtracting integrals leaves noise."""
    assert_is_the_integral(one, (one[0], one[1] * ratio))


@given(st.lists(KERNELS, min_size=3, max_size=3))
def test_its_root_is_a_distance(kernels: list[tuple[str, float]]) -> None:
    """Symmetric, 0 on the diagonal, and the triangle inequality of the L2 norm."""
    families, scales = zip(*kernels, strict=True)
    delta = divergence(families, np.array(scales))
    assert (delta == delta.T).all() and (np.diag(delta) == 0).all() and (delta >= 0).all()
    distance = np.sqrt(delta)
    for i, j, k in permutations(range(3)):
        assert distance[i, k] <= (distance[i, j] + distance[j, k]) * (1 + 1e-12)


def test_stretching_the_line_stretches_the_divergence() -> None:
    """Kernels twice as wide differ twice as much."""
    dictionary = Dictionary(N=9, laplacians=4)
    delta = divergence(dictionary.families, dictionary.scales)
    np.testing.assert_allclose(divergence(dictionary.families, dictionary.scales / 2), 2 * delta, rtol=1e-13)


def test_a_kernel_without_an_integral_is_refused() -> None:
    """A polynomial grows for ever."""
    with pytest.raises(BadValue, match=r"kernels.family=polynomial: must be rbf or laplacian"):
        divergence(["rbf", "polynomial"], np.ones(2))
