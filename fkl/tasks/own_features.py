"""A batch whose clients learn functions of features of their own: there is no theta that all could share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.contract.world import Algorithm, Array, World
from fkl.data.baselines import constants, in_units
from fkl.data.problem import Batch
from fkl.tasks.batch import PANELS, PENDING_BYTES, SQUARES, BatchTask
from fkl.tasks.fairness import fairness
from fkl.tasks.task import LARGEST, Books, Panel, require_shape


@dataclass(frozen=True)
class OwnFunctions:
    """f_k(x) = theta_k'(2/D)^1/2 cos(omega_k'x + phase_k) of every client.

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
    """Learning a function of every client from `fkl.data.problem.Batch`, in features that the client chose itself."""

    of_rounds = False

    def judge(self, world: World, method: Algorithm) -> "OwnFeaturesJudge":  # type: ignore[override]
        """Errors."""
        return OwnFeaturesJudge(world.problem, len(world.streams.replicates))

    def panels(self) -> Mapping[str, Panel]:
        """Errors and transmissions."""
        return {"mse": SQUARES, "transmissions": PANELS["transmissions"]}

    def shown(self, world: World, outcome: Any) -> dict[str, Any]:
        """Theta and the features that it is of, whose replicates and clients come first."""
        here = len(world.streams.replicates), world.problem.clients
        require_shape("theta", outcome.theta, *here, None)
        return {"theta": outcome.theta, "omega": outcome.omega, "phase": outcome.phase}


class OwnFeaturesJudge(Books):
    """Judges every client's function on its own training and test samples.

    train_mse, test_mse
        Mean squared error over all samples of all clients.
    test_mse_training_mean, r2, rmse_in_units, test_mse_worst_tenth, test_mse_gini
        At the end, as in `fkl.tasks.batch.BatchJudge`; 1 - r2 is the relative squared error.
    """

    def __init__(self, problem: Batch, replicates: int) -> None:
        super().__init__(problem.rounds, replicates)
        self._problem = problem
        self._count = {
            part: np.bincount(problem.part(training)[2], minlength=problem.clients) for part, training in PARTS
        }
        for part, name in (("train", "training_samples"), ("test", "test_samples")):
            self.by_client[name] = np.tile(self._count[part], (replicates, 1))
        (_, learned, _), (_, tested, _) = problem.part(True), problem.part(False)
        self._variance = float(tested.var()) if len(tested) else np.nan
        self.at_the_end = constants([learned] * replicates, [tested] * replicates, False)
        self._pending: list[Array] = []
        self._first = 0
        self._features: list[Array] = []

    def enter(self, t: int, outcome: OwnFunctions) -> bool:
        """Book the functions of iteration t + 1, whose features are always the same, and tell if theta is finite."""
        if t == 0:
            require_shape("theta", outcome.theta, *self.by_client["training_samples"].shape, None)
        self._pending.append(outcome.theta.copy())
        self._features = [outcome.omega, outcome.phase]
        if len(self._pending) >= max(1, PENDING_BYTES // (8 * outcome.theta[0].size)):
            self._judge()
        return bool((np.abs(outcome.theta) < LARGEST).all())  # False for NaN

    def close(self) -> None:
        """Judge what is pending, and let go of the features."""
        if self._pending:
            self._judge()
        self.at_the_end |= in_units(self.by_round["test_mse"][-1], self._variance, self._problem.scale.y_unit)
        tested = self._count["test"]
        errors = np.where(tested, self.by_client["test_mse"], 0.0)
        self.at_the_end |= fairness("test_mse", errors * tested, tested, self._problem.site)
        self._features = []

    def _judge(self) -> None:
        theta, (omega, phase) = np.stack(self._pending, axis=-1), self._features  # (R, K, D, B)
        rounds, factor = slice(self._first, self._first + len(self._pending)), np.sqrt(2 / phase.shape[-1])
        for part, training in PARTS:
            x, y, client = self._problem.part(training)
            sums = np.zeros((*theta.shape[:2], theta.shape[3]))
            for r, k in np.ndindex(*theta.shape[:2]):
                z = factor * np.cos(x[client == k] @ omega[r, k] + phase[r, k])
                off = z @ theta[r, k] - y[client == k, None]
                sums[r, k] = np.einsum("nb,nb->b", off, off)
            size = self._count[part]
            self.book(f"{part}_mse", rounds, (sums.sum(axis=1) / (size.sum() or np.nan)).T)
            self.by_client[f"{part}_mse"] = sums[..., -1] / np.where(size, size, np.nan)
        self._first, self._pending = rounds.stop, []


PARTS = (("train", True), ("test", False))
