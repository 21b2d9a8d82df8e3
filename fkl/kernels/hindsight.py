"""What a fit to all samples would have lost in hindsight: of the best kernel, kept once computed, and a linear one."""

import hashlib
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fkl.basics.files import CannotWriteError, DamagedError, read_sealed, write_sealed
from fkl.data.problem import Problem
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.ridge import RECIPE, WORK, best_ridge_loss
from fkl.kernels.threads import at_most

LOSSES = "losses"


def hindsight_loss(
    problem: Problem, dictionary: Dictionary, lam: float, cache: Path | None = None
) -> NDArray[np.float64]:
    """Loss (T, K) of the best kernel ridge fit to all samples; 0 where a client has none.

    NaN for a method without regularisation, whose best function in hindsight would go through every sample.

    Parameters
    ----------
    problem : Problem
    dictionary : Dictionary
    lam : float
        Of the method.
    cache : Path or None
        Folder to look in and to keep it in; None for neither.
    """
    if lam == 0:
        return np.full(problem.everywhere.shape, np.nan)
    x, y = problem.x[problem.everywhere].astype(np.float64), problem.y[problem.everywhere]
    loss = np.zeros(problem.everywhere.shape)
    file = None if cache is None else cache / "hindsight" / f"{_digest(dictionary, lam, x, y)}.npz"
    best = None if file is None else _kept(file, len(y))
    if best is None:
        best = best_ridge_loss(dictionary, x, y, lam)
        if file is not None:
            with suppress(CannotWriteError):  # a cache that cannot be written only costs time
                write_sealed(file, {LOSSES: best})
    loss[problem.everywhere] = best
    return loss


def linear_loss(problem: Problem) -> NDArray[np.float64]:
    """Squared error (T, K) of the least squares fit of a linear function with intercept to all samples.

    0 where a client has none; NaN where samples times squared features are more than `fkl.kernels.ridge.WORK`.
    """
    x, y = problem.x[problem.everywhere].astype(np.float64), problem.y[problem.everywhere]
    if x.size * problem.dimension > WORK:
        return np.full(problem.everywhere.shape, np.nan)
    x -= x.mean(axis=0)
    x /= np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    centred = y - y.mean()
    with at_most(1):
        slope = np.linalg.lstsq(x.T @ x, x.T @ centred, rcond=None)[0]
    loss = np.zeros(problem.everywhere.shape)
    loss[problem.everywhere] = (x @ slope - centred) ** 2
    return loss


def _digest(dictionary: Dictionary, lam: float, x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Hash of all that the fit depends on."""
    digest = hashlib.sha256(repr((RECIPE, dictionary.families, x.shape, lam)).encode())
    for array in (dictionary.scales, x, y):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:24]


def _kept(file: Path, samples: int) -> NDArray[np.float64] | None:
    """What was kept; None where there is nothing, or nothing that is as it was written."""
    try:
        best = read_sealed(file).get(LOSSES)
    except (OSError, DamagedError):
        return None
    usable = best is not None and best.shape == (samples,) and best.dtype == np.float64 and (best >= 0).all()
    return best if usable else None
