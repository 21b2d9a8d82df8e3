"""Single learners on a stream that learn all kernels from every sample, exactly or in random features.

OMKR: Sahoo, Hoi and Li, Online Multiple Kernel Regression, KDD 2014.

Raker: Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with Unknown
Dynamics, JMLR 20 (2019).

RFOMKR: Sahoo, Hoi and Li, Large Scale Online Multiple Kernel Regression with Application to Time-Series Prediction,
ACM TKDD 13 (2019).

AdaRaker: Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with Unknown
Dynamics, JMLR 20 (2019), section 4, on the intervals of Daniely, Gonen and Shalev-Shwartz, Strongly Adaptive Online
Learning, ICML 2015.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Outcome, WithLoss, World, softmax
from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.errors import FklError, require
from fkl.basics.keys import Keys, key
from fkl.contract.world import FEATURE_KEYS
from fkl.kernels import Dictionary, exact
from fkl.kernels.functions import OnFeatures, OnPoints


@dataclass(frozen=True)
class PlayedRounds:
    """Results of a block of B rounds.

    Parameters
    ----------
    y_hat, squared_norm : (R, B)
        Predictions, and |f_hat|^2 as in the regularised loss of f_hat.
    loss : (R, B, N) or None
        Loss of each kernel's prediction; None for a method that does not see all losses.
    """

    y_hat: Array
    squared_norm: Array
    loss: Array | None = None

    def outcome(self, b: int) -> Outcome:
        """The outcome of round b of the block, for the only client."""
        loss = None if self.loss is None else self.loss[:, b, None]
        return Outcome(self.y_hat[:, b, None], loss, lambda: self.squared_norm[:, b, None])


@dataclass(frozen=True)
class OnlineLearner(Keys):
    """A single client without a network: predict from x_t, see y_t, learn, in the order of the stream.

    Rounds run in blocks of `block`, which changes numbers only by rounding: within `play`, every prediction is made
    before its target is used. A subclass defines its state, with a field `played`, in `init`, and the rounds in `play`.
    """

    label: ClassVar[str]
    block: ClassVar[int] = 64
    alone: ClassVar[bool] = True
    """Whether the method learns from a single client."""

    eta: float = key(0.1, "Step size: eta_t = eta / sqrt(t) with t from 1.", above=0)

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
        """The state and the outcome of round t; the first round of a block runs the whole block."""
        if is_traced(t):  # the block is then unknown, and does not matter
            after = self.play(world, state, slice(t, t + 1))
            return replace(after, played=None), after.played.outcome(0)
        b = t % self.block
        if b == 0:
            state = self.play(world, state, slice(t, min(t + self.block, world.problem.rounds)))
        return state, state.played.outcome(b)

    def round_by_round(self) -> Self:
        """A copy of this learner that runs in blocks of one round, so its state after a round is that of the round."""
        one = copy(self)
        vars(one)["block"] = 1
        return one

    def play(self, world: World, state: Any, rounds: slice) -> Any:
        """Run a block of rounds and return the state after it."""
        raise NotImplementedError

    def lengthened(self, world: World, state: Any) -> Any:
        """Extend a state for all rounds of the world if a stream is longer than planned; most states do not grow."""
        return state

    def rates(self, rounds: slice) -> NDArray[np.float64]:
        """eta_t of a block of rounds, (B,)."""
        first = rounds.start + 1
        if is_traced(first):  # rate of the only round
            return self.eta / array_namespace(first).sqrt(first[None])
        return self.eta / np.sqrt(np.arange(first, rounds.stop + 1))

    def require_one(self, world: World) -> None:
        """Refuse all but a single client that is always present."""
        if world.problem.clients != 1 or not world.problem.present.all():
            clients = world.problem.clients
            raise FklError(
                f"partition.clients={clients}: {self.label} is a single learner and needs 1 client: partition=stream"
            )


def stream_samples(world: World, rounds: slice) -> tuple[Array, NDArray[np.float64]]:
    """The stream's x (B, d) and y (B,) in a block of rounds."""
    return world.problem.block(rounds)


def falling_weights(log_w: Array, losses: Array) -> tuple[Array, Array]:
    """Logarithms of weights, from which each round's losses are subtracted.

    Parameters
    ----------
    log_w : (R, N)
        Before the block.
    losses : (R, B, N)
        Losses to subtract from log_w after each round.

    Returns
    -------
    before : (R, B, N)
        Before each round.
    after : (R, N)
        After the block.
    """
    xp = array_namespace(losses)
    # Weights before each round: the first round uses log_w itself, the next one the losses up to it, and so on
    fallen = log_w[:, None] - xp.cumsum(losses, axis=1)
    return xp.concatenate([log_w[:, None], fallen[:, :-1]], axis=1), fallen[:, -1]


@dataclass
class OmkrState:
    """State: coefficients a (N, T) of all samples, 0 for samples not yet seen, and log w (1, N)."""

    a: Array
    log_w: Array
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class Omkr(WithLoss, OnlineLearner):
    """f_i(x_t) = sum_{s<t} a_is k_i(x_t, x_s), a_it = -eta_t l'(f_i(x_t), y_t) / 2, w_i <- w_i 0.5^l(f_i, y).

    Round by round, this takes T^2 N / 2 kernel values and one long sum after another. For a block of rounds, f solves a
    triangular system. The contribution of earlier samples is a product with a kernel matrix, computed in tiles that are
    not stored. Only the contribution of the block itself needs forward substitution. Nothing is random: replicates are
    identical, so one is enough.
    """

    label: ClassVar[str] = "OMKR"
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    lam: ClassVar[float] = 0.0
    block: ClassVar[int] = 256
    compiled_only: ClassVar[bool] = True

    only: ClassVar[tuple[str, float, str] | None] = None
    """For a method named after a kernel: the kernel's family, its entry in `Dictionary.scales`, and a description."""

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse kernels other than the kernel in the method's name, if there is one."""
        if self.only is None:
            return
        family, scale, words = self.only
        named = f"{self.label} has the one kernel {words}"
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {named}")
        family_found = kernels.families[0]
        require(family_found == family, "kernels.family", family_found, f"{family}: {named}")
        alike = bool(np.isclose(kernels.scales[0], scale, rtol=1e-9))
        require(alike, "kernels.smallest", kernels.smallest, f"such that {named}")

    def init(self, world: World) -> OmkrState:
        """Start with no sample seen and w_i = 1."""
        self.require_fits(world.dictionary)
        self.require_one(world)
        N = world.dictionary.N
        return OmkrState(np.zeros((N, world.problem.rounds)), np.zeros((1, N)))

    def lengthened(self, world: World, state: OmkrState) -> OmkrState:
        """Extend the coefficients with zeros for the samples beyond the planned stream."""
        N, T = state.a.shape
        return replace(state, a=np.concatenate([state.a, np.zeros((N, world.problem.rounds - T))], axis=1))

    def play(self, world: World, state: OmkrState, rounds: slice) -> OmkrState:
        """Solve a block of the triangular system by forward substitution, then mix the kernels."""
        x, _ = stream_samples(world, slice(0, rounds.stop))
        _, y = stream_samples(world, rounds)
        f = exact.substitute_block(world.dictionary, x, y, self.rates(rounds), state.a, self.pointwise)[None]
        loss = self.pointwise.value(f, y[:, None])
        log_w, after = falling_weights(state.log_w, np.log(2) * loss)  # w_i 0.5^loss, in logarithms
        replicates = (len(world.streams.replicates), len(y))
        y_hat = np.broadcast_to((softmax(log_w) * f).sum(axis=-1), replicates)
        loss = np.broadcast_to(loss, (*replicates, loss.shape[-1]))
        return OmkrState(state.a, after, PlayedRounds(y_hat, np.zeros(replicates), loss))

    def log_weights(self, state: OmkrState) -> Array:
        """Log w of the kernels, (R or 1, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The weights are multiplied by 0.5^L_i."""
        assert outcome.loss is not None
        return np.log(2) * outcome.loss[:, 0]

    def functions(self, world: World, state: OmkrState, t: int) -> tuple[OnPoints, ...]:
        """The mixture of all kernels over the t samples seen; replicates are copies."""
        points = np.asarray(stream_samples(world, slice(0, t))[0], np.float64)
        families, scales = np.array(world.dictionary.families), np.asarray(world.dictionary.scales, np.float64)
        mixture = softmax(state.log_w).T * state.a[:, :t]
        learned = OnPoints(points, families, scales, mixture[None], np.zeros(1))
        return (learned,) * len(world.streams.replicates)


@dataclass(frozen=True)
class Rbf1(Omkr):
    """OMKR with the single kernel exp(-|x - x'|^2) (kernels=rbf_1)."""

    label: ClassVar[str] = "RBF-1"
    only: ClassVar[tuple[str, float, str] | None] = ("rbf", np.sqrt(2), "exp(-|x - x'|^2): kernels=rbf_1")


@dataclass(frozen=True)
class Poly2(Omkr):
    """OMKR with the single kernel (x'x')^2 (kernels=poly_2)."""

    label: ClassVar[str] = "POLY-2"
    only: ClassVar[tuple[str, float, str] | None] = ("polynomial", 2, "(x'x')^2: kernels=poly_2")


@dataclass
class LearnerState:
    """State: theta (R, N, P) and log w (R, N)."""

    theta: Array
    log_w: Array
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class Raker(WithLoss, OnlineLearner):
    """theta_i <- theta_i - eta_t grad L_i and w_i <- w_i exp(-eta_t L_i), L_i = l(f_i, y) + lam |theta_i|^2."""

    label: ClassVar[str] = "Raker"
    not_traceable: ClassVar[str] = ""
    unbiased: ClassVar[bool] = True

    lam: float = key(1e-3, "Regularisation lambda.", min=0)

    def init(self, world: World) -> LearnerState:
        """Start from theta_i = 0, w_i = 1."""
        self.require_one(world)
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return LearnerState(np.zeros((*shape, bank.width), bank.precision), np.zeros(shape))

    def play(self, world: World, state: LearnerState, rounds: slice) -> LearnerState:
        """Let each kernel learn the block alone, since kernels are independent; then mix them by their losses."""
        x, y = stream_samples(world, rounds)
        eta = self.rates(rounds)
        f, squared_norm, theta = world.bank.follow(x, y, eta, self.lam, state.theta, self.pointwise)
        loss = self.pointwise.value(f, y[:, None]) + self.lam * squared_norm
        log_w, after = falling_weights(state.log_w, eta[:, None] * loss)
        w = softmax(log_w)
        played = PlayedRounds((w * f).sum(axis=-1), (w * squared_norm).sum(axis=-1), loss)
        return LearnerState(theta, after, played)

    def log_weights(self, state: LearnerState) -> Array:
        """Log w of the kernels, (R, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """Decrease of log w_i: the sum of eta_t L_i over the round's sample, or all clients' if samples are pooled."""
        assert outcome.loss is not None
        return (self._declared_rates(world, t)[:, None] * outcome.loss).sum(axis=1)

    def declared_step(self, world: World, theta: Array, t: int) -> Array:
        """The sum of successive gradient steps from theta (R, N, P) on the samples of round t."""
        x, y, _ = world.problem.round(t)
        z, rates, after = world.bank.features(x), self._declared_rates(world, t), theta
        for k, target in enumerate(y):
            slope = self.pointwise.derivative((z[:, :, k] * after).sum(axis=-1, keepdims=True), target)
            after = after - rates[k] * (slope * z[:, :, k] + 2 * self.lam * after)
        return after - theta

    def _declared_rates(self, world: World, t: int) -> Array:
        clients = world.problem.clients
        rates: Array = self.eta / np.sqrt(np.arange(t * clients, (t + 1) * clients) + 1)
        return rates

    def functions(self, world: World, state: LearnerState, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of all kernels."""
        return OnFeatures.of_replicates(world.bank, state.theta[:, None], softmax(state.log_w)[:, None])


@dataclass(frozen=True)
class Rfomkr(WithLoss, OnlineLearner):
    """theta_i <- theta_i - eta_t l'(f_i, y) z_i and w_i <- w_i 0.5^l(f_i, y), starting from w_i = 1/N."""

    label: ClassVar[str] = "RFOMKR"
    not_traceable: ClassVar[str] = ""
    lam: ClassVar[float] = 0.0

    normalised: bool = key(
        True,
        "Divide the weights by their sum for prediction. The paper of graph-aided OMKL does not do this: its "
        "published errors of RFOMKR are therefore ten times those of every other method.",
    )

    def init(self, world: World) -> LearnerState:
        """Start from theta_i = 0, w_i = 1 / N."""
        self.require_one(world)
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return LearnerState(np.zeros((*shape, bank.width), bank.precision), np.full(shape, -np.log(bank.kernels)))

    def play(self, world: World, state: LearnerState, rounds: slice) -> LearnerState:
        """Let each kernel learn the block alone; then mix them by their losses."""
        x, y = stream_samples(world, rounds)
        f, squared_norm, theta = world.bank.follow(x, y, self.rates(rounds), 0.0, state.theta, self.pointwise)
        loss = self.pointwise.value(f, y[:, None])
        log_w, after = falling_weights(state.log_w, np.log(2) * loss)  # w_i 0.5^loss, in logarithms
        w = self._weights(log_w)
        return LearnerState(theta, after, PlayedRounds((w * f).sum(axis=-1), (w * squared_norm).sum(axis=-1), loss))

    def log_weights(self, state: LearnerState) -> Array:
        """Log w of the kernels, (R or 1, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The weights are multiplied by 0.5^L_i."""
        assert outcome.loss is not None
        return np.log(2) * outcome.loss[:, 0]

    def functions(self, world: World, state: LearnerState, t: int) -> tuple[OnFeatures, ...]:
        """The weighted sum of all kernels."""
        return OnFeatures.of_replicates(world.bank, state.theta[:, None], self._weights(state.log_w)[:, None])

    def _weights(self, log_w: Array) -> Array:
        return softmax(log_w) if self.normalised else array_namespace(log_w).exp(log_w)


@dataclass
class AdaRakerState:
    """State of the instance on each length's current interval: theta (R, J, N, P), log w (R, J, N), log h (R, J)."""

    theta: Array
    log_w: Array
    log_h: Array
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class AdaRaker(WithLoss, OnlineLearner):
    """On every I = [m 2^j, (m + 1) 2^j), m >= 1, an instance of Raker learns with the constant step size eta_I.

    eta_I = min(1/2, eta / |I|^(1/2)), and f_hat = sum_I h_I f_I / sum_I h_I over the 1 + floor(log2 t) intervals that
    contain t. h_I = eta_I when I begins, and then h_I <- h_I exp(-eta_I (L(f_I) - L(f_hat))), with L(f) = l(f, y) +
    lam |f|^2.

    The authors' program (N1cekiko/AdaRaker) differs in more than `restart`. It scales the losses of every round to [-1,
    1] before it exponentiates them. Its steps of theta are 0.5 to 0.7 of these, because its features lack D^-1/2. Its
    kernel weights shrink with base 0.5, and h with the eta of the last interval; here both use eta_I. Its |I| counts
    from 2, its intervals begin a round later, and its first error is set to 1.
    """

    label: ClassVar[str] = "AdaRaker"
    not_traceable: ClassVar[str] = "its instances begin and end in different rounds"

    eta: float = key(0.5, "Step size eta in eta_I = min(1/2, eta / |I|^(1/2)).", above=0)
    lam: float = key(1e-3, "Regularisation lambda.", min=0)
    restart: bool = key(
        False,
        "Whether an instance restarts with its interval, as in strongly adaptive learning, or only its h, as "
        "in the authors' program. Without restarts, there is one Raker for each step size. With restarts, the "
        "instances on short intervals, whose h start highest, predict almost 0. If targets are far from 0, this "
        "costs more than any drift.",
    )

    def init(self, world: World) -> AdaRakerState:
        """Start before any interval."""
        self.require_one(world)
        bank = world.bank
        R, N, J = bank.replicates, bank.kernels, _interval_lengths(world)
        return AdaRakerState(
            np.zeros((R, J, N, bank.width), bank.precision), np.zeros((R, J, N)), np.full((R, J), -np.inf)
        )

    def lengthened(self, world: World, state: AdaRakerState) -> AdaRakerState:
        """Extend the state with learners for intervals that are longer than the planned stream."""
        R, J, N, P = state.theta.shape
        more = _interval_lengths(world) - J
        return replace(
            state,
            theta=np.concatenate([state.theta, np.zeros((R, more, N, P), state.theta.dtype)], axis=1),
            log_w=np.concatenate([state.log_w, np.zeros((R, more, N))], axis=1),
            log_h=np.concatenate([state.log_h, np.full((R, more), -np.inf)], axis=1),
        )

    def play(self, world: World, state: AdaRakerState, rounds: slice) -> AdaRakerState:
        """Let each instance learn the block alone, since instances are independent; then combine them."""
        x, y = stream_samples(world, rounds)
        theta, log_w, log_h = state.theta.copy(), state.log_w.copy(), state.log_h.copy()
        R, J = log_h.shape
        f, squared_norm = np.zeros((R, len(y), J)), np.zeros((R, len(y), J))
        # Instance j has intervals of length 2^j, in which its step is constant
        for j in range(J):
            own, step = np.ascontiguousarray(theta[:, j]), self._step_of_interval(j)
            # A block may contain the end of an interval, several whole intervals, and the beginning of the next
            for part, begins in _parts_by_interval(j, rounds):
                if begins and self.restart:
                    own[:], log_w[:, j] = 0, 0
                eta = np.full(part.stop - part.start, step)
                of_kernels, squared, own = world.bank.follow(x[part], y[part], eta, self.lam, own, self.pointwise)
                # The kernels' weights inside the instance, before and after each round
                losses = self.pointwise.value(of_kernels, y[part, None]) + self.lam * squared
                before, log_w[:, j] = falling_weights(log_w[:, j], step * losses)
                w = softmax(before)
                f[:, part, j] = (w * of_kernels).sum(axis=-1)
                squared_norm[:, part, j] = (w * squared).sum(axis=-1)
            theta[:, j] = own
        # 2. The mixture of the instances, round by round, because its weights depend on its own losses
        y_hat, norm = np.empty((R, len(y))), np.empty((R, len(y)))
        steps = np.array([self._step_of_interval(j) for j in range(J)])
        for b, t in enumerate(range(rounds.start, rounds.stop)):
            # h_I = eta_I if an interval begins; lengths that have not begun have log h = -inf, so no weight
            log_h[:, _intervals_begin(J, t)] = np.log(steps[_intervals_begin(J, t)])
            h = softmax(log_h)
            y_hat[:, b], norm[:, b] = (h * f[:, b]).sum(axis=1), (h * squared_norm[:, b]).sum(axis=1)
            losses = self.pointwise.value(f[:, b], y[b]) + self.lam * squared_norm[:, b]
            # Instances that did better than the mixture gain weight
            log_h -= steps * (losses - (self.pointwise.value(y_hat[:, b], y[b]) + self.lam * norm[:, b])[:, None])
        return AdaRakerState(theta, log_w, log_h, PlayedRounds(y_hat, norm))

    def functions(self, world: World, state: AdaRakerState, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of all kernels of all instances, including those that begin in round t."""
        theta, log_w, log_h = state.theta.astype(np.float64), state.log_w.copy(), state.log_h.copy()
        for j in np.flatnonzero(_intervals_begin(log_h.shape[1], t)).tolist():
            log_h[:, j] = np.log(self._step_of_interval(j))
            if self.restart:
                theta[:, j] = 0
        together = np.einsum("rj,rjn,rjnp->rnp", softmax(log_h), softmax(log_w), theta).astype(state.theta.dtype)
        return OnFeatures.of_replicates(world.bank, together[:, None], np.ones(together[:, None].shape[:3]))

    def _step_of_interval(self, j: int) -> float:
        """eta_I of an interval of length 2^j."""
        return min(0.5, float(self.eta / 2 ** (j / 2)))


def _interval_lengths(world: World) -> int:
    """Number of lengths that have begun by round T + 1 (from 1), the round of a learned function."""
    rounds: int = world.problem.rounds
    return (rounds + 1).bit_length()


def _intervals_begin(J: int, t: int) -> Array:
    """Whether an interval of each length (J,) begins in round t, counted from 0."""
    return (t + 1) % 2 ** np.arange(J) == 0


def _parts_by_interval(j: int, rounds: slice) -> Iterator[tuple[slice, bool]]:
    """The parts of a block that lie in one interval of length 2^j, and whether the interval begins with the part."""
    size, begin = 2**j, max(rounds.start, 2**j - 1)
    while begin < rounds.stop:
        end = min(rounds.stop, (begin + 1) // size * size + size - 1)
        yield slice(begin - rounds.start, end - rounds.start), (begin + 1) % size == 0
        begin = end
