"""Which column of a summary says how well a run did, and which way is better."""

from collections.abc import Iterable

from fkl.basics.errors import FklError, require

MAIN = ("mse", "test_mse", "test_error", "train_mse", "train_error")
"""Errors of fkl's own tasks; the first that a run has is its main metric."""
NOT_ERRORS = ("replicate", "round", "runtime_s", "runtime_per_client_s", "communication_s")
LARGER_IS_BETTER = ("r2",)
WORDS = {
    "mse": "mean squared error so far\n(of the scaled target)",
    "test_mse": "mean squared error of test samples\n(of the scaled target)",
    "train_mse": "mean squared error of training samples\n(of the scaled target)",
    "test_error": "share of test samples\non the wrong side",
    "train_error": "share of training samples\non the wrong side",
}
"""Labels of metrics with their units; other metrics are labelled by their names."""


def main_metric(columns: Iterable[object]) -> str:
    """The column of a summary that a run is judged by, if nothing else is asked for.

    Parameters
    ----------
    columns : iterable of str
        Of its summary.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is none.
    """
    known = [*map(str, columns)]
    found = [name for name in MAIN if name in known] + [name for name in known if name not in NOT_ERRORS]
    if not found:
        raise FklError("summary.csv: has no column to judge a run by")
    return found[0]


def require_metric(name: str, columns: Iterable[str]) -> str:
    """Refuse a metric that no run has."""
    known = sorted({*columns} - {"replicate"})
    require(name in known, "metric", name, f"one of {', '.join(known)}")
    return name
