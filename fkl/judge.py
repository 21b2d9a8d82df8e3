"""Judging a run: errors and regrets, the same for every algorithm and outside its clock."""

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome
from fkl.data.problem import Problem


class Judge:
    """Accumulates what the rounds of some replicates showed.

    With L(f, y) = (f - y)^2 + lam |f|^2, all sums over the rounds in which a client is present:

    regret_best_kernel
        sum L(f_hat) - min_i sum L(f_i), the client's regret of POF-MKL, eq. (11).
    regret_hindsight
        sum L(f_hat) - sum L(f*), f* the best kernel ridge fit to all clients' data: eq. (12) over K, and what the
        paper's Table 3 and Figures 1 and 2 show.

    Parameters
    ----------
    problem : Problem
    replicates : int
    lam : float
    """

    def __init__(self, problem: Problem, replicates: int, lam: float) -> None:
        self.problem, self.lam = problem, lam
        shape = (replicates, problem.clients)
        self.squared_error: Array = np.zeros(shape)
        self.loss: Array = np.zeros(shape)
        self.kernel_loss: Array | None = None
        self.mse = np.zeros((problem.rounds, replicates))
        self.mean_loss = np.zeros((problem.rounds, replicates))
        self.mean_regret_best_kernel = np.full((problem.rounds, replicates), np.nan)
        self._samples = np.cumsum(problem.present.sum(axis=1))

    def enter(self, t: int, outcome: Outcome) -> None:
        """Book round t."""
        present = self.problem.present[t]
        squared_error = present * (outcome.y_hat - self.problem.y[t]) ** 2
        self.squared_error += squared_error
        self.loss += squared_error + self.lam * present * outcome.squared_norm()
        self.mse[t] = self.squared_error.sum(axis=1) / self._samples[t]
        self.mean_loss[t] = self.loss.mean(axis=1)
        if outcome.loss is not None:
            seen = outcome.loss * present[:, None]
            self.kernel_loss = (
                seen if self.kernel_loss is None else np.add(self.kernel_loss, seen, out=self.kernel_loss)
            )
            self.mean_regret_best_kernel[t] = self.regret_best_kernel.mean(axis=1)

    @property
    def regret_best_kernel(self) -> NDArray[np.float64]:
        """Each client's regret so far, (R, K); NaN for a method without kernels."""
        if self.kernel_loss is None:
            return np.full(self.loss.shape, np.nan)
        return self.loss - self.kernel_loss.min(axis=-1)
