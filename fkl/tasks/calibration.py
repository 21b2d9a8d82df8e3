"""Calibration of methods that predict a distribution of the target."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.tasks.task import Panel, Values

Array = NDArray[np.floating]
NOMINAL = {"coverage_50": 0.5, "coverage_80": 0.8, "coverage_95": 0.95}
"""Probabilities of the central intervals, by the column with the share of targets in them."""
PANEL: Panel = Panel(
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
