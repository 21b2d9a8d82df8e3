"""Exact ridge regression and an exact ridge classifier: every client sends sums over its samples once.

One-shot ridge: Ridge regression on random features needs only sums over samples, and clients' sums can be added:
One-Shot Federated Ridge Regression (arXiv 2601.08216). Noise on such sums is the mechanism of Vu and Slavkovic (2009)
and of Wang, Revisiting Differentially Private Linear Regression (UAI 2018).

Fed3R: Fani, Camoriano, Caputo and Ciccone, Accelerating Heterogeneous Federated Learning with Closed-form Classifiers
(ICML 2024), with random features instead of those of a pretrained network, and without fine-tuning. Only the paper's
abstract was available. The authors' code (github.com/Erosinho13/Fed3R) solves the same equations with an additional
constant feature of 1, and divides the vector of each class by its length before it predicts. Neither is done here.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fkl.algorithms.base import World
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.contract.star import OnBatches, StarState, Turn
from fkl.contract.world import FEATURES, ClientRows, Common
from fkl.data.problem import Batch, Problem
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.tasks.batch import ClassTask, HoldOut, StarTask
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class RidgeStatistics:
    """Message of a client: sums over its samples.

    Parameters
    ----------
    gram : payload (R, K, P (P + 1) / 2)
        The upper triangle of Z'Z / n.
    pull : payload (R, K, P)
        Z'y / n, for all classes if there are several.
    """

    gram: PerClient
    pull: PerClient


@dataclass(frozen=True)
class LearnedTheta:
    """Message to all clients: the learned theta, (R, P)."""

    theta: SameForAll


@dataclass
class RidgeState:
    """State: theta (R, P) at the server, (R, K, P) at clients."""

    theta: Array


@dataclass(frozen=True)
class OneShotRidge(HoldOut, OnBatches):
    """Minimise sum_k |y_k - Z_k theta|^2 / n_k + lam |theta|^2 exactly, with one message from each client.

    Client k sends G_k = Z_k'Z_k / n_k and b_k = Z_k'y_k / n_k, and theta = (sum_k G_k + lam I)^-1 sum_k b_k. Clients
    have equal weights, whatever their numbers of samples, and theta is the optimum of COKE's eqs. (15) and (16). If all
    clients have the same number of samples, this is ridge regression on pooled samples. Absent and late clients do not
    count.

    With map=pairs, so |z| = 1, and targets of at most 1, a client's message has norm at most 2^(1/2): with noise, clip
    to this norm. With noise, G may have negative eigenvalues, which are set to 0.
    """

    task: ClassVar[Any] = StarTask
    label: ClassVar[str] = "One-shot ridge"
    choices_reveal_data: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2
    exchanges_up: ClassVar[int] = 1

    means: ClassVar[bool] = True
    """Whether clients send means over their samples; otherwise they send sums."""

    lam: float = key(1e-3, "Regularisation lambda of the sum over all clients.", above=0)

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )

    def start(self, common: Common, clients: int) -> tuple[RidgeState, RidgeState]:
        """Start from theta = 0."""
        self.require_fits(common.dictionary)
        R, P = common.bank.replicates, common.bank.width
        return RidgeState(np.zeros((R, P))), RidgeState(np.zeros((R, clients, P)))

    def broadcast(self, common: Common, server: RidgeState, turn: Turn) -> LearnedTheta | None:
        """Send nothing in the first exchange, and theta in the second."""
        return None if turn.exchange == 0 else LearnedTheta(SameForAll(server.theta))

    def client(
        self, common: Common, client: RidgeState, down: LearnedTheta | None, samples: ClientRows, turn: Turn
    ) -> tuple[RidgeState, RidgeStatistics | None, Array | None]:
        """Send the statistics in the first exchange, and return theta in the second."""
        # The server's answer is the learned theta
        if down is not None:
            here = samples.present[:, None]
            theta = np.where(here, down.theta.dense().values[:, None], client.theta)
            return RidgeState(theta), None, theta
        if turn.exchange:  # no client has answered, so the server has learned nothing
            return client, None, client.theta
        # Gram matrix and Phi'y of the client's samples; the upper triangle, because the matrix is symmetric
        rows = samples.rows(FEATURES, lambda: common.bank)
        R, K, _, P = rows.phi.shape
        upper = np.triu_indices(P)
        gram, size = np.empty((R, K, len(upper[0]))), rows.count if self.means else np.ones(K)
        for k in range(K):
            gram[:, k] = rows.gram(k)[:, *upper] / size[k]
        return client, RidgeStatistics(PerClient(gram), PerClient(rows.weigh(rows.targets) / size[:, None])), None

    def server(
        self, common: Common, server: RidgeState, up: RidgeStatistics | None, share: Array, turn: Turn
    ) -> RidgeState:
        """Compute theta from sums over the clients whose messages arrived, with equal shares."""
        # Without a message nothing is learned
        if up is None:
            return server
        # Equal shares times the number of clients give sums
        heard = 1 / share.max()
        P = server.theta.shape[1] // common.outputs
        gram, upper = np.zeros((len(server.theta), P, P)), np.triu_indices(P)
        gram[:, *upper] = heard * up.gram.mean(share)
        gram += np.triu(gram, 1).swapaxes(1, 2)
        # One right side for each output
        pull = (heard * up.pull.mean(share)).reshape(len(gram), -1, P)
        theta = [_solve_ridge(one, b.T, self.lam).T.ravel() for one, b in zip(gram, pull, strict=True)]
        return replace(server, theta=np.stack(theta))

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The function of the server's theta."""
        theta = state.server.theta[:, None, None]
        return OnFeatures.of_replicates(world.bank, theta, np.ones(theta.shape[:3]))


def _solve_ridge(gram: Array, pull: Array, lam: float) -> Array:
    """(G + lam I)^-1 b for b (P,) or (P, C); eigenvalues of G that noise made negative are set to 0."""
    ridge = gram + lam * np.eye(len(gram))
    values = np.linalg.eigvalsh(gram)
    if values[0] > -0.5 * lam:  # without noise, rounding can cause negative eigenvalues of this size
        return cho_solve(cho_factor(ridge), pull)
    values, vectors = np.linalg.eigh(gram)
    return vectors @ ((vectors.T @ pull).T / (np.maximum(values, 0) + lam)).T


@dataclass(frozen=True)
class Fed3R(OneShotRidge):
    """Minimise sum_k |Y_k - Z_k W|^2 + lam |W|^2 exactly, with one message from each client.

    Y_k has a row for each sample, with 1 for its class and 0 for the others. Client k sends A_k = Z_k'Z_k and
    B_k = Z_k'Y_k, and W = (sum_k A_k + lam I)^-1 sum_k B_k. This is ridge regression on pooled samples, for any
    partition among clients. The column `distance` compares W with the optimum in which clients have equal weights.
    """

    task: ClassVar[Any] = ClassTask
    label: ClassVar[str] = "Fed3R"
    loss: ClassVar[str] = "one_vs_rest"
    means: ClassVar[bool] = False

    lam: float = key(0.01, "Regularisation lambda of the sum over all samples.", above=0)

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, with class numbers as targets."""
        return super().batch(problem, rng).of_classes(self.loss, 2)
