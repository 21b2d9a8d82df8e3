"""Kernel dictionaries and the random features drawn for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.basics.memory import require_memory
from fkl.basics.random_streams import Role, Streams
from fkl.kernels.bank import BANKS, FeatureBank
from fkl.kernels.frequency_draws import DRAWS, MOST_SOBOL, OF_ANY_FAMILY

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
class Dictionary:
    """N kernels on a geometric grid of bandwidths, each with D random features.

    Parameters
    ----------
    family : {"rbf", "laplacian", "polynomial"}
        exp(-|x - x'|_2^2 / (2 s^2)), exp(-|x - x'|_1 / s), or (x'x')^s with integer s, which has no random features.
    N : int
        Number of kernels.
    laplacians : int
        Number of Laplacian kernels among the N, the last ones, on their own grid between the same ends.
    smallest, largest : float
        Ends of the grid of bandwidths; equal if N = 1.
    bandwidth_convention : {"variance", "deviation", "divisor"}
        Whether an rbf bandwidth is s^2 (the source of the published numbers of POF-MKL and graph-aided OMKL), s (in
        POF-MKL's text), or 2 s^2, the divisor of exp(-|x - x'|^2 / g).
    D : int
        Random features per kernel.
    map : {"pairs", "cosine"}
        D^-1/2 [sin(rho'x), cos(rho'x)] of length 2D, or (2/D)^1/2 cos(rho'x + b) of length D.
    draw : {"iid", "orthogonal", "structured", "quasi", "quadrature"}
        Draw of frequencies: independent, in orthogonal blocks, as products of Hadamard matrices and random signs, by
        quasi-Monte Carlo, or as spherical-radial quadrature, see `fkl.kernels.frequency_draws`. Laplacian kernels allow
        iid and quasi.
    shared : bool
        One draw for all kernels, rescaled by each bandwidth: fewer projections, kernels no longer independent.
    """

    family: str = "rbf"
    N: int = 51
    laplacians: int = 0
    smallest: float = 0.01
    largest: float = 100.0
    bandwidth_convention: str = "deviation"
    D: int = 100
    map: str = "pairs"
    draw: str = "iid"
    shared: bool = False

    def __post_init__(self) -> None:
        require(self.family in FAMILIES, "family", self.family, ", ".join(FAMILIES))
        require(1 <= self.N <= MOST_KERNELS, "N", self.N, f"an integer from 1 to {MOST_KERNELS}")
        mixed = self.laplacians > 0
        require(0 <= self.laplacians <= self.N, "laplacians", self.laplacians, f"an integer from 0 to N={self.N}")
        require(not mixed or self.family == "rbf", "laplacians", self.laplacians, f"0 where family={self.family}")
        allowed = f"a bandwidth > 0, from {NARROWEST:g} to {WIDEST:g}"
        require(NARROWEST <= self.smallest <= WIDEST, "smallest", self.smallest, allowed)
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
        if self.family == "polynomial":
            whole = self.smallest >= 1 and self.largest <= HIGHEST_DEGREE and bool(np.all(self.bandwidths % 1 == 0))
            allowed = f"degrees that are integers from 1 to {HIGHEST_DEGREE}, as are those between it and largest"
            require(whole, "smallest", self.smallest, allowed)
        require(
            self.bandwidth_convention in SQUARES, "bandwidth_convention", self.bandwidth_convention, ", ".join(SQUARES)
        )
        require(1 <= self.D <= MOST_FEATURES, "D", self.D, f"an integer from 1 to {MOST_FEATURES}")
        require(self.map in ("pairs", "cosine"), "map", self.map, "pairs or cosine")
        require(self.draw in DRAWS, "draw", self.draw, ", ".join(DRAWS))
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

    def gram(self, i: int, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact values of kernel i between the rows of a (n, d) and b (m, d): shape (n, m)."""
        return gram(self.families[i], self.scales[i], a, b)

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
        require(
            self.family != "polynomial", "kernels.family", self.family, "rbf or laplacian: it has no random features"
        )
        known = self.draw != "quasi" or dimension <= MOST_SOBOL
        require(known, "kernels.draw", self.draw, f"another for samples of more than {MOST_SOBOL} features")
        # With the heavy tail of the Laplacian's Cauchy frequencies, float32 angles would lose all their digits.
        narrow: type[np.floating] = np.float64 if precision == "float64" or "laplacian" in self.families else np.float32
        R, one = len(streams.replicates), (1 if self.shared else self.N) * dimension * self.D
        keys = "kernels.D or kernels.N" if R == 1 else f"kernels.D, kernels.N or chunk={R}"
        features = f"the random features of {self.N} kernels and {R} replicates"
        require_memory(2 * R * one * np.dtype(narrow).itemsize, features, keys)  # twice while they are concatenated
        # For each replicate frequencies (N or 1, d, D) and phases (N or 1, D or 0), drawn in float64 and then rounded
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
        scale = (self.scales if self.shared else np.ones(self.N)).astype(narrow)
        narrow_kernels = 0 if precision == "float64" else self.families.count("rbf")
        return BANKS[engine](np.stack(rho), scale, np.stack(phase), narrow_kernels, np.dtype(precision))


def gram(family: str, scale: float, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact values of a kernel between the rows of a (n, d) and b (m, d): shape (n, m).

    Parameters
    ----------
    family : {"rbf", "laplacian", "polynomial"}
    scale : float
        As in `Dictionary.scales`.
    a, b : (n, d) and (m, d)
    """
    if family == "laplacian":
        from scipy.spatial.distance import cdist  # slower to import than most of fkl

        return np.exp(-scale * cdist(a, b, "cityblock"))
    values: NDArray[np.float64] = a @ b.T
    if family == "polynomial":
        return values**scale
    values *= -2
    values += np.einsum("nd,nd->n", a, a)[:, None]
    values += np.einsum("md,md->m", b, b)
    np.maximum(values, 0, out=values)  # squared distances, which rounding can make negative
    if a is b:
        np.fill_diagonal(values, 0)
    values *= -0.5 * scale**2
    return np.exp(values, out=values)
