"""A stream: in every round, each client sees a sample, predicts its target, and only then sees the target."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, is_traced
from fkl.basics.errors import key_prefix, require
from fkl.basics.memory import row_blocks, take_values
from fkl.basics.memory import row_variance as variance_of
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.config.loading import Run
from fkl.contract.world import Algorithm, Outcome, World
from fkl.data.baselines import baseline_errors, best_constant, in_units
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.client_tiles import sums_in_order, tile_sums
from fkl.kernels.hindsight import hindsight_loss, linear_loss
from fkl.tasks.task import (
    CALIBRATION,
    LARGEST_ERROR,
    Calibration,
    Panel,
    Probe,
    RecordColumns,
    RowLosses,
    Task,
    Values,
    differs_by_replicate,
    drawn_rounds,
    fairness_columns,
    losses_of,
    other_values,
    present_in_replicate,
    require_lam,
    require_number,
    require_shape,
)

if TYPE_CHECKING:
    from fkl.tasks.intervals import AdaptiveIntervals

CLIENTS_AT_A_TIME = 4096
NO_ROWS: dict[str, Any] = dict.fromkeys(("tested", "expected", "sampled", "row"))
"""Fields that a problem with fewer rounds or clients does not need."""
DIABETES = ("dataset=diabetes", "kernels.D=8")
"""Settings for 4 clients."""
SHORT = ("partition.rounds=40",)
ALONE = ("partition.clients=1", "partition.rounds=100")
"""Settings for a single client, with more rounds than a learner's block."""
MOST_PROBED = 100
"""Largest number of rounds whose predictions must not depend on their targets: all of `SHORT` and `ALONE`."""
ERRORS = {
    "mse": Panel(
        "mean squared error so far",
        {"mse": "{method}", "mse_running_mean": "mean target so far", "mse_last_value": "last target"},
    ),
    "error": Panel(
        "share of mistakes so far",
        {"error": "{method}", "error_majority": "majority so far", "error_last_class": "last class"},
        log=False,
    ),
    "pinball": Panel(
        "mean pinball loss so far",
        {"pinball": "{method}", "pinball_running_quantile": "quantile so far", "pinball_last_value": "last target"},
    ),
}
REGRET = Panel(
    "regret so far, mean of clients\n({loss})",
    {
        "regret_best_kernel": "against the client's best kernel as it learned",
        "regret_hindsight": "against the best kernel in hindsight",
        "regret_dynamic": "against the expected value of each target",
    },
    log=False,  # it can be below zero
)


class StreamTask(Task):
    """Regression on a `fkl.data.problem.Problem`: predict, see the target, learn."""

    of_rounds: ClassVar[bool] = True
    has_rows_at_clients: ClassVar[bool] = True
    judged_as_it_learns: ClassVar[bool] = True

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """Read, scale and partition the data; refuse a separate test file."""
        # A stream is tested before it learns, so it has no test file
        test_path, label = getattr(run.dataset, "test_path", None), run.algo.label
        allowed = f"null for {label}, which is tested on every sample before it learns from it"
        require(test_path is None, "dataset.test_path", test_path, allowed)
        made, loss = super().from_run(run), getattr(run.algo, "pointwise", SQUARED)
        # Classes become signs or odd integers
        if loss.classes:
            with key_prefix("algo"):
                problem = made.problem.of_classes(run.algo.loss, loss)
            _require_fits_classes(run, problem.loss.several)
        else:
            require_number(run, made.problem.encoder)
            problem = replace(made.problem, loss=loss)
        made = replace(made, problem=problem)
        return replace(made, redraw=partial(_thinned_stream, run, made.problem)) if differs_by_replicate(run) else made

    @property
    def amount(self) -> str:
        """Numbers of rounds and of classes."""
        return super().amount + (f", {self.problem.loss.several} classes" if self.class_by_class else "")

    @property
    def signs(self) -> bool:
        """True for losses of two classes."""
        return bool(self.problem.loss.classes) and not self.class_by_class

    @property
    def class_by_class(self) -> bool:
        """True for three or more classes, each with its own function."""
        return bool(self.problem.loss.several)

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """One if each replicate has its own participants; its memory is still rehearsed."""
        fitting = super().replicates_at_once(rehearse)
        return fitting if self.redraw is None else 1

    @property
    def targets(self) -> NDArray[Any]:
        """Targets of the present clients."""
        return take_values(self.problem.y, self.problem.present)

    def judge(self, world: World, method: Algorithm) -> "StreamJudge":
        """Errors and regrets so far."""
        require_lam(method)
        return StreamJudge(world.problem, len(world.streams.replicates), method.lam)

    def for_few_clients(self, clients: int) -> Problem:
        """The problem with only the first clients."""
        problem: Problem = self.problem
        if problem.clients <= clients:
            return problem
        streams = {name: getattr(problem, name)[:, :clients] for name in ("x", "y", "present")}
        return replace(problem, **streams, site=problem.site[:clients], **NO_ROWS)

    def first_round(self) -> Problem:
        """The problem with only the first round."""
        problem: Problem = self.problem
        one = {name: getattr(problem, name)[:1] for name in ("x", "y", "present")}
        return replace(problem, **one, **NO_ROWS)

    def hindsight_losses(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> Array:
        """Loss (T, K) of the best function in hindsight."""
        return hindsight_loss(self.problem, dictionary, method.lam, cache)

    def columns(self, judge: Any, elapsed: NDArray[np.float64], hindsight: Any = None) -> RecordColumns:
        """Errors and regrets, relative to the best function in hindsight."""
        return judge.columns(np.zeros((1, 1)) if hindsight is None else hindsight)

    def by_round(self, judge: Any, elapsed: NDArray[np.float64], hindsight: Any = None) -> Values:
        """Columns of the rounds, without the fits in hindsight, which only clients' columns need."""
        return judge.by_round(np.zeros((1, 1)) if hindsight is None else hindsight)

    def panels(self) -> Mapping[str, Panel]:
        """Errors and regrets so far."""
        loss = self.problem.loss
        regret = REGRET._replace(label=REGRET.label.format(loss=loss.words))
        return {loss.columns[0]: ERRORS[loss.columns[0]], "regret": regret, "calibration": CALIBRATION}

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Settings for 40 rounds of 4 clients; for a single learner, 100 rounds of one client."""
        return (*DIABETES, *(ALONE if getattr(algorithm, "alone", False) else SHORT))

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Predictions, norms and losses, whose first axes are replicates and clients."""
        return _outcome_arrays(outcome, len(world.streams.replicates), world.problem.clients)

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Other targets from a drawn round on: earlier rounds, and predictions in that round, must not change."""
        problem: Problem = self.problem
        replicates = outcome.y_hat.shape[0]
        for now in drawn_rounds(problem.rounds, MOST_PROBED, numbers):
            y = np.concatenate([problem.y[:now], other_values(problem.y, numbers)[now:]])
            some, why = (int(numbers.integers(replicates)),), f"other targets from round {now + 1} on"
            yield Probe(replace(problem, y=y), why, some, now, ("y_hat", "squared_norm", "variance"))


def _outcome_arrays(outcome: Outcome, replicates: int, clients: int) -> dict[str, Any]:
    """The arrays of an outcome by name.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If an array has another shape; the error names it.
    """
    # Every array that the outcome has, with the right shape
    arrays = {"y_hat": outcome.y_hat, "squared_norm": outcome.squared_norm()}
    arrays |= {} if outcome.loss is None else {"loss": outcome.loss}
    arrays |= {} if outcome.variance is None else {"variance": outcome.variance}
    arrays |= {} if outcome.log_density is None else {"log_density": outcome.log_density}
    arrays |= {} if outcome.value is None else {"value": outcome.value}
    for name, values in arrays.items():
        require_shape(f"Outcome.{name}", values, replicates, clients, *[None] * (name == "loss"))
    return arrays


def _require_fits_classes(run: Run, several: int) -> None:
    """Refuse what needs one function per method, or a real number, if each of several classes has its own function."""
    private = run.conditions.get("privacy")
    asked = (
        ("save_model", run.settings.saves_model, "false"),
        ("metrics", run.settings.metrics, "null"),
        ("engine", run.settings.engine if run.settings.engine == "jax" else None, "numba or numpy"),
        ("privacy", None if private is None else type(private).__name__, "null"),
    )
    for name, given, allowed in asked:
        require(not several or not given, name, given, f"{allowed} for a target of {several} classes")


def _thinned_stream(run: Run, problem: Problem, replicate: int) -> tuple[Problem, None]:
    """One replicate's stream, without the rounds of absent clients."""
    return problem.thinned(present_in_replicate(run, problem.present, replicate)), None


class StreamSums(NamedTuple):
    """Sums over the rounds in which a client is present.

    Parameters
    ----------
    errors : tuple of (R, K)
        What `PointwiseLoss.shown` has of f_hat, for a squared loss (f_hat - y)^2.
    loss : (R, K)
        L(f_hat).
    kernel_loss : (R, K, N) or None
        L(f_i); None for a method without kernels, or before the first round.
    """

    errors: tuple[Array, ...]
    loss: Array
    kernel_loss: Array | None

    def after(
        self, outcome: Outcome, y: Array, present: NDArray[np.bool_], lam: float, loss: PointwiseLoss
    ) -> "StreamSums":
        """The sums after a round with targets y and `present` (K,); numpy arrays change in place."""
        y_hat, squared_norm, of_round = outcome.y_hat, outcome.squared_norm(), outcome.loss
        of_kernels = self.kernel_loss
        # Losses by kernel appear in the first round that has them
        if of_round is not None and of_kernels is None:
            of_kernels = np.zeros(of_round.shape, of_round.dtype)
        # Traced arrays cannot change in place
        if is_traced(self.loss):
            shown = {name: present * one for name, one in loss.errors_of_predictions(y_hat, y).items()}
            total = self.loss + (shown[loss.column] + lam * present * squared_norm)
            if of_round is not None and of_kernels is not None:
                of_kernels = of_kernels + of_round * present[:, None]
            return StreamSums(tuple(map(add, self.errors, shown.values())), total, of_kernels)
        # Some clients at a time, to limit temporary arrays; parts without present clients are skipped
        for some in row_blocks(len(present), CLIENTS_AT_A_TIME):
            here = present[some]
            if not here.any():
                continue
            value = None if outcome.value is None else outcome.value[:, some]
            shown = {
                name: here * one for name, one in loss.errors_of_predictions(y_hat[:, some], y[some], value).items()
            }
            for summed, error in zip(self.errors, shown.values(), strict=True):
                summed[:, some] += error
            self.loss[:, some] += shown[loss.column] + lam * here * squared_norm[:, some]
            if of_round is not None and of_kernels is not None:
                of_kernels[:, some] += of_round[:, some] * here[:, None]
        return StreamSums(self.errors, self.loss, of_kernels)

    def terms(self) -> list[Array]:
        """Losses, regrets and errors, each summed over every tile of clients, (tiles, R)."""
        return [tile_sums(one) for one in (self.loss, self.regret_best_kernel, *self.errors)]

    @property
    def regret_best_kernel(self) -> Any:
        """Each client's regret so far, (R, K); NaN for a method without kernels."""
        if self.kernel_loss is None:
            return np.full(self.loss.shape, np.nan)
        if is_traced(self.loss):
            return self.loss - self.kernel_loss.min(axis=-1)
        regret = np.empty(self.loss.shape)
        for some in row_blocks(self.loss.shape[1], CLIENTS_AT_A_TIME):
            regret[:, some] = self.loss[:, some] - self.kernel_loss[:, some].min(axis=-1)
        return regret


class StreamJudge:
    """Judges predictions that were made before the method learned from the sample.

    L(f, y) = l(f, y) + lam |f|^2 with the method's loss l, which is (f - y)^2 by default. All sums are over the rounds
    in which a client is present; before the first such round, mse is NaN. Fits in hindsight use all samples, also those
    of absent clients. The norm of a function is that in the space of its kernel: |f_i|^2 = |theta_i|^2. In every
    method, a mixture f_hat = sum_i w_i f_i has the kernel sum_i w_i kappa_i, so |f_hat|^2 = sum_i w_i |theta_i|^2
    (`fkl.algorithms.base.mixture_norm`). Hence L(f_hat) <= sum_i w_i L(f_i), which Theorem 1 of POF-MKL needs.

    regret_best_kernel
        sum L(f_hat) - min_i sum L(f_i), the client's regret in POF-MKL, eq. (11).
    regret_hindsight
        sum L(f_hat) - sum L(f*), where f* is the best kernel ridge fit to all clients' data. Both sums have the same L,
        so |f*|^2 counts in every round. This is eq. (12) divided by K, with each client's part of both sums.
    regret_linear
        sum L(f_hat) - sum (f_lin - y)^2, f_lin the linear least squares fit to all clients' data; only at the end.
    regret_dynamic
        sum (f_hat - y)^2 - sum (E[y | x, t] - y)^2, compared with the best prediction in every round; only for
        generated data.
    mse, or pinball and below, or error and loss
        What `PointwiseLoss.shown` has of f_hat, a mean over all samples so far.
    mse_running_mean, mse_last_value, or others
        The same of predicting each client's mean target so far, or its last target, see `fkl.data.baselines`.
    mse_best_constant, or another error's
        The same of the best constant for all clients in hindsight; only at the end.
    r2
        1 - mse / variance of the targets; only at the end.
    rmse_in_units
        Root of mse in the target's units before scaling; only at the end.
    coverage_50, coverage_80, coverage_95, log_score, log_score_mixture
        For methods with a predictive variance, see `fkl.tasks.task`.
    conformal_coverage_80, conformal_length_80, ...
        With intervals, see `fkl.tasks.intervals`.
    mse_worst_tenth, mse_gini
        Mean mse of the worst 10 % of clients (at least one), and Gini coefficient of the clients' mse, which is 0 if
        all are equal; only at the end, like all columns in `fkl.tasks.task`.
    mse_worst_tenth_sites, mse_gini_sites
        The same for sites, each with the mse over all samples of its clients, if there are several sites.
    """

    def __init__(self, problem: Problem, replicates: int, lam: float) -> None:
        self.problem, self.lam = problem, lam
        # Sums of each client, and means of each round
        shape = (replicates, problem.clients)
        self.errors: tuple[Array, ...] = tuple(np.zeros(shape) for _ in problem.loss.columns)
        self.loss: Array = np.zeros(shape)
        self.kernel_loss: Array | None = None
        self.of_rounds = {name: np.zeros((problem.rounds, replicates)) for name in problem.loss.columns}
        self.mean_loss = np.zeros((problem.rounds, replicates))
        self.mean_regret_best_kernel = np.full((problem.rounds, replicates), np.nan)
        samples = np.cumsum(problem.clients_present)
        self._samples = np.where(samples > 0, samples, np.nan)
        self.calibration: Calibration | None = None
        self.row_losses: list[RowLosses] = []
        # Losses of all rounds are kept only if rows are judged one by one
        self._of_rounds = np.zeros((0 if problem.row is None else problem.rounds, *shape))
        self.booked, self._rounds = 0, problem.rounds
        self.metrics: dict[str, str] = {}
        self.intervals: AdaptiveIntervals | None = None
        self.own_losses: Values = {}

    def enter(self, t: int, outcome: Outcome) -> bool:
        """Record round t; return whether all sums are finite."""
        # The first outcome shows all shapes
        if t == 0:
            _outcome_arrays(outcome, *self.loss.shape)
        # Add to the sums, and record what else this run wants
        y, present = self.problem.y[t], self.problem.present[t]
        loss = self.problem.loss
        self.sums = self.sums.after(outcome, y, present, self.lam, loss)
        if len(self._of_rounds):
            self._of_rounds[t] = loss.errors_of_predictions(outcome.y_hat, y)[self.main]
        self.enter_variance(t, outcome.y_hat, outcome.variance, outcome.log_density)
        if self.intervals is not None:
            self.intervals.enter(t, outcome.y_hat, y, present)
        for name, path in self.metrics.items():
            losses = losses_of(name, path, y[present], outcome.y_hat[:, present])
            self.own_losses.setdefault(name, np.zeros(self.mean_loss.shape))[t] = losses.sum(axis=1)
        return self.add_sums(t, sums_in_order(self.sums.terms()))

    def enter_variance(self, t: int, y_hat: Array, variance: Array | None, log_density: Array | None = None) -> None:
        """Record the variances of predictions in round t and the targets' log densities, if the method has them."""
        if variance is None:
            return
        if self.calibration is None:
            self.calibration = Calibration.before_any_round(self.problem.rounds, *self.loss.shape)
        error = y_hat - self.problem.y[t]
        self.calibration.enter(t, error, variance, self.problem.present[t], self._samples[t], log_density)

    def add_sums(self, t: int, totals: Sequence[Array]) -> bool:
        """Record the sums (R,) over all clients after round t, see `Sums.terms`; return whether none is too large."""
        loss, regret, *errors = totals
        clients = self.problem.clients
        self.mean_loss[t], self.mean_regret_best_kernel[t] = loss / clients, regret / clients
        for mean, total in zip(self.of_rounds.values(), errors, strict=True):
            mean[t] = total / self._samples[t]
        self.booked = t + 1
        of_kernels = self.kernel_loss is not None
        known = self.mean_loss[t] + self.mean_regret_best_kernel[t] if of_kernels else self.mean_loss[t]
        return bool((np.abs(known) < LARGEST_ERROR).all())  # False for NaN

    @property
    def sums(self) -> "StreamSums":
        """The sums so far."""
        return StreamSums(self.errors, self.loss, self.kernel_loss)

    @sums.setter
    def sums(self, sums: "StreamSums") -> None:
        self.errors, self.loss, self.kernel_loss = sums

    @property
    def main(self) -> str:
        """The error by which methods are compared."""
        return self.problem.loss.columns[0]

    def end(self, t: int) -> None:
        """Ignore all rounds after the first t."""
        self._rounds = t

    def close(self) -> None:
        """Store the losses of all rows with the rows' numbers, if these are known."""
        played, losses = self.problem.first_rounds(self._rounds), self._of_rounds[: self._rounds].swapaxes(0, 1)
        row, present = played.row, played.present
        if row is not None:
            self.row_losses = [RowLosses(row[present], of_replicate[present]) for of_replicate in losses]

    def by_round(self, best: Array) -> Values:
        """Errors and regrets of all rounds; `best` is as in `columns`."""
        # Regret to the best function is the sum of losses minus that of the best
        problem = self.problem
        best = _where_present(problem, best)
        rounds: Values = {
            **self.of_rounds,
            "regret_best_kernel": self.mean_regret_best_kernel,
            "regret_hindsight": self.mean_loss - np.cumsum(best.mean(axis=1))[:, None],
            **{
                name: np.broadcast_to((np.cumsum(errors.sum(axis=1)) / self._samples)[:, None], self.mean_loss.shape)
                for name, errors in baseline_errors(problem).items()
            },
        }
        # Calibration, intervals, regret to the true function, and a user's metrics
        if self.calibration is not None:
            rounds |= self.calibration.by_round()
        if self.intervals is not None:
            rounds |= self.intervals.by_round()
        if problem.expected is not None and self.main == "mse":
            noise = problem.present * (problem.expected - problem.y) ** 2
            squared_errors = self.of_rounds["mse"] * self._samples[:, None]
            rounds["regret_dynamic"] = (squared_errors - np.cumsum(noise.sum(axis=1))[:, None]) / problem.clients
        for name, sums in self.own_losses.items():
            rounds[name] = np.cumsum(sums, axis=0) / self._samples[:, None]
        return rounds

    def columns(self, best: Array) -> RecordColumns:
        """All columns; `best` (T, K) is the loss of the best function in hindsight for all samples."""
        # The run may have ended early
        problem, shape = self.problem.first_rounds(self._rounds), self.loss.shape
        best_of_all, linear = (loss[: self._rounds] for loss in (best, linear_loss(self.problem)))
        # Clients in blocks, since baselines need copies of their streams
        clients: Values = {}
        for some in row_blocks(problem.clients):
            best_and_linear = np.broadcast_to(best_of_all, problem.y.shape)[:, some], linear[:, some]
            for name, values in self._of_clients(some, problem.of_clients(some), *best_and_linear).items():
                if name not in clients:
                    clients[name] = np.empty((*values.shape[:-1], shape[1]), values.dtype)
                clients[name][..., some] = values
        # Columns that exist only in total
        samples = clients["rounds"]
        if self.calibration is not None:
            clients |= self.calibration.by_client(samples)
        if self.intervals is not None:
            clients |= self.intervals.covered.columns()
        summary: Values = {name: np.full(shape[0], error) for name, error in best_constant(problem).items()}
        if problem.expected is not None and self.main == "mse":
            noise = problem.present * (problem.expected - problem.y) ** 2
            clients["regret_dynamic"] = self.errors[0] - noise.sum(axis=0)
        if self.main == "mse":
            variance = float(variance_of(take_values(problem.y, problem.present)))
            summary |= in_units(self.of_rounds["mse"][self._rounds - 1], variance, problem.scale.y_unit)
        return RecordColumns(
            self.by_round(best), clients, summary | fairness_columns(self.main, self.errors[0], samples, problem.site)
        )

    def _of_clients(self, some: slice, problem: Problem, best: Array, linear: Array) -> Values:
        """Columns of some clients, from their streams and the losses of the best functions on these."""
        # Means of a client are over the rounds in which it was present
        samples, mean = problem.present.sum(axis=0), np.maximum(problem.present.sum(axis=0), 1)
        of_kernels = None if self.kernel_loss is None else self.kernel_loss[:, some]
        sums = StreamSums(tuple(one[:, some] for one in self.errors), self.loss[:, some], of_kernels)
        best, linear = (np.where(problem.present, loss, 0.0) for loss in (best, linear))
        errors = {name: one / mean for name, one in zip(self.of_rounds, sums.errors, strict=True)}
        of_target: Values = {}
        if self.main == "mse":
            variance = np.var(problem.y, axis=0, where=problem.present | (samples == 0))
            of_target = in_units(errors["mse"], variance, problem.scale.y_unit)
        return {
            "rounds": samples,
            **errors,
            "regret_best_kernel": sums.regret_best_kernel,
            "regret_hindsight": sums.loss - best.sum(axis=0),
            "regret_linear": sums.loss - linear.sum(axis=0),
            **{name: errors.sum(axis=0) / mean for name, errors in baseline_errors(problem).items()},
            **of_target,
        }

    @property
    def regret_best_kernel(self) -> NDArray[np.float64]:
        """Each client's regret so far, (R, K); NaN for a method without kernels."""
        return self.sums.regret_best_kernel


def _where_present(problem: Problem, values: Array) -> Array:
    """Values (T, K), or one value for all, with 0 where a client is absent."""
    made = np.empty(problem.y.shape)
    for some in row_blocks(problem.clients):
        made[:, some] = np.where(problem.present[:, some], np.broadcast_to(values, made.shape)[:, some], 0.0)
    return made
