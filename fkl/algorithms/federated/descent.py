"""Federated gradient descent on each kernel's theta at the server, and methods that weight the kernels.

OFMKL-Avg: baseline of Ghari and Shen (NeurIPS 2022, section 4), the plain mean of all kernels, each learned by Fed-OMD.
Fed-OMD: Mitra, Hassani and Pappas, Online Federated Learning (2021).

OFSKL: baseline of Ghari and Shen (NeurIPS 2022, section 4), Fed-OMD on one kernel.

vM-KOFL and eM-KOFL: Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated
Learning (2021).

POF-MKL and Fed-POE, which learn theta in the same way, are in `pof_mkl` and `fed_poe`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import WithLoss, mean_norm, softmax, squared_norms
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.pointwise import LOGISTIC
from fkl.basics.random_streams import Role
from fkl.contract.star import Federated, Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.kernels.bank import Stepped
from fkl.kernels.client_tiles import WIDE, sum_in_order, tile_sums
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import FeatureGradients, PerClient, SameForAll

MOST_STEPS = 1000
"""Largest number of local steps in a round."""


@dataclass(frozen=True)
class Parameters:
    """Message to all clients: the server's theta (R, N, P)."""

    theta: SameForAll


@dataclass(frozen=True)
class Gradients:
    """Message of a client: its gradients, for the kernels that it sends or for all."""

    theta: FeatureGradients


@dataclass(frozen=True)
class LossesAndGradients:
    """Message of a client: its losses (R, K, N) and gradients, for all kernels or for those that it received."""

    losses: PerClient
    theta: FeatureGradients


@dataclass
class DescentServer:
    """State of the server: theta (R, N, P)."""

    theta: Array


@dataclass(frozen=True)
class Descent(WithLoss, Federated):
    """Online gradient descent on l(theta'z, y) + lam |theta|^2 by the server, with the clients' mean gradient."""

    not_traceable: ClassVar[str] = ""
    unbiased: ClassVar[bool] = False
    """Whether the step of the server's theta, averaged over a round's draws, is `declared_step`."""

    eta: float | None = key(
        None, "Learning rate; None for 1 / sqrt(T).", above=0, must="a number > 0, or null for 1/sqrt(T)"
    )
    step_factor: float = key(
        1.0,
        "Factor of eta in updates of theta, but not of weights. The gradient is 2 (f - y) z; a factor of 1 / 2 "
        "gives the step for a loss (f - y)^2 / 2. POF-MKL's published numbers use 2, its baselines' use 1.",
        above=0,
    )
    lam: float = key(1e-3, "Regularisation lambda; the paper does not state it.", min=0)
    local_steps: int = key(
        1,
        "Gradient steps of a client from the server's theta, on the sample of the round. The client then sends "
        "the sum of their gradients.",
        min=1,
        max=MOST_STEPS,
    )

    def rate(self, rounds: int) -> float:
        """The learning rate eta for a horizon of T rounds."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(rounds))

    def client_gradients(
        self,
        common: Common,
        samples: Samples,
        theta: Array,
        f: Array,
        weight: Array | None = None,
        chosen: NDArray[np.bool_] | None = None,
    ) -> FeatureGradients:
        """A client's gradients, or their sums over E = local_steps steps, stored as factors.

        All steps stay in the span of theta and z = z(x). With s = step_factor * eta, theta_0 = theta, f_e = theta_e'z,
        and g_e = l'(f_e, y) z + 2 lam theta_e the gradient of step e,

            theta_e = a_e theta + b_e z,              a_0 = 1,  b_0 = 0,
            g_e = c_e z + 2 lam a_e theta,            c_e = l'(f_e, y) + 2 lam b_e,
            a_{e+1} = (1 - 2 s lam) a_e,              b_{e+1} = b_e - s c_e,
            f_{e+1} = (1 - 2 s lam) f_e - s l'(f_e, y) |z|^2.

        So the sum of g_0 to g_{E-1} is again c z + 2 lam a theta, with c = sum_e c_e and a = sum_e a_e. The server uses
        the same step size s: with only one client, its result is theta_E. Importance weights of drawn kernels multiply
        the sum, not single steps. Averaged over the draw, the result is then the sum for a client that learns all
        kernels.

        Parameters
        ----------
        common : Common
        samples : Samples
        theta : (R, N, P)
            The server's theta.
        f : (R, K, N)
            f_0, the predictions of all kernels.
        weight, chosen : as in `FeatureGradients`
        """
        # The gradient is l'(f, y) z + 2 lam theta, so the scalar l'(f, y) is enough to send
        coefficients, decay = self.pointwise.derivative(f, samples.y[:, None]), None
        if self.local_steps > 1:
            # Several local steps see the same z, so their sum is again a multiple of z and one of theta
            coefficients, decay = self._sum_local_steps(common, samples, f)
        if weight is not None:
            coefficients *= weight
        if decay is not None:
            weight = np.full(f.shape, decay) if weight is None else decay * weight
        return FeatureGradients(common.bank, samples.x, coefficients, theta, self.lam, weight, chosen)

    def _sum_local_steps(self, common: Common, samples: Samples, f: Array) -> tuple[Array, float]:
        """The sums of all c_e, (R, K, N), and of all a_e."""
        # Theta after some steps is a theta_0 + b z, so only two scalars per kernel change
        step, length = self.step_factor * self.rate(common.rounds), common.bank.squared_norms(samples.x)
        nothing = common.xp.zeros_like(f)
        a, b, c_sum, a_sum = 1.0, nothing, nothing, 0.0
        for _ in range(self.local_steps):
            # One step: the slope at the current prediction, and the new a, b and f
            slope = self.pointwise.derivative(f, samples.y[:, None])
            c = slope + 2 * self.lam * b
            c_sum, a_sum = c_sum + c, a_sum + a
            f = (1 - 2 * step * self.lam) * f - step * length * slope
            a, b = (1 - 2 * step * self.lam) * a, b - step * c
        return c_sum, a_sum

    def own_steps(self, common: Common, samples: Samples, theta: Array) -> Stepped:
        """Take E steps on each client's theta (R, N, K, P); return f, |theta|^2 before them, and theta after them."""
        here, step = samples.present.astype(np.float64), self.step_factor * self.rate(common.rounds)
        f, squared_norm, theta = common.bank.descend(samples.x, samples.y, here, theta, step, self.lam, self.pointwise)
        for _ in range(self.local_steps - 1):
            theta = common.bank.descend(samples.x, samples.y, here, theta, step, self.lam, self.pointwise)[2]
        return f, squared_norm, theta

    def declared_step(self, world: World, theta: Array, t: int) -> Array:
        """The mean over clients of E successive gradient steps from theta (R, N, P) in round t."""
        x, y, share = world.problem.round(t)
        z = world.bank.features(x).swapaxes(1, 2)  # (R, K, N, P)
        step = self.step_factor * (1 / np.sqrt(world.problem.rounds) if self.eta is None else self.eta)
        theta_of_clients = first = np.repeat(theta[:, None], len(y), axis=1)
        for _ in range(self.local_steps):
            slope = self.pointwise.derivative((z * theta_of_clients).sum(axis=-1, keepdims=True), y[:, None, None])
            theta_of_clients = theta_of_clients - step * (slope * z + 2 * self.lam * theta_of_clients)
        mean: Array = np.einsum("k,rknp->rnp", share, theta_of_clients - first)
        return mean

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """theta_i = 0; clients hold nothing."""
        bank = common.bank
        return DescentServer(common.xp.zeros((bank.replicates, bank.kernels, bank.width))), None

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """Send theta to all clients."""
        return Parameters(SameForAll(server.theta))

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """Step theta_i <- theta_i - eta mean_k grad L_ik, POF-MKL's eq. (10)."""
        return DescentServer(server.theta - self.step_factor * self.rate(common.rounds) * up.theta.mean(share))


class SeenKernels(NamedTuple):
    """What clients have at the server's theta: predictions f (R, K, N), |theta_i|^2 (R, N), and `gradient_weights`."""

    f: Array
    norms: Array
    weights: tuple[Array | None, NDArray[np.bool_] | None]


@dataclass(frozen=True)
class MixtureDescent(Descent):
    """Descent whose clients predict with a mixture of the server's kernels.

    You write ``client_answer(common, client, down, seen, samples, turn) -> (client, up, outcome)``: `client`, with what
    it has seen of the kernels. You may write `gradient_weights` and `learn_weights`.

    If data do not decide the gradients' weights, theta_i depends on no other kernel. Several rounds are then played at
    once (`play_rounds`): first all steps of every theta_i, then `client_answer` and `learn_weights` of each round.
    """

    def gradient_weights(self, client: Any, turn: Turn) -> tuple[Array | None, NDArray[np.bool_] | None]:
        """Factors of gradients (R, K, N), and which are sent; None for 1, and for all.

        Only if `choices_reveal_data` do they depend on numbers in the client's state.
        """
        return None, None

    def client_answer(
        self, common: Common, client: Any, down: Any, seen: SeenKernels, samples: Samples, turn: Turn
    ) -> tuple[Any, Any, Outcome]:
        """A client's new state, its message, and its outcome."""
        raise NotImplementedError

    def learn_weights(self, common: Common, server: Any, up: Any, share: Array) -> Any:
        """The server after it has learned the kernels' weights; here it has none."""
        return server

    def kernel_losses(self, seen: SeenKernels, samples: Samples) -> Array:
        """L_ik, the loss of each kernel's own prediction, (R, K, N)."""
        return self.pointwise.value(seen.f, samples.y[:, None]) + self.lam * seen.norms[:, None]

    def client(self, common: Common, client: Any, down: Any, samples: Samples, turn: Turn) -> tuple[Any, Any, Outcome]:
        """Predict with every kernel, and answer."""
        theta, weights = down.theta.values, self.gradient_weights(client, turn)
        seen = SeenKernels(common.bank.predict(samples.x, theta), squared_norms(theta), weights)
        return self.client_answer(common, client, down, seen, samples, turn)

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """Step theta as in all descent, and learn the kernels' weights."""
        theta = super().server(common, server, up, share, turn).theta
        return self.learn_weights(common, replace(server, theta=theta), up, share)

    def why_round_by_round(self, world: World) -> str:
        """Why rounds cannot be played at once; empty if they can."""
        parts = ("step", "tell", "client", "server", "client_gradients")
        reasons = {
            "the engine is not numba": world.engine != "numba",
            "a subclass has its own rounds": any(
                getattr(type(self), one) != getattr(MixtureDescent, one) for one in parts
            ),
            "data decide which gradients are sent": self.choices_reveal_data,
            "clients take several local steps": self.local_steps > 1,
            "compiled code rounds the logistic loss otherwise": self.pointwise.kind == LOGISTIC,
            "the product of one sample is rounded otherwise": world.problem.clients == 1,
            "messages take time": world.channel.times is not None,
            f"samples of {WIDE} features may repeat one value": world.problem.dimension >= WIDE,
        }
        return next((why for why, holds in reasons.items() if holds), "")

    def play_rounds(self, world: World, state: StarState, t: int, rounds: int) -> Iterator[tuple[StarState, Outcome]]:
        """Play some rounds with the bits of `step`; only the last state has theta."""
        common, channel, clients = world.common, world.channel, world.problem.clients
        alone, turns = (
            [
                Turn(now, 0, world.streams, some, clients_present=world.clients_present(now))
                for now in range(t, t + rounds)
            ]
            for some in (range(1), range(clients))
        )
        given, shares = zip(*(self.given(world, turn.t) for turn in turns), strict=True)
        # First all steps of theta: the weights of gradients decide them, whatever the other kernels do
        drawn = [self.gradient_weights(state.client, turn) for turn in turns]
        R, N, P = state.server.theta.shape
        weight, decay = np.ones((rounds, R, clients, N)), np.empty((rounds, R, N))
        for b, (factors, _) in enumerate(drawn):
            if factors is not None:
                weight[b] = factors
            sums = tile_sums(shares[b]) if factors is None else PerClient(factors).tile_sums(shares[b])
            decay[b] = 2 * self.lam * sum_in_order(sums)
        x, y, share = map(np.stack, ([one.x for one in given], [one.y for one in given], shares))
        step = self.step_factor * self.rate(common.rounds)
        own = state.server.theta, step, self.pointwise
        bank: Any = common.bank
        f, thetas, theta = bank.learn_rounds(x, y, share, weight, decay, *own)
        norms = squared_norms(thetas.reshape(R, N * rounds, P)).reshape(R, N, rounds)
        # Then the rest of each round; theta in its messages has only the right shape
        server, client = replace(state.server, theta=np.zeros((R, N, P), bank.precision)), state.client
        for b, turn in enumerate(turns):
            channel.open_round(turn.t, given[b].present)
            down = channel.down(self.broadcast(common, server, alone[b]))
            seen = SeenKernels(f[b], np.ascontiguousarray(norms[..., b]), drawn[b])
            client, up, outcome = self.client_answer(common, client, down, seen, given[b], turn)
            up = channel.up(up)
            if given[b].present.any():
                server = self.learn_weights(common, server, up, shares[b])
            yield StarState(server if b < rounds - 1 else replace(server, theta=theta), client), outcome


@dataclass(frozen=True)
class OfmklAvg(MixtureDescent):
    """Every client sends the gradients of all kernels; predictions weight the kernels equally."""

    label: ClassVar[str] = "OFMKL-Avg"
    choices_reveal_data: ClassVar[bool] = False
    unbiased: ClassVar[bool] = True
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def client_answer(
        self, common: Common, client: None, down: Parameters, seen: SeenKernels, samples: Samples, turn: Turn
    ) -> tuple[None, Gradients, Outcome]:
        """Predict with the mean of all kernels, and send grad L_ik for each kernel."""
        f, norms, weights = seen
        even = common.xp.full_like(f, 1 / common.bank.kernels)
        outcome = Outcome(f.mean(axis=-1), self.kernel_losses(seen, samples), lambda: mean_norm(even, norms))
        return None, Gradients(self.client_gradients(common, samples, down.theta.values, f, *weights)), outcome

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The function that averages the server's kernels."""
        theta = state.server.theta[:, None]
        return OnFeatures.of_replicates(world.bank, theta, np.full(theta.shape[:3], 1 / world.bank.kernels))


@dataclass(frozen=True)
class Ofskl(OfmklAvg):
    """OFMKL-Avg with a dictionary of one kernel: theta <- theta - eta (1/K) sum_k grad L_k."""

    label: ClassVar[str] = "OFSKL"

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1 for {self.label}, for example kernels=rbf_single")

    def start(self, common: Common, clients: int) -> tuple[DescentServer, None]:
        """Start from theta = 0."""
        self.require_fits(common.dictionary)
        return super().start(common, clients)


@dataclass(frozen=True)
class VmKoflDown:
    """Message to all clients: theta (R, N, P) and w (R, N)."""

    theta: SameForAll
    weights: SameForAll


@dataclass
class VmKoflServer:
    """State of the server: theta (R, N, P) and log w (R, N)."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class VmKofl(MixtureDescent):
    """The server learns theta as in OFMKL-Avg, and weights w_i <- w_i exp(-eta mean_k L_ik)."""

    label: ClassVar[str] = "vM-KOFL"
    choices_reveal_data: ClassVar[bool] = False
    unbiased: ClassVar[bool] = True
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[VmKoflServer, None]:
        """Start from theta_i = 0, w_i = 1; clients hold nothing."""
        bank, xp = common.bank, common.xp
        shape = (bank.replicates, bank.kernels)
        return VmKoflServer(xp.zeros((*shape, bank.width)), xp.zeros(shape)), None

    def broadcast(self, common: Common, server: VmKoflServer, turn: Turn) -> VmKoflDown:
        """Send theta and w to all clients."""
        return VmKoflDown(SameForAll(server.theta), SameForAll(softmax(server.log_w)))

    def client_answer(
        self, common: Common, client: None, down: VmKoflDown, seen: SeenKernels, samples: Samples, turn: Turn
    ) -> tuple[None, LossesAndGradients, Outcome]:
        """Predict with the server's weights, and send the losses and gradients of all kernels."""
        (f, norms, weights), loss, w = seen, self.kernel_losses(seen, samples), down.weights.values[:, None]
        everyones = common.xp.broadcast_to(w, f.shape)
        outcome = Outcome((w * f).sum(axis=-1), loss, lambda: mean_norm(everyones, norms))
        gradients = self.client_gradients(common, samples, down.theta.values, f, *weights)
        return None, LossesAndGradients(PerClient(loss), gradients), outcome

    def learn_weights(self, common: Common, server: VmKoflServer, up: LossesAndGradients, share: Array) -> VmKoflServer:
        """Update w_i <- w_i exp(-eta mean_k L_ik), as logarithms, because over many rounds w would underflow."""
        return replace(server, log_w=server.log_w - self.rate(common.rounds) * up.losses.mean(share))

    def log_weights(self, state: StarState) -> Array:
        """Log w of the server's kernels, (R, N)."""
        log_w: Array = state.server.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """Decrease of log w_i in a round: the rate times mean_k L_ik."""
        share = world.problem.round(t)[2]
        assert outcome.loss is not None
        return self.rate(world.problem.rounds) * (share[:, None] * outcome.loss).sum(axis=1)

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The server's mixture of its kernels."""
        return OnFeatures.of_replicates(world.bank, state.server.theta[:, None], softmax(state.server.log_w)[:, None])


PREDICTORS = ("average", "copy")
LOSSES = ("mean", "sum")


@dataclass(frozen=True)
class Drawn:
    """Message to all clients: the number (R,) of the kernel that the server drew."""

    index: SameForAll


@dataclass(frozen=True)
class Copies:
    """Message of a client: its copy (R, K, P) of the drawn kernel's theta."""

    theta: PerClient


@dataclass(frozen=True)
class Average:
    """Message to all clients: their mean theta (R, P) of the drawn kernel."""

    theta: SameForAll


@dataclass(frozen=True)
class Losses:
    """Message of a client: its losses (R, K, N)."""

    losses: PerClient


@dataclass(frozen=True)
class LossesAndCopies:
    """Message of a client: its losses and its copy, if clients learn before they send their copies."""

    losses: PerClient
    theta: PerClient


@dataclass
class EmKoflServer:
    """State of the server: log w (R, N), and the mean theta (R, P) of the round."""

    log_w: Array
    average: Array


@dataclass
class EmKoflClient:
    """State of a client: theta (R, N, K, P) in the bank's precision, and the last drawn kernel (R,)."""

    theta: Array
    index: NDArray[np.int64]


@dataclass(frozen=True)
class EmKofl(Descent):
    """Clients learn all kernels alone; their copies of the drawn kernel are replaced by the mean of the copies.

    In a round, the server draws kernel I by its weights, announces it, and averages the clients' copies of theta_I. The
    clients adopt the average and predict with it. Then every client learns all kernels from its sample, starting from
    its own copies, and sends the kernels' losses. The authors' published script and an independent script in R do the
    same (differences.md of POF-MKL's paper).
    """

    label: ClassVar[str] = "eM-KOFL"
    choices_reveal_data: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2

    predictor: str = key(
        "average",
        "Model with which the clients predict: the average of the round, or each client's own copy. The copy is "
        "then averaged only after it has learned from the round's sample.",
        choices=PREDICTORS,
    )
    losses: str = key(
        "mean",
        "Losses by which the server's weights shrink: w_i <- w_i exp(-eta_w mean_k L_ik), as in vM-KOFL, or with the "
        "sum over k.",
        choices=LOSSES,
    )
    weight_factor: float = key(1.0, "Factor of eta in updates of weights: eta_w = weight_factor * eta.", above=0)
    local_steps: int = key(
        1,
        "Gradient steps of a client on the sample of the round, the same for every kernel. Losses are computed "
        "before the first step.",
        min=1,
        max=MOST_STEPS,
    )

    def start(self, common: Common, clients: int) -> tuple[EmKoflServer, EmKoflClient]:
        """Start from theta_ik = 0, w_i = 1."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        theta = xp.zeros((R, N, clients, P), bank.precision)
        return EmKoflServer(xp.zeros((R, N)), xp.zeros((R, P))), EmKoflClient(theta, xp.zeros(R, xp.int64))

    def broadcast(self, common: Common, server: EmKoflServer, turn: Turn) -> Drawn | Average:
        """Send the number of the drawn kernel first, and then the mean of the clients' copies of it."""
        if turn.exchange == 1:
            return Average(SameForAll(server.average))
        p = softmax(server.log_w)
        drawn = (turn.uniform(Role.SELECTION) >= common.xp.cumsum(p, axis=-1)).sum(axis=-1)
        return Drawn(SameForAll(common.xp.minimum(drawn, common.bank.kernels - 1)))

    def client(
        self, common: Common, client: EmKoflClient, down: Any, samples: Samples, turn: Turn
    ) -> tuple[EmKoflClient, Any, Outcome | None]:
        """Send the copy of the drawn kernel, adopt the mean, and learn all kernels after or before that."""
        # Copies of theta are by replicate, and index has the drawn kernel of each
        rows = common.xp.arange(common.bank.replicates)
        averages_first = self.predictor == "average"
        # The first exchange: send the copy of the drawn kernel, before or after learning all kernels
        if turn.exchange == 0:
            client = EmKoflClient(client.theta, down.index.values)
            if averages_first:
                return client, Copies(PerClient(client.theta[rows, client.index])), None
            client, losses, outcome = self._learn_all_kernels(common, client, samples)
            return client, LossesAndCopies(losses, PerClient(client.theta[rows, client.index])), outcome
        # The second exchange: adopt the mean of the copies
        here = samples.present[:, None]  # absent clients receive nothing
        mean = down.theta.values[:, None]
        copies = common.xp.where(here, mean, client.theta[rows, client.index])
        client = EmKoflClient(common.bank.put(client.theta, (rows, client.index), copies), client.index)
        forgotten = common.xp.zeros_like(client.index)  # absent clients do not know the drawn kernel
        if not averages_first:
            return EmKoflClient(client.theta, forgotten), None, None
        client, losses, outcome = self._learn_all_kernels(common, client, samples)
        return EmKoflClient(client.theta, forgotten), Losses(losses), outcome

    def server(self, common: Common, server: EmKoflServer, up: Any, share: Array, turn: Turn) -> EmKoflServer:
        """Average the copies, and update w_i <- w_i exp(-eta_w mean_k L_ik)."""
        log_w, average = server.log_w, server.average
        if isinstance(up, Copies | LossesAndCopies):
            average = up.theta.mean(share)
        if isinstance(up, Losses | LossesAndCopies):
            total = 1 if self.losses == "mean" else (share > 0).sum()
            log_w = log_w - self.weight_factor * self.rate(common.rounds) * total * up.losses.mean(share)
        return EmKoflServer(log_w, average)

    def log_weights(self, state: StarState) -> Array:
        """Log w of the kernels at the server, (R, N)."""
        log_w: Array = state.server.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """Decrease of log w_i in a round: eta_w times the mean or sum of the present clients' losses."""
        assert outcome.loss is not None
        share = world.problem.round(t)[2] if self.losses == "mean" else world.present(t)
        return self.weight_factor * self.rate(world.problem.rounds) * (share[:, None] * outcome.loss).sum(axis=1)

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """The kernel that is drawn in round t: its mean over clients that have learned, or each client's own copy."""
        drawn: Any = self.broadcast(world.common, state.server, Turn(t, 0, world.streams, range(1)))
        learned = []
        for r, i in enumerate(drawn.index.values):
            theta = state.client.theta[r, i][:, None]  # (K, 1, P)
            if self.predictor == "average":
                learned_anything = state.client.theta[r].any(axis=(0, 2))  # a client starts with theta = 0
                theta = theta[learned_anything if learned_anything.any() else slice(None)].mean(axis=0, keepdims=True)
            learned.append(OnFeatures.from_bank(world.bank, r, theta, np.ones((len(theta), 1)), np.array([i])))
        return tuple(learned)

    def _learn_all_kernels(
        self, common: Common, client: EmKoflClient, samples: Samples
    ) -> tuple[EmKoflClient, PerClient, Outcome]:
        """Take steps with all kernels; return the new state, and the losses and predictions before the steps."""
        rows, index = common.xp.arange(common.bank.replicates), client.index
        f, squared_norm, theta = self.own_steps(common, samples, client.theta)
        loss = self.pointwise.value(f, samples.y[:, None]) + self.lam * squared_norm
        learned = EmKoflClient(theta, index)
        return learned, PerClient(loss), Outcome(f[rows, :, index], loss, lambda: squared_norm[rows, :, index])
