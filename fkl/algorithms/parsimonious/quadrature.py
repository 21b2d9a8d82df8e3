"""The integrals over kernel centres S and widths W of Peifer and Ribeiro's federated classification, as finite sums.

Peifer and Ribeiro, Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces. The
paper writes ds dw without a quadrature rule and without S and W. Here the measure on S x W is NORMALIZED to a total of
1: with a literal ds dw one kernel with |alpha| > sqrt(2 gamma) would outweigh every label.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.client_tiles import row_blocks

Array = NDArray[np.float64]

PREDICTED_AT_A_TIME = 1 << 22
"""Kernel values that are held at a time when a function is evaluated."""
GRID_DIMENSIONS = 3
"""Largest number of features with a grid of centres; with more they are drawn."""


class Kernel(NamedTuple):
    """Kernel between samples and nodes, k(x_n, s_gh; w) = first[w, n, g] rest[w, n, h].

    Attributes
    ----------
    first : (W, n, G)
    rest : (W, n, H)
    """

    first: Array
    rest: Array


@dataclass(frozen=True)
class Quadrature:
    """Nodes (s, w) and their weights: the integral of h is about sum_m weights_m h(nodes_m, widths_m).

    Every centre has every width, and every centre is a point of `first` joined with a point of `rest`. A Gaussian
    kernel is then a product of one factor for each, so sums over a grid of centres are products of small matrices.

    Parameters
    ----------
    first : (G, d1)
        The leading coordinates of the centres; d1 = 0 and G = 1 if centres are not a grid.
    rest : (H, d - d1)
        The other coordinates.
    width : (W,)
        Widths w, ascending.
    shape : tuple of int
        (W, points along axis 1, ..., points along axis d) of a grid, empty if centres are not a grid.
    """

    first: Array
    rest: Array
    width: Array
    shape: tuple[int, ...] = ()

    @classmethod
    def over_box(
        cls, box: Array, centres: int, widths: Sequence[float], rng: np.random.Generator | None = None
    ) -> "Quadrature":
        """Quadrature over a box of centres and a list of widths.

        In up to three dimensions the box is divided into equal cells, equally many along each axis, and centres are
        their midpoints. In more dimensions, where a grid would be far too coarse, they are drawn uniformly (Monte
        Carlo).

        Parameters
        ----------
        box : (2, d)
            Lower and upper corner, as `smallest_box` gives them.
        centres : int
            Centres per width; on a grid the nearest d-th power.
        widths : sequence of float
            Widths, all with the same weight.
        rng : Generator, optional
            Draws the centres; needed above three dimensions.
        """
        low, high = np.asarray(box, np.float64)
        width = np.unique(np.asarray(widths, np.float64))
        require(centres >= 1, "centres", centres, "an integer >= 1")
        usable = len(width) == len(widths) > 0 and bool(((width > 0) & np.isfinite(width)).all())
        require(usable, "widths", widths, "different finite numbers > 0, at least one")
        require(bool((low < high).all()), "box", box, "a lower corner and one that is above it in every feature")
        d = len(low)
        if d > GRID_DIMENSIONS:
            if rng is None:
                raise ValueError(f"centres in {d} dimensions are drawn, which takes a generator")
            return cls(np.empty((1, 0)), rng.uniform(low, high, (centres, d)), width)
        side = max(round(centres ** (1 / d)), 1)
        middles = low[:, None] + (high - low)[:, None] * (np.arange(side) + 0.5) / side
        rest = np.stack(np.meshgrid(*middles[1:], indexing="ij"), axis=-1).reshape(-1, d - 1) if d > 1 else None
        return cls(middles[0][:, None], np.empty((1, 0)) if rest is None else rest, width, (len(width), *(side,) * d))

    @property
    def block(self) -> tuple[int, int, int]:
        """(W, G, H): the nodes in their order are those of an array of this shape."""
        return len(self.width), len(self.first), len(self.rest)

    @property
    def size(self) -> int:
        """M."""
        return int(np.prod(self.block))

    @property
    def dimension(self) -> int:
        """Features d."""
        return self.first.shape[1] + self.rest.shape[1]

    @cached_property
    def nodes(self) -> Array:
        """Centre of each node, (M, d)."""
        W, G, H = self.block
        first = np.broadcast_to(self.first[None, :, None], (W, G, H, self.first.shape[1]))
        rest = np.broadcast_to(self.rest[None, None], (W, G, H, self.rest.shape[1]))
        return np.concatenate([first, rest], axis=-1).reshape(self.size, self.dimension)

    @cached_property
    def widths(self) -> Array:
        """Width of each node, (M,)."""
        return np.repeat(self.width, self.size // len(self.width))

    @cached_property
    def weights(self) -> Array:
        """Weight of each node, (M,): equal, with sum 1."""
        return np.full(self.size, 1 / self.size)

    def kernel(self, x: Array) -> Kernel:
        """Kernel between samples (n, d) and nodes."""
        d1 = self.first.shape[1]
        first = self._kernel_factors(self.first, np.ascontiguousarray(x[:, :d1]))
        return Kernel(first, self._kernel_factors(self.rest, np.ascontiguousarray(x[:, d1:])))

    def function(self, coefficients: Array, x: Array) -> Array:
        """Sum of the kernels of the nodes times their coefficients (M,), at points (n, d): (n,)."""
        block = coefficients.reshape(self.block)
        columns = np.flatnonzero(block.any(axis=(0, 1)))
        nodes, block = replace(self, rest=self.rest[columns], shape=()), block[:, :, columns]
        f = np.zeros(len(x))
        for here in row_blocks(len(x) if len(columns) else 0, len(block) * len(columns), PREDICTED_AT_A_TIME):
            kernel = nodes.kernel(np.asarray(x[here], np.float64))
            f[here] = np.einsum("wng,wng->n", kernel.first, kernel.rest @ block.swapaxes(1, 2))
        return f

    def _kernel_factors(self, points: Array, x: Array) -> Array:
        """The kernel in some of the coordinates, at every width: (W, n, points)."""
        out = np.empty((len(self.width), len(x), len(points)))
        for width, of_width in zip(self.width, out, strict=True):
            _write_kernel_factor(points, x, width, of_width)
        return out


def smallest_box(x: Array, margin: float = 0.0) -> Array:
    """The smallest box around samples, each side moved outwards by a share of its length.

    Parameters
    ----------
    x : (N, d)
    margin : float
        Share of a side's length. A feature that does not vary gets a side of length 1.

    Returns
    -------
    (2, d)
        Lower and upper corner.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    length = high - low
    out = np.where(length > 0, margin * length, 0.5)
    return np.stack([low - out, high + out])


@njit_cached(
    fastmath={"reassoc", "contract", "nsz"}
)  # sums in vector registers; the order of additions does not matter
def _write_kernel_factor(points: Array, x: Array, width: float, out: Array) -> None:
    """Write exp(-||x_n - s_p||^2 / (2 w^2)) in some of the coordinates, eq. (37), for x (n, d) and points (P, d)."""
    scale = -1 / (2 * width * width)
    for n in range(len(x)):
        for p in range(len(points)):
            squared = 0.0
            for axis in range(points.shape[1]):
                away = x[n, axis] - points[p, axis]
                squared += away * away
            out[n, p] = np.exp(scale * squared)
