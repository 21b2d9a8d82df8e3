"""What random-feature Gaussian processes share: their keys, the noise level of most evidence, and the ensemble.

Karanikolas, Traganitis, Lu and Giannakis, Incremental Ensemble Gaussian Processes, IEEE TKDE (2022), arXiv 2110.06777;
Llorente, Waxman and Djuric, Decentralized Online Ensembles of Gaussian Processes for Multi-Agent Systems, arXiv
2502.05301. Of both the abstract alone was available; the equations are those of Bayesian linear regression on random
features (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 2.1 and 2.3), in the form of
an information filter.

A kernel's function is f = theta'z(x) with theta ~ N(0, I), and y = f + N(0, s2). All that samples tell of theta are
the sums S = sum z z', b = sum y z, n = sum 1 and q = sum y^2, which add up over clients. With A = S + s2 I:

    theta | samples ~ N(A^-1 b, s2 A^-1),        y | x, samples ~ N(z'A^-1 b, s2 (1 + z'A^-1 z)),
    log p(samples) = -1/2 [n log(2 pi s2) + log det(A / s2) + (q - b'A^-1 b) / s2],

the last of which, the evidence, is the sum of the log densities of the samples one after another.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, softmax
from fkl.basics.errors import require
from fkl.contract.world import Common
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.traceable import namespace

LEVELS = np.logspace(-6, 0, 25)
"""Levels of noise that the evidence chooses among, four a decade; targets are scaled to numbers of about 1."""
FIRST_LEVEL = 1e-2
"""Of the noise that is to be found, before there are more samples than features of a kernel."""
DIGITS = 6
"""Of an evidence that decide; what follows is rounding, and then the first of levels, or of kernels, is taken."""
ROUNDING = 1e-9
"""Of q, that numbers in double precision may leave below 0."""
GROWTH = 1.5
"""Levels of noise, and which kernels go on, are decided anew once there are so many times as many rounds."""


class Posterior(NamedTuple):
    """What is known of each kernel's theta.

    Parameters
    ----------
    root : (R, N, P, P)
        Lower triangular, root'root = A^-1.
    theta : (R, N, P)
        A^-1 b.
    evidence : (R, N)
        Its logarithm.
    """

    root: Array
    theta: Array
    evidence: Array


class Prediction(NamedTuple):
    """Each kernel's normal distribution of y.

    Parameters
    ----------
    mean, variance : (R, K, N)
    """

    mean: Array
    variance: Array

    def log_density(self, y: Array) -> Array:
        """Of y (K,), (R, K, N)."""
        log = namespace(self.mean).log
        return -0.5 * (log(2 * np.pi * self.variance) + (y[:, None] - self.mean) ** 2 / self.variance)

    def mixture_moments(self, w: Array) -> tuple[Array, Array]:
        """Mean and variance (R, K) of the mixture with weights w (R, K or 1, N), 0 of kernels that are not known."""
        known, where = w > 0, namespace(w).where
        mean, variance = (where(known, values, 0.0) for values in self)
        y_hat = (w * mean).sum(axis=-1)
        return y_hat, (w * (variance + (mean - y_hat[..., None]) ** 2)).sum(axis=-1)


@dataclass(frozen=True)
class GaussianProcesses:
    """Keys of ensembles of random-feature Gaussian processes.

    Parameters
    ----------
    flush : int or None
        Rounds from one message of a party to its next; None for messages after 1, 2, 4, 8, ... rounds, a few of them
        early, when each sample counts most.
    noise : float or None
        Variance s2 of a target's noise; None for the level of most evidence, for each kernel the one at which it
        explains the samples best, since the right one makes intervals as wide as they say. It is looked for as soon as
        there are more samples than features of a kernel: fewer can be explained without noise.
    forget : float
        What sums over samples are multiplied by in each round, for functions that drift; 1 forgets nothing.
    personal : bool
        Whether each party weighs kernels by how well they have predicted its own samples; else all do by the evidence
        of everyone's, which needs no message and less time.
    lam : float
        Regularisation lambda of the losses and regrets that the run reports; learning has its own, which is s2.
    """

    flush: int | None = 1
    noise: float | None = None
    forget: float = 1.0
    personal: bool = False
    lam: float = 1e-3

    def __post_init__(self) -> None:
        every = "an integer >= 1, or null for after 1, 2, 4, 8, ... rounds"
        require(self.flush is None or self.flush >= 1, "flush", self.flush, every)
        allowed = "a variance > 0, or null for the level of most evidence"
        require(self.noise is None or 0 < self.noise < np.inf, "noise", self.noise, allowed)
        require(0 < self.forget <= 1, "forget", self.forget, "a number > 0, up to 1")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def needs(self, dictionary: Dictionary, problem: Problem) -> int:
        """Bytes that a replicate takes at least: sums and factors of all kernels, before a round and after it."""
        P = dictionary.D * (1 if dictionary.map == "cosine" else 2)
        return 4 * 8 * dictionary.N * P**2

    def sends_in_round(self, t: int) -> bool:
        """Whether parties send what they have in round t."""
        if self.flush == 1:
            return True
        return (t + 1) & t == 0 if self.flush is None else (t + 1) % self.flush == 0

    def decides_in_round(self, t: int, last: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether in round t it is time to decide anew what was decided in rounds `last`, -1 for never.

        After as many rounds as make them `GROWTH` times as many, or as forgetting takes.
        """
        forgotten = self.forget < 1 and t - last >= 1 / (1 - min(self.forget, 1 - 1e-12))
        return forgotten | (t + 1 >= GROWTH * (last + 1))


def posterior(common: Common, gram: Array, pull: Array, totals: Array, noise: Array) -> Posterior:
    """Of the kernels' S (R, ..., N, P, P) and b (R, ..., N, P), of n and q (R, ..., 2) and of s2 (R, ..., N)."""
    flat = len(noise), -1
    one_by_one = (part.reshape(*flat, *part.shape[noise.ndim :]) for part in (gram, pull, noise))
    solved = common.bank.posterior(*one_by_one)
    root, theta, logdet = (part.reshape(like.shape) for part, like in zip(solved, (gram, pull, noise), strict=True))
    n, q = sums(totals)
    xp = namespace(theta)
    rest = xp.maximum(q - (pull * theta).sum(axis=-1), 0)
    logdet -= pull.shape[-1] * xp.log(noise)
    return Posterior(root, theta, -0.5 * (n * xp.log(2 * np.pi * noise) + logdet + rest / noise))


def sums(totals: Array) -> tuple[Array, Array]:
    """How many samples there are, n, and q (R, ..., 1), of `totals`, which noise may have made negative."""
    told = namespace(totals).maximum(totals, 0)
    return told[..., :1], told[..., 1:]


def most_evident(gram: Array, pull: Array, totals: Array) -> NDArray[np.float64]:
    """The level of noise at which the evidence of each kernel is largest, (R, ..., N); arguments as of `posterior`.

    The first level of no more samples than features. Sums that were rounded, or have noise on them for privacy, show by
    eigenvalues of S below 0, and by less than 0 left of q, how far off they are: no level at which that shows is taken.
    Where it shows at all of them, s2 is twice what the least eigenvalue is below 0, or the largest level.
    """
    xp = namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    least, values = -values[..., 0], xp.maximum(values, 0)
    along = xp.matmul(vectors.swapaxes(-1, -2), pull[..., None])[..., 0] ** 2
    n, q = sums(totals)
    evidence = []
    for level in LEVELS:
        rest = q - (along / (values + level)).sum(axis=-1)
        told = -0.5 * (n * np.log(2 * np.pi * level) + xp.log1p(values / level).sum(axis=-1) + rest / level)
        shows = (least > level) | (rest < -ROUNDING * q)
        evidence.append(xp.where(shows, -np.inf, told))
    of_levels, enough = xp.stack(evidence), n > gram.shape[-1]
    level = xp.where(enough, xp.asarray(LEVELS)[xp.round(of_levels, DIGITS).argmax(axis=0)], FIRST_LEVEL)
    off = xp.where(enough, ~xp.isfinite(of_levels).any(axis=0), least > FIRST_LEVEL)
    return xp.where(off, xp.maximum(LEVELS[-1], 2 * least), level)


def most_evident_kernels(evidence: Array, active: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """So many of the active kernels (R, N) that have most evidence; of those with as much the first."""
    known = np.where(active, np.round(evidence, DIGITS), -np.inf)
    order = np.argsort(-known, axis=-1, kind="stable")
    kept = np.zeros(active.shape, np.bool_)
    np.put_along_axis(kept, order[:, :count], True, axis=-1)
    return kept & active


def weights_of_active(log_w: Array, active: NDArray[np.bool_]) -> Array:
    """exp(log_w), normalised over the active kernels, 0 of the others."""
    return softmax(namespace(log_w).where(active, log_w, -np.inf))
