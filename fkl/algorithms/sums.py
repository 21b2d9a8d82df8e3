"""Sums over each client's samples, which decide a model in random features: they add, and can be left out.

A kernel's S = sum z z', b = sum y z, q = sum y^2 and n = sum 1 over samples decide ridge regression and the posterior
of a Gaussian process with these features, and they add up over clients. A model of some clients is therefore computed
from the sums of these clients alone, without their rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from fkl.algorithms.gaussian_processes import lower_triangle, symmetric_matrix
from fkl.basics.arrays import Array
from fkl.kernels import FeatureBank
from fkl.tasks import task_of

Numbers = NDArray[np.float64]
FEWEST_DIGITS = 1e-10
"""Share of q / n below which the error from sums is rounding."""


@dataclass(frozen=True)
class Sums:
    """Sums over each client's samples in one replicate, float64.

    Parameters
    ----------
    gram : (K, N, P (P + 1) / 2)
        S of each kernel: the lower triangle, row by row.
    pull : (K, N, C, P)
        b of each kernel and output; C = 1 for a number, or the number of classes.
    square : (K, C)
        q of each output.
    count : (K,)
        n; 0 for a client without samples.
    """

    gram: Numbers
    pull: Numbers
    square: Numbers
    count: Numbers
    axes: ClassVar[dict[str, str]] = {"gram": "KNL", "pull": "KNCP", "square": "KC", "count": "K"}

    @classmethod
    def of_samples(cls, bank: FeatureBank, x: Array, y: Array) -> Self:
        """Sums of one client, from samples (n, d) and targets (n, C), with the bank of one replicate.

        They depend on nothing but these samples: their last bits do not depend on other clients.
        """
        weight = np.ones((1, len(x)))
        moments = [bank.moments(x[None], column[None], weight) for column in y.T]
        gram, pull = moments[0][0], np.stack([np.asarray(one) for _, one in moments], axis=2)
        square = np.asarray((y**2).sum(axis=0), np.float64)
        return cls(
            lower_triangle(np.asarray(gram)).astype(np.float64),
            pull.astype(np.float64),
            square[None],
            np.array([float(len(x))]),
        )

    def is_consistent(self, clients: int) -> bool:
        """Whether the axes fit together for this number of clients; the arrays may come from any file."""
        arrays = [getattr(self, name) for name in self.axes]
        if [one.ndim for one in arrays] != [3, 4, 2, 1] or any(one.dtype != np.float64 for one in arrays):
            return False
        _, N, C, P = self.pull.shape
        shapes = (clients, N, P * (P + 1) // 2), (clients, N, C, P), (clients, C), (clients,)
        return tuple(one.shape for one in arrays) == shapes

    @classmethod
    def side_by_side(cls, parts: Iterable[Self]) -> Self:
        """The clients of all parts, one after another, each with its own sums."""
        every = [*parts]
        return cls(*(np.concatenate([getattr(one, name) for one in every]) for name in cls.axes))

    def __add__(self, other: Self) -> Self:
        return self.side_by_side([self, other])

    def __sub__(self, other: Self) -> Self:
        """What remains of one total without another; for totals whose single sums are gone, as with secure sums."""
        if len(self.count) != 1 or len(other.count) != 1:
            raise ValueError(
                "sums of single clients are known: sum_clients(keep) adds the others anew, to the last bit"
            )
        return type(self)(*(getattr(self, name) - getattr(other, name) for name in self.axes))

    def of_client(self, k: int) -> Self:
        """The sums of client k."""
        return self.sum_clients(np.arange(len(self.count)) == k)

    def sum_clients(
        self, keep: Sequence[bool] | NDArray[np.bool_] | None = None, order: Sequence[int] | None = None
    ) -> Self:
        """One sum over the clients that are kept, which are added anew, one after another.

        A client that is not kept adds 0, as one that never took part, so the last bits are the same. A subtraction
        would differ in them.

        Parameters
        ----------
        keep : (K,) bool or None
            None for all.
        order : (K,) int or None
            Order in which clients are added; None for their own.
        """
        kept = np.ones(len(self.count), np.bool_) if keep is None else np.asarray(keep, np.bool_)
        parts: dict[str, Numbers] = {name: np.zeros_like(getattr(self, name)[:1]) for name in self.axes}
        for k in range(len(kept)) if order is None else order:
            if kept[k]:
                for name, whole in parts.items():
                    whole += getattr(self, name)[k]
        return type(self)(**parts)

    def per_sample(self) -> Self:
        """Each client's means over its samples, by which all clients weigh the same."""
        size = np.where(self.count, self.count, 1.0)
        scaled = {name: (getattr(self, name).T / size).T for name in ("gram", "pull", "square")}
        return type(self)(**scaled, count=np.sign(self.count))

    def matrices(self) -> Numbers:
        """S of all clients together, (N, P, P)."""
        matrices: Numbers = np.asarray(symmetric_matrix(self.sum_clients().gram[0]), np.float64)
        return matrices

    def solve(self, lam: float) -> Numbers:
        """Theta = (S + lam I)^-1 b of all clients together, (N, C, P)."""
        [pull] = self.sum_clients().pull
        return np.stack([_solve_ridge(gram, b.T, lam).T for gram, b in zip(self.matrices(), pull, strict=True)])

    def log_evidence(self, noise: Numbers) -> Numbers:
        """Log evidence of each kernel with a noise of variance s2 (N,), for theta ~ N(0, I) and one output."""
        total, out = self.sum_clients(), np.empty(len(noise))
        for i, (gram, s2) in enumerate(zip(self.matrices(), noise, strict=True)):
            b, P = total.pull[0, i, 0], len(gram)
            factor = cho_factor(gram + s2 * np.eye(P), lower=True)
            logdet = 2 * np.log(np.diag(factor[0])).sum() - P * np.log(s2)
            rest = total.square[0, 0] - b @ cho_solve(factor, b)
            out[i] = -0.5 * (total.count[0] * np.log(2 * np.pi * s2) + logdet + rest / s2)
        return out

    def squared_error(self, theta: Numbers) -> Numbers:
        """Mean squared error (N,) of each kernel's theta (N, C, P) on these sums' samples; NaN if rounding hides it.

        The terms cancel, so an error below 1e-10 of the mean squared target has no digits left.
        """
        total = self.sum_clients()
        q, n = total.square.sum(), total.count[0]
        fit = np.einsum("ncp,npq,ncq->n", theta, self.matrices(), theta)
        off = (fit - 2 * np.einsum("ncp,ncp->n", theta, total.pull[0]) + q) / n
        return np.where(off > FEWEST_DIGITS * q / n, off, np.nan)

    def condition_number(self, ridge: Numbers) -> float:
        """The largest condition number of the matrices S + ridge I, with ridge (N,)."""
        values = np.linalg.eigvalsh(self.matrices())
        return float(((np.maximum(values[:, -1], 0) + ridge) / (np.maximum(values[:, 0], 0) + ridge)).max())


def _solve_ridge(gram: Array, pull: Array, lam: float) -> Array:
    """(G + lam I)^-1 b for b (P,) or (P, C); eigenvalues of G that noise made negative are set to 0."""
    ridge = gram + lam * np.eye(len(gram))
    values = np.linalg.eigvalsh(gram)
    if values[0] > -0.5 * lam:  # without noise, rounding can cause negative eigenvalues of this size
        return cho_solve(cho_factor(ridge), pull)
    values, vectors = np.linalg.eigh(gram)
    return vectors @ ((vectors.T @ pull).T / (np.maximum(values, 0) + lam)).T


def why_no_sums(method: Any) -> str:
    """Why a method's model is no function of sums over clients, so a client cannot be taken out; empty if it is one."""
    if hasattr(method, "not_sums"):
        return str(method.not_sums)
    if task_of(method).of_features:
        return "a party holds features, and all features are in one cosine"
    if getattr(method, "on_a_graph", False):
        return "neighbours hold mixtures of what an agent has sent"
    return "each step was taken at parameters that all clients' rows had moved"
