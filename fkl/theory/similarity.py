"""OMKL-SFG's graph: Lemmas 3 and 4 of Ghari and Shen (2023), about divergences of kernels and of functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import gammaln

from fkl.algorithms.online.omkl_sfg import log_inner_products
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.kernels import Dictionary
from fkl.theory.base import SURELY, Assumption, Form, Theorem
from fkl.theory.graph_omkl import PAPER

MOST_SAMPLES = 3000
"""Largest number of samples for which every kernel's ridge regression is computed."""
POINTS = 256
"""Number of points of the unit ball over which squared differences of functions are averaged."""


def theorems(method: Any, world: World) -> Iterator[Theorem]:
    """Both lemmas, for all pairs of kernels. They are about exact kernels, so random features do not matter."""
    # Logarithms of inner products, which a float64 could not hold
    dictionary, x, y = world.dictionary, world.problem.x[:, 0].astype(np.float64), world.problem.y[:, 0]
    (T, d), pairs = x.shape, np.triu_indices(dictionary.N, 1)
    inner = log_inner_products(dictionary.families, dictionary.scales, d)
    log_own = np.diag(inner)
    largest = np.maximum(log_own[:, None], log_own)
    # logarithm of the divergence, eq. (27), without numbers that a float64 cannot hold
    rest = np.exp(log_own[:, None] - largest) + np.exp(log_own - largest) - 2 * np.exp(inner - largest)
    divergence = (largest + np.log(np.maximum(rest, np.finfo(np.float64).tiny)))[pairs]

    # Lemma 3: the divergence exists, because (28) and (29) bound it
    integrals = log_integrals(dictionary, d)
    left = np.exp(divergence - np.logaddexp(integrals[:, None], integrals)[pairs])[None]
    statement = "Delta_S(k_i, k_j) / (int k_i + int k_j) <= 1, from eqs. (28) and (29)"
    yield Theorem(PAPER, "Lemma 3", "pair of kernels", left, (Form("printed", statement, SURELY, np.ones((1, 1))),))

    # Lemma 4, eq. (30). |f_i - f_j|^2 <= 2 |f_i|^2 + 2 |f_j|^2 <= 4 C_m T everywhere, because kernels are at most 1:
    # the printed bound is never lower. The corrected form has |alpha_i - alpha_j|^2 instead of 2 C_m in eq. (104).
    if T > MOST_SAMPLES:
        return
    # Fits of every kernel, compared at points of the unit ball
    f, alpha = ridge_fits(dictionary, x, y, method.lam, points_of_ball(d, POINTS))
    i, j = pairs
    left = ((f[i] - f[j]) ** 2).mean(axis=1)[None]
    C_m, spread = (alpha**2).sum(axis=1).max(), np.exp(divergence - log_ball(d))
    apart = ((alpha[i] - alpha[j]) ** 2).sum(axis=1)
    start = "(1 / U_d) int |f_i - f_j|^2 <= "
    outside = "a sample is longer than 1" if (x**2).sum(axis=1).max() > 1 + 1e-6 else ""
    printed, corrected = 2 * C_m * T * (spread + 2), 2 * T * (C_m * spread + apart)
    forms = (
        Form(
            "printed",
            start + "(2 C_m / U_d) sum_t (Delta_S + 2 U_d)",
            SURELY,
            printed[None],
            (Assumption("|x| <= 1", outside),),
        ),
        Form("corrected", start + "2 T (C_m Delta_S / U_d + |alpha_i - alpha_j|^2)", SURELY, corrected[None]),
    )
    yield Theorem(PAPER, "Lemma 4", "pair of kernels", left, forms, np.full(len(i), 4 * C_m * T))


def log_integrals(dictionary: Dictionary, dimension: int) -> Array:
    """Logarithm of each kernel's integral over R^d, (N,)."""
    gaussian = np.array([family == "rbf" for family in dictionary.families])
    return dimension * (np.log(np.where(gaussian, np.sqrt(2 * np.pi), 2.0)) - np.log(dictionary.scales))


def log_ball(dimension: int) -> float:
    """Logarithm of the volume of the unit ball."""
    return float(dimension / 2 * np.log(np.pi) - gammaln(dimension / 2 + 1))


def points_of_ball(dimension: int, count: int) -> Array:
    """Uniformly drawn points of the unit ball, (count, d), the same in every call."""
    random = np.random.default_rng(0)
    along = random.standard_normal((count, dimension))
    return along / np.linalg.norm(along, axis=1, keepdims=True) * random.random((count, 1)) ** (1 / dimension)


def ridge_fits(dictionary: Dictionary, x: Array, y: Array, lam: float, points: Array) -> tuple[Array, Array]:
    """Each kernel's minimiser of eq. (1): its values at some points, (N, n), and its coefficients, (N, T)."""
    f, alpha = np.empty((dictionary.N, len(points))), np.empty((dictionary.N, len(y)))
    for i in range(dictionary.N):
        ridge = dictionary.gram(i, x, x)
        ridge[np.diag_indices_from(ridge)] += len(y) * lam
        alpha[i] = linalg.solve(ridge, y, assume_a="pos", overwrite_a=True)
        f[i] = dictionary.gram(i, points, x) @ alpha[i]
    return f, alpha
