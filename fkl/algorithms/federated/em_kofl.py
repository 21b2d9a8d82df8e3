"""eM-KOFL: the server draws one kernel per round; only that kernel's parameters travel.

Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import softmax
from fkl.algorithms.federated.descent import Descent
from fkl.basics.errors import require
from fkl.basics.random_streams import Role
from fkl.contract.star import Samples, Star, Turn
from fkl.contract.world import Array, Common, Outcome, World
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import PerClient, SameForAll

PREDICTORS = ("average", "copy")
LOSSES = ("mean", "sum")


@dataclass(frozen=True)
class Drawn:
    """The number (R,) of the kernel that the server drew, to all clients."""

    index: SameForAll


@dataclass(frozen=True)
class Copies:
    """A client's copy (R, K, P) of the drawn kernel's theta."""

    theta: PerClient


@dataclass(frozen=True)
class Average:
    """The clients' mean theta (R, P) of the drawn kernel, to all clients."""

    theta: SameForAll


@dataclass(frozen=True)
class Losses:
    """A client's losses (R, K, N)."""

    losses: PerClient


@dataclass(frozen=True)
class LossesAndCopies:
    """Copy and losses in one message, if clients learn before they send their copies."""

    losses: PerClient
    theta: PerClient


@dataclass
class Server:
    """log w (R, N), and the mean theta (R, P) of the round."""

    log_w: Array
    average: Array


@dataclass
class Client:
    """theta (R, N, K, P), in the bank's precision, and the last drawn kernel (R,)."""

    theta: Array
    index: NDArray[np.int64]


@dataclass(frozen=True)
class EmKofl(Descent):
    """Clients learn all kernels on their own; their copies of the drawn one become their average.

    A round: the server draws kernel I by its weights and announces it, averages the clients' copies of theta_I, and the
    clients adopt the average and predict with it. Then all clients learn all kernels from their sample, each starting
    from its own copies, and send the kernels' losses. The authors' published script and an independent one in R do the
    same (differences.md of POF-MKL's paper).

    Parameters
    ----------
    predictor : {"average", "copy"}
        Model with which the clients predict: the average of the round, or each client's own copy. The copy is then
        averaged only after it has learned from the round's sample.
    losses : {"mean", "sum"}
        Losses by which the server's weights shrink: w_i <- w_i exp(-eta_w mean_k L_ik), as vM-KOFL does, or the sum
        over k.
    weight_factor : float
        Factor of eta in updates of weights: eta_w = weight_factor * eta.
    local_steps : int
        Gradient steps of a client on the sample of the round, the same for every kernel. Losses are computed before the
        first step.
    eta, step_factor, lam
        See `Descent`.
    """

    label: ClassVar[str] = "eM-KOFL"
    choices_reveal_data: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2

    predictor: str = "average"
    losses: str = "mean"
    weight_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.predictor in PREDICTORS, "predictor", self.predictor, "average or copy")
        require(self.losses in LOSSES, "losses", self.losses, "mean or sum")
        require(0 < self.weight_factor < np.inf, "weight_factor", self.weight_factor, "a number > 0")

    def start(self, common: Common, clients: int) -> tuple[Server, Client]:
        """theta_ik = 0, w_i = 1."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        theta = xp.zeros((R, N, clients, P), bank.precision)
        return Server(xp.zeros((R, N)), xp.zeros((R, P))), Client(theta, xp.zeros(R, xp.int64))

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Drawn | Average:
        """First the kernel that is drawn, then the mean of the clients' copies of it."""
        if turn.exchange == 1:
            return Average(SameForAll(server.average))
        p = softmax(server.log_w)
        drawn = (turn.uniform(Role.SELECTION) >= common.xp.cumsum(p, axis=-1)).sum(axis=-1)
        return Drawn(SameForAll(common.xp.minimum(drawn, common.bank.kernels - 1)))

    def client(
        self, common: Common, client: Client, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Client, Any, Outcome | None]:
        """Send the copy of the drawn kernel, adopt the mean, and learn all kernels in between or afterwards."""
        each = common.xp.arange(common.bank.replicates)
        averages_first = self.predictor == "average"
        if turn.exchange == 0:
            client = Client(client.theta, down.index.values)
            if averages_first:
                return client, Copies(PerClient(client.theta[each, client.index])), None
            client, losses, outcome = self._learn_all_kernels(common, client, samples)
            return client, LossesAndCopies(losses, PerClient(client.theta[each, client.index])), outcome
        here = samples.present[:, None]  # absent clients receive nothing
        mean = down.theta.values[:, None]
        copies = common.xp.where(here, mean, client.theta[each, client.index])
        client = Client(common.bank.put(client.theta, (each, client.index), copies), client.index)
        forgotten = common.xp.zeros_like(client.index)  # absent clients have not heard it
        if not averages_first:
            return Client(client.theta, forgotten), None, None
        client, losses, outcome = self._learn_all_kernels(common, client, samples)
        return Client(client.theta, forgotten), Losses(losses), outcome

    def server(self, common: Common, server: Server, up: Any, share: Array, turn: Turn) -> Server:
        """The mean of the copies; and w_i <- w_i exp(-eta_w mean_k L_ik)."""
        log_w, average = server.log_w, server.average
        if isinstance(up, Copies | LossesAndCopies):
            average = up.theta.mean(share)
        if isinstance(up, Losses | LossesAndCopies):
            total = 1 if self.losses == "mean" else (share > 0).sum()
            log_w = log_w - self.weight_factor * self.rate(common.rounds) * total * up.losses.mean(share)
        return Server(log_w, average)

    def log_weights(self, state: Star) -> Array:
        """Of the kernels at the server, (R, N)."""
        log_w: Array = state.server.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """eta_w times the mean or the sum of the losses of the clients that are present."""
        assert outcome.loss is not None
        share = world.problem.round(t)[2] if self.losses == "mean" else world.present(t)
        return self.weight_factor * self.rate(world.problem.rounds) * (share[:, None] * outcome.loss).sum(axis=1)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The kernel drawn in round t: its mean over the clients that have learned, or each client's own copy."""
        drawn: Any = self.broadcast(world.common, state.server, Turn(t, 0, world.streams, range(1)))
        learned = []
        for r, i in enumerate(drawn.index.values):
            theta = state.client.theta[r, i][:, None]  # (K, 1, P)
            if self.predictor == "average":
                learned_anything = state.client.theta[r].any(axis=(0, 2))  # a client begins with 0
                theta = theta[learned_anything if learned_anything.any() else slice(None)].mean(axis=0, keepdims=True)
            learned.append(OnFeatures.from_bank(world.bank, r, theta, np.ones((len(theta), 1)), np.array([i])))
        return tuple(learned)

    def _learn_all_kernels(self, common: Common, client: Client, samples: Samples) -> tuple[Client, PerClient, Outcome]:
        """Steps of all kernels, and the losses and predictions before them."""
        each, index = common.xp.arange(common.bank.replicates), client.index
        f, squared_norm, theta = self.own_steps(common, samples, client.theta)
        loss = (f - samples.y[:, None]) ** 2 + self.lam * squared_norm
        learned = Client(theta, index)
        return learned, PerClient(loss), Outcome(f[each, :, index], loss, lambda: squared_norm[each, :, index])
