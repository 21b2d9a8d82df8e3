"""Losses of fits to all samples in hindsight: with the best kernel (these are cached), and with a linear function.

The fit minimises the method's loss with its regulariser, so for a squared loss it is kernel ridge regression. It is the
comparator for regret in hindsight: POF-MKL, eq. (12); graph-aided OMKL, eqs. (10) and (11).
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpstrf, dtrtri

from fkl.basics.arrays import Array
from fkl.basics.files import CannotWriteError, DamagedError, read_sealed, write_sealed
from fkl.basics.memory import by_block, row_variance, spread_values, take_values
from fkl.basics.pointwise import HINGE, QUANTILE, SQUARE, SQUARED, PointwiseLoss
from fkl.data.problem import Problem
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.threads import at_most, in_parts

SCREENING = (1000, 100, 12), (4000, 150, 4)
"""Steps of screening: most rows, most landmarks, and number of kernels that go on."""
WORK = 1e10
"""Largest product of rows and squared landmarks: about a second per kernel."""
EXACT_ROWS = 1000
"""Most rows that can all be landmarks."""
CANDIDATES = 4096, 2**15
"""Fewest and most rows from which landmarks are drawn; between them, a quarter of all rows."""
ACCURACY = 0.01
"""Mean residual, as a share of lambda, at which enough landmarks are drawn."""
FORM = 4
"""Version of the arithmetic; versions round differently."""
RECIPE = SCREENING, WORK, EXACT_ROWS, CANDIDATES, ACCURACY, FORM
"""Everything on which the quality of the approximation and its last digits depend."""
BLOCK_ROWS = 2048
Kernel = Callable[[Array, Array], Array]
"""Values (n, m) of a kernel between the rows of two arrays."""
DRAWN_AT_ONCE, LEAST_PIVOT, JITTER = 64, 1e-9, 1e-9


class Fit(NamedTuple):
    """A function of one kernel, fitted to all samples.

    Parameters
    ----------
    kernel : int
    landmarks : (m, d)
    alpha : (m,)
        Weights of the kernel at the landmarks.
    squared_norm : float
        |f|_H^2.
    total : float
        Sum over all samples of l(f(x_j), y_j) + lam |f|_H^2, which the fit minimises.
    """

    kernel: int
    landmarks: Array
    alpha: Array
    squared_norm: float
    total: float


def best_loss(dictionary: Dictionary, x: Array, y: Array, lam: float, loss: PointwiseLoss = SQUARED) -> Array:
    """Loss of every sample under the best single kernel's fit to all of them.

    The fit minimises sum_j l(f(x_j), y_j) + n lam |f|_H^2 over the span of the kernel at some samples, the landmarks:
    all samples up to `EXACT_ROWS`, else those of `draw_landmarks`. Kernels are ranked by fits to some rows, see
    `SCREENING`, and then to all rows with a third of the landmarks. Only the best one is fitted with all landmarks.

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
    # Landmarks: as many as the work allows for a ridge regression, fewer for other losses
    most = int(np.sqrt(WORK / len(x))) if loss.kind == SQUARE else MOST_LANDMARKS
    kernels: Iterable[int] = range(dictionary.N)
    with at_most(None):
        # Screening: fit all kernels to few rows, and keep the best ones, in several stages
        for rows, landmarks, count in SCREENING:
            some = _random_rows(len(x), rows)
            screened = _fit_kernels(dictionary, kernels, x[some], y[some], lam, landmarks, loss)
            kernels = [fit.kernel for fit in sorted(screened, key=attrgetter("total"))[:count]]
        # The remaining kernels on all rows, with a third of the landmarks; then the best with all of them
        rough = _fit_kernels(dictionary, kernels, x, y, lam, -(-most // 3), loss)
        [best] = _fit_kernels(dictionary, [min(rough, key=attrgetter("total")).kernel], x, y, lam, most, loss)
        blocks, made = [*row_blocks(len(x), 1, BLOCK_ROWS)], np.empty(len(y))

        # Loss of every sample, in blocks, since (n, landmarks) kernel values may not fit in memory
        def judge(begin: int, end: int) -> None:
            for block in blocks[begin:end]:
                f = best.alpha @ dictionary.gram(best.kernel, best.landmarks, x[block])
                made[block] = loss.value(f, y[block]) + lam * best.squared_norm

        in_parts(judge, len(blocks))
    return made


def _fit_kernels(
    dictionary: Dictionary, kernels: Iterable[int], x: Array, y: Array, lam: float, most: int, loss: PointwiseLoss
) -> list[Fit]:
    """Fits of some kernels with at most so many landmarks, several at once."""
    # One kernel per thread, because fits of different kernels are independent
    numbers = list(kernels)
    fits: dict[int, Fit] = {}

    def fit(begin: int, end: int) -> None:
        for i in numbers[begin:end]:
            kernel = partial(dictionary.gram, i)
            own = kernel, draw_landmarks(kernel, x, lam, most), x, y, lam
            fits[i] = Fit(i, own[1], *(_fit_ridge(*own) if loss.kind == SQUARE else _fit_convex(*own, loss)))

    in_parts(fit, len(numbers))
    return [fits[i] for i in numbers]


def draw_landmarks(kernel: Kernel, x: Array, lam: float, most: int) -> Array:
    """Samples whose span is close to that of all: randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber, 2023).

    Of `CANDIDATES` random rows, a few at a time are drawn with odds of d_j, the squared distance of k(x_j, .) from the
    span of those before, until the mean of d is at most `ACCURACY` lam. With e the mean of d over all n rows, divided
    by lam, the least sum of squared errors + n lam |f|^2 in the span exceeds that in the whole space by a factor of at
    most 1 + e + e^2: with alpha = (y - f*) / (n lam) for the minimiser f* = sum_j alpha_j k(x_j, .), and E the kernel
    matrix minus that of the span, the projection of f* costs (|E alpha|^2 + n lam alpha'E alpha), and |E| <= n lam e.

    Parameters
    ----------
    kernel : callable
        Values between the rows of two arrays.
    x : (n, d)
    lam : float
    most : int
        Largest number of landmarks.

    Returns
    -------
    (m, d)
    """
    # Few samples: take them all
    if len(x) <= min(most, EXACT_ROWS):
        return x
    # Candidates, and what each still lacks: its part outside the span of the chosen landmarks
    random, rows = np.random.default_rng(0), x[_random_rows(len(x), int(np.clip(len(x) // 4, *CANDIDATES)))]
    left = np.concatenate([np.diagonal(kernel(some, some)) for some in np.array_split(rows, -(-len(rows) // 64))])
    phi, chosen = np.empty((min(most, len(rows)), len(rows))), np.empty(0, np.int64)
    while len(chosen) < len(phi) and left.mean() > ACCURACY * lam:
        # Draw several at once with probability proportional to that part
        r, count = len(chosen), min(DRAWN_AT_ONCE, len(phi) - len(chosen))
        drawn = np.unique(random.choice(len(rows), count, p=left / left.sum()))
        # Their kernel values without the part in the span; a pivoted Cholesky skips duplicates
        values = kernel(rows[drawn], rows) - phi[:r, drawn].T @ phi[:r]
        root, order, rank, _ = dpstrf(values[:, drawn], lower=1, tol=LEAST_PIVOT)
        new = order[:rank] - 1  # the others are in the span of these
        # Extend the factor, and subtract what the new landmarks explain
        phi[r : r + rank] = scipy.linalg.solve_triangular(root[:rank, :rank], values[new], lower=True)
        left -= np.square(phi[r : r + rank]).sum(axis=0)
        left[drawn] = 0
        left[left < LEAST_PIVOT] = 0
        chosen = np.append(chosen, drawn[new])
    return rows[chosen]


def _fit_ridge(kernel: Kernel, landmarks: Array, x: Array, y: Array, lam: float) -> tuple[Array, float, float]:
    """The weights, squared norm and total of a kernel's ridge regression."""
    # Features phi = L^-1 k(landmarks, x) make the norm of f the length of beta
    m = len(landmarks)
    root = scipy.linalg.cholesky(kernel(landmarks, landmarks) + JITTER * np.eye(m), lower=True)
    inverse, _ = dtrtri(root, lower=1)
    blocks = [*row_blocks(len(x), 1, BLOCK_ROWS)]
    covariances, correlations = np.empty((len(blocks), m, m)), np.empty((len(blocks), m))

    def add(begin: int, end: int) -> None:
        for place, block in enumerate(blocks[begin:end], begin):
            # Features phi = L^-1 k(landmarks, x_j), with L L' the kernel on the landmarks; |f|_H is then |beta|
            phi = dtrmm(1.0, inverse, kernel(landmarks, x[block]).T, side=1, lower=1, trans_a=1, overwrite_b=1).T
            covariances[place], correlations[place] = phi @ phi.T, phi @ y[block]

    # Sums over blocks, in a fixed order, so the result does not depend on the threads
    in_parts(add, len(blocks))
    covariance, correlation = covariances.sum(axis=0) + (len(x) * lam + 1e-12) * np.eye(m), correlations.sum(axis=0)
    # Solve (Phi'Phi + n lam I) beta = Phi'y; y'y - beta'Phi'y is the minimum
    beta = scipy.linalg.cho_solve(scipy.linalg.cho_factor(covariance), correlation)
    return beta @ inverse, float(beta @ beta), float(y @ y - beta @ correlation)


MOST_LANDMARKS = 500
"""Landmarks of a fit that takes hundreds of steps."""
WIDTHS = (0.1, 0.01, 1e-3)
"""Widths to which the kink of a piecewise linear loss is smoothed, one fit after another."""


def _fit_convex(
    kernel: Kernel, landmarks: Array, x: Array, y: Array, lam: float, loss: PointwiseLoss
) -> tuple[Array, float, float]:
    """Weights, squared norm and total for a convex loss, by L-BFGS; a piecewise linear loss by its Moreau envelopes."""
    # The same features as a ridge regression uses
    root = scipy.linalg.cholesky(kernel(landmarks, landmarks) + JITTER * np.eye(len(landmarks)), lower=True)
    phi = scipy.linalg.solve_triangular(root, kernel(landmarks, x), lower=True)
    beta = np.zeros(len(landmarks))
    linear = loss.kind in (HINGE, QUANTILE)
    # A loss with kinks is smoothed, each time less, and starts from the last solution
    for width in WIDTHS if linear else (0.0,):

        def objective(beta: Array, width: float = width) -> tuple[float, Array]:
            f = beta @ phi
            value, slope = loss.moreau_envelope(f, y, width) if width else (loss.value(f, y), loss.derivative(f, y))
            return value.sum() / len(y) + lam * float(beta @ beta), phi @ slope / len(y) + 2 * lam * beta

        options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-7}
        beta = scipy.optimize.minimize(objective, beta, jac=True, method="L-BFGS-B", options=options).x
    # The minimum is that of the true loss, not of the smoothed one
    squared_norm = float(beta @ beta)
    total = float(loss.value(beta @ phi, y).sum() + len(y) * lam * squared_norm)
    return scipy.linalg.solve_triangular(root, beta, lower=True, trans=1), squared_norm, total


def _random_rows(count: int, wanted: int) -> NDArray[np.int64]:
    """At most `wanted` of `count` indices, ascending: drawn, since rows at even distances can be of a few clients."""
    drawn = np.random.default_rng(0).choice(count, min(count, wanted), replace=False)
    return np.sort(drawn)


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
    # Without regularisation the best fit in a rich space has loss 0, which compares with nothing
    if lam == 0:
        return np.broadcast_to(np.nan, problem.everywhere.shape)
    # A loss of several classes is a sum of losses of two classes
    if (loss := problem.loss).several:
        two_classes = (replace(problem, y=signs, loss=loss.of_one_class) for signs in loss.signs(problem.y))
        return np.sum([hindsight_loss(one, dictionary, lam, cache) for one in two_classes], axis=0)
    # The samples of all rounds as one table; the fit does not know rounds
    x, y = take_values(problem.x, problem.everywhere, np.float64), take_values(problem.y, problem.everywhere)
    best = file = None
    of_loss = () if problem.loss == SQUARED else (tuple(problem.loss), MOST_LANDMARKS, WIDTHS)
    # The fit takes seconds, and depends only on data and kernels, so keep it
    if cache is not None and len(y) <= MOST_CACHED:
        digest = hashlib.sha256(repr((RECIPE, dictionary.families, x.shape, lam, *of_loss)).encode())
        for array in (dictionary.scales, x, y):  # all that the fit depends on
            digest.update(np.ascontiguousarray(array).data)
        file = cache / "hindsight" / f"{digest.hexdigest()[:24]}.npz"
        with suppress(OSError, DamagedError):  # there is no file, or it has changed since it was written
            losses = read_sealed(file).get(LOSSES)
            if losses is not None and losses.shape == (len(y),) and losses.dtype == np.float64 and (losses >= 0).all():
                best = losses
    # Not in the cache: fit, and store the losses
    if best is None:
        best = best_loss(dictionary, x, y, lam, problem.loss)
        if file is not None:
            with suppress(CannotWriteError):  # without a cache, only time is lost
                write_sealed(file, {LOSSES: best})
    return spread_values(best, problem.everywhere)


LINEAR_WORK = 3e10
"""Largest product of samples and squared features."""


def linear_loss(problem: Problem) -> NDArray[np.float64]:
    """Squared error (T, K) of the least squares fit of a linear function with intercept to all samples.

    It is 0 in rounds without a sample, and NaN for another loss, or if samples times squared features exceed
    `LINEAR_WORK`.
    """
    everywhere = problem.everywhere
    # Only for the squared error, and where X'X is affordable
    if problem.loss != SQUARED or np.count_nonzero(everywhere) * problem.dimension**2 > LINEAR_WORK:
        return np.broadcast_to(np.nan, everywhere.shape)
    x, y = take_values(problem.x, everywhere, np.float64), take_values(problem.y, everywhere)
    # Centre and scale the columns, so lstsq's cutoff of small singular values suits all of them
    x = by_block(partial(_less_mean, x.mean(axis=0)), x)
    deviation = np.sqrt(row_variance(x))
    x /= np.where(deviation > 0, deviation, 1)
    centred = by_block(partial(_less_mean, y.mean()), y)
    # BLAS with one thread adds in one order, so the bytes do not depend on the machine's number of cores
    with at_most(1):
        slope = np.linalg.lstsq(x.T @ x, x.T @ centred, rcond=None)[0]
    loss = np.matmul(x, slope, out=np.empty(len(y)))
    loss -= centred
    return spread_values(np.square(loss, out=loss), everywhere)


def _less_mean(mean: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values - mean
