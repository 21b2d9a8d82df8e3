"""Code that the benchmarks share: clocks, random samples, and the floor of sine and cosine."""

import os
import time
from collections.abc import Callable

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fkl.data.problem import Problem
from fkl.engines.base import Experiment
from fkl.engines.rounds import rehearse_round, simulate_run
from fkl.kernels.compiled import sine_and_cosine
from fkl.kernels.threads import in_parts

THREADS = os.cpu_count() or 1
BLOCK = 16384
ROWS = 40
"""Clients whose features are together in the cache in `round_seconds`."""


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_seconds(experiment: Experiment) -> float:
    """Time that a run spends in its algorithm."""
    return sum(chunk.seconds for chunk in simulate_run(experiment, None, None, lambda _: None))


def parts_seconds(work: Callable[[int, int], object], count: int) -> float:
    """Time of numpy code `work(begin, end)` for parts of range(count), each in a thread, in which BLAS has no others.

    Threads of BLAS itself wait for each other in every product, which takes many times longer beside other processes.
    """
    with threadpool_limits(1, user_api="blas"):
        in_parts(work, THREADS)  # starts threads
        return seconds(lambda: in_parts(work, count))


def projections_seconds(x: NDArray[np.floating], rho: NDArray[np.floating]) -> float:
    """Time of the products of x (T, K, d) with the frequencies (R, N, d, D) of all replicates and kernels."""
    wide = [np.ascontiguousarray(frequencies.swapaxes(0, 1)).reshape(x.shape[-1], -1) for frequencies in rho]

    def products(begin: int, end: int) -> None:
        out = np.empty((x.shape[1], wide[0].shape[1]), np.float32)
        for number in range(begin, end):
            np.matmul(x[number // len(wide)], wide[number % len(wide)], out=out)

    return parts_seconds(products, len(x) * len(wide))


def replicate_bytes(experiment: Experiment) -> int:
    """Peak of the memory that a replicate takes, besides the data, as `fkl plan` measures it."""
    return rehearse_round(experiment)[1]


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


def round_seconds(kernels: int, clients: int, width: int, rounds: int, products: int, own: bool) -> float:
    """Time of compiled rounds of clients with one sample each, on all threads, kernels of all replicates in turn.

    Parameters
    ----------
    kernels, clients, width, rounds : int
        Numbers of kernels, of clients, and of sines and of cosines of a kernel.
    products : int
        1 for the inner products of features with a common theta, 2 also for sums of features over clients.
    own : bool
        Whether every client also takes a step along its features from its own theta of every kernel, in memory.
    """
    angle = (10 * np.random.default_rng(1).standard_normal(ROWS * width)).astype(np.float32)
    theta = np.zeros((kernels, clients if own else 0, 2, width), np.float32)
    common = np.ones((kernels, 2, width), np.float32)
    _rounds(angle, np.float32(1), common, theta, clients, products, 1)
    return seconds(lambda: _rounds(angle, np.float32(1), common, theta, clients, products, rounds))


@njit(parallel=True)
def _rounds(angle, scale, common, theta, clients, products, rounds):
    """Sine and cosine of each kernel's angles of all clients, and what `round_seconds` adds; threads never wait."""
    for thread in prange(THREADS):
        sine, cosine = np.empty(common.shape[2] * ROWS, np.float32), np.empty(common.shape[2] * ROWS, np.float32)
        f = np.empty(ROWS, np.float32)
        for _ in range(rounds):
            for i in range(thread, len(common), THREADS):
                for first in range(0, clients, ROWS):
                    own = theta[i, first : first + ROWS]
                    _round_of_some(angle, scale, common[i], own, products, sine, cosine, f)


@njit
def _round_of_some(angle, scale, common, own, products, sine, cosine, f):
    """A round of clients whose features are together in the cache."""
    sine_and_cosine(angle, scale, sine, cosine)
    sines, cosines = sine.reshape(ROWS, -1), cosine.reshape(ROWS, -1)
    if products > 0:
        np.dot(sines, common[0], f)
        np.dot(cosines, common[1], f)
    if products > 1:
        np.dot(f, sines, common[0])
        np.dot(f, cosines, common[1])
    for k in range(len(own)):
        _learn(own[k], sines[k : k + 1], cosines[k : k + 1])


@njit(parallel=True)
def _sincos_blocks(angle, scale, sine, cosine, theta, learning, count):
    """Sine and cosine of `count` blocks; each thread reuses its own cached block."""
    width = theta.shape[1]
    rows = BLOCK // max(width, 1)
    for thread in prange(angle.shape[0]):
        f, own = np.empty(rows, np.float32), theta.copy()
        for _ in range(count // angle.shape[0]):
            sine_and_cosine(angle[thread], scale, sine[thread], cosine[thread])
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
