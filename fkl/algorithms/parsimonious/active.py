"""Active-set method for (PC) of Peifer and Ribeiro at gamma = 0, which ends at the exact optimum.

At gamma = 0 the dual function (5) is quadratic in mu = lambda / N,

    g(mu) = (1 - eps) sum mu_n - mu' Q mu / 2,   Q_nm = integral y_n y_m k(x_n, s; w) k(x_m, s; w) ds dw,   mu >= 0,

with the Q of eq. (22), and at its optimum few mu are above 0. As in Lawson and Hanson (1974) for least squares, samples
enter one at a time, starting with the most violated constraint. Samples whose mu falls to 0 leave.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fkl.algorithms.parsimonious.quadrature import Array, Kernel, Quadrature
from fkl.kernels.client_tiles import row_blocks

Numbers = NDArray[np.int64]

SMALLEST = 1e-40
"""Smaller kernel values are set to 0: their products are denormal numbers, which are slow."""
BREACH = 1 / 8
"""Allowed violation of a constraint, as a share of the tolerance: scaling it away raises the cost by twice as much."""
COLUMNS = 32
"""Initial number of columns of Q."""
FACTORS = 1 << 25
"""Largest number of values in a problem's kernel factors that are kept; more are recomputed, in parts."""


@dataclass(frozen=True)
class Samples:
    """Samples of one problem, with products of the kernel between them and the nodes.

    Parameters
    ----------
    quadrature : Quadrature
    x : (n, d)
    y : (n,)
    """

    quadrature: Quadrature
    x: Array
    y: Array

    def rows(self, numbers: Numbers) -> Array:
        """y_n k(x_n, s_m; w_m) of some samples, (samples, M)."""
        first, rest = self._kernel_factors(numbers)
        rows: Array = np.einsum("wng,wnh->nwgh", first, rest).reshape(len(numbers), -1)
        rows[rows < SMALLEST] = 0.0
        rows *= self.y[numbers, None]
        return rows

    def gram(self, numbers: Numbers) -> Array:
        """Columns of Q, (n, samples): sums over the nodes, which have equal weights, are products of two sums."""
        first, rest = (factor.swapaxes(1, 2) for factor in self._kernel_factors(numbers))
        columns = np.empty((len(self.y), len(numbers)))
        for here in self._parts_of_samples(len(self.y)):
            all_first, all_rest = self._kernel_factors(here)
            columns[here] = np.einsum("wnm,wnm->nm", all_first @ first, all_rest @ rest)
        columns *= self.quadrature.weights[0] * self.y[:, None] * self.y[numbers]
        return columns

    def margin(self, alpha: Array) -> Array:
        """y_n f(x_n) at values alpha (M,) of the nodes, eq. (11): (n,)."""
        block = (alpha * self.quadrature.weights).reshape(self.quadrature.block).swapaxes(1, 2)
        f = np.empty(len(self.y))
        for here in self._parts_of_samples(len(self.y)):
            first, rest = self._kernel_factors(here)
            f[here] = np.einsum("wng,wng->n", first, rest @ block)
        return self.y * f

    def alpha(self, mu: Array, gamma: float) -> Array:
        """Values of alpha at the nodes for lambda / N, eqs. (8) and (9): (W, G, H)."""
        kept = np.flatnonzero(mu)
        alpha = np.zeros(self.quadrature.block)
        for here in self._parts_of_samples(len(kept)):
            first, rest = self._kernel_factors(kept[here])
            alpha += (first * (mu * self.y)[kept[here], None]).swapaxes(1, 2) @ rest
        alpha[alpha * alpha <= 2 * gamma] = 0.0
        return alpha

    def _kernel_factors(self, numbers: Numbers | slice) -> Kernel:
        """The kernel's two factors for some samples."""
        if self._kept is None:
            return self.quadrature.kernel(self.x[numbers])
        return Kernel(self._kept.first[:, numbers], self._kept.rest[:, numbers])

    def _parts_of_samples(self, count: int) -> Iterator[slice]:
        """Samples in parts whose kernel factors fit in memory."""
        return row_blocks(count, self._factors_of_sample, FACTORS)

    @cached_property
    def _kept(self) -> Kernel | None:
        """The kernel's two factors for all samples, if they are few enough to be kept."""
        return self.quadrature.kernel(self.x) if len(self.y) * self._factors_of_sample <= FACTORS else None

    @property
    def _factors_of_sample(self) -> int:
        W, _, H = self.quadrature.block
        return W * H


class Found(NamedTuple):
    """The optimum at gamma = 0, or the last point before rounding stopped progress.

    Attributes
    ----------
    mu : (n,)
    margin : (n,)
        y_n f(x_n).
    steps : int
        Number of linear systems solved.
    """

    mu: Array
    margin: Array
    steps: int


def without_gamma(samples: Samples, level: float, tolerance: float) -> Found:
    """Solve (PC) at gamma = 0.

    Parameters
    ----------
    samples : Samples
    level : float
        1 - eps.
    tolerance : float
        Tolerance of the duality gap, relative to the cost.
    """
    n = len(samples.y)
    columns, place = np.empty((COLUMNS, n)), np.full(n, -1)  # transposed: all reads are of whole columns
    mu, margin, value, steps = np.zeros(n), np.zeros(n), 0.0, 0
    barred = np.zeros(n, np.bool_)
    while True:
        outside = np.where((mu > 0) | barred, np.inf, margin)
        worst = int(outside.argmin())
        if outside[worst] >= level * (1 - BREACH * tolerance):
            break
        if place[worst] < 0:  # columns of Q are computed once, also for samples that leave and come back
            place[worst] = place.max() + 1
            if place[worst] == len(columns):
                columns = np.concatenate([columns, np.empty_like(columns)])
            columns[place[worst]] = samples.gram(np.array([worst]))[:, 0]
        inside = np.append(np.flatnonzero(mu), worst)
        risen, more = _rise_inside(columns[np.ix_(place[inside], inside)].T, mu[inside], level)
        steps += more
        if not level * risen.sum() > value:  # twice g, which increases in each step except for rounding, or NaN
            barred[worst] = True
            continue
        value = level * float(risen.sum())
        mu[inside] = risen
        kept = inside[risen > 0]
        margin = columns[place[kept]].T @ mu[kept]
    return Found(mu, margin, steps)


def _rise_inside(gram: Array, mu: Array, level: float) -> tuple[Array, int]:
    """Optimum for the samples inside, from their mu (the last sample is new), and the number of systems solved.

    Zeros if rounding prevents an optimum.
    """
    mu, kept, steps = mu.copy(), np.arange(len(mu)), 0
    while True:
        steps += 1
        factor, failed = dpotrf(gram[np.ix_(kept, kept)], lower=1, overwrite_a=1)
        if failed:
            return np.zeros_like(mu), steps
        to = dpotrs(factor, np.full(len(kept), level), lower=1)[0]
        falls = to <= 0
        if not falls.any():
            mu[kept] = to
            return mu, steps
        # Stop at the first mu that falls to 0, and leave that sample out from then on.
        shares = mu[kept][falls] / (mu[kept][falls] - to[falls])
        first = kept[falls][shares.argmin()]
        mu[kept] += shares.min() * (to - mu[kept])
        mu[first] = 0.0
        kept = kept[mu[kept] > 0]
