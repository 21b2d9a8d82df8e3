"""Kernel dictionaries, ways to draw their random features, and the span of chosen samples (Nystroem).

A draw makes D standard frequencies for one kernel: independent ones, or others that are more accurate with the same D.
Every draw is unbiased: z(x)'z(x') is kappa(x, x') on average. The exceptions are the rounding in `quasi_frequencies`
(2^-31 of a probability), and the directions in `structured_frequencies`, which are not exactly uniform. Frequencies of
the Gaussian kernel are normal, and those of the Laplacian kernel Cauchy in every coordinate. Draws in blocks have
uniform directions, as only the Gaussian kernel needs, so they are only for this kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import Keys, key
from fkl.basics.memory import require_memory
from fkl.basics.random_streams import Role, Streams
from fkl.kernels.bank import BANKS, FeatureBank

Draw = Callable[[str, int, int, np.random.Generator], Array]
"""A function from a family, d, D and a generator to frequencies (d, D) of scale 1."""

MOST_SOBOL = 21201
"""Largest dimension of scipy's Sobol' numbers."""
BITS = 30
"""Bits of a Sobol' number."""
SMALLEST_HADAMARD = 16
"""Smallest size of the matrices in a product. Smaller ones give few directions, which biases the kernel by a few
hundredths."""
HALF_A_ROUNDING = 2.0**-53


def iid_frequencies(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Independent draws (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007)."""
    one = generator.standard_cauchy if family == "laplacian" else generator.standard_normal
    return one((dimension, count))


def orthogonal_frequencies(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Frequencies that are orthogonal within blocks of d, each with the length of a Gaussian vector.

    Yu et al., Orthogonal Random Features (2016), section 3.
    """
    blocks = []
    for _ in range(-(-count // dimension)):
        directions = _random_rotation(dimension, generator)
        blocks.append(directions * np.linalg.norm(generator.standard_normal((dimension, dimension)), axis=0))
    return np.concatenate(blocks, axis=1)[:, :count]


def structured_frequencies(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Blocks H D_1 H D_2 H D_3, H a Hadamard matrix and D_i random signs, with the lengths of Gaussian vectors.

    Choromanski, Rowland and Weller, The Unreasonable Effectiveness of Structured Random Orthogonal Embeddings (2017),
    and Yu et al. (2016), section 5, who set all lengths to sqrt(d). Equal lengths bias the kernel; random ones do not.
    H has the next power of two as its size, and d of its rows are kept, so columns are orthogonal if d is a power of
    two.
    """
    from scipy.linalg import hadamard as hadamard_matrix

    # The Hadamard matrix needs a power of two; blocks of this many directions until there are enough
    size = max(SMALLEST_HADAMARD, 1 << (dimension - 1).bit_length())
    hadamard, blocks = hadamard_matrix(size) / np.sqrt(size), []
    for _ in range(-(-count // size)):
        signs = generator.integers(0, 2, (3, size)) * 2.0 - 1
        # H D_3 first, then H D_2 and H D_1, so no d x d matrix of signs is stored
        product = hadamard[:, :dimension] * signs[2, :dimension]
        for diagonal in signs[1::-1]:
            product = hadamard @ (diagonal[:, None] * product)
        # Orthogonal columns get the lengths of Gaussian vectors
        blocks.append(product.T * np.sqrt(generator.chisquare(size, size)))
    return np.concatenate(blocks, axis=1)[:, :count]


def quasi_frequencies(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Sobol' points, shifted at random bit by bit, through the inverse distribution function of each coordinate.

    Avron, Sindhwani, Yang and Mahoney, Quasi-Monte Carlo Feature Maps for Shift-Invariant Kernels (JMLR 17, 2016). The
    shift makes each point uniform, so the mean is exact; the relative positions of the points do not change.
    """
    shift = generator.integers(0, 2**BITS, dimension)[:, None]
    uniform = ((_sobol_points(dimension, count) ^ shift) + 0.5) / 2**BITS
    return np.tan(np.pi * (uniform - 0.5)) if family == "laplacian" else scipy.special.ndtri(uniform)


def quadrature_frequencies(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Spherical-radial quadrature: orthonormal directions, and one length in each of D strata of their distribution.

    A cosine is even, so a randomly rotated orthonormal basis is the cross-polytope rule, exact up to degree 3 on the
    sphere (Genz and Monahan, 1998; Munkhoeva et al., Quadrature-based Features for Kernel Approximation, 2018). The
    radius has one dimension, where a stratified rule converges fast. Reid et al., Variance-Reducing Couplings for
    Random Features (2024), show that lengths that avoid each other are better, and unbiased.

    Alternatives are less suitable. Gauss-Hermite rules need p^d nodes. Rules of a higher degree have weights, some of
    them negative, but features have no weights (Munkhoeva et al.). Simplices are best for positive features (Reid et
    al., Simplex Random Features, 2023), but the cosines of two frequencies do not depend on the sign of the angle
    between them.
    """
    # Enough rotations for all directions
    bases = [_random_rotation(dimension, generator) for _ in range(-(-count // dimension))]
    # One length in each stratum, in random order, so length and direction are independent
    strata = (generator.permutation(count) + generator.random(count)) / count
    lengths = np.sqrt(2 * scipy.special.gammaincinv(dimension / 2, np.minimum(strata, 1 - HALF_A_ROUNDING)))
    directions: Array = np.concatenate(bases, axis=1)[:, :count]
    return directions * lengths


DRAWS: dict[str, Draw] = {
    "iid": iid_frequencies,
    "orthogonal": orthogonal_frequencies,
    "structured": structured_frequencies,
    "quasi": quasi_frequencies,
    "quadrature": quadrature_frequencies,
}
OF_ANY_FAMILY = ("iid", "quasi")
"""Draws that work coordinate by coordinate, so for any family."""


def _random_rotation(size: int, generator: np.random.Generator) -> Array:
    """A uniformly distributed orthogonal matrix."""
    q, r = np.linalg.qr(generator.standard_normal((size, size)))
    return q * np.sign(np.diag(r))


@lru_cache(maxsize=1)
def _sobol_points(dimension: int, count: int) -> NDArray[np.int64]:
    """Coordinates of the first D Sobol' points, (d, D), as integers below 2^BITS."""
    from scipy.stats import qmc

    whole = qmc.Sobol(dimension, scramble=False, bits=BITS).random_base2((count - 1).bit_length())
    return np.ascontiguousarray(whole[:count].T * 2**BITS).astype(np.int64)


MOST_KERNELS = 10_000
MOST_FEATURES = 10_000_000
NARROWEST, WIDEST = 1e-30, 1e30
"""Bandwidths whose inverses fit in float32."""
HIGHEST_DEGREE = 100
"""Largest degree of a polynomial."""
FAMILIES = ("rbf", "laplacian", "polynomial")
# 1 / s^2 of an rbf from the inverse of its bandwidth, by convention
SQUARES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "variance": lambda inverse: inverse,
    "deviation": lambda inverse: inverse**2,
    "divisor": lambda inverse: 2 * inverse,
}


@dataclass(frozen=True)
class Dictionary(Keys):
    """N kernels on a geometric grid of bandwidths, each with D random features."""

    family: str = key(
        "rbf",
        "exp(-|x - x'|_2^2 / (2 s^2)), exp(-|x - x'|_1 / s), or (x'x')^s with integer s, which has no random features.",
        choices=FAMILIES,
    )
    N: int = key(51, "Number of kernels.", min=1, max=MOST_KERNELS)
    laplacians: int = key(
        0,
        "Number of Laplacian kernels among the N, the last ones, on their own grid between the same ends.",
        min=0,
        must="an integer from 0 to N",
    )
    smallest: float = key(0.01, "Ends of the grid of bandwidths; equal if N = 1.", min=NARROWEST, max=WIDEST)
    largest: float = key(
        100.0,
        "Ends of the grid of bandwidths; equal if N = 1.",
        min=NARROWEST,
        max=WIDEST,
        must="at least smallest, at most 1e+30",
    )
    bandwidth_convention: str = key(
        "deviation",
        "Meaning of an rbf bandwidth: s^2 (as in the published numbers of POF-MKL and graph-aided OMKL), s "
        "(in POF-MKL's text), or 2 s^2, the divisor of exp(-|x - x'|^2 / g).",
        choices=SQUARES,
    )
    D: int = key(100, "Random features per kernel.", min=1, max=MOST_FEATURES)
    map: str = key(
        "pairs",
        "D^-1/2 [sin(rho'x), cos(rho'x)] of length 2D, or (2/D)^1/2 cos(rho'x + b) of length D.",
        choices=("pairs", "cosine"),
    )
    draw: str = key(
        "iid",
        "Draw of frequencies: independent, in orthogonal blocks, as products of Hadamard matrices and random "
        "signs, by quasi-Monte Carlo, or as spherical-radial quadrature, see `fkl.kernels.dictionary`. Laplacian "
        "kernels allow iid and quasi.",
        choices=DRAWS,
    )
    shared: bool = key(
        False, "Use one draw for all kernels, rescaled by each bandwidth: faster, but kernels are not independent."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Keys that fit only some families, widths or numbers of kernels
        mixed = self.laplacians > 0
        require(
            self.laplacians <= self.N, "laplacians", self.laplacians, f"an integer from 0 to N={self.N}; set it with N"
        )
        require(not mixed or self.family == "rbf", "laplacians", self.laplacians, f"0 where family={self.family}")
        require(
            self.smallest <= self.largest <= WIDEST,
            "largest",
            self.largest,
            f"at least smallest={self.smallest}, at most {WIDEST:g}",
        )
        require(
            self.N > 1 or self.smallest == self.largest,
            "largest",
            self.largest,
            f"equal to smallest={self.smallest} where N=1",
        )
        # Degrees of a polynomial kernel are integers
        if self.family == "polynomial":
            whole = self.smallest >= 1 and self.largest <= HIGHEST_DEGREE and bool(np.all(self.bandwidths % 1 == 0))
            allowed = f"an integer from 1 to {HIGHEST_DEGREE}, as must be all degrees from it to largest"
            require(whole, "smallest", self.smallest, allowed)
        # Some draws exist only for Gaussian frequencies
        fits = "laplacian" not in self.families or self.draw in OF_ANY_FAMILY
        require(fits, "draw", self.draw, f"{' or '.join(OF_ANY_FAMILY)} unless all kernels are rbf")
        require(not mixed or not self.shared, "shared", self.shared, "false where laplacians are among rbf kernels")

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Family of each of the N kernels."""
        return (self.family,) * (self.N - self.laplacians) + ("laplacian",) * self.laplacians

    @property
    def bandwidths(self) -> NDArray[np.float64]:
        """The N bandwidths, ascending within a family."""
        sizes = [size for size in (self.N - self.laplacians, self.laplacians) if size]
        grid = np.concatenate([np.geomspace(self.smallest, self.largest, size) for size in sizes])
        nearest = np.rint(grid)
        degrees = self.family == "polynomial" and np.allclose(
            grid, nearest, rtol=1e-9
        )  # geomspace rounds numbers between its ends
        return nearest if degrees else grid

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """1 / s of each kernel, the factor of a standard draw of frequencies (for a polynomial its degree)."""
        inverse = 1 / self.bandwidths
        rbf = np.sqrt(SQUARES[self.bandwidth_convention](inverse))
        families = np.array(self.families)
        return np.select([families == "rbf", families == "laplacian"], [rbf, inverse], self.bandwidths)

    def gram(self, i: int, a: Array, b: Array) -> NDArray[np.float64]:
        """Exact values of kernel i between the rows of a (n, d) and b (m, d): shape (n, m)."""
        return kernel_matrix(self.families[i], self.scales[i], a, b)

    def bank(self, dimension: int, streams: Streams, precision: str, engine: str = "numba") -> FeatureBank:
        """Draw the frequencies of every replicate.

        Parameters
        ----------
        dimension : int
            d, the length of a sample.
        streams : Streams
        precision : {"float32", "float64"}
        engine : {"numba", "numpy"}
            Compiled bank, or the numpy reference.

        Raises
        ------
        fkl.basics.errors.BadValue
            For a family without random features.
        """
        # Refuse what cannot be drawn, before memory is asked for
        require(
            self.family != "polynomial", "kernels.family", self.family, "rbf or laplacian: it has no random features"
        )
        is_drawn = self.draw != "quasi" or dimension <= MOST_SOBOL
        require(is_drawn, "kernels.draw", self.draw, f"another draw for samples with more than {MOST_SOBOL} features")
        # The Laplacian's Cauchy frequencies have a heavy tail: float32 angles would lose all their digits.
        narrow: type[np.floating] = np.float64 if precision == "float64" or "laplacian" in self.families else np.float32
        R, one = len(streams.replicates), (1 if self.shared else self.N) * dimension * self.D
        keys = "kernels.D or kernels.N" if R == 1 else f"kernels.D, kernels.N or chunk={R}"
        features = f"the random features of {self.N} kernels and {R} replicates"
        require_memory(2 * R * one * np.dtype(narrow).itemsize, features, keys)  # twice while they are concatenated
        # For each replicate, draw frequencies (N or 1, d, D) and phases (N or 1, D or 0) in float64, then round them
        count, rho, phase = 1 if self.shared else self.N, [], []
        for generator in streams.generators(Role.FEATURES):
            drawn = np.empty((count, dimension, self.D))
            for i in range(count):
                drawn[i] = DRAWS[self.draw](self.families[i], dimension, self.D, generator)
            if not self.shared:
                drawn *= self.scales[:, None, None]
            rho.append(drawn.astype(narrow))
            phases = generator.uniform(0, 2 * np.pi, (count, self.D if self.map == "cosine" else 0))
            phase.append(phases.astype(narrow))
        # With shared frequencies, one draw serves all kernels, and each kernel scales it
        scale = (self.scales if self.shared else np.ones(self.N)).astype(narrow)
        narrow_kernels = 0 if precision == "float64" else self.families.count("rbf")
        return BANKS[engine](np.stack(rho), scale, np.stack(phase), narrow_kernels, np.dtype(precision))


def kernel_matrix(family: str, scale: float, a: Array, b: Array) -> NDArray[np.float64]:
    """Exact values of a kernel between the rows of a (n, d) and b (m, d): shape (n, m).

    Parameters
    ----------
    family : {"rbf", "laplacian", "polynomial"}
    scale : float
        As in `Dictionary.scales`.
    a, b : (n, d) and (m, d)
    """
    # Laplacian: exp(-scale |a - b|_1)
    if family == "laplacian":
        from scipy.spatial.distance import cdist  # slower to import than most of fkl

        return np.exp(-scale * cdist(a, b, "cityblock"))
    # Both others start from the inner products a'b
    values: NDArray[np.float64] = a @ b.T
    if family == "polynomial":
        return values**scale
    # Gaussian: |a - b|^2 = |a|^2 + |b|^2 - 2 a'b, in place, because the matrix may be large
    values *= -2
    values += np.einsum("nd,nd->n", a, a)[:, None]
    values += np.einsum("md,md->m", b, b)
    np.maximum(values, 0, out=values)  # these are squared distances, which rounding can make negative
    # The distance of a row to itself is 0; rounding would leave a little
    if a is b:
        np.fill_diagonal(values, 0)
    values *= -0.5 * scale**2
    return np.exp(values, out=values)


METRICS = {"rbf": "euclidean", "laplacian": "cityblock"}


@dataclass(frozen=True)
class AroundMedian(Dictionary):
    """A dictionary whose bandwidths are multiples of the median distance between samples.

    For a stream, these are the first samples of all clients, round by round. For a batch, they are training samples
    from all clients, in proportion to each client's share. Only their features are used. Bandwidths are s for every
    family, the distance is the one in the family's exponent, and pairs of equal samples do not count.

    In a federation the clients would have to agree on the median; a run books no messages for it.
    """

    N: int = 21
    smallest: float = key(0.1, "Ends of the grid of bandwidths, times the median distance.", min=NARROWEST, max=WIDEST)
    largest: float = key(
        10.0,
        "Ends of the grid of bandwidths, times the median distance.",
        min=NARROWEST,
        max=WIDEST,
        must="at least smallest, at most 1e+30",
    )
    samples: int = key(200, "Number of samples used.", min=2, max=5000)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.laplacians == 0, "laplacians", self.laplacians, "0: distances of the two families differ")
        convention = self.bandwidth_convention
        require(convention == "deviation", "bandwidth_convention", convention, "deviation: bandwidths are distances")

    def fitted(self, x: NDArray[np.floating]) -> Dictionary:
        """The dictionary for such samples (n, d); if all are equal, any bandwidth fits, and the median counts as 1."""
        from scipy.spatial.distance import pdist

        distances = pdist(x.astype(np.float64), METRICS[self.family])
        apart = distances[distances > 0]
        distance = float(np.median(apart)) if len(apart) else 1.0
        median = float(np.clip(distance, NARROWEST / self.smallest, WIDEST / self.largest))
        same = {field.name: getattr(self, field.name) for field in fields(Dictionary)}
        ends = {"smallest": max(median * self.smallest, NARROWEST), "largest": min(median * self.largest, WIDEST)}
        return Dictionary(**same | ends)


JITTER = 1e-10
"""Number that, times the number of centres, is added to their kernel matrix's diagonal: duplicates make it singular."""


@dataclass(frozen=True)
class CentreBank:
    """phi(x) = L^-1 k(centres, x), L L' = k(centres, centres): phi(x)'phi(x') is kappa if x or x' is a centre.

    So theta'phi(x) = sum_i alpha_i kappa(c_i, x) with alpha = L'^-1 theta, and |theta| is the norm of this function.

    Parameters
    ----------
    dictionary : Dictionary
        A dictionary of one exact kernel.
    centres : (R, m, d)
    """

    dictionary: Dictionary
    centres: Array

    @property
    def replicates(self) -> int:
        """R."""
        return self.centres.shape[0]

    @property
    def width(self) -> int:
        """Length of phi(x): m."""
        return self.centres.shape[1]

    @cached_property
    def root(self) -> NDArray[np.float64]:
        """L of each replicate, (R, m, m)."""
        more = JITTER * self.width * np.eye(self.width)
        return np.stack([np.linalg.cholesky(self._centre_gram(one, one) + more) for one in self.centres])

    def features(self, x: Array) -> NDArray[np.float64]:
        """phi(x) of samples x (n, d): shape (R, 1, n, m)."""
        from scipy.linalg import solve_triangular  # slower to import than most of fkl

        made = np.empty((self.replicates, 1, len(x), self.width))
        for r, centres in enumerate(self.centres):
            made[r, 0] = solve_triangular(self.root[r], self._centre_gram(centres, x), lower=True).T
        return made

    def of_centres(self) -> NDArray[np.float64]:
        """Phi of the centres themselves, (R, m, m): it equals L."""
        return self.root

    def coefficients(self, theta: Array) -> NDArray[np.float64]:
        """Coefficients alpha (R, K, m) of theta (R, K, m)."""
        from scipy.linalg import solve_triangular  # slower to import than most of fkl

        pairs = zip(self.root, theta, strict=True)
        return np.stack([solve_triangular(root, own.T, lower=True, trans="T").T for root, own in pairs])

    def _centre_gram(self, a: Array, b: Array) -> NDArray[np.float64]:
        return self.dictionary.gram(0, np.asarray(a, np.float64), np.asarray(b, np.float64))
