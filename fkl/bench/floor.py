"""Code that the benchmarks share: clocks, random samples, and the floor of sine and cosine."""

import os
import time
from collections.abc import Callable

import numpy as np
from numba import njit, prange

from fkl.data.problem import Problem
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import simulate
from fkl.kernels.compiled_bank import sincos

THREADS = os.cpu_count() or 1
BLOCK = 16384


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_seconds(experiment: Experiment) -> float:
    """Time that a run spends in its algorithm."""
    return sum(chunk.seconds for chunk in simulate(experiment, None, None, lambda _: None))


def random_stream(T: int, K: int, dimension: int, noise: float = 0.0) -> Problem:
    """Random samples of K clients in T rounds, with norms of at most 1, as a data set of this shape."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((T, K, dimension))
    x /= np.linalg.norm(x, axis=-1).max()
    y = 0.5 + 0.5 * np.sin(3 * x.sum(axis=-1)) + noise * generator.standard_normal((T, K))
    return Problem(x.astype(np.float32), y, np.ones((T, K), bool), np.zeros(K, np.int64))


def sincos_seconds(elements: int, precision: type[np.floating], width: int = 0, learning: bool = False) -> float:
    """Time of the compiled sine and cosine of this many angles, on all threads, in blocks in the cache.

    With a width, also of the inner products of each group of this many with theta, eq. (5) of POF-MKL's paper. If theta
    is learning, also of a step along each of them and of its norm, for the regularised loss of each sample.
    """
    angle = (10 * np.random.default_rng(1).standard_normal((THREADS, BLOCK))).astype(precision)
    sine, cosine = np.empty((2, THREADS, BLOCK), np.float32)
    theta = np.ones((2, width), np.float32)
    _sincos_blocks(angle, precision(1), sine, cosine, theta, learning, THREADS)
    return seconds(lambda: _sincos_blocks(angle, precision(1), sine, cosine, theta, learning, elements // BLOCK))


@njit(parallel=True)
def _sincos_blocks(angle, scale, sine, cosine, theta, learning, count):
    """Sine and cosine of `count` blocks; each thread reuses its own cached block."""
    width = theta.shape[1]
    rows = BLOCK // max(width, 1)
    for thread in prange(angle.shape[0]):
        f, own = np.empty(rows, np.float32), theta.copy()
        for _ in range(count // angle.shape[0]):
            sincos(angle[thread], scale, sine[thread], cosine[thread])
            if width:
                sines = sine[thread, : rows * width].reshape(rows, width)
                cosines = cosine[thread, : rows * width].reshape(rows, width)
                if learning:
                    _learn(own, sines, cosines)
                else:
                    np.dot(sines, theta[0], f)
                    np.dot(cosines, theta[1], f)


@njit(fastmath=True)
def _learn(theta, sines, cosines):
    """One sample after the other: f = theta'z, |theta|^2, and theta a step along z."""
    for b in range(len(sines)):
        f = size = np.float32(0)
        for j in range(theta.shape[1]):
            f += theta[0, j] * sines[b, j] + theta[1, j] * cosines[b, j]
            size += theta[0, j] * theta[0, j] + theta[1, j] * theta[1, j]
        step = np.float32(1e-3) * (f + np.float32(1e-3) * size)
        for j in range(theta.shape[1]):
            theta[0, j] -= step * sines[b, j]
            theta[1, j] -= step * cosines[b, j]
