"""A user's own metrics, ``metrics.mae=my_module.mae``: functions of y and y_hat, whose means judges report."""

import sys

import numpy as np

from fkl.basics.errors import FklError, with_own_line
from fkl.contract.world import Array


def losses_of(name: str, path: str, y: Array, y_hat: Array) -> Array:
    """Loss of each prediction.

    Parameters
    ----------
    name, path : str
        Name of the metric and path of its function; checking the configuration has imported its module. A judge holds
        no function, because checkpoints cannot store one.
    y : (n,)
    y_hat : (..., n)

    Returns
    -------
    (..., n) array
        NaN if a prediction is not finite, which other code reports.
    """
    targets, predictions = np.broadcast_to(y, y_hat.shape).flatten(), y_hat.astype(np.float64).flatten()
    if not len(targets) or not np.isfinite(predictions).all():
        return np.full(y_hat.shape, np.nan)
    module, _, function = path.rpartition(".")
    try:
        losses = np.asarray(getattr(sys.modules[module], function)(targets, predictions), dtype=np.float64)
    except Exception as error:  # any error in the user's own function is reported in one line
        raise FklError(f"metrics.{name}={path}: {with_own_line(error)}") from error
    if losses.shape != targets.shape or not np.isfinite(losses).all():
        what = f"array of shape {losses.shape}" if losses.shape != targets.shape else "loss that is not finite"
        raise FklError(
            f"metrics.{name}={path}: must return a finite loss for each of {len(targets)} samples, not {what}"
        )
    return losses.reshape(y_hat.shape)
