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

from fkl.algorithms.base import World
from fkl.algorithms.sums import Sums
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.contract.star import OnBatches, StarState, Turn
from fkl.contract.world import FEATURES, ClientRows, Common
from fkl.data.problem import Batch, Problem
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import FeatureClasses, OnFeatures
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

    not_sums: ClassVar[str] = ""
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
        # Equal shares times the number of clients give sums; messages hold the upper triangle, sums the lower one
        heard, P = 1 / share.max(), server.theta.shape[1] // common.outputs
        sent, pull = heard * up.gram.mean(share), heard * up.pull.mean(share)
        row, column = np.triu_indices(P)
        gram = np.empty_like(sent)
        gram[:, column * (column + 1) // 2 + row] = sent
        # One right side for each output
        unknown = np.zeros((1, common.outputs)), np.ones(1)
        sums = (Sums(S[None, None], b.reshape(1, 1, -1, P), *unknown) for S, b in zip(gram, pull, strict=True))
        return replace(server, theta=np.stack([one.solve(self.lam).ravel() for one in sums]))

    def client_sums(self, world: World, rounds: int) -> Sums:
        """Each client's sums over its training samples, in the only replicate; 0 for one that did not take part."""
        x, y, client = world.problem.part(True)
        targets = self.targets_of(y, world.common.outputs)
        heard = [(client == k) & present for k, present in enumerate(world.problem.present[0])]
        return Sums.side_by_side(Sums.of_samples(world.common.features, x[one], targets[one]) for one in heard)

    def targets_of(self, y: Array, outputs: int) -> Array:
        """The targets (n, C) of ridge regression for targets y (n,) of a batch."""
        return y[:, None]

    def noise_of_sums(self, total: Sums) -> Array:
        """The ridge that is added to the sums of each kernel, (N,)."""
        return np.full(total.gram.shape[1], self.lam)

    def function_of_sums(self, function: Any, total: Sums) -> OnFeatures:
        """The function that these sums over clients decide, in the features of another one."""
        return replace(function, theta=total.solve(self.lam).swapaxes(0, 1).astype(function.theta.dtype))

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The function of the server's theta."""
        theta = state.server.theta[:, None, None]
        return OnFeatures.of_replicates(world.bank, theta, np.ones(theta.shape[:3]))


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
    saves_classes: ClassVar[bool] = True

    lam: float = key(0.01, "Regularisation lambda of the sum over all samples.", above=0)

    def targets_of(self, y: Array, outputs: int) -> Array:
        """1 for a sample's class, 0 for the others, (n, C)."""
        return ((y[:, None] + outputs - 1) / 2 == np.arange(outputs)).astype(np.float64)

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The class that the server's theta of each class selects."""
        C, values = world.common.outputs, np.array(world.problem.class_values)
        theta = state.server.theta.reshape(-1, C, 1, world.common.features.width)
        each = OnFeatures.of_replicates(world.common.features, theta, np.ones(theta.shape[:3]))
        return tuple(FeatureClasses(**vars(one), classes=values) for one in each)

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, with class numbers as targets."""
        return super().batch(problem, rng).of_classes(self.loss, 2)
