"""A batch whose clients learn functions of their own features: they cannot share a theta."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.contract.world import Algorithm, Array, World
from fkl.data.problem import Batch
from fkl.tasks.batch import PANELS, PARTS, SQUARES, BatchTask, TestedBooks
from fkl.tasks.task import Panel, RowLosses, require_shape


@dataclass(frozen=True)
class OwnFunctions:
    """f_k(x) = theta_k'(2/D)^1/2 cos(omega_k'x + phase_k) for every client.

    Parameters
    ----------
    theta : (R, K, D)
    omega : (R, K, d, D)
    phase : (R, K, D)
    """

    theta: Array
    omega: Array
    phase: Array


class OwnFeaturesTask(BatchTask):
    """Learning one function per client from `fkl.data.problem.Batch`, in features that the client chose itself."""

    of_rounds = False

    def judge(self, world: World, method: Algorithm) -> "OwnFeaturesJudge":  # type: ignore[override]
        """Errors."""
        return OwnFeaturesJudge(world.problem, len(world.streams.replicates))

    def panels(self) -> Mapping[str, Panel]:
        """Errors and transmissions."""
        return {"mse": SQUARES, "transmissions": PANELS["transmissions"]}

    def shown(self, world: World, outcome: Any) -> dict[str, Any]:
        """Theta and its features, with replicates and clients as first axes."""
        here = len(world.streams.replicates), world.problem.clients
        require_shape("theta", outcome.theta, *here, None)
        return {"theta": outcome.theta, "omega": outcome.omega, "phase": outcome.phase}


class OwnFeaturesJudge(TestedBooks):
    """Judges every client's function on its own training and test samples.

    train_mse, test_mse
        Mean squared error over all samples of all clients.
    test_mse_training_mean, r2, rmse_in_units, test_mse_worst_tenth, test_mse_gini
        At the end, as in `fkl.tasks.batch.BatchJudge`; 1 - r2 is the relative squared error.
    """

    def __init__(self, problem: Batch, replicates: int) -> None:
        super().__init__(problem, replicates)
        self._features: list[Array] = []

    def enter(self, t: int, outcome: OwnFunctions) -> bool:
        """Record the functions of iteration t + 1, with constant features, and return if theta is finite."""
        self._features = [outcome.omega, outcome.phase]
        return self.enter_theta(t, outcome.theta, None)

    def close(self) -> None:
        """Judge pending rounds, and release the features."""
        super().close()
        self._features = []

    def judge_pending(self) -> None:
        """Record errors."""
        theta, (omega, phase) = np.stack(self.pending, axis=-1), self._features  # (R, K, D, B)
        rounds = slice(self.first_pending, self.first_pending + len(self.pending))
        factor = np.sqrt(2 / phase.shape[-1])
        for part, training in PARTS:
            x, y, client = self.problem.part(training)
            own = not training and (bool(self.metrics) or self.intervals is not None)
            predicted = np.zeros((len(theta), theta.shape[3], len(y) if own else 0))
            sums, last = np.zeros((*theta.shape[:2], theta.shape[3])), np.zeros((len(theta), len(y)))
            for r, k in np.ndindex(*theta.shape[:2]):
                z = factor * np.cos(x[client == k] @ omega[r, k] + phase[r, k])
                f = z @ theta[r, k]
                if own:
                    predicted[r][:, client == k] = f.T
                off = f - y[client == k, None]
                sums[r, k] = np.einsum("nb,nb->b", off, off)
                last[r, client == k] = off[:, -1] ** 2
            size = self.count[part]
            self.book(f"{part}_mse", rounds, (sums.sum(axis=1) / (size.sum() or np.nan)).T)
            self.by_client[f"{part}_mse"] = sums[..., -1] / np.where(size, size, np.nan)
            if own:
                self.book_own(rounds, [y] * len(theta), [*predicted])
                self.last = [of_rounds[-1] for of_rounds in predicted]
            if not training and self.numbers is not None:
                self.row_losses = [RowLosses(self.numbers, losses) for losses in last]
        self.first_pending, self.pending = rounds.stop, []
