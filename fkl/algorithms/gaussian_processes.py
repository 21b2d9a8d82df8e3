"""Common code of random-feature Gaussian processes: keys, sums over samples as a payload, posterior and evidence.

Lu, Karanikolas and Giannakis, Incremental Ensemble Gaussian Processes, IEEE TPAMI 45 (2023), arXiv 2110.06777: only
the abstract was available. Llorente, Waxman and Djuric, Decentralized Online Ensembles of Gaussian Processes for
Multi-Agent Systems, arXiv 2502.05301: the abstract and the authors' code (github.com/FLlorente/DecentralizedOnlineGPs).
The equations are those of Bayesian linear regression on random features (Rasmussen and Williams, Gaussian Processes for
Machine Learning, 2006, sections 2.1 and 2.3), in the form of an information filter.

A kernel's function is f = theta'z(x) with theta ~ N(0, I), and y = f + N(0, s2). The posterior of theta depends on the
samples only through the sums S = sum z z', b = sum y z, n = sum 1 and q = sum y^2, which add up over clients. With A =
S + s2 I:

    theta | samples ~ N(A^-1 b, s2 A^-1),        y | x, samples ~ N(z'A^-1 b, s2 (1 + z'A^-1 z)),
    log p(samples) = -1/2 [n log(2 pi s2) + log det(A / s2) + (q - b'A^-1 b) / s2].

The last line, the evidence, is the sum of the samples' log densities, each given the earlier samples.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import softmax
from fkl.basics.arrays import Array, array_namespace, of_each
from fkl.basics.keys import Keys, key
from fkl.data.problem import Problem
from fkl.kernels import Dictionary, FeatureBank
from fkl.kernels.bank import symmetric_eigen
from fkl.wire.payloads import Axes, PerClient, Size, Summable, require_leading


def lower_triangle(gram: Array) -> Array:
    """The lower triangles of matrices (..., P, P), row by row: (..., P (P + 1) / 2)."""
    P = gram.shape[-1]
    return array_namespace(gram).take(gram.reshape(*gram.shape[:-2], P * P), _triangle_places(P)[0], axis=-1)


def from_lower_triangle(packed: Array) -> Array:
    """Lower triangular matrices from the values that `lower_triangle` returned."""
    return array_namespace(packed).tril(symmetric_matrix(packed))


def symmetric_matrix(packed: Array) -> Array:
    """Symmetric matrices from the values that `lower_triangle` returned."""
    P = int(np.sqrt(2 * packed.shape[-1]))
    return array_namespace(packed).take(packed, _triangle_places(P)[1], axis=-1)


@lru_cache(maxsize=8)
def _triangle_places(P: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place in the matrix of each entry of `lower_triangle`, and place in the triangle of each entry (P, P)."""
    rows, columns = np.tril_indices(P)
    low, high = np.sort(np.indices((P, P)), axis=0)
    return rows * P + columns, high * (high + 1) // 2 + low


def sum_of_outer_products(samples: Array, share: Array) -> Array:
    """Sum (R, N, m, m) of share_k a a' over clients and their samples a, from (R, K, N, r, m) and (K,)."""
    R, _, N, _, m = samples.shape
    rows = (np.sqrt(share)[:, None, None, None] * samples).swapaxes(1, 2).reshape(R, N, -1, m)
    return np.matmul(rows.swapaxes(2, 3), rows)


@dataclass(frozen=True)
class Moments(Summable):
    """Every client's sums sum_b w_b z_i z_i' and sum_b w_b y_b z_i of each kernel, over the samples that it holds.

    On a wire it is dense, with L = P (P + 1) / 2 + P scalars per kernel: the lower triangle row by row, then the
    vector. A simulation does not compute the sums of single clients, unless a condition needs them.

    Parameters
    ----------
    bank : FeatureBank
    x : (R or 1, K, B, d)
    y, weight : (R or 1, K, B)
        Targets, and weights >= 0, which are 0 in empty places.
    chosen : (R, N) bool, or None
        Kernels whose moments are sent, the same for all clients; None for all.
    """

    bank: FeatureBank
    x: Array
    y: Array
    weight: Array
    chosen: NDArray[np.bool_] | None = None

    leading = {"chosen": "R"}  # noqa: RUF012

    def as_received(self, axes: Axes, width: int) -> "Moments":
        """Check the axes (R, K) of the received samples; real clients would send only sums over them."""
        shape = self.bank.replicates, *self.x.shape[1:]
        require_leading(shape[:2], "RK", axes, "Moments")
        return super().as_received(axes, width)

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes of each client's sums, (R, K)."""
        bank, P = self.bank, self.bank.width
        shape = bank.replicates, self.x.shape[1], bank.kernels, P * (P + 1) // 2 + P
        return PerClient(np.broadcast_to(0.0, shape), self._chosen_by_client()).wire_size(width)

    def dense(self) -> PerClient:
        """The moments themselves, (R, K, N, L)."""
        every = of_each(self._sums_of_client, self.x, self.y, self.weight)
        return PerClient(array_namespace(every).moveaxis(every, 0, 1), self._chosen_by_client())

    def mean(self, share: Array) -> Array:
        """The weighted sum over clients, (R, N, L); the bank iterates over tiles of samples itself."""
        return self.times(share)._sums_of_samples()

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared norm of each client's sums, client by client, because all sums together may not fit in memory."""

        def of_client(*samples: Array) -> Array:
            return PerClient(self._sums_of_client(*samples)[:, None]).squared_norm()[:, 0]

        return of_each(of_client, self.x, self.y, self.weight).T

    def times(self, factor: Array) -> "Moments":
        """Each client's sums times a factor >= 0, (K,) or (R, K), by which the samples' weights are multiplied."""
        return replace(self, weight=factor[..., None] * self.weight)

    def client(self, k: int) -> "Moments":
        """The moments of only client k."""
        mine = slice(k, k + 1)
        return replace(self, x=self.x[:, mine], y=self.y[:, mine], weight=self.weight[:, mine])

    def low_rank_samples(self, rank: int) -> PerClient:
        """Samples (R, K, N, rank, P + 1) whose outer products sum to those of (z, y), or nearly so.

        They are scaled eigenvectors of sum_b w_b (z, y) (z, y)' with the largest eigenvalues. No other matrix of this
        rank is as close in any unitarily invariant norm (Eckart and Young). The last entry, the target, is >= 0.
        """
        R, P = self.bank.replicates, self.bank.width
        # The matrix of second moments of (z, y) is the sum of outer products of its scaled eigenvectors
        square = (self.weight * self.y**2).sum(axis=-1)  # (R or 1, K)
        samples = np.zeros((R, self.x.shape[1], self.bank.kernels, rank, P + 1))
        matrix = np.empty((R, self.bank.kernels, P + 1, P + 1))
        for k in range(self.x.shape[1]):
            # One client and all kernels at a time; (P + 1)^2 numbers for each
            packed = self.client(k)._sums_of_samples()
            matrix[..., :P, :P], matrix[..., :P, P], matrix[..., P, P] = (
                symmetric_matrix(packed[..., :-P]), packed[..., -P:], square[:, k, None],
            )  # fmt: skip
            matrix[..., P, :P] = matrix[..., :P, P]
            # Keep the largest eigenvalues; negative ones are rounding errors
            values, vectors = symmetric_eigen(matrix)
            few = min(rank, P + 1)
            made = np.sqrt(np.maximum(values[..., -few:], 0))[..., None] * vectors.swapaxes(-1, -2)[..., -few:, :]
            # The sign of an eigenvector is arbitrary; choose the one with a positive last entry, so the bytes are fixed
            samples[:, k, :, :few] = np.where(made[..., -1:] < 0, -made, made)
        chosen = self._chosen_by_client()
        return PerClient(samples if chosen is None else samples * chosen[..., None, None], chosen)

    def _chosen_by_client(self) -> NDArray[np.bool_] | None:
        """Kernels whose moments are sent, (R, K, N), the same for every client; None for all."""
        if self.chosen is None:
            return None
        R, N = self.chosen.shape
        return np.broadcast_to(self.chosen[:, None], (R, self.x.shape[1], N))

    def _sums_of_client(self, x: Array, y: Array, weight: Array) -> NDArray[np.float64]:
        return replace(self, x=x, y=y, weight=weight)._sums_of_samples()

    def _sums_of_samples(self) -> NDArray[np.float64]:
        """Sum over all clients and samples, (R, N, L)."""
        return self._sums_over(*self._all_samples())

    def _all_samples(self) -> list[Array]:
        """The arrays x, y and weight, with all samples of all clients along the second axis."""
        rows = self.x.shape[1] * self.x.shape[2]
        return [part.reshape(len(part), rows, *part.shape[3:]) for part in (self.x, self.y, self.weight)]

    def _sums_over(self, x: Array, y: Array, weight: Array) -> NDArray[np.float64]:
        """Sums over these samples, (R, N, L)."""
        gram, pull = self.bank.moments(x, y, weight, self.chosen)
        return array_namespace(gram).concatenate([lower_triangle(gram), pull], axis=-1)


LEVELS = np.logspace(-6, 0, 25)
"""Candidate noise levels, four per decade, for targets that are scaled to about 1."""
LEAST_NOISE = 1e-12
"""With less noise, a covariance loses all its digits to rounding in float64."""
FIRST_LEVEL = 1e-2
"""Noise level until there are more samples than features of a kernel, if the level is estimated."""
DIGITS = 6
"""Digits of the evidence that are compared, because later digits are rounding; of equal levels or kernels, the first is
used."""
ROUNDING = 1e-9
"""Share of q by which rounding errors in double precision may make a result negative."""
GROWTH = 1.5
"""Noise levels and active kernels are chosen again when the number of rounds has grown by this factor."""


class KernelPosterior(NamedTuple):
    """Posterior of each kernel's theta.

    Parameters
    ----------
    root : (R, N, P, P)
        Lower triangular, root'root = A^-1.
    theta : (R, N, P)
        A^-1 b.
    evidence : (R, N)
        The logarithm of the evidence.
    """

    root: Array
    theta: Array
    evidence: Array


class NormalPrediction(NamedTuple):
    """Each kernel's normal distribution of y.

    Parameters
    ----------
    mean, variance : (R, K, N)
    """

    mean: Array
    variance: Array

    def log_density(self, y: Array) -> Array:
        """Log density of y (K,) under each kernel, (R, K, N)."""
        log = array_namespace(self.mean).log
        return -0.5 * (log(2 * np.pi * self.variance) + (y[:, None] - self.mean) ** 2 / self.variance)

    def mixture_log_density(self, w: Array, y: Array) -> Array:
        """Log density of y (K,) under the mixture, (R, K), with weights w as in `mixture_moments`."""
        xp = array_namespace(self.mean)
        weighted = NormalPrediction(*(xp.where(w > 0, values, 1.0) for values in self))
        log_densities = xp.where(w > 0, weighted.log_density(y), -np.inf)
        largest = log_densities.max(axis=-1, keepdims=True)
        return largest[..., 0] + xp.log((w * xp.exp(log_densities - largest)).sum(axis=-1))

    def mixture_moments(self, w: Array) -> tuple[Array, Array]:
        """Mean and variance (R, K) of the mixture with weights w (R, K or 1, N), which are 0 for inactive kernels."""
        has_weight, where = w > 0, array_namespace(w).where
        mean, variance = (where(has_weight, values, 0.0) for values in self)
        y_hat = (w * mean).sum(axis=-1)
        return y_hat, (w * (variance + (mean - y_hat[..., None]) ** 2)).sum(axis=-1)


@dataclass(frozen=True)
class GaussianProcesses(Keys):
    """Keys of ensembles of random-feature Gaussian processes."""

    flush: int | None = key(
        1,
        "Number of rounds between two messages of a party. None sends messages after 1, 2, 4, 8, ... rounds: more "
        "often early, when each sample counts most.",
        min=1,
        must="an integer >= 1, or null for after 1, 2, 4, 8, ... rounds",
    )
    noise: float | None = key(
        None,
        "Variance s2 of a target's noise. None uses, for each kernel, the level with the largest evidence, "
        "which is needed for intervals with the right coverage. The estimation starts as soon as there are more "
        "samples than features of a kernel; fewer samples can be fitted without noise.",
        min=LEAST_NOISE,
        must="a variance of at least 1e-12, or null for the level of most evidence",
    )
    forget: float = key(
        1.0,
        "Factor of the sums over samples in each round, for drifting functions; 1 forgets nothing.",
        above=0,
        max=1,
    )
    personal: bool = key(
        False,
        "Whether each party weights kernels by how well they have predicted its own samples. Otherwise all parties "
        "weight them by the evidence of all samples, which needs no message and less time.",
    )
    lam: float = key(
        1e-3,
        "Regularisation lambda of the losses and regrets that the run reports. Learning does not use it, because s2 "
        "regularises there.",
        min=0,
    )

    def needs(self, dictionary: Dictionary, problem: Problem) -> int:
        """Least memory of a replicate in bytes, for the sums and factors of all kernels before and after a round."""
        P = dictionary.D * (1 if dictionary.map == "cosine" else 2)
        return 4 * 8 * dictionary.N * P**2

    def sends_in_round(self, t: int) -> bool:
        """Whether parties send their sums in round t."""
        if self.flush == 1:
            return True
        return (t + 1) & t == 0 if self.flush is None else (t + 1) % self.flush == 0

    def decides_in_round(self, t: int, last: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a choice that was last made in rounds `last` (-1 if never) is made again in round t.

        It is made again when the number of rounds has grown by `GROWTH`, or after 1 / (1 - forget) rounds.
        """
        forgotten = self.forget < 1 and t - last >= 1 / (1 - min(self.forget, 1 - 1e-12))
        return forgotten | (t + 1 >= GROWTH * (last + 1))


def kernel_posterior(bank: FeatureBank, gram: Array, pull: Array, totals: Array, noise: Array) -> KernelPosterior:
    """The kernels' posterior from S (R, ..., N, P, P), b (R, ..., N, P), n and q (R, ..., 2) and s2 (R, ..., N)."""
    flat = len(noise), -1
    one_by_one = (part.reshape(*flat, *part.shape[noise.ndim :]) for part in (gram, pull, noise))
    solved = bank.posterior(*one_by_one)
    root, theta, logdet = (part.reshape(like.shape) for part, like in zip(solved, (gram, pull, noise), strict=True))
    n, q = sums_of_targets(totals)
    xp = array_namespace(theta)
    rest = xp.maximum(q - (pull * theta).sum(axis=-1), 0)
    logdet -= pull.shape[-1] * xp.log(noise)
    return KernelPosterior(root, theta, -0.5 * (n * xp.log(2 * np.pi * noise) + logdet + rest / noise))


def sums_of_targets(totals: Array) -> tuple[Array, Array]:
    """Number of samples n, and q (R, ..., 1), from `totals`; privacy noise may have made these negative."""
    told = array_namespace(totals).maximum(totals, 0)
    return told[..., :1], told[..., 1:]


def most_evident(gram: Array, pull: Array, totals: Array) -> NDArray[np.float64]:
    """The noise level with the largest evidence for each kernel, (R, ..., N); arguments as in `kernel_posterior`.

    If there are not more samples than features, it is `FIRST_LEVEL`. Rounding or privacy noise can make eigenvalues of
    S or q - b'A^-1 b negative; levels at which this shows are not used. If it shows at every level, s2 is twice the
    size of the most negative eigenvalue, or the largest level if that is larger.
    """
    # Eigenvalues once for all levels: A = gram + level I has the same eigenvectors
    xp = array_namespace(gram)
    values, vectors = symmetric_eigen(gram)
    least, values = -values[..., 0], xp.maximum(values, 0)
    along = xp.matmul(vectors.swapaxes(-1, -2), pull[..., None])[..., 0] ** 2
    n, q = sums_of_targets(totals)
    # Log evidence of each level, up to terms that all levels share
    evidence = []
    for level in LEVELS:
        rest = q - (along / (values + level)).sum(axis=-1)
        log_evidence = -0.5 * (n * np.log(2 * np.pi * level) + xp.log1p(values / level).sum(axis=-1) + rest / level)
        # A level below a negative eigenvalue, or a negative residual, shows that rounding decides
        shows = (least > level) | (rest < -ROUNDING * q)
        evidence.append(xp.where(shows, -np.inf, log_evidence))
    # The level with the largest evidence; with few samples, the first level, because the evidence says little
    of_levels, enough = xp.stack(evidence), n > gram.shape[-1]
    level = xp.where(enough, xp.asarray(LEVELS)[xp.round(of_levels, DIGITS).argmax(axis=0)], FIRST_LEVEL)
    off = xp.where(enough, ~xp.isfinite(of_levels).any(axis=0), least > FIRST_LEVEL)
    return xp.where(off, xp.maximum(LEVELS[-1], 2 * least), level)


def most_evident_kernels(evidence: Array, active: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The `count` active kernels (R, N) with the largest evidence; of equal kernels, the first."""
    rounded = np.where(active, np.round(evidence, DIGITS), -np.inf)
    order = np.argsort(-rounded, axis=-1, kind="stable")
    kept = np.zeros(active.shape, np.bool_)
    np.put_along_axis(kept, order[:, :count], True, axis=-1)
    return kept & active


def weights_of_active(log_w: Array, active: NDArray[np.bool_]) -> Array:
    """Weights exp(log_w), normalised over the active kernels, and 0 for the others."""
    return softmax(array_namespace(log_w).where(active, log_w, -np.inf))
