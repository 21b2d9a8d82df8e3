"""Methods whose clients take several steps from the server's model; the server uses their mean change.

FedAvg: McMahan, Moore, Ramage, Hampson and Aguera y Arcas, Communication-Efficient Learning of Deep Networks from
Decentralized Data (AISTATS 2017). The server's learning rate is from Reddi et al., Adaptive Federated Optimization
(ICLR 2021).

FedAvgM: Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification
(2019).

FedAdagrad, FedAdam and FedYogi: Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, Adaptive Federated
Optimization (ICLR 2021), Algorithm 2.

FedProx: Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, Federated Optimization in Heterogeneous Networks (MLSys 2020).

SCAFFOLD: Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, SCAFFOLD: Stochastic Controlled Averaging for Federated
Learning (ICML 2020), Algorithm 1 with option II.

q-FedAvg: Li, Sanjabi, Beirami and Smith, Fair Resource Allocation in Federated Learning (ICLR 2020), Algorithm 2.

Ditto: Li, Hu, Beirami and Smith, Ditto: Fair and Robust Federated Learning Through Personalization (ICML 2021),
Algorithm 1.

pFedMe: Dinh, Tran and Nguyen, Personalized Federated Learning with Moreau Envelopes (NeurIPS 2020), Algorithm 1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import WithLoss, array_namespace
from fkl.algorithms.federated.descent import MOST_STEPS, DescentServer, Parameters
from fkl.algorithms.local_losses import LossOfAll, LossOfSample
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.pointwise import ON_STREAMS
from fkl.contract.star import Federated, StarState, Turn, all_samples
from fkl.contract.world import Common, World
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.losses import LOSSES, OF_CLASSES
from fkl.tasks.batch import Batched, StarTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Task
from fkl.wire.payloads import FeatureGradients, PerClient, SameForAll

Loss = LossOfSample | LossOfAll


@dataclass(frozen=True)
class Change:
    """Message of a client: the change of theta by its steps."""

    theta: FeatureGradients | PerClient


@dataclass
class StateWithBatches:
    """State of clients with batches: the method's state, and the theta (R, K, P) with which they predict."""

    own: Any
    theta: Array


def zero_theta(common: Common, *clients: int) -> Array:
    """Zeros (R, N, P), or (R, K, N, P) for this many clients."""
    bank = common.bank
    return common.xp.zeros((bank.replicates, *clients, bank.kernels, bank.width))


@dataclass(frozen=True)
class LocalTraining(WithLoss, Batched, Federated):
    """Base class of methods whose clients predict, take local steps, and send the change of theta; and their loss F_k.

    A method defines `begin`, `broadcast`, `train` and `server`; `start` and `client` call `begin` and `train`.
    """

    task: ClassVar[type[Task]] = StreamTask
    losses: ClassVar[tuple[str, ...]] = tuple(dict.fromkeys((*ON_STREAMS, *LOSSES)))
    choices_reveal_data: ClassVar[bool] = False
    personal: ClassVar[bool] = False
    """Whether each client has its own model."""
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True
    not_traceable: ClassVar[str] = ""

    iterations: int | None = key(  # type: ignore[assignment]
        None,
        "None if clients see streams: F_k is the loss of the round's sample. A number of rounds if clients "
        "use all their samples in each, and are tested on others: F_k is the mean loss of client k's samples + "
        "(lam / K) |theta|^2, for one kernel, as with kernels=coke. The sum of all F_k is then that of COKE and "
        "DKLA (COKE's eq. 26). Clients predict with the theta that they had when their last round began.",
        min=1,
        max=1_000_000_000,
    )
    eta: float | None = key(
        None,
        "Learning rate of the clients' steps; None for 1 / sqrt(T). With iterations, 0.5 is a usual value.",
        above=0,
        must="a number > 0, or null for 1/sqrt(T)",
    )
    eta_server: float = key(1.0, "Learning rate of the server.", above=0)
    loss: str = key(
        "square",
        "On streams as in POF-MKL: square, huber, quantile, logistic, hinge or least_squares. With "
        "iterations as in COKE, and for several classes: square, logistic, one_vs_rest or softmax.",
        choices=(*ON_STREAMS, *OF_CLASSES),
    )
    local_steps: int = key(
        5, "Number E of a client's steps in a round, all on the same samples.", min=1, max=MOST_STEPS
    )
    lam: float = key(0.001, "Regularisation lambda of the loss; with iterations, of the sum over all clients.", min=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed, where = (ON_STREAMS, "without") if self.iterations is None else (tuple(LOSSES), "with")
        require(self.loss in allowed, "loss", self.loss, f"one of {', '.join(allowed)} {where} algo.iterations")
        if self.iterations is not None:
            require(self.lam > 0, "lam", self.lam, "a number > 0")
            vars(self).update(task=StarTask, uses_sample_once=False, message_of_one_sample=False)
        for name in ("test_share", "fold", "test_on"):
            value = getattr(self, name)
            used = self.iterations is not None or value == getattr(LocalTraining, name)
            require(used, name, value, "left at its default without algo.iterations, because clients then see streams")

    def given(self, world: World, t: int) -> tuple[Any, NDArray[np.float64]]:
        """The samples of the round and the clients' shares in a mean, or all samples and equal shares."""
        return super().given(world, t) if self.iterations is None else all_samples(world, t)

    def local_loss(self, common: Common, down: Any, samples: Any, own: Array | None = None) -> Loss:
        """A client's loss F_k, given the server's theta and, for some methods, the client's own vector."""
        if self.iterations is None:
            return LossOfSample(common, samples, down.theta.values, self.lam, self.pointwise, own)
        return LossOfAll(common, samples, down.theta.values, self.lam / common.clients, own)

    def rate(self, common: Common) -> float:
        """The learning rate eta."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(common.rounds))

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel if clients use all their samples."""
        allowed = f"1: from all samples of a client, {self.label} learns one kernel, for example kernels=coke"
        require(self.iterations is None or kernels.N == 1, "kernels.N", kernels.N, allowed)

    def begin(self, common: Common, clients: int) -> tuple[Any, Any]:
        """States of the server and the clients before the first round."""
        raise NotImplementedError

    def train(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """A client's new state, its message, and its outcome on a stream, or its theta for predictions."""
        raise NotImplementedError

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """States before the first round, from `begin`; clients that use all their samples predict with theta = 0."""
        self.require_fits(common.dictionary)
        server, own = self.begin(common, clients)
        return server, own if self.iterations is None else StateWithBatches(own, zero_theta(common, clients)[:, :, 0])

    def client(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """Train the present clients for one round; absent clients keep the theta with which they predict."""
        if self.iterations is None:
            return self.train(common, client, down, samples, turn)
        state, up, theta = self.train(common, client.own, down, samples, turn)
        theta = common.xp.where(samples.present[:, None], theta, client.theta)
        return StateWithBatches(state, theta), up, theta

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The mean of the server's kernels, as clients last received them if they keep theta, or of each client's."""
        if self.iterations is None:
            theta = state.client.theta if self.personal else state.server.theta[:, None]
        else:
            theta = state.client.theta[:, :, None]
            if not self.personal and theta.shape[1] > 1:  # older copies are not models
                last = [np.flatnonzero(here).max(initial=-1) for here in world.problem.present[:t].T]
                theta = theta[:, [int(np.argmax(last))]]
        return OnFeatures.of_replicates(world.bank, theta, np.full(theta.shape[:3], 1 / theta.shape[2]))


@dataclass(frozen=True)
class FedAvg(LocalTraining):
    """theta <- theta + eta_server mean_k (theta_k - theta), with theta_k from E = local_steps steps of client k.

    A step is theta_k <- theta_k - eta grad F_k(theta_k), and the first step starts at the server's theta. On streams,
    F_k is the loss of the round's sample, (theta'z - y)^2 + lam |theta|^2 for each kernel. A client predicts with the
    plain mean of all kernels before it learns. With eta_server = 1, this is OFMKL-Avg with E local steps.
    """

    label: ClassVar[str] = "FedAvg"

    def begin(self, common: Common, clients: int) -> tuple[Any, Any]:
        """Start from theta = 0; clients hold nothing."""
        return DescentServer(zero_theta(common)), None

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """Send theta to all clients."""
        return Parameters(SameForAll(server.theta))

    def train(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """Predict with the server's theta, take E steps, and send their sum."""
        loss = self.local_loss(common, down, samples)
        return client, Change(loss.message(self.sum_of_steps(common, loss))), loss.outcome(loss.at_server)

    def sum_of_steps(self, common: Common, loss: Loss) -> Array:
        """The sum of a client's steps from the server's theta."""
        point = loss.at_server
        for _ in range(self.local_steps):
            point = point - self.rate(common) * (loss.gradient(point) + self.correction_term(loss, point))
        return point - loss.at_server

    def correction_term(self, loss: Loss, point: Array) -> Array | float:
        """The term that a method adds to the gradient at a point."""
        return 0.0

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """Learn from the clients' mean change."""
        return self.server_update(server, up.theta.mean(share))

    def server_update(self, server: Any, change: Array) -> Any:
        """The server's update rule: here a step along the mean change (R, N, P)."""
        return DescentServer(server.theta + self.eta_server * change)


@dataclass
class MomentumServer:
    """State of the server: theta and its momentum v, (R, N, P)."""

    theta: Array
    momentum: Array


@dataclass(frozen=True)
class FedAvgM(FedAvg):
    """FedAvg with server momentum: v <- beta v + mean_k (theta_k - theta), theta <- theta + eta_server v."""

    label: ClassVar[str] = "FedAvgM"

    beta: float = key(0.9, "Momentum of the server; 0 is FedAvg.", min=0, below=1)

    def begin(self, common: Common, clients: int) -> tuple[MomentumServer, None]:
        """Start from theta = v = 0."""
        return MomentumServer(zero_theta(common), zero_theta(common)), None

    def server_update(self, server: MomentumServer, change: Array) -> MomentumServer:
        """Take a step along the momentum."""
        momentum = self.beta * server.momentum + change
        return MomentumServer(server.theta + self.eta_server * momentum, momentum)


@dataclass
class AdaptiveServer:
    """State of the server: theta, and the moments m and v of the clients' mean change, (R, N, P)."""

    theta: Array
    m: Array
    v: Array


@dataclass(frozen=True)
class AdaptiveFedAvg(FedAvg):
    """m <- beta_1 m + (1 - beta_1) Delta, then v, then theta <- theta + eta_server m / (v^(1/2) + tau).

    Delta is the clients' mean change of theta. The methods differ in their update of v, which starts at tau^2. The bias
    of the first rounds is not corrected.
    """

    eta_server: float = 0.1
    beta_1: float = key(0.9, "Decay of m.", min=0, below=1)
    tau: float = key(1e-3, "Number added to the root of v; a smaller one is more adaptive.", above=0)

    def begin(self, common: Common, clients: int) -> tuple[AdaptiveServer, None]:
        """Start from theta = m = 0, v = tau^2."""
        nothing = zero_theta(common)
        return AdaptiveServer(nothing, nothing, nothing + self.tau**2), None

    def server_update(self, server: AdaptiveServer, change: Array) -> AdaptiveServer:
        """The update of Algorithm 2."""
        m = self.beta_1 * server.m + (1 - self.beta_1) * change
        v = self.second_moment(server.v, change**2)
        return AdaptiveServer(server.theta + self.eta_server * m / (v**0.5 + self.tau), m, v)

    def second_moment(self, v: Array, square: Array) -> Array:
        """The next v, from the square of the clients' mean change."""
        raise NotImplementedError


@dataclass(frozen=True)
class FedAdagrad(AdaptiveFedAvg):
    """Adaptive server steps with v <- v + Delta^2."""

    label: ClassVar[str] = "FedAdagrad"

    beta_1: float = 0.0

    def second_moment(self, v: Array, square: Array) -> Array:
        """The sum of squares."""
        return v + square


@dataclass(frozen=True)
class FedAdam(AdaptiveFedAvg):
    """Adaptive server steps with v <- beta_2 v + (1 - beta_2) Delta^2."""

    label: ClassVar[str] = "FedAdam"

    beta_2: float = key(0.99, "Decay of v.", min=0, below=1)

    def second_moment(self, v: Array, square: Array) -> Array:
        """A moving mean of squares."""
        return self.beta_2 * v + (1 - self.beta_2) * square


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """Adaptive server steps with v <- v - (1 - beta_2) Delta^2 sign(v - Delta^2)."""

    label: ClassVar[str] = "FedYogi"

    def second_moment(self, v: Array, square: Array) -> Array:
        """A sum of signed squares, which changes slowly if v is large."""
        return v - (1 - self.beta_2) * square * array_namespace(v).sign(v - square)


@dataclass(frozen=True)
class FedProx(FedAvg):
    """Clients descend on F_k(theta_k) + (mu / 2) |theta_k - theta|^2, with the server's theta.

    The first step of a round starts at theta, so with one local step this is FedAvg.
    """

    label: ClassVar[str] = "FedProx"

    mu: float = key(0.1, "Weight of the proximal term; 0 is FedAvg.", min=0)

    def correction_term(self, loss: Loss, point: Array) -> Array:
        """The gradient of the proximal term."""
        return self.mu * (point - loss.at_server)


@dataclass(frozen=True)
class ScaffoldDown:
    """Message to all clients: the server's theta and its control variate."""

    theta: SameForAll
    control: SameForAll


@dataclass(frozen=True)
class ScaffoldUp:
    """Message of a client: its changes of theta and of its control variate."""

    theta: PerClient
    control: PerClient


@dataclass
class ScaffoldServer:
    """State of the server: theta and the control variate c, (R, N, P)."""

    theta: Array
    control: Array


@dataclass
class ScaffoldClient:
    """State of a client: its control variate c_k, (R, K, N, P)."""

    control: Array


@dataclass(frozen=True)
class Scaffold(FedAvg):
    """theta_k <- theta_k - eta (grad F_k(theta_k) + c - c_k), with the server's control variate c and client k's c_k.

    After E steps, c_k <- c_k - c + (theta - theta_k) / (E eta), and clients send both changes. The server takes a step
    along the mean change of theta, and adds |S| / K times the mean change of the clients' control variates to c, where
    S are the clients of the round. All control variates start at 0. Absent clients keep theirs.
    """

    label: ClassVar[str] = "SCAFFOLD"
    uses_sample_once: ClassVar[bool] = False
    message_of_one_sample: ClassVar[bool] = False

    def begin(self, common: Common, clients: int) -> tuple[ScaffoldServer, ScaffoldClient]:
        """Start from theta = c = c_k = 0."""
        return ScaffoldServer(zero_theta(common), zero_theta(common)), ScaffoldClient(zero_theta(common, clients))

    def broadcast(self, common: Common, server: ScaffoldServer, turn: Turn) -> ScaffoldDown:
        """Send theta and c to all clients."""
        return ScaffoldDown(SameForAll(server.theta), SameForAll(server.control))

    def train(
        self, common: Common, client: ScaffoldClient, down: ScaffoldDown, samples: Any, turn: Turn
    ) -> tuple[ScaffoldClient, ScaffoldUp, Any]:
        """Predict with the server's theta, take the corrected steps, and send both changes."""
        c = down.control.values[:, None]
        loss = self.local_loss(common, down, samples, c - client.control)
        change = loss.dense(self.sum_of_steps(common, loss))
        control = client.control - c - change / (self.local_steps * self.rate(common))
        up = ScaffoldUp(PerClient(change), PerClient(control - client.control))
        here = samples.present[:, None, None]
        return ScaffoldClient(common.xp.where(here, control, client.control)), up, loss.outcome(loss.at_server)

    def correction_term(self, loss: Loss, point: Array) -> Array:
        """The difference c - c_k."""
        return loss.at_own

    def server(
        self, common: Common, server: ScaffoldServer, up: ScaffoldUp, share: Array, turn: Turn
    ) -> ScaffoldServer:
        """Learn from the mean changes of theta and of the control variates."""
        control = server.control + turn.clients_present / common.clients * up.control.mean(share)
        return ScaffoldServer(server.theta + self.eta_server * up.theta.mean(share), control)


LEAST_LOSS = 1e-10
"""Number added to losses, as in the authors' program, because 0 has no negative powers."""


@dataclass(frozen=True)
class QFedAvgUp:
    """Message of a client: its change of theta, and its part h_k of the server's divisor, for each kernel."""

    theta: FeatureGradients | PerClient
    curvature: PerClient


@dataclass(frozen=True)
class QFedAvg(FedAvg):
    """theta <- theta + eta_server sum_k F_k^q (theta_k - theta) / sum_k h_k, which descends on sum_k F_k^(q + 1).

    h_k = q F_k^(q - 1) |theta_k - theta|^2 / eta + F_k^q, and F_k is the client's loss at the server's theta. These are
    the paper's Delta_k and h_k times eta, for L = 1 / eta. Each kernel has its own F_k and h_k. To compress messages,
    set compression.kinds=[theta], because the server divides by the sum of h_k.
    """

    label: ClassVar[str] = "q-FedAvg"

    q: float = key(1.0, "Exponent by which larger losses count more; 0 is FedAvg.", min=0, max=100)

    def train(self, common: Common, client: None, down: Any, samples: Any, turn: Turn) -> tuple[None, QFedAvgUp, Any]:
        """Predict with the server's theta, take E steps, and send their sum and h_k."""
        loss = self.local_loss(common, down, samples)
        change, F = self.sum_of_steps(common, loss), loss.value(loss.at_server) + LEAST_LOSS
        curvature = self.q * F ** (self.q - 1) * loss.squared_norm(change) / self.rate(common) + F**self.q
        up = QFedAvgUp(loss.message(F[..., None] ** self.q * change), PerClient(curvature))
        return None, up, loss.outcome(loss.at_server)

    def server(self, common: Common, server: DescentServer, up: QFedAvgUp, share: Array, turn: Turn) -> DescentServer:
        """Step along the ratio of two means."""
        return self.server_update(server, up.theta.mean(share) / up.curvature.mean(share)[..., None])


@dataclass
class LocalModel:
    """State of a client: theta of its own model, (R, K, N, P)."""

    theta: Array


@dataclass(frozen=True)
class Personal(FedAvg):
    """Base class of methods whose clients predict with their own models."""

    personal: ClassVar[bool] = True

    lam_k: float = key(
        1.0,
        "The papers' lambda: weight of the distance between a client's own model and the model that it shares.",
        min=0,
    )

    def begin(self, common: Common, clients: int) -> tuple[DescentServer, LocalModel]:
        """Start from theta = 0 everywhere."""
        return DescentServer(zero_theta(common)), LocalModel(zero_theta(common, clients))

    def train(
        self, common: Common, client: LocalModel, down: Any, samples: Any, turn: Turn
    ) -> tuple[LocalModel, Change, Any]:
        """Predict with the client's own model, learn, and send the change of the shared model."""
        loss = self.local_loss(common, down, samples, client.theta)
        change, own = self.change_and_own(common, loss)
        theta = common.xp.where(samples.present[:, None, None], loss.dense(own), client.theta)
        return LocalModel(theta), Change(loss.message(change)), loss.outcome(loss.at_own)

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The change of the shared model, and the client's next own model."""
        raise NotImplementedError


@dataclass(frozen=True)
class Ditto(Personal):
    """FedAvg, and E steps v_k <- v_k - eta (grad F_k(v_k) + lam_k (v_k - theta)) of every client in a round.

    Clients keep v_k and predict with it; they do not send it. With lam_k = 0, each client learns alone.
    """

    label: ClassVar[str] = "Ditto"

    lam_k: float = key(1.0, "The paper's lambda; a larger one keeps v_k closer to the server's theta.", min=0)

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The sum of FedAvg's steps, and v_k after its steps."""
        own = loss.at_own
        for _ in range(self.local_steps):
            own = own - self.rate(common) * (loss.gradient(own) + self.lam_k * (own - loss.at_server))
        return self.sum_of_steps(common, loss), own


@dataclass(frozen=True)
class PFedMe(Personal):
    """theta_k <- theta_k - eta lam_k (theta_k - v_k), where v_k nearly minimises F_k(v) + (lam_k / 2) |v - theta_k|^2.

    This is descent on F_k's Moreau envelope. Before each of the E steps, v_k takes `own_steps` steps with learning rate
    eta_k. In a round, theta_k and v_k start at the server's theta, and eta_server is the paper's beta. Clients predict
    with v_k of their last round.
    """

    label: ClassVar[str] = "pFedMe"

    eta_k: float | None = key(
        None,
        "Learning rate of v_k; None for 1 / sqrt(T). With iterations, 0.3 is a usual value.",
        above=0,
        must="a number > 0, or null for 1/sqrt(T)",
    )
    own_steps: int = key(5, "Number of steps of v_k before each step of theta_k, the paper's K.", min=1, max=MOST_STEPS)
    lam_k: float = key(1.0, "The paper's lambda; a larger one keeps v_k closer to theta_k.", min=0)

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The sum of theta_k's steps on the envelope, and v_k after the last step."""
        shared = own = loss.at_server
        eta_k = common.rounds**-0.5 if self.eta_k is None else self.eta_k
        for _ in range(self.local_steps):
            for _ in range(self.own_steps):
                own = own - eta_k * (loss.gradient(own) + self.lam_k * (own - shared))
            shared = shared - self.rate(common) * self.lam_k * (shared - own)
        return shared - loss.at_server, own
