"""Kernel dictionaries and the random features drawn for them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fkl.errors import require
from fkl.kernels.bank import CompiledBank, FeatureBank
from fkl.streams import Role, Streams


@dataclass(frozen=True)
class Dictionary:
    """N kernels of one family on a geometric grid of bandwidths, each with D random features.

    Parameters
    ----------
    family : {"rbf", "laplacian"}
        exp(-|x|_2^2 / (2 s^2)), or exp(-|x|_1 / s).
    N : int
        Number of kernels.
    smallest, largest : float
        Ends of the grid of bandwidths; equal where N = 1.
    bandwidth_is : {"variance", "deviation"}
        Whether an rbf bandwidth is s^2 (which is what POF-MKL's published numbers come from) or s (what papers write).
    D : int
        Random features a kernel.
    map : {"pairs", "cosine"}
        D^-1/2 [sin(rho'x), cos(rho'x)] of length 2D, or (2/D)^1/2 cos(rho'x + b) of length D.
    orthogonal : bool
        Draw the frequencies of an rbf in orthogonal blocks (Yu et al. 2016, Orthogonal Random Features).
    shared : bool
        One draw for all kernels, rescaled by each bandwidth: fewer projections, kernels no longer independent.

    Raises
    ------
    fkl.errors.BadValue
    """

    family: str = "rbf"
    N: int = 51
    smallest: float = 0.01
    largest: float = 100.0
    bandwidth_is: str = "variance"
    D: int = 100
    map: str = "pairs"
    orthogonal: bool = False
    shared: bool = False

    def __post_init__(self) -> None:
        require(self.family in ("rbf", "laplacian"), "family", self.family, "rbf or laplacian")
        require(self.N >= 1, "N", self.N, "a whole number from 1")
        require(0 < self.smallest < np.inf, "smallest", self.smallest, "a bandwidth above 0")
        require(
            self.smallest <= self.largest < np.inf,
            "largest",
            self.largest,
            f"at least smallest={self.smallest}, finite",
        )
        require(
            self.N > 1 or self.smallest == self.largest,
            "largest",
            self.largest,
            f"equal to smallest={self.smallest} where N=1",
        )
        require(
            self.bandwidth_is in ("variance", "deviation"), "bandwidth_is", self.bandwidth_is, "variance or deviation"
        )
        require(self.D >= 1, "D", self.D, "a whole number from 1")
        require(self.map in ("pairs", "cosine"), "map", self.map, "pairs or cosine")
        require(
            self.family == "rbf" or not self.orthogonal, "orthogonal", self.orthogonal, "false where family=laplacian"
        )

    @property
    def bandwidths(self) -> NDArray[np.float64]:
        """The N bandwidths, ascending."""
        return np.geomspace(self.smallest, self.largest, self.N)

    @property
    def scales(self) -> NDArray[np.float64]:
        """What the N kernels multiply a standard draw of frequencies by."""
        by_variance = self.family == "rbf" and self.bandwidth_is == "variance"
        return self.bandwidths ** (-0.5 if by_variance else -1.0)

    def gram(self, i: int, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact values of kernel i between the rows of a (n, d) and b (m, d): shape (n, m)."""
        from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

        if self.family == "laplacian":
            return laplacian_kernel(a, b, gamma=self.scales[i])
        return rbf_kernel(a, b, gamma=0.5 * self.scales[i] ** 2)

    def bank(self, dimension: int, streams: Streams, precision: str) -> FeatureBank:
        """Draw the frequencies of every replicate.

        Parameters
        ----------
        dimension : int
            d, the length of a sample.
        streams : Streams
        precision : {"float32", "float64"}
            Compiled bank, or the numpy reference.
        """
        # The heavy tail of the Laplacian's Cauchy frequencies would cost float32 angles all their digits.
        narrow: type[np.floating] = np.float64 if precision == "float64" or self.family == "laplacian" else np.float32
        draws = [self._draw(dimension, generator, narrow) for generator in streams.generators(Role.FEATURES)]
        rho = np.stack([frequencies for frequencies, _ in draws])
        phase = np.stack([phase for _, phase in draws])
        scale = (self.scales if self.shared else np.ones(self.N)).astype(narrow)
        return (FeatureBank if precision == "float64" else CompiledBank)(rho, scale, phase)

    def _draw(
        self, dimension: int, generator: np.random.Generator, narrow: type[np.floating]
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """One replicate: frequencies (N or 1, d, D) and phases (N or 1, D or 0), drawn in float64 and then narrowed."""
        count = 1 if self.shared else self.N
        shape = (count, dimension, self.D)
        if self.family == "laplacian":
            rho = generator.standard_cauchy(shape)
        elif self.orthogonal:
            rho = np.stack([_orthogonal_gaussian(dimension, self.D, generator) for _ in range(count)])
        else:
            rho = generator.standard_normal(shape)
        if not self.shared:
            rho *= self.scales[:, None, None]
        phase = generator.uniform(0, 2 * np.pi, (count, self.D if self.map == "cosine" else 0))
        return rho.astype(narrow), phase.astype(narrow)


def _orthogonal_gaussian(dimension: int, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """`count` columns, orthogonal within blocks of `dimension`, each with the length of a Gaussian vector."""
    blocks = []
    for _ in range(-(-count // dimension)):
        q, r = np.linalg.qr(generator.standard_normal((dimension, dimension)))
        q *= np.sign(np.diag(r))  # makes q uniform over the orthogonal matrices
        lengths = np.linalg.norm(generator.standard_normal((dimension, dimension)), axis=0)
        blocks.append(q * lengths)
    return np.concatenate(blocks, axis=1)[:, :count]
