"""Errors of predictions without learning, on the samples on which methods are judged."""

from bisect import insort
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.memory import take_values
from fkl.data.problem import Problem

CLIENTS_AT_A_TIME = 4096
CONSTANTS = {
    "mse": {
        "mse_running_mean": "each client's mean target so far",
        "mse_last_value": "each client's last target",
        "mse_best_constant": "the best constant in hindsight",
    },
    "error": {
        "error_majority": "the class that most of each client's samples so far have",
        "error_last_class": "each client's last class",
        "error_best_constant": "the best constant in hindsight",
    },
    "pinball": {
        "pinball_running_quantile": "the quantile of each client's targets so far",
        "pinball_last_value": "each client's last target",
        "pinball_best_constant": "the best constant in hindsight",
    },
    "test_mse": {"test_mse_training_mean": "the mean target of the training samples"},
    "test_error": {"test_error_majority": "the class that most training samples have"},
}
"""For each error column of a summary, the columns of its baselines and their predictions."""
BLOWN_UP = 1e6
"""A finite error counts as diverged if it is more than this many times the worst baseline's error."""


def baseline_errors(problem: Problem) -> dict[str, Array]:
    """Errors (T, K) of predictors that see a target only after predicting it, by the columns of their means.

    Each client has its own predictors, which predict 0 before its first target, as methods do, or no class. The class
    that most samples so far have is the last one seen where several have as many. 0 for absent clients.
    """
    # Which two predictors suit the loss: of classes, of a quantile, or of the mean
    loss = problem.loss
    main = loss.columns[0]
    names = {"error": ("majority", "last_class"), "pinball": ("running_quantile", "last_value")}
    so_far, last_one = names.get(main, ("running_mean", "last_value"))
    no_class = float(loss.several)  # 0 is no class of two, and C none of C, see `PointwiseLoss.shown`
    errors: dict[str, Array] = {f"{main}_{name}": np.empty(problem.y.shape) for name in (so_far, last_one)}
    # Some clients at a time, to limit copies as large as y.
    for start in range(0, problem.clients, CLIENTS_AT_A_TIME):
        columns = slice(start, start + CLIENTS_AT_A_TIME)
        # Rounds (T,) and some clients; absent ones have y = 0 and do not count
        present = problem.present[:, columns]
        y = np.where(present, problem.y[:, columns], 0.0)
        # The number of targets that the client has seen before each round, and its last round
        before: NDArray[np.int64] = np.cumsum(present, axis=0) - present
        rounds = np.where(present, np.arange(1, len(y) + 1)[:, None], 0)
        last = np.zeros_like(rounds)
        np.maximum.accumulate(rounds[:-1], axis=0, out=last[1:])  # the client's last round, 0 before the first
        last_value = np.where(last > 0, np.take_along_axis(y, np.maximum(last - 1, 0), axis=0), no_class)
        # The guess from all earlier targets: the usual class, the running quantile, or the mean
        if loss.classes:
            guess = _majority_class(y, present, loss.class_values if loss.several else np.array([-1.0, 1.0]))
            guess = np.where(before > 0, guess, no_class)
        elif main == "pinball":
            guess = _running_quantile(y, present, loss.at)
        else:
            guess = (np.cumsum(y, axis=0) - y) / np.maximum(before, 1)
        # Errors of both guesses in the rounds in which the client is present
        for error, f in zip(errors.values(), (guess, last_value), strict=True):
            error[:, columns] = np.where(present, loss.errors_of_predictions(f, y)[main], 0.0)
    return errors


def _majority_class(y: Array, present: NDArray[np.bool_], classes: Array) -> Array:
    """The class that most of each client's samples before each round have, (T, K); of several, the last one seen."""
    rounds, counts = np.arange(1, len(y) + 1)[:, None] / (len(y) + 1), []
    for class_value in classes:
        seen = present & (y == class_value)
        last = np.maximum.accumulate(np.where(seen, rounds, 0.0), axis=0)  # below 1, so it decides ties only
        counts.append(np.vstack([np.zeros((1, y.shape[1])), (np.cumsum(seen, axis=0) + last)[:-1]]))
    named: Array = classes[np.argmax(counts, axis=0)]
    return named


def best_constant(problem: Problem) -> dict[str, Array]:
    """Error of the best constant for the targets of all clients together, known in hindsight, by its column."""
    loss, main, y = problem.loss, problem.loss.columns[0], take_values(problem.y, problem.present)
    if loss.classes:
        named = np.unique(y, return_counts=True)
        constant = named[0][named[1].argmax()]
    else:
        constant = np.quantile(y, loss.at, method="inverted_cdf") if main == "pinball" else y.mean()
    return {f"{main}_best_constant": np.mean(loss.errors_of_predictions(np.full(len(y), constant), y, 0.0)[main])}


def _running_quantile(y: Array, present: NDArray[np.bool_], level: float) -> Array:
    """The quantile at this level of each client's targets before each round, (T, K): the least with this share."""
    quantiles = np.zeros(y.shape)
    for k in range(y.shape[1]):
        seen: list[float] = []
        for t in range(len(y)):
            if seen:
                quantiles[t, k] = seen[max(0, int(np.ceil(level * len(seen))) - 1)]
            if present[t, k]:
                insort(seen, float(y[t, k]))
    return quantiles


def explained_variance(mse: Array, variance: Array | float) -> Array:
    """R2, 1 - mse / variance of the targets: 0 for the best constant; NaN if the targets do not differ."""
    spread = np.where(np.asarray(variance) > 0, variance, np.nan)
    share: Array = 1 - mse / spread
    return share


def constant_error(training: Array, tested: Array, classes: bool) -> float:
    """Error of the best constant for the training targets: share of wrong classes, or mean squared error.

    NaN without training or test samples.
    """
    if not len(training) or not len(tested):
        return np.nan
    if not classes:
        return float(np.square(tested - training.mean()).mean())
    values, counts = np.unique(training, return_counts=True)
    return float((tested != values[counts.argmax()]).mean())


def best_constant_errors(learned: Iterable[Array], tested: Iterable[Array], classes: bool) -> dict[str, Array]:
    """The column with the best constant's error in each replicate, from training and test targets."""
    errors = [constant_error(*both, classes) for both in zip(learned, tested, strict=True)]
    return {"test_error_majority" if classes else "test_mse_training_mean": np.array(errors)}


def in_units(mse: Array, variance: Array | float, unit: float) -> dict[str, Array]:
    """Columns of an error in other measures: R2, and its square root in the target's own units."""
    return {"r2": explained_variance(mse, variance), "rmse_in_units": np.sqrt(mse) * unit}


def summary_means(summary: Mapping[str, Array]) -> dict[str, float]:
    """Mean over replicates of each column of a summary, without missing values; NaN if all are missing."""
    known = {name: values[values == values] for name, values in summary.items()}
    return {name: float(values.mean()) if values.size else float("nan") for name, values in known.items()}


def blown_up(summary: Mapping[str, Array]) -> NDArray[np.bool_]:
    """(R,) Whether each replicate of a summary ended with an error as large as that of a diverged run."""
    is_blown_up = np.zeros(len(next(iter(summary.values()))), dtype=bool)
    for error, constants in CONSTANTS.items():
        constants_known = [name for name in constants if name in summary]
        if error in summary and constants_known:
            is_blown_up |= summary[error] > BLOWN_UP * np.fmax.reduce([summary[name] for name in constants_known])
    return is_blown_up


def not_beaten(summary: Mapping[str, Array]) -> str | None:
    """A sentence on the baselines that a run's mean error does not beat; None if it beats all."""
    mean = summary_means(summary)
    for error in filter(mean.__contains__, CONSTANTS):
        words_of = {name: words for name, words in CONSTANTS[error].items() if name in mean}
        above = [f"the {mean[name]:.3g} of {words}" for name, words in words_of.items() if mean[error] >= mean[name]]
        if above:
            return f"{error} {mean[error]:.3g} is not below {' nor '.join(above)}"
    return None
