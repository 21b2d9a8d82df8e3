"""The column of a summary by which a run is judged, which function it is, and whether larger is better."""

import re
from collections.abc import Iterable, Mapping
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
    # A column of the known errors, otherwise the first column that may be one
    names = [*map(str, columns)]
    candidates = [name for name in MAIN if name in names] + [name for name in names if name not in NOT_ERRORS]
    if not candidates:
        raise FklError("summary.csv: has no column by which a run can be judged")
    return candidates[0]


AT = {"quantile": "algo.level", "huber": "algo.delta"}
"""Key of the loss's parameter, for losses that have one."""
IN_OTHER_UNITS = re.compile(
    r"r2|rmse_in_units|(test_|train_)?(error|accuracy)|below|epsilon|.*_(bytes|messages|scalars|s)$"
)
"""Columns that are not in units of the scaled target."""
PREFIX = re.compile(r"(test|train)_")


def defining_keys(metric: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that decide which function of predictions and targets a metric is, with their values in a run.

    Two values of a metric are comparable only if these are equal, and those of `keys_of_samples`.

    Parameters
    ----------
    metric : str
        A column of the run's summary.
    config : mapping
        The run's resolved configuration.

    Examples
    --------
    >>> defining_keys("pinball", {"algo": {"loss": "quantile", "level": 0.9}})
    {'algo.level': 0.9}
    >>> defining_keys("mse", {"algo": {"loss": "huber", "delta": 0.1}})
    {}
    """

    def value(key: str) -> Any:
        group, _, name = key.partition(".")
        node = config.get(group)
        return node.get(name) if isinstance(node, Mapping) else None

    # The name without the part that says on which samples it is
    name = PREFIX.sub("", metric)
    loss = value("algo.loss")
    keys = ["algo.test_share", "algo.test_on", "algo.fold"] if PREFIX.match(metric) else []
    # A user's metric, a quantile, a loss or a bound: each has keys that define it
    if name in (config.get("metrics") or {}):
        keys.append(f"metrics.{name}")
    elif re.match(r"pinball|below", name):
        keys.append("algo.level")
    elif re.match(r"loss|regret", name):
        keys += ["algo.loss", *([AT[loss]] if loss in AT else [])]
    elif name.startswith("epsilon"):
        keys += ["privacy.delta", "audit.level"]
    values = {key: value(key) for key in keys}
    return {key: one for key, one in values.items() if one is not None}


def keys_of_samples(metric: str) -> tuple[str, ...]:
    """Keys of the data that a metric depends on whatever the predictions: which samples are judged, in which units."""
    return ("dataset", "dataset.target", "rows", *(() if IN_OTHER_UNITS.match(metric) else ("scaling",)))


def with_accuracies(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns, with 1 - error behind each error of classes."""
    accuracies = {}
    for name, values in columns.items():
        accuracies[name] = values
        if name in ACCURACIES:
            accuracies[ACCURACIES[name]] = 1 - values
    return accuracies


def require_metric(name: str, columns: Iterable[str], key: str = "metric") -> str:
    """Refuse a metric, the value of this key, that is not in any run."""
    metrics = [one for one in columns if one != "replicate"]
    if name not in metrics:
        raise BadValue(key, name, f"one of {', '.join(metrics)}", did_you_mean(name, metrics))
    return name
