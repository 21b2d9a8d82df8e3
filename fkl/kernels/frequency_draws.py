"""Ways to draw D standard frequencies for one kernel: independent draws, and better ones with the same D.

Every one is unbiased: z(x)'z(x') is kappa(x, x') on average, up to rounding in `quasi` (2^-31 of a probability) and, in
`structured`, the directions of Hadamard products, which are not exactly uniform. Frequencies of the Gaussian kernel are
normal, and those of the Laplacian kernel Cauchy in every coordinate. Draws of blocks have uniform directions, which
only the Gaussian kernel needs, so they are only for the Gaussian kernel.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draw = Callable[[str, int, int, np.random.Generator], Array]
"""From a family, d, D and a generator to frequencies (d, D) of scale 1."""

MOST_SOBOL = 21201
"""Largest dimension of scipy's Sobol' numbers."""
BITS = 30
"""Bits of a Sobol' number."""
SMALLEST_HADAMARD = 16
"""Smallest size of the matrices in a product: smaller ones give few directions, which bias the kernel by some
hundredths."""
HALF_A_ROUNDING = 2.0**-53


def iid(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Independent draws (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007)."""
    one = generator.standard_cauchy if family == "laplacian" else generator.standard_normal
    return one((dimension, count))


def orthogonal(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Orthogonal within blocks of d, each with the length of a Gaussian vector.

    Yu et al., Orthogonal Random Features (2016), section 3.
    """
    blocks = []
    for _ in range(-(-count // dimension)):
        directions = _random_rotation(dimension, generator)
        blocks.append(directions * np.linalg.norm(generator.standard_normal((dimension, dimension)), axis=0))
    return np.concatenate(blocks, axis=1)[:, :count]


def structured(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Blocks H D_1 H D_2 H D_3, H a Hadamard matrix and D_i random signs, with the lengths of Gaussian vectors.

    Choromanski, Rowland and Weller, The Unreasonable Effectiveness of Structured Random Orthogonal Embeddings (2017),
    and Yu et al. (2016), section 5, whose lengths are all sqrt(d). Equal lengths bias the kernel, and random ones do
    not. The number of rows of H is the next power of two, and d rows are kept, so columns are orthogonal if d is a
    power of two.
    """
    from scipy.linalg import hadamard as hadamard_matrix

    size = max(SMALLEST_HADAMARD, 1 << (dimension - 1).bit_length())
    hadamard, blocks = hadamard_matrix(size) / np.sqrt(size), []
    for _ in range(-(-count // size)):
        signs = generator.integers(0, 2, (3, size)) * 2.0 - 1
        product = hadamard[:, :dimension] * signs[2, :dimension]
        for diagonal in signs[1::-1]:
            product = hadamard @ (diagonal[:, None] * product)
        blocks.append(product.T * np.sqrt(generator.chisquare(size, size)))
    return np.concatenate(blocks, axis=1)[:, :count]


def quasi(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Sobol' points, shifted at random bit by bit, through the inverse distribution function of each coordinate.

    Avron, Sindhwani, Yang and Mahoney, Quasi-Monte Carlo Feature Maps for Shift-Invariant Kernels (JMLR 17, 2016). The
    shift makes each point uniform, so the mean is right; the relative positions of the points do not change.
    """
    shift = generator.integers(0, 2**BITS, dimension)[:, None]
    uniform = ((_sobol_points(dimension, count) ^ shift) + 0.5) / 2**BITS
    return np.tan(np.pi * (uniform - 0.5)) if family == "laplacian" else scipy.special.ndtri(uniform)


def quadrature(family: str, dimension: int, count: int, generator: np.random.Generator) -> Array:
    """Spherical-radial: orthonormal directions, and one length in each of D strata of their distribution.

    A cosine is even, so a randomly rotated orthonormal basis is the rule of the cross-polytope, exact up to degree 3 on
    the sphere (Genz and Monahan, 1998; Munkhoeva et al., Quadrature-based Features for Kernel Approximation, 2018). The
    radius has one dimension, where a stratified rule converges fast. Reid et al., Variance-Reducing Couplings for
    Random Features (2024), show that coupled lengths that avoid each other are better and unbiased.

    Alternatives are less suitable. Gauss-Hermite rules need p^d nodes. Rules of a higher degree have weights, some of
    them negative, and features have none (Munkhoeva et al.). Simplices are best for positive features (Reid et al.,
    Simplex Random Features, 2023), but the cosines of two frequencies do not depend on the sign of the angle between
    them.
    """
    bases = [_random_rotation(dimension, generator) for _ in range(-(-count // dimension))]
    strata = (generator.permutation(count) + generator.random(count)) / count
    lengths = np.sqrt(2 * scipy.special.gammaincinv(dimension / 2, np.minimum(strata, 1 - HALF_A_ROUNDING)))
    directions: Array = np.concatenate(bases, axis=1)[:, :count]
    return directions * lengths


DRAWS: dict[str, Draw] = {
    "iid": iid,
    "orthogonal": orthogonal,
    "structured": structured,
    "quasi": quasi,
    "quadrature": quadrature,
}
OF_ANY_FAMILY = ("iid", "quasi")
"""Draws that work coordinate by coordinate."""


def _random_rotation(size: int, generator: np.random.Generator) -> Array:
    """An orthogonal matrix, uniform over all of them."""
    q, r = np.linalg.qr(generator.standard_normal((size, size)))
    return q * np.sign(np.diag(r))


@lru_cache(maxsize=1)
def _sobol_points(dimension: int, count: int) -> NDArray[np.int64]:
    """The first points' coordinates, (d, D), as integers below 2^BITS."""
    from scipy.stats import qmc

    whole = qmc.Sobol(dimension, scramble=False, bits=BITS).random_base2((count - 1).bit_length())
    return np.ascontiguousarray(whole[:count].T * 2**BITS).astype(np.int64)
