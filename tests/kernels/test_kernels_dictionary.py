"""Dictionaries: exact kernels, the draws, how well features approximate, and refusals."""

from typing import Any

import numpy as np
import pytest
from literal.common import Array
from scipy.special import hyp1f1

from fkl.basics.errors import BadValue
from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.kernels.dictionary import DRAWS


def points(count: int, dimension: int) -> Array:
    x = np.random.default_rng(1).standard_normal((count, dimension))
    return x / np.linalg.norm(x, axis=1).max()


def kernel_error(dictionary: Dictionary, replicates: int, dimension: int = 3, precision: str = "float64") -> Array:
    """Root mean square of z'z - kappa over replicates and pairs of different points, one value a kernel."""
    x = points(8, dimension)
    z = dictionary.bank(dimension, Streams(7, tuple(range(replicates))), precision).features(x).astype(np.float64)
    exact = np.stack([dictionary.gram(i, x, x) for i in range(dictionary.N)])
    error = (np.matmul(z, z.swapaxes(-1, -2)) - exact)[..., ~np.eye(8, dtype=bool)]
    return np.sqrt((error**2).mean(axis=(0, 2)))


@pytest.mark.parametrize(
    ("options", "formula"),
    [
        ({"bandwidth_convention": "variance"}, lambda difference, s: np.exp(-(difference @ difference) / (2 * s))),
        ({"bandwidth_convention": "deviation"}, lambda difference, s: np.exp(-(difference @ difference) / (2 * s**2))),
        ({"bandwidth_convention": "divisor"}, lambda difference, s: np.exp(-(difference @ difference) / s)),
        ({"family": "laplacian"}, lambda difference, s: np.exp(-np.abs(difference).sum() / s)),
        (
            {"family": "laplacian", "bandwidth_convention": "deviation"},
            lambda difference, s: np.exp(-np.abs(difference).sum() / s),
        ),
    ],
)
def test_gram_is_the_kernels_formula(options: dict[str, Any], formula: Any) -> None:
    """Bandwidths 0.1, 1 and 10 of each family; `bandwidth_convention` decides between s^2 and s for the rbf alone."""
    dictionary = Dictionary(N=3, smallest=0.1, largest=10, **options)
    a, b = points(4, 3), points(9, 3)[4:]
    np.testing.assert_allclose(dictionary.bandwidths, [0.1, 1, 10])
    for i, s in enumerate((0.1, 1.0, 10.0)):
        expected = [[formula(row - column, s) for column in b] for row in a]
        np.testing.assert_allclose(dictionary.gram(i, a, b), expected, rtol=1e-12)


def test_a_polynomial_has_a_degree_and_no_random_features() -> None:
    """(x'x')^2, exactly; a bank is refused."""
    dictionary = Dictionary(family="polynomial", N=1, smallest=2, largest=2)
    a, b = points(4, 3), points(9, 3)[4:]
    np.testing.assert_allclose(dictionary.gram(0, a, b), (a @ b.T) ** 2, rtol=1e-12)
    with pytest.raises(BadValue, match="no random features"):
        dictionary.bank(3, Streams(1, (0,)), "float32")


@pytest.mark.parametrize(
    "options", [{"map": "cosine", "bandwidth_convention": "divisor"}, {"shared": True}, {"laplacians": 2}], ids=repr
)
def test_error_falls_with_the_root_of_features(options: dict[str, Any]) -> None:
    """16 times the features, a fourth of the error, for every kernel; and below 2 D^-1/2 in size."""
    few, many = (kernel_error(Dictionary(N=3, smallest=0.05, largest=2, D=D, **options), 40) for D in (50, 800))
    assert (few < 2 / np.sqrt(50)).all()
    assert ((few / many > 3.2) & (few / many < 4.9)).all()


def estimates(draw: str, dimension: int, D: int, family: str = "rbf") -> tuple[Array, Array, Array]:
    """z(x)'z(0) of 2000 draws, (draws, n), their kernel values (n,), and the |x| (n,) that they are of."""
    x = np.random.default_rng(5).standard_normal((5, dimension)) * np.linspace(0.4, 2, 5)[:, None] / np.sqrt(dimension)
    dictionary = Dictionary(family=family, N=1, smallest=1, largest=1, D=D, draw=draw)
    rho = dictionary.bank(dimension, Streams(3, tuple(range(2000))), "float64").rho[:, 0]
    found = np.cos(np.matmul(x, rho)).mean(axis=-1)
    return found, dictionary.gram(0, x, np.zeros((1, dimension)))[:, 0], np.linalg.norm(x, axis=1)


@pytest.mark.parametrize(("dimension", "D"), [(1, 7), (3, 20), (16, 40)])
@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_unbiased(draw: str, dimension: int, D: int) -> None:
    """The mean of 2000 is the exact kernel within 5 of its standard errors; of Hadamard products, within 0.01."""
    found, exact, _ = estimates(draw, dimension, D)
    error = found.std(axis=0) / np.sqrt(len(found))
    room = 0.01 if draw == "structured" else 0.0
    assert (np.abs(found.mean(axis=0) - exact) < 5 * error + room).all()


@pytest.mark.parametrize(("dimension", "D"), [(2, 2), (3, 20), (16, 40)])
def test_variances_are_those_of_theory(dimension: int, D: int) -> None:
    """Of independent draws (1 - k^2)^2 / (2 D); of orthogonal ones also covariances, of closed form, within a block.

    The sum of two orthogonal frequencies has the length of a Gaussian vector of 2 d entries and a uniform direction, so
    that cos(a) cos(b) has the mean 1F1(d; d/2; -|x|^2 / 2) in place of k^2. Where that is below k^2, fewer errors.
    """
    found, k, length = estimates("iid", dimension, D)
    independent = (1 - k**2) ** 2 / (2 * D)
    np.testing.assert_allclose(found.var(axis=0), independent, rtol=0.2)
    blocks = [min(dimension, D - begin) for begin in range(0, D, dimension)]
    pairs = sum(size * (size - 1) for size in blocks)
    together = hyp1f1(dimension, dimension / 2, -(length**2) / 2) - k**2
    expected = independent + pairs * together / D**2
    np.testing.assert_allclose(estimates("orthogonal", dimension, D)[0].var(axis=0), expected, rtol=0.2)
    assert (expected < independent).all()
    if dimension == 16:  # a power of two: a structured block is as orthogonal as others
        np.testing.assert_allclose(estimates("structured", dimension, D)[0].var(axis=0), expected, rtol=0.2)
    assert (estimates("quadrature", dimension, D)[0].var(axis=0) < 1.1 * expected).all()


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    "options", [*({"draw": draw} for draw in DRAWS), {"family": "laplacian", "map": "cosine"}], ids=repr
)
def test_same_seed_same_bytes(options: dict[str, Any], precision: str) -> None:
    """Equal seeds draw equal bytes; another seed or another replicate draws others."""
    dictionary = Dictionary(N=2, D=5, **options)

    def drawn(seed: int, replicate: int) -> bytes:
        bank = dictionary.bank(3, Streams(seed, (replicate,)), precision)
        return bank.rho.tobytes() + bank.scale.tobytes() + bank.phase.tobytes()

    assert drawn(1, 0) == drawn(1, 0)
    assert len({drawn(seed, replicate) for seed in (1, 2) for replicate in (0, 1)}) == 4


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("largest", {"smallest": 2.0, "largest": 1.0}),
        ("largest", {"N": 1, "smallest": 1.0, "largest": 2.0}),
        ("draw", {"family": "laplacian", "draw": "orthogonal"}),
        ("draw", {"laplacians": 2, "draw": "structured"}),
        ("shared", {"laplacians": 2, "shared": True}),
        ("laplacians", {"laplacians": 52}),
        ("laplacians", {"family": "laplacian", "laplacians": 2}),
    ],
)
def test_bad_values_are_named(key: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadValue) as caught:
        Dictionary(**options)
    assert caught.value.key == key
