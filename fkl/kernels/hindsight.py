"""Losses of fits to all samples in hindsight: for the best kernel, which is cached, and for a linear function."""

import hashlib
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fkl.basics.files import CannotWriteError, DamagedError, read_sealed, write_sealed
from fkl.basics.large_arrays import by_block, chosen, empty, spread, variance
from fkl.data.problem import Problem
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.ridge import RECIPE, WORK, best_ridge_loss
from fkl.kernels.threads import at_most

LOSSES = "losses"
MOST_CACHED = 2**25
"""Samples whose losses are worth a file."""


def hindsight_loss(
    problem: Problem, dictionary: Dictionary, lam: float, cache: Path | None = None
) -> NDArray[np.float64]:
    """Loss (T, K) of the best kernel ridge fit to all samples; 0 in rounds without a sample.

    NaN for a method without regularisation, whose best function in hindsight would go through every sample.

    Parameters
    ----------
    problem : Problem
    dictionary : Dictionary
    lam : float
        The method's lambda.
    cache : Path or None
        Folder of the cache; None for no cache.
    """
    if lam == 0:
        return np.broadcast_to(np.nan, problem.everywhere.shape)
    x, y = chosen(problem.x, problem.everywhere, np.float64), chosen(problem.y, problem.everywhere)
    best = file = None
    if cache is not None and len(y) <= MOST_CACHED:
        digest = hashlib.sha256(repr((RECIPE, dictionary.families, x.shape, lam)).encode())
        for array in (dictionary.scales, x, y):  # everything on which the fit depends
            digest.update(np.ascontiguousarray(array).data)
        file = cache / "hindsight" / f"{digest.hexdigest()[:24]}.npz"
        with suppress(OSError, DamagedError):  # no file, or one that has changed since it was written
            found = read_sealed(file).get(LOSSES)
            if found is not None and found.shape == (len(y),) and found.dtype == np.float64 and (found >= 0).all():
                best = found
    if best is None:
        best = best_ridge_loss(dictionary, x, y, lam)
        if file is not None:
            with suppress(CannotWriteError):  # a cache that cannot be written costs only time
                write_sealed(file, {LOSSES: best})
    return spread(best, problem.everywhere)


def linear_loss(problem: Problem) -> NDArray[np.float64]:
    """Squared error (T, K) of the least squares fit of a linear function with intercept to all samples.

    0 in rounds without a sample; NaN if samples times squared features exceed `fkl.kernels.ridge.WORK`.
    """
    everywhere = problem.everywhere
    if np.count_nonzero(everywhere) * problem.dimension**2 > WORK:
        return np.broadcast_to(np.nan, everywhere.shape)
    x, y = chosen(problem.x, everywhere, np.float64), chosen(problem.y, everywhere)
    x = by_block(partial(_less, x.mean(axis=0)), x)
    deviation = np.sqrt(variance(x))
    x /= np.where(deviation > 0, deviation, 1)
    centred = by_block(partial(_less, y.mean()), y)
    with at_most(1):
        slope = np.linalg.lstsq(x.T @ x, x.T @ centred, rcond=None)[0]
    loss = np.matmul(x, slope, out=empty(len(y)))
    loss -= centred
    return spread(np.square(loss, out=loss), everywhere)


def _less(mean: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values - mean
