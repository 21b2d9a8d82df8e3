"""Calibration of methods that predict a distribution, and inequality of errors between clients or sites."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.large_arrays import blocks, empty
from fkl.tasks.task import Panel, Values

NOMINAL = {"coverage_50": 0.5, "coverage_80": 0.8, "coverage_95": 0.95}
"""Probabilities of the central intervals, by the column with the share of targets in them."""
CALIBRATION: Panel = Panel(
    "share of targets in the interval",
    dict.fromkeys(NOMINAL, "observed, of a client's central interval around its prediction"),
    log=False,
    nominal=NOMINAL,
)


@dataclass
class Calibration:
    """Judges normal distributions N(y_hat, variance) of targets that were not seen yet.

    coverage_50, coverage_80, coverage_95
        Share of targets in the central interval with this probability; it is smaller for an overconfident method.
    log_score
        Mean log density of the targets, in nats (Good, 1952): larger is better, and on average it is largest for the
        true distribution.
    log_score_mixture
        The same under the method's own predictive distribution. If that is a mixture of normal distributions,
        N(y_hat, variance) has only its mean and variance. Bounds of the evidence are about the mixture.

    Parameters
    ----------
    inside : (3, R, K)
        Number of targets so far in each interval.
    log_density, log_density_mixture : (R, K)
        Sums over the targets so far.
    rounds : (5, T, R)
        Shares of all clients' targets and mean log densities so far, NaN before the first.
    """

    inside: Array
    log_density: Array
    log_density_mixture: Array
    rounds: Array

    columns: ClassVar[tuple[str, ...]] = (*NOMINAL, "log_score", "log_score_mixture")

    @classmethod
    def before_any_round(cls, rounds: int, replicates: int, clients: int) -> Self:
        """State before the first round."""
        shape, unknown = (replicates, clients), np.full((len(cls.columns), rounds, replicates), np.nan)
        return cls(np.zeros((len(NOMINAL), *shape)), np.zeros(shape), np.zeros(shape), unknown)

    def enter(
        self,
        t: int,
        error: Array,
        variance: Array,
        present: NDArray[np.bool_],
        samples: float,
        log_density: Array | None = None,
    ) -> None:
        """Record round t: errors and variances (R, K) of the present clients (K,), and the number of samples so far.

        `log_density` (R, K) is that of the method's own predictive distribution; None if it is the normal one.
        """
        for place, nominal in enumerate(NOMINAL.values()):
            self.inside[place] += present & (error**2 <= scipy.special.ndtri((1 + nominal) / 2) ** 2 * variance)
        normal = -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)
        self.log_density += np.where(present, normal, 0.0)
        self.log_density_mixture += np.where(present, normal if log_density is None else log_density, 0.0)
        self.rounds[:, t] = self._sums().sum(axis=-1) / samples

    def by_round(self) -> Values:
        """Columns of rounds, (T, R)."""
        return dict(zip(self.columns, self.rounds, strict=True))

    def by_client(self, samples: NDArray[np.int64]) -> Values:
        """Columns of clients (R, K), with these numbers of samples (K,)."""
        return dict(zip(self.columns, self._sums() / np.maximum(samples, 1), strict=True))

    def _sums(self) -> Array:
        return np.concatenate([self.inside, self.log_density[None], self.log_density_mixture[None]])


def worst_tenth(errors: Array) -> Array:
    """Mean error of the worst 10 % of clients, rounded down, at least one: (R,) from (R, K)."""
    worst = max(1, errors.shape[1] // 10)
    return _in_order(errors)[:, -worst:].mean(axis=1)


def gini(errors: Array) -> Array:
    """Gini coefficient sum_ij |e_i - e_j| / (2 K sum_i e_i), (R,) from (R, K): 0 for equal errors, always below 1.

    For e_1 <= ... <= e_K it is 2 sum_i i e_i / (K sum_i e_i) - (K + 1) / K.
    """
    K = errors.shape[1]
    total, ordered = errors.sum(axis=1), _in_order(errors)
    equal = ordered[:, 0] == ordered[:, -1]
    for some in blocks(K):
        ordered[:, some] *= np.arange(some.start + 1.0, some.stop + 1.0)
    weighted = ordered.sum(axis=1)  # bits of a product would depend on R
    share = 2 * weighted / (K * np.where(total > 0, total, 1)) - (K + 1) / K
    return np.where((total == 0) | equal, 0.0, share)


def _in_order(errors: Array) -> Array:
    """The errors of each replicate (R, K), the smallest first."""
    ordered = empty(errors.shape)
    ordered[...] = errors
    ordered.sort(axis=1)
    return ordered


def fairness(name: str, sums: Array, count: NDArray[np.int64], site: NDArray[np.int64]) -> dict[str, Array]:
    """Columns of a summary: both figures for clients and, if there are several sites, for sites.

    Parameters
    ----------
    name : str
        Name of the error.
    sums : (R, K)
        Sums over each client's samples.
    count : (K,)
        Samples of each client; a client without samples has no error.
    site : (K,)
        Site of each client.
    """
    told = _worst_and_gini(name, "", sums, count)
    if (site != site[0]).any():
        belongs = [site == one for one in np.unique(site)]
        by_site = np.stack([np.ascontiguousarray(sums[:, own]).sum(axis=1) for own in belongs], axis=1)
        told |= _worst_and_gini(name, "_sites", by_site, np.array([count[own].sum() for own in belongs]))
    return told


def _worst_and_gini(name: str, what: str, sums: Array, count: NDArray[np.int64]) -> dict[str, Array]:
    judged = count > 0
    if not judged.any():
        return {f"{name}_{figure}{what}": np.full(len(sums), np.nan) for figure in ("worst_tenth", "gini")}
    errors, every = empty((len(sums), int(judged.sum()))), judged.all()
    for of_one, sums_of_one in zip(errors, sums, strict=True):
        np.divide(sums_of_one if every else sums_of_one[judged], count if every else count[judged], out=of_one)
    return {f"{name}_worst_tenth{what}": worst_tenth(errors), f"{name}_gini{what}": gini(errors)}
