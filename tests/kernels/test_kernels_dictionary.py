"""Dictionaries: exact kernels, the draws, how well features approximate, and refusals."""

from typing import Any

import numpy as np
import pytest
from literal.common import Array
from scipy.special import hyp1f1, ndtr
from scipy.stats import qmc
from sklearn.metrics.pairwise import rbf_kernel

from fkl.basics.errors import BadValue
from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.kernels import dictionary as draws
from fkl.kernels.dictionary import DRAWS, OF_ANY_FAMILY, gram


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


def test_gram_of_the_same_rows_has_a_unit_diagonal() -> None:
    """Of an rbf, whose squared distances are differences of large numbers; scikit-learn has the same values."""
    x = 3 * points(50, 20)
    found = gram("rbf", 0.7, x, x)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    np.testing.assert_allclose(found, rbf_kernel(x, gamma=0.5 * 0.7**2), rtol=1e-12)


def test_the_papers_dictionary() -> None:
    """51 bandwidths 10^((2i - 52) / 25), i = 1..51, taken as variances."""
    dictionary = Dictionary(bandwidth_convention="variance")
    np.testing.assert_allclose(dictionary.bandwidths, [10 ** ((2 * i - 52) / 25) for i in range(1, 52)], rtol=1e-12)
    np.testing.assert_allclose(dictionary.scales, dictionary.bandwidths**-0.5, rtol=1e-12)


def test_the_dictionary_of_graph_aided_omkl() -> None:
    """51 rbf 10^((2i - 52) / 25), then 25 Laplacian 10^((i - 13) / 6)."""
    dictionary = Dictionary(N=76, laplacians=25, bandwidth_convention="variance")
    rbf = [10 ** ((2 * i - 52) / 25) for i in range(1, 52)]
    laplacian = [10 ** ((i - 13) / 6) for i in range(1, 26)]
    np.testing.assert_allclose(dictionary.bandwidths, rbf + laplacian, rtol=1e-12)
    np.testing.assert_allclose(dictionary.scales, np.concatenate([np.array(rbf) ** -0.5, 1 / np.array(laplacian)]))
    assert dictionary.families == ("rbf",) * 51 + ("laplacian",) * 25
    a, b = points(4, 3), points(9, 3)[4:]
    np.testing.assert_array_equal(dictionary.gram(60, a, b), Dictionary(family="laplacian", N=25).gram(9, a, b))


def test_a_polynomial_has_a_degree_and_no_random_features() -> None:
    """(x'x')^2, exactly; a bank is refused."""
    dictionary = Dictionary(family="polynomial", N=1, smallest=2, largest=2)
    a, b = points(4, 3), points(9, 3)[4:]
    np.testing.assert_allclose(dictionary.gram(0, a, b), (a @ b.T) ** 2, rtol=1e-12)
    with pytest.raises(BadValue, match="no random features"):
        dictionary.bank(3, Streams(1, (0,)), "float32")


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("mapping", ["pairs", "cosine"])
@pytest.mark.parametrize(
    "options",
    [{}, {"bandwidth_convention": "deviation"}, {"bandwidth_convention": "divisor"}, {"shared": True},
     {"family": "laplacian"}, {"laplacians": 2}],
    ids=repr,
)  # fmt: skip
def test_error_falls_with_the_root_of_features(options: dict[str, Any], mapping: str, precision: str) -> None:
    """16 times the features, a fourth of the error, for every kernel; and below 2 D^-1/2 in size."""
    few, many = (
        kernel_error(Dictionary(N=3, smallest=0.05, largest=2, D=D, map=mapping, **options), 40, precision=precision)
        for D in (50, 800)
    )
    assert (few < 2 / np.sqrt(50)).all()
    assert ((few / many > 3.2) & (few / many < 4.9)).all()


@pytest.mark.parametrize(("dimension", "D"), [(6, 6), (6, 15), (5, 3)])
@pytest.mark.parametrize("shared", [False, True])
def test_orthogonal_columns(dimension: int, D: int, shared: bool) -> None:
    """Within each block of d frequencies all are orthogonal; independent draws are not."""
    settings = {"N": 2, "smallest": 0.1, "largest": 1, "D": D, "shared": shared}
    for draw in ("orthogonal", "quadrature", "iid"):
        rho = Dictionary(**settings, draw=draw).bank(dimension, Streams(0, (0, 1)), "float64").rho
        assert rho.shape == (2, 1 if shared else 2, dimension, D)
        unit = rho / np.linalg.norm(rho, axis=2, keepdims=True)
        cosines = np.abs(np.matmul(unit.swapaxes(-1, -2), unit))
        block = np.arange(D) // dimension
        together = (block[:, None] == block) & ~np.eye(D, dtype=bool)
        assert (cosines[..., together].max() < 1e-12) == (draw != "iid")


OF_BLOCKS = ("orthogonal", "structured", "quadrature")


@pytest.mark.parametrize("draw", [*OF_BLOCKS, "quasi"])
def test_frequencies_are_gaussian_in_length_and_direction(draw: str) -> None:
    """Mean 0 in every coordinate, squared lengths of mean d and variance 2 d, as of a standard Gaussian vector."""
    dimension, D, replicates = 5, 50, 40
    dictionary = Dictionary(N=1, smallest=1, largest=1, D=D, draw=draw)
    rho = dictionary.bank(dimension, Streams(0, tuple(range(replicates))), "float64").rho[:, 0]
    lengths, count = (rho**2).sum(axis=1), D * replicates
    assert abs(lengths.mean() - dimension) < 5 * np.sqrt(2 * dimension / count)
    assert lengths.var() == pytest.approx(2 * dimension, rel=0.2)
    assert np.abs(rho.mean(axis=(0, 2))).max() < 5 / np.sqrt(count)


def estimates(draw: str, dimension: int, D: int, family: str = "rbf") -> tuple[Array, Array, Array]:
    """z(x)'z(0) of 2000 draws, (draws, n), their kernel values (n,), and the |x| (n,) that they are of."""
    x = np.random.default_rng(5).standard_normal((5, dimension)) * np.linspace(0.4, 2, 5)[:, None] / np.sqrt(dimension)
    dictionary = Dictionary(family=family, N=1, smallest=1, largest=1, D=D, draw=draw)
    rho = dictionary.bank(dimension, Streams(3, tuple(range(2000))), "float64").rho[:, 0]
    found = np.cos(np.matmul(x, rho)).mean(axis=-1)
    return found, dictionary.gram(0, x, np.zeros((1, dimension)))[:, 0], np.linalg.norm(x, axis=1)


@pytest.mark.parametrize(("dimension", "D"), [(1, 7), (2, 5), (3, 20), (7, 10), (16, 40)])
@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_unbiased(draw: str, dimension: int, D: int) -> None:
    """The mean of 2000 is the exact kernel within 5 of its standard errors; of Hadamard products, within 0.01."""
    found, exact, _ = estimates(draw, dimension, D)
    error = found.std(axis=0) / np.sqrt(len(found))
    room = 0.01 if draw == "structured" else 0.0
    assert (np.abs(found.mean(axis=0) - exact) < 5 * error + room).all()


@pytest.mark.parametrize("dimension", [1, 4])
@pytest.mark.parametrize("draw", OF_ANY_FAMILY)
def test_draws_of_the_laplacian_are_unbiased(draw: str, dimension: int) -> None:
    """As those of the Gaussian."""
    found, exact, _ = estimates(draw, dimension, 16, "laplacian")
    assert (np.abs(found.mean(axis=0) - exact) < 5 * found.std(axis=0) / np.sqrt(len(found))).all()


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


@pytest.mark.parametrize("draw", ["orthogonal", "structured", "quadrature"])
def test_blocks_err_less(draw: str) -> None:
    """With D = d = 16 the kernel error is clearly below that of independent draws."""
    dictionary = {"N": 2, "smallest": 0.5, "largest": 2, "bandwidth_convention": "variance", "D": 16}
    independent = kernel_error(Dictionary(**dictionary), 60, dimension=16)
    assert (kernel_error(Dictionary(**dictionary, draw=draw), 60, dimension=16) < 0.85 * independent).all()


@pytest.mark.parametrize("draw", ["quasi", "quadrature"])
def test_few_dimensions_need_few_features(draw: str) -> None:
    """On a line the error of points that avoid each other falls like 1 / D, not like its root."""
    settings = {"N": 1, "smallest": 0.1, "largest": 0.1, "draw": draw}
    few, many = (kernel_error(Dictionary(**settings, D=D), 40, dimension=1) for D in (16, 128))
    assert (few / many > 5).all()


def test_quasi_points_are_sobols() -> None:
    """Their distribution function's values, with the shift taken away again, are scipy's own points."""
    base = qmc.Sobol(3, scramble=False).random_base2(3)[:6].T
    drawn = draws.quasi("rbf", 3, 6, np.random.default_rng(2))
    integers = np.floor(ndtr(drawn) * 2**30).astype(np.int64)
    shift = np.random.default_rng(2).integers(0, 2**30, 3)[:, None]
    np.testing.assert_array_equal(integers ^ shift, (base * 2**30).astype(np.int64))


def test_structured_draws_are_hadamard_products() -> None:
    """Unit vectors of a block of 16 are orthogonal, and their entries those of three products of whole numbers."""
    rho = draws.structured("rbf", 16, 16, np.random.default_rng(4))
    unit = rho / np.linalg.norm(rho, axis=0)
    np.testing.assert_allclose(unit.T @ unit, np.eye(16), atol=1e-12)
    np.testing.assert_allclose(unit * 64, np.rint(unit * 64), atol=1e-10)


def test_quasi_points_have_so_many_dimensions() -> None:
    """Sobol' numbers end somewhere, and the key that asked for them is told."""
    with pytest.raises(BadValue, match=r"kernels\.draw"):
        Dictionary(N=1, smallest=1, largest=1, D=1, draw="quasi").bank(30000, Streams(0, (0,)), "float64")


def test_a_shared_draw_is_one_draw() -> None:
    """Kernels share one base draw, rescaled by their bandwidths; unshared kernels have draws of their own."""
    settings = {"N": 3, "smallest": 0.1, "largest": 10, "bandwidth_convention": "variance", "D": 4}
    shared = Dictionary(**settings, shared=True).bank(2, Streams(0, (0,)), "float64")
    own = Dictionary(**settings).bank(2, Streams(0, (0,)), "float64")
    assert shared.rho.shape == (1, 1, 2, 4)
    np.testing.assert_allclose(shared.scale, np.array([0.1, 1, 10]) ** -0.5)
    assert (own.scale == 1).all()
    base = own.rho * np.array([0.1, 1, 10])[:, None, None] ** 0.5
    assert np.abs(base[0, 0] - base[0, 1]).max() > 0.1
    np.testing.assert_allclose(base[0, 0], shared.rho[0, 0], rtol=1e-12)


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


def test_precision_rounds_the_same_draw() -> None:
    """Float32 frequencies are the float64 ones, rounded; those of the Laplacian stay float64."""
    for options, narrow in (({}, np.float32), ({"family": "laplacian"}, np.float64)):
        dictionary = Dictionary(N=2, D=5, map="cosine", **options)
        wide, bank = (dictionary.bank(3, Streams(1, (0,)), precision) for precision in ("float64", "float32"))
        assert bank.rho.dtype == bank.phase.dtype == bank.scale.dtype == narrow
        assert bank.rho.tobytes() == wide.rho.astype(narrow).tobytes()
        assert bank.phase.tobytes() == wide.phase.astype(narrow).tobytes()


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("family", {"family": "matern"}),
        ("N", {"N": 0}),
        ("smallest", {"smallest": 0.0}),
        ("smallest", {"smallest": float("nan")}),
        ("smallest", {"smallest": float("inf"), "largest": float("inf")}),
        ("largest", {"smallest": 2.0, "largest": 1.0}),
        ("largest", {"largest": float("inf")}),
        ("largest", {"largest": float("nan")}),
        ("largest", {"N": 1, "smallest": 1.0, "largest": 2.0}),
        ("bandwidth_convention", {"bandwidth_convention": "width"}),
        ("D", {"D": 0}),
        ("map", {"map": "sine"}),
        ("draw", {"draw": "orthogonaly"}),
        ("draw", {"family": "laplacian", "draw": "orthogonal"}),
        ("draw", {"laplacians": 2, "draw": "structured"}),
        ("draw", {"laplacians": 52, "N": 52, "draw": "quadrature"}),
        ("shared", {"laplacians": 2, "shared": True}),
        ("laplacians", {"laplacians": 52}),
        ("laplacians", {"laplacians": -1}),
        ("laplacians", {"family": "laplacian", "laplacians": 2}),
    ],
)
def test_bad_values_are_named(key: str, options: dict[str, Any]) -> None:
    """A value that cannot be is refused by name, with what was given."""
    with pytest.raises(BadValue) as caught:
        Dictionary(**options)
    assert caught.value.key == key
    assert caught.value.value == options[key] or caught.value.value != caught.value.value
