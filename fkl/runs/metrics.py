"""The column of a summary by which a run is judged, and whether larger is better."""

from collections.abc import Iterable

from fkl.basics.errors import FklError, require

MAIN = ("mse", "error", "pinball", "test_mse", "test_error", "train_mse", "train_error")
"""Errors of fkl's own tasks; a run's main metric is the first that it has."""
NOT_ERRORS = ("replicate", "round", "runtime_s", "runtime_per_client_s", "communication_s")
LARGER_IS_BETTER = ("r2",)
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


def require_metric(name: str, columns: Iterable[str]) -> str:
    """Refuse a metric that is not in any run."""
    known = sorted({*columns} - {"replicate"})
    require(name in known, "metric", name, f"one of {', '.join(known)}")
    return name
