"""The column of a summary by which a run is judged, and whether larger is better."""

from collections.abc import Iterable
from typing import Any

from fkl.basics.errors import BadValue, FklError, did_you_mean

MAIN = ("mse", "error", "pinball", "test_mse", "test_error", "train_mse", "train_error")
"""Errors of fkl's own tasks; a run's main metric is the first that it has."""
NOT_ERRORS = ("replicate", "round", "runtime_s", "runtime_per_client_s", "communication_s")
ACCURACIES = {"error": "accuracy", "test_error": "test_accuracy", "train_error": "train_accuracy"}
"""Column with the share of right classes, for each column with the share of wrong ones."""
LARGER_IS_BETTER = ("r2", *ACCURACIES.values())
WORDS = {
    "mse": "mean squared error so far\n(of the scaled target)",
    "error": "share of mistakes so far",
    "pinball": "mean pinball loss so far\n(of the scaled target)",
    "test_mse": "mean squared error of test samples\n(of the scaled target)",
    "train_mse": "mean squared error of training samples\n(of the scaled target)",
    "test_error": "share of test samples\non the wrong side",
    "train_error": "share of training samples\non the wrong side",
}
"""Labels of metrics with their units; other metrics are labelled by their names."""


def main_metric(columns: Iterable[object]) -> str:
    """The main metric of a run: a column of its summary.

    Parameters
    ----------
    columns : iterable of str
        Columns of its summary.

    Raises
    ------
    fkl.basics.errors.FklError
        If no column can be the main metric.
    """
    known = [*map(str, columns)]
    found = [name for name in MAIN if name in known] + [name for name in known if name not in NOT_ERRORS]
    if not found:
        raise FklError("summary.csv: has no column by which a run can be judged")
    return found[0]


def with_accuracies(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns, with 1 - error behind each error of classes."""
    found = {}
    for name, values in columns.items():
        found[name] = values
        if name in ACCURACIES:
            found[ACCURACIES[name]] = 1 - values
    return found


def require_metric(name: str, columns: Iterable[str], key: str = "metric") -> str:
    """Refuse a metric, the value of this key, that is not in any run."""
    known = [one for one in columns if one != "replicate"]
    if name not in known:
        raise BadValue(key, name, f"one of {', '.join(known)}", did_you_mean(name, known))
    return name
