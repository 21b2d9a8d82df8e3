"""Losses of fits to all samples in hindsight: with the best kernel (these are cached), and with a linear function.

The fit minimises the method's loss with its regulariser, so for a squared loss it is kernel ridge regression. It is the
comparator for regret in hindsight: POF-MKL, eq. (12); graph-aided OMKL, eqs. (10) and (11).
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from fkl.basics.arrays import Array
from fkl.basics.files import CannotWriteError, DamagedError, read_sealed, write_sealed
from fkl.basics.memory import by_block, chosen, empty, spread, variance
from fkl.basics.pointwise import HINGE, QUANTILE, SQUARE, SQUARED, PointwiseLoss
from fkl.data.problem import Problem
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.threads import at_most, in_parts

CONTENDERS = 2
WORK = 3e10
"""Largest product of rows and squared landmarks: about three seconds per kernel."""
SCREENING_ROWS, SCREENING_LANDMARKS = 1000, 150
FORM = 3
"""Version of the arithmetic; versions round differently."""
RECIPE = CONTENDERS, WORK, SCREENING_ROWS, SCREENING_LANDMARKS, FORM
"""Everything on which the quality of the approximation and its last digits depend."""
BLOCK_ROWS = 8192


def best_loss(dictionary: Dictionary, x: Array, y: Array, lam: float, loss: PointwiseLoss = SQUARED) -> Array:
    """Loss of every sample under the best single kernel's fit to all of them.

    The fit minimises sum_j l(f(x_j), y_j) + n lam |f|_H^2 over the span of as many evenly spaced samples as `WORK`
    allows (Nystroem; exact up to 3100 rows, then 1580 samples for 12000 rows, 500 for 120000). Only the best
    `CONTENDERS` kernels are fitted, as ranked by the same fit to `SCREENING_ROWS` evenly spaced rows.

    Parameters
    ----------
    dictionary : Dictionary
    x : (n, d)
    y : (n,)
    lam : float
    loss : PointwiseLoss
        l.

    Returns
    -------
    (n,)
        l(f(x_j), y_j) + lam |f|_H^2.
    """
    some = _evenly_spread(len(x), SCREENING_ROWS)
    with at_most(None):
        screened = _losses(dictionary, range(dictionary.N), x[some], y[some], lam, SCREENING_LANDMARKS, loss)
        contenders = np.argsort([of_fit.sum() for of_fit in screened], kind="stable")[:CONTENDERS]
        return min(_losses(dictionary, contenders, x, y, lam, int(np.sqrt(WORK / len(x))), loss), key=np.sum)


def _losses(
    dictionary: Dictionary, kernels: Iterable[int], x: Array, y: Array, lam: float, landmarks: int, loss: PointwiseLoss
) -> list[Array]:
    """Losses (n,) of the fits of some kernels, several at once."""
    each = [int(i) for i in kernels]
    losses: list[Array] = [y] * len(each)

    def fit(begin: int, end: int) -> None:
        for place in range(begin, end):
            own = dictionary, each[place], x, y, lam, landmarks
            losses[place] = _ridge_loss(*own) if loss.kind == SQUARE else _convex_loss(*own, loss)

    in_parts(fit, len(each))
    return losses


def _ridge_loss(dictionary: Dictionary, i: int, x: Array, y: Array, lam: float, count: int) -> Array:
    landmarks = x[_evenly_spread(len(x), count)]
    m, blocks = len(landmarks), list(row_blocks(len(x), 1, BLOCK_ROWS))
    root = scipy.linalg.cholesky(dictionary.gram(i, landmarks, landmarks) + 1e-9 * np.eye(m), lower=True)
    inverse, _ = dtrtri(root, lower=1)

    covariance, correlation = (len(x) * lam + 1e-12) * np.eye(m), np.zeros(m)
    for block in blocks:
        # Features phi = L^-1 k(landmarks, x_j), with L L' the kernel on the landmarks; |f|_H is then |beta|
        gram = dictionary.gram(i, landmarks, x[block])
        phi = dtrmm(1.0, inverse, gram.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        covariance += phi @ phi.T
        correlation += phi @ y[block]
    beta = scipy.linalg.cho_solve(scipy.linalg.cho_factor(covariance), correlation)
    loss = empty(len(y))
    for block in blocks:
        f = beta @ phi if len(blocks) == 1 else beta @ inverse @ dictionary.gram(i, landmarks, x[block])
        loss[block] = (f - y[block]) ** 2 + lam * float(beta @ beta)
    return loss


MOST_LANDMARKS = 500
"""Landmarks of a fit that takes hundreds of steps."""
WIDTHS = (0.1, 0.01, 1e-3)
"""Widths to which the kink of a piecewise linear loss is smoothed, one fit after another."""


def _convex_loss(
    dictionary: Dictionary, i: int, x: Array, y: Array, lam: float, count: int, loss: PointwiseLoss
) -> Array:
    """As `_ridge_loss` for another loss, by L-BFGS; a piecewise linear loss by its Moreau envelopes."""
    landmarks = x[_evenly_spread(len(x), min(count, MOST_LANDMARKS))]
    root = scipy.linalg.cholesky(dictionary.gram(i, landmarks, landmarks) + 1e-9 * np.eye(len(landmarks)), lower=True)
    phi = scipy.linalg.solve_triangular(root, dictionary.gram(i, landmarks, x), lower=True)
    beta = np.zeros(len(landmarks))
    linear = loss.kind in (HINGE, QUANTILE)
    for width in WIDTHS if linear else (0.0,):

        def objective(beta: Array, width: float = width) -> tuple[float, Array]:
            f = beta @ phi
            value, slope = loss.envelope(f, y, width) if width else (loss.value(f, y), loss.derivative(f, y))
            return value.sum() / len(y) + lam * float(beta @ beta), phi @ slope / len(y) + 2 * lam * beta

        options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-7}
        beta = scipy.optimize.minimize(objective, beta, jac=True, method="L-BFGS-B", options=options).x
    return loss.value(beta @ phi, y) + lam * float(beta @ beta)


def _evenly_spread(count: int, wanted: int) -> NDArray[np.int64]:
    """At most `wanted` of `count` indices, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).astype(np.int64))


LOSSES = "losses"
MOST_CACHED = 2**25
"""Largest number of samples whose losses are cached."""


def hindsight_loss(
    problem: Problem, dictionary: Dictionary, lam: float, cache: Path | None = None
) -> NDArray[np.float64]:
    """Loss (T, K) of the best kernel's fit to all samples; 0 in rounds without a sample.

    For several classes it is the sum of every class's fit against the rest, with the best kernel of that class. It is
    NaN for a method without regularisation: its best function in hindsight would go through every sample.

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
    if (loss := problem.loss).several:
        each = (replace(problem, y=signs, loss=loss.of_one_class) for signs in loss.signs(problem.y))
        return np.sum([hindsight_loss(one, dictionary, lam, cache) for one in each], axis=0)
    x, y = chosen(problem.x, problem.everywhere, np.float64), chosen(problem.y, problem.everywhere)
    best = file = None
    of_loss = () if problem.loss == SQUARED else (tuple(problem.loss), MOST_LANDMARKS, WIDTHS)
    if cache is not None and len(y) <= MOST_CACHED:
        digest = hashlib.sha256(repr((RECIPE, dictionary.families, x.shape, lam, *of_loss)).encode())
        for array in (dictionary.scales, x, y):  # all that the fit depends on
            digest.update(np.ascontiguousarray(array).data)
        file = cache / "hindsight" / f"{digest.hexdigest()[:24]}.npz"
        with suppress(OSError, DamagedError):  # there is no file, or it has changed since it was written
            found = read_sealed(file).get(LOSSES)
            if found is not None and found.shape == (len(y),) and found.dtype == np.float64 and (found >= 0).all():
                best = found
    if best is None:
        best = best_loss(dictionary, x, y, lam, problem.loss)
        if file is not None:
            with suppress(CannotWriteError):  # without a cache, only time is lost
                write_sealed(file, {LOSSES: best})
    return spread(best, problem.everywhere)


def linear_loss(problem: Problem) -> NDArray[np.float64]:
    """Squared error (T, K) of the least squares fit of a linear function with intercept to all samples.

    It is 0 in rounds without a sample, and NaN for another loss, or if samples times squared features exceed
    `fkl.kernels.hindsight.WORK`.
    """
    everywhere = problem.everywhere
    if problem.loss != SQUARED or np.count_nonzero(everywhere) * problem.dimension**2 > WORK:
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
