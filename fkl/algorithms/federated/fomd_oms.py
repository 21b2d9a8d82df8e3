"""Online model selection: a client uses J of N kernels in a round, and learns alone or with others.

FOMD-OMS: Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data,
NeurIPS 2024, and the authors' script FOMD-OMS.R. The N kernels are their K hypothesis spaces, and the K clients their M
clients.

NCO-OMS: the non-cooperative comparator of Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model
Selection with Decentralized Data, NeurIPS 2024, and the authors' script NCO-OMS-2.R.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import WithLoss, squared_norms
from fkl.algorithms.federated.descent import LossesAndGradients
from fkl.basics.arrays import Array, array_namespace, is_traced, repeat_until
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.contract.star import Federated, Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import FeatureGradients, PerClient, Selected

MOST_STEPS = 200
"""Largest number of Newton steps; one is enough if all C_i are equal."""
ROUNDING = 1e-13


@dataclass(frozen=True)
class ModelSelection(WithLoss, Federated):
    """A round uses J of N kernels: A_1, drawn from p, predicts; the other J - 1 are drawn uniformly from the rest."""

    not_traceable: ClassVar[str] = ""

    per_client: ClassVar[tuple[str, ...]] = ("J",)

    J: int = key(
        2,
        "Number of kernels that a client uses in a round, 2 to N; 1 if there is only one kernel.",
        min=1,
        must="an integer from 2 to kernels.N, or 1 with one kernel",
    )
    U: float = key(1.0, "Largest norm of a kernel's theta, which is projected on this ball.", above=0)
    norms: list[float] | None = key(
        None,
        "A norm U_i for each kernel, instead of U: hypothesis spaces of different sizes. The initial p is then "
        "nearly all on the smallest.",
        must="norms > 0, one for each kernel, or null for U",
    )
    Y: float = key(1.0, "Largest |target| that the theoretical rates assume; 1 for a loss of classes.", min=0)
    eta: float | None = key(
        None,
        "Rate of p; None for the theoretical rate. Only eta / C_i matters, with C_i the largest loss, (U_i + Y)^2 for "
        "a squared one: the authors' script for kernels has 16 / 2, which is eta=32.",
        above=0,
        must="a number > 0, or null for theory's",
    )
    step_size: float | None = key(
        None,
        "Step size lambda of theta in every round; None for the theoretical step size, which decreases. The "
        "authors' script for kernels has 0.5.",
        above=0,
        must="a number > 0, or null for theory's",
    )
    lam: float = key(
        1e-3, "Regularisation lambda of the regret that the run reports. The method itself has no regulariser.", min=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = self.norms is None or all(0 < norm < np.inf for norm in self.norms)
        self.require(positive, "norms")

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse J or norms that do not fit the number of kernels."""
        N = kernels.N
        allowed = f"an integer from {min(N, 2)} to kernels.N={N}"
        require(min(N, 2) <= self.J <= N, "J", self.J, allowed)
        fits = self.norms is None or len(self.norms) == N
        require(fits, "norms", self.norms, f"kernels.N={N} norms, one for each kernel, or null for U")

    def bounds(self, N: int) -> NDArray[np.float64]:
        """U_i of every kernel, (N,)."""
        return np.full(N, self.U) if self.norms is None else np.array(self.norms, np.float64)

    def largest_losses(self, N: int) -> NDArray[np.float64]:
        """C_i, the largest possible loss of a kernel: (U_i + Y)^2 for a squared one."""
        return self.pointwise.largest_values(self.bounds(N), self.Y)[0]

    def extra_variance(self, N: int) -> float:
        """(N - J) / (J - 1): the extra variance of estimates from J kernels instead of all."""
        return 0.0 if self.J == N else (N - self.J) / (self.J - 1)

    def rate(self, N: int, rounds: int, clients: int) -> float:
        """Learning rate eta of p for a horizon of T rounds; the theoretical rate depends on the number of clients."""
        if self.eta is not None:
            return self.eta
        a = self.extra_variance(N)
        eta = np.sqrt(np.log(max(N * rounds, 2))) / (2 * np.sqrt(rounds * (1 + a / clients)))
        return float(min(eta, 1 / (2 * a)) if a else eta)

    def step_sizes(self, N: int, t: int, clients: int) -> NDArray[np.float64]:
        """Step sizes lambda_{t,i} of theta in round t, from 0, (N,)."""
        if self.step_size is not None:
            return np.full(N, self.step_size)
        U, a = self.bounds(N), self.extra_variance(N)
        G = self.pointwise.largest_values(U, self.Y)[
            1
        ]  # largest possible gradient if |theta_i| <= U_i, |z| = 1, |y| <= Y
        xp = array_namespace(t) if is_traced(t) else np
        return U / (2 * G * np.sqrt(1 + a / clients)) / xp.sqrt(xp.maximum(a**2, t + 1))

    def first(self, common: Common) -> Array:
        """Logarithms of the initial p, (N,): uniform, or nearly all on the smallest U_i if these differ."""
        N = common.bank.kernels
        p, smallest = np.full(N, 1 / N), int(np.argmin(self.bounds(N)))
        if np.ptp(self.bounds(N)) > 0:
            p[:] = min(1 / np.sqrt(N * common.rounds), 1 / N)
            p[smallest] = 1 - p.sum() + p[smallest]
        return common.xp.asarray(np.log(p))

    def draw_probabilities(self, log_p: Array) -> Array:
        """P_i = P[i in {A_1, ..., A_J}] = (N - J) / (N - 1) p_i + (J - 1) / (N - 1)."""
        xp, N = array_namespace(log_p), log_p.shape[-1]
        if self.J == N:
            return xp.ones_like(log_p)
        return (N - self.J) / (N - 1) * xp.exp(log_p) + (self.J - 1) / (N - 1)

    def draw(self, log_p: Array, uniform: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw A_1 (R, K), and whether each kernel is among A_1 to A_J, (R, K, N).

        Parameters
        ----------
        log_p : (R, K or 1, N)
        uniform : (R, K, 1 + N)
            The first number draws A_1 by inverting the distribution p. The J - 1 smallest others draw A_2 to A_J.
        """
        # A_1 by inversion of the distribution function; rounding may leave the last sum a little below 1
        xp, N = array_namespace(log_p), log_p.shape[-1]
        drawn = (uniform[..., :1] >= xp.cumsum(xp.exp(log_p), axis=-1)).sum(axis=-1)
        index = xp.minimum(drawn, N - 1)
        # A_2 to A_J without replacement: the kernels with the smallest uniform numbers, A_1 first
        keys = xp.where(xp.arange(N) == index[..., None], -1.0, uniform[..., 1:])
        return index, keys <= xp.sort(keys, axis=-1)[..., self.J - 1 : self.J]


def project_into_balls(theta: Array, U: Array) -> Array:
    """The theta_i (..., N, P), each scaled to norm U_i if it is longer."""
    xp = array_namespace(theta)
    norm = xp.sqrt((theta**2).sum(axis=-1))
    factor = xp.where(norm > U, U / xp.where(norm > 0, norm, 1.0), 1.0)
    return theta * factor[..., None].astype(theta.dtype)


def mirror_step(log_p: Array, c: Array, eta: float, C: Array) -> Array:
    """Log p that minimises <p, c> + D(p, p_t), D the Bregman divergence of sum_i (C_i / eta) p_i ln p_i.

    It is p_i <- p_i exp(-eta (c_i + mu) / C_i), with the mu in [-max c, 0] for which they sum to 1. The logarithm of
    the sum is convex and decreasing in mu. At -max c it is >= 0, so Newton steps from there increase to its zero.
    """
    # Start from a mu that is too small, from which Newton's method is monotone
    xp = array_namespace(log_p)
    rate, mu = eta / C, -c.max(axis=-1, keepdims=True)
    start = log_p - rate * c

    def at(mu: Array) -> tuple[Array, Array, Array, Array]:
        """mu, the logarithms of its weights, the weights over the largest weight, and the logarithm of their sum."""
        exponents = start - rate * mu
        top = exponents.max(axis=-1, keepdims=True)
        weights = xp.exp(exponents - top)
        return mu, exponents, weights, top + xp.log(weights.sum(axis=-1, keepdims=True))

    def newton(known: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        mu, _, weights, excess = known
        return at(mu + excess * weights.sum(axis=-1, keepdims=True) / (rate * weights).sum(axis=-1, keepdims=True))

    # Newton's steps until the weights sum to 1
    _, exponents, _, excess = repeat_until(lambda known: (known[3] <= ROUNDING).all(), newton, at(mu), MOST_STEPS)
    return exponents - excess  # corrects rounding errors


@dataclass(frozen=True)
class DrawnKernels:
    """Message to a client: theta_i of the kernels drawn for it, and the number (R, K) of the predicting kernel."""

    theta: Selected
    index: PerClient


@dataclass
class KernelsServer:
    """State of the server: theta (R, N, P), log p (R, N), and the number of clients."""

    theta: Array
    log_p: Array
    clients: int


@dataclass(frozen=True)
class FomdOms(ModelSelection):
    """The server draws J kernels for every client, and learns all kernels from the clients' messages about theirs.

    The predicting kernel is drawn from p, the others uniformly. A client computes only J kernels, whatever N is. The
    theoretical rates, which are the default, are small. With the rates of the authors' script,
    ``+as_published=fomd_oms``, the error on naval and on wave_farm is 26 times smaller.
    """

    label: ClassVar[str] = "FOMD-OMS"
    choices_reveal_data: ClassVar[bool] = False
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True
    draws_for_clients: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[KernelsServer, None]:
        """theta_i = 0; clients hold nothing."""
        bank, xp = common.bank, common.xp
        R, N = bank.replicates, bank.kernels
        self.require_fits(common.dictionary)
        log_p = xp.array(xp.broadcast_to(self.first(common), (R, N)))
        return KernelsServer(xp.zeros((R, N, bank.width)), log_p, clients), None

    def broadcast(self, common: Common, server: KernelsServer, turn: Turn) -> DrawnKernels:
        """Draw A_1 ~ p, and A_2 to A_J uniformly from the others, separately for each client."""
        bank, K = common.bank, server.clients
        uniform = turn.vectors(Role.SELECTION, K * (1 + bank.kernels)).reshape(bank.replicates, K, -1)
        index, chosen = self.draw(server.log_p[:, None], uniform)
        return DrawnKernels(Selected(server.theta, chosen), PerClient(index))

    def client(
        self, common: Common, client: None, down: DrawnKernels, samples: Samples, turn: Turn
    ) -> tuple[None, LossesAndGradients, Outcome]:
        """Predict with A_1, and send the losses and gradients of A_1 to A_J."""
        # Only the chosen kernels' theta has arrived
        bank, xp = common.bank, common.xp
        theta, chosen, index = down.theta.values, down.theta.chosen, down.index.values[..., None]
        f, y = bank.predict(samples.x, theta), samples.y[:, None]
        loss, slope = self.pointwise.value(f, y), self.pointwise.derivative(f, y)
        # The loss has no regulariser, because balls of radius U_i bound theta, so the gradient is l'(f, y) z
        seen = xp.where(chosen, slope, 0.0)
        gradients = FeatureGradients(bank, samples.x, seen, xp.zeros_like(theta), chosen=chosen)
        # The prediction is that of A_1 alone
        squared_norm = xp.broadcast_to(squared_norms(theta)[:, None], f.shape)
        y_hat, of_first = (xp.take_along_axis(of_all, index, axis=-1)[..., 0] for of_all in (f, squared_norm))
        outcome = Outcome(y_hat, loss + self.lam * squared_norm, lambda: of_first)
        return None, LossesAndGradients(PerClient(xp.where(chosen, loss, 0.0), chosen), gradients), outcome

    def server(
        self, common: Common, server: KernelsServer, up: LossesAndGradients, share: Array, turn: Turn
    ) -> KernelsServer:
        """Take a mirror step with every theta_i and with p, from means over clients with weights 1 / P_i.

        theta_i <- Proj_{|theta| <= U_i} (theta_i - lambda_{t,i} (1/K) sum_k 1[i drawn for k] grad_ik / P_i)
        c_i = (1/K) sum_k 1[i drawn for k] l_ik / P_i, then `mirror_step`
        """
        # Step sizes by kernel; a kernel that no client has drawn has the gradient 0
        N, K = common.bank.kernels, server.clients
        P = self.draw_probabilities(server.log_p)
        steps = common.xp.asarray(self.step_sizes(N, turn.t, K))
        # 1 / P_i makes the means unbiased: a kernel is drawn for a client with probability P_i
        theta = server.theta - (steps / P)[..., None] * up.theta.mean(share)
        # The same estimate of the losses, for the step on p
        c, eta = up.losses.mean(share) / P, self.rate(N, common.rounds, K)
        log_p = mirror_step(server.log_p, c, eta, common.xp.asarray(self.largest_losses(N)))
        return KernelsServer(project_into_balls(theta, common.xp.asarray(self.bounds(N))), log_p, K)

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """Every client's function: the server's kernel that is drawn for it in round t."""
        down = self.broadcast(world.common, state.server, Turn(t, 0, world.streams, range(1)))
        one_of_all = down.index.values[..., None] == np.arange(world.bank.kernels)
        return OnFeatures.of_replicates(world.bank, state.server.theta[:, None], one_of_all)


@dataclass
class KernelsClient:
    """State of a client: theta (R, N, K, P) in the bank's precision, and log p (R, K, N)."""

    theta: Array
    log_p: Array


@dataclass(frozen=True)
class NcoOms(ModelSelection):
    """Every client runs FOMD-OMS alone.

    With the rates of the authors' script, ``+as_published=nco_oms``, the error on naval and on wave_farm is 2.7 times
    smaller than with the theoretical rates, which are the default.
    """

    label: ClassVar[str] = "NCO-OMS"
    choices_reveal_data: ClassVar[bool] = False
    silent: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[None, KernelsClient]:
        """Start from theta_ik = 0; the server holds nothing."""
        bank, xp = common.bank, common.xp
        R, N = bank.replicates, bank.kernels
        self.require_fits(common.dictionary)
        log_p = xp.array(xp.broadcast_to(self.first(common), (R, clients, N)))
        return None, KernelsClient(xp.zeros((R, N, clients, bank.width), bank.precision), log_p)

    def broadcast(self, common: Common, server: None, turn: Turn) -> None:
        """Send nothing."""

    def client(
        self, common: Common, client: KernelsClient, down: None, samples: Samples, turn: Turn
    ) -> tuple[KernelsClient, None, Outcome]:
        """Draw A_1 to A_J, predict with A_1, and learn all of them."""
        # Draw by this client's own p
        bank, xp, N = common.bank, common.xp, common.bank.kernels
        index, chosen = self.draw(client.log_p, turn.vectors(Role.SELECTION, 1 + N))
        P = self.draw_probabilities(client.log_p)
        here = samples.present.astype(np.float64)
        # Kernels that were not drawn have step size 0 and keep their theta. 1 / P_i makes the other steps unbiased
        steps = xp.where(chosen, xp.asarray(self.step_sizes(N, turn.t, 1)) / P, 0.0)
        given = samples.x, samples.y, here, client.theta, steps, 0.0, self.pointwise
        # Predict, and take the steps, in one call
        f, squared_norm, theta = bank.descend(*given)
        # The step on p, for present clients only
        loss = self.pointwise.value(f, samples.y[:, None])
        c, eta = xp.where(chosen, loss / P, 0.0), self.rate(N, common.rounds, 1)
        after = mirror_step(client.log_p, c, eta, xp.asarray(self.largest_losses(N)))
        log_p = xp.where(samples.present[:, None], after, client.log_p)
        y_hat, of_first = (xp.take_along_axis(all_, index[..., None], axis=-1)[..., 0] for all_ in (f, squared_norm))
        outcome = Outcome(y_hat, loss + self.lam * squared_norm, lambda: of_first)
        moved = chosen & samples.present[:, None]  # projecting again would round the theta of absent clients
        return KernelsClient(projected_where(moved, theta, xp.asarray(self.bounds(N))), log_p), None, outcome

    def server(self, common: Common, server: None, up: None, share: Array, turn: Turn) -> None:
        """Learn nothing."""

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """Every client's function: its own kernel that is drawn in round t."""
        client: KernelsClient = state.client
        _, K, N = client.log_p.shape
        uniform = Turn(t, 0, world.streams, range(K)).vectors(Role.SELECTION, 1 + N)
        index, _ = self.draw(client.log_p, uniform)
        return OnFeatures.of_replicates(world.bank, client.theta.swapaxes(1, 2), index[..., None] == np.arange(N))


def projected_where(chosen: NDArray[np.bool_], theta: Array, U: Array) -> Array:
    """Project the chosen kernels (R, K, N) of theta (R, N, K, P), which is overwritten, on balls of radius U (N,)."""
    if is_traced(theta):  # their number is then unknown
        every = project_into_balls(theta, U[:, None])
        return array_namespace(theta).where(chosen.swapaxes(1, 2)[..., None], every, theta)
    r, k, i = chosen.nonzero()
    theta[r, i, k] = project_into_balls(theta[r, i, k], U[i])
    return theta
