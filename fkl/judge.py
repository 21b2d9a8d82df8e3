"""Judging a run: errors, regrets and distances, the same for every algorithm and outside its clock."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Fitted, Outcome, Scored, World
from fkl.data.problem import Problem, Repeated
from fkl.data.vertical import Vertical
from fkl.kernels.rows import Rows

LARGEST = 1e60
"""Entry of a theta that is still one: from here on its errors, or their spread over replicates, may be none."""
LARGEST_ERROR = LARGEST**2
CLIENTS_AT_A_TIME = 4096
PENDING_BYTES = 2**20
"""Of the iterations of one replicate that are judged together: one product in place of many."""


class Judge(Protocol):
    """Accumulates what the rounds of some replicates showed."""

    def enter(self, t: int, outcome: Any) -> bool:
        """Book round t, and tell whether all is finite."""
        ...

    def close(self) -> None:
        """Finish the books after the last round."""
        ...


class StreamJudge:
    """Judges predictions of samples that were not learned from yet.

    With L(f, y) = (f - y)^2 + lam |f|^2, all sums over the rounds in which a client is present. A function is
    measured in the space of the kernel it is of: |f_i|^2 = |theta_i|^2, and of a mixture f_hat = sum_i w_i f_i, whose
    kernel is sum_i w_i kappa_i, |f_hat|^2 = sum_i w_i |theta_i|^2 (`fkl.algorithms.base.mixture_norm`), in every method
    alike. So L(f_hat) <= sum_i w_i L(f_i), on which Theorem 1 of POF-MKL rests.

    regret_best_kernel
        sum L(f_hat) - min_i sum L(f_i), the client's regret of POF-MKL, eq. (11).
    regret_hindsight
        sum L(f_hat) - sum L(f*), f* the best kernel ridge fit to all clients' data, the same L in both sums, so that
        |f*|^2 counts in every round: eq. (12) over K, with each client's own share of both sums.
    regret_linear
        sum L(f_hat) - sum (f_lin - y)^2, f_lin the linear least squares fit to all clients' data; at the end only.

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

    def enter(self, t: int, outcome: Outcome) -> bool:
        """Book round t, and tell whether all is finite."""
        present = self.problem.present[t]
        squared_error = present * (outcome.y_hat - self.problem.y[t]) ** 2
        self.squared_error += squared_error
        self.loss += squared_error + self.lam * present * outcome.squared_norm()
        self.mse[t] = self.squared_error.sum(axis=1) / self._samples[t]
        self.mean_loss[t] = self.loss.mean(axis=1)
        if outcome.loss is not None:
            if self.kernel_loss is None:
                self.kernel_loss = outcome.loss * present[:, None]
            else:
                for start in range(0, len(present), CLIENTS_AT_A_TIME):  # so that no copy is as large as the losses
                    some = slice(start, start + CLIENTS_AT_A_TIME)
                    self.kernel_loss[:, some] += outcome.loss[:, some] * present[some, None]
            self.mean_regret_best_kernel[t] = self.regret_best_kernel.mean(axis=1)
        known = self.mean_loss[t] if outcome.loss is None else self.mean_loss[t] + self.mean_regret_best_kernel[t]
        return bool((np.abs(known) < LARGEST_ERROR).all())  # False for NaN

    def close(self) -> None:
        """Nothing is left to do."""

    @property
    def regret_best_kernel(self) -> NDArray[np.float64]:
        """Each client's regret so far, (R, K); NaN for a method without kernels."""
        if self.kernel_loss is None:
            return np.full(self.loss.shape, np.nan)
        return self.loss - self.kernel_loss.min(axis=-1)


class FittedJudge:
    """Judges the functions of methods whose replicates have samples of their own, on all clients' samples together.

    train_error, test_error
        Share of samples whose class is not predicted; a prediction that is NaN is wrong.

    Parameters
    ----------
    problem : Repeated
    replicates : tuple of int
    """

    def __init__(self, problem: Repeated, replicates: tuple[int, ...]) -> None:
        self._batches = [problem.batches[replicate] for replicate in replicates]
        self._shape = problem.rounds, len(replicates)
        self.by_round: dict[str, Array] = {}
        self.by_client: dict[str, Array] = {
            name: np.stack([np.bincount(batch.part(training)[2], minlength=batch.clients) for batch in self._batches])
            for name, training in (("training_samples", True), ("test_samples", False))
        }
        self.at_the_end: dict[str, Array] = {}

    def enter(self, t: int, outcome: Fitted) -> bool:
        """Book round t, and tell whether all is finite."""
        errors = {"train_error": self._errors(outcome, True), "test_error": self._errors(outcome, False)}
        for name, values in {**errors, **outcome.figures}.items():
            self.by_round.setdefault(name, np.empty(self._shape))[t] = values
        self.by_client.update(outcome.of_clients)
        return all(bool(np.isfinite(values).all()) for values in outcome.figures.values())

    def close(self) -> None:
        """Let go of the samples."""
        self._batches = []

    def _errors(self, outcome: Fitted, training: bool) -> Array:
        """Shares of errors, (R,)."""
        parts = [batch.part(training)[:2] for batch in self._batches]
        wrong = [predict(x) != y for predict, (x, y) in zip(outcome.predict, parts, strict=True)]
        return np.array([errors.mean() if len(errors) else np.nan for errors in wrong])


class ScoredJudge:
    """Judges values f of test rows by the sign of the class, or by their squared error where there are no classes.

    Parameters
    ----------
    problem : Vertical
    replicates : int
    fold : int or None
        Of a cross-validation.
    """

    def __init__(self, problem: Vertical, replicates: int, fold: int | None = None) -> None:
        self._problem, self._shape = problem, (problem.rounds, replicates)
        self.by_round: dict[str, Array] = {"iterations": np.zeros(self._shape, np.int64)}
        sizes = np.array([len(group) for group in problem.groups])
        self.by_client: dict[str, Array] = {"features": np.tile(sizes, (replicates, 1))}
        split = problem.rows(np.random.default_rng(0), fold)  # as many rows in every replicate's
        self.at_the_end: dict[str, Array] = {
            "training_samples": np.full(replicates, len(split.training)),
            "test_samples": np.full(replicates, len(split.test)),
        }

    def enter(self, t: int, outcome: Scored) -> bool:
        """Book round t, and tell whether all is finite."""
        classes = self._problem.two_classes
        name = "test_error" if classes else "test_mse"
        found = [f() for f in outcome.f]
        values = [
            (np.sign(f) != self._problem.y[rows]).mean() if classes else np.square(f - self._problem.y[rows]).mean()
            for f, rows in zip(found, outcome.rows, strict=True)
        ]
        self.by_round["iterations"][t] = outcome.iterations
        self.by_round.setdefault(name, np.empty(self._shape))[t] = values
        return all(bool(np.isfinite(f).all()) for f in found) and all(value < LARGEST_ERROR for value in values)

    def close(self) -> None:
        """Nothing is left to do."""


class BatchJudge:
    """Judges every client's theta on its own training and test samples, and beside the optimum of all clients.

    With f_i = theta_i'phi on all training samples of client i, and theta*, f* of the minimiser of the sum of the
    clients' mean losses + lam |theta|^2 (COKE, eq. 26):

    train_..., test_...
        Sum of the loss's measures over all samples of all clients, over their number: COKE's MSE(k).
    consensus_error
        Root mean square over clients of |theta_i - mean of theta_i|.
    distance
        Root mean square over clients of |theta_i - theta*|.
    functional_distance, functional_distance_worst
        Root mean square of f_i - f* over all training samples; the largest over clients of the same over its own.

    Parameters
    ----------
    world : World
        Of a Batch and a dictionary of one kernel.
    lam : float
    """

    def __init__(self, world: World, lam: float) -> None:
        self._loss = world.loss
        self.parts = {"train": world.training, "test": world.testing}
        self.optimum = self._loss.optimum(self.parts["train"], lam)  # (R, P)
        R, P = self.optimum.shape
        K, T = world.problem.clients, world.problem.rounds
        self.by_round: dict[str, Array] = {}
        self.by_client: dict[str, Array] = {
            "training_samples": self._everywhere(self.parts["train"].count, R),
            "test_samples": self._everywhere(self.parts["test"].count, R),
        }
        self._shape = T, R
        self._pending = np.empty((R, K, P, max(1, min(T, PENDING_BYTES // (8 * K * P)))))
        self._first = self._held = 0
        everywhere = np.broadcast_to(self.optimum[:, None, :, None], (R, K, P, 1))
        self._best_f = self.parts["train"].predict(everywhere)
        self.at_the_end = {
            f"{name}_at_optimum": _pooled(sums, rows)[:, 0]
            for part, rows in self.parts.items()
            for name, sums in self._measures(part, rows, rows.predict(everywhere)).items()
        }

    def enter(self, t: int, outcome: Array) -> bool:
        """Book theta (R, K, P) of iteration t + 1, and tell whether it is below `LARGEST`."""
        self._pending[..., self._held] = outcome
        self._held += 1
        if self._held == self._pending.shape[3]:
            self._judge()
        return bool((np.abs(outcome) < LARGEST).all())  # False for NaN

    def close(self) -> None:
        """Judge what is pending, and let go of the samples."""
        if self._held:
            self._judge()
        self.parts, self._best_f, self._pending = {}, np.empty(0), np.empty(0)

    @staticmethod
    def _everywhere(count: Array, replicates: int) -> Array:
        return np.tile(count.astype(np.int64), (replicates, 1))

    def _judge(self) -> None:
        theta = self._pending[..., : self._held]  # (R, K, P, B)
        rounds = slice(self._first, self._first + self._held)
        f = {}
        for part, rows in self.parts.items():
            f[part] = rows.predict(theta)
            for name, sums in self._measures(part, rows, f[part]).items():
                self._book(name, rounds, _pooled(sums, rows))
                self.by_client[name] = sums[..., -1] / np.where(rows.count, rows.count, np.nan)
        train = self.parts["train"]
        off = f["train"] - self._best_f
        apart = np.einsum("rkib,rkib->rkb", off, off)
        self._book("functional_distance", rounds, np.sqrt(_pooled(apart, train)))
        self._book("functional_distance_worst", rounds, np.sqrt((apart / train.count[:, None]).max(axis=1)))
        self._book("consensus_error", rounds, _root_mean_square(theta - theta.mean(axis=1, keepdims=True)))
        self._book("distance", rounds, _root_mean_square(theta - self.optimum[:, None, :, None]))
        self._first, self._held = rounds.stop, 0

    def _measures(self, part: str, rows: Rows, f: Array) -> dict[str, Array]:
        return {f"{part}_{name}": sums for name, sums in self._loss.measures(rows, f).items()}

    def _book(self, name: str, rounds: slice, values: Array) -> None:
        """Enter values (R, B) of some rounds."""
        self.by_round.setdefault(name, np.empty(self._shape))[rounds] = values.T


def _pooled(sums: Array, rows: Rows) -> Array:
    """Mean over all samples of all clients, (R, B), of sums (R, K, B) over each client's; NaN without samples."""
    size = rows.count.sum()
    return sums.sum(axis=1) / (size if size else np.nan)


def _root_mean_square(apart: Array) -> Array:
    """Root of the mean over clients of |apart|^2 for apart (R, K, P, B): shape (R, B)."""
    return np.sqrt(np.einsum("rkpb,rkpb->rb", apart, apart) / apart.shape[1])
