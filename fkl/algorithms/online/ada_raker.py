"""AdaRaker: instances of Raker on intervals of many lengths, combined by a second layer of weights.

Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with Unknown Dynamics,
JMLR 20 (2019), section 4, on the intervals of Daniely, Gonen and Shalev-Shwartz, Strongly Adaptive Online Learning,
ICML 2015.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, World, softmax
from fkl.algorithms.online.learner import Learner, Played, falling_weights, samples
from fkl.basics.errors import require
from fkl.kernels.functions import OnFeatures


@dataclass
class State:
    """Instances on the current interval of each length 2^j: theta (R, J, N, P), log w (R, J, N), log h (R, J)."""

    theta: Array
    log_w: Array
    log_h: Array
    played: Played | None = None


@dataclass(frozen=True)
class AdaRaker(Learner):
    """On every I = [m 2^j, (m + 1) 2^j), m >= 1, an instance of Raker learns with the constant step eta_I.

    eta_I = min(1/2, eta / |I|^(1/2)), f_hat = sum_I h_I f_I / sum_I h_I over the intervals that hold t, 1 + floor(log2
    t) of them. h_I = eta_I when I begins, and then h_I <- h_I exp(-eta_I (L(f_I) - L(f_hat))), with L(f) = (f - y)^2 +
    lam |f|^2.

    The authors' program (N1cekiko/AdaRaker) differs in more than `restart`. It scales the losses of every round to [-1,
    1] before it exponentiates them. Its steps of theta are 0.5 to 0.7 of these, since its features lack D^-1/2. Kernel
    weights shrink by its base, 0.5, and h by the eta of the last interval, where here both shrink by eta_I. Its |I|
    counts from 2, its intervals begin a round later, and its first error is set to 1.

    Parameters
    ----------
    eta : float
        eta_0 of eta_I.
    lam : float
        Regularisation lambda.
    restart : bool
        Whether an instance restarts with its interval, as in strongly adaptive learning, or only its h does, as in the
        authors' program. Without restarts there is one Raker for each step size. With restarts the instances on short
        intervals, whose h begin highest, predict almost 0. If targets are far from 0, this costs more than any drift.
    """

    label: ClassVar[str] = "AdaRaker"
    not_traceable: ClassVar[str] = "its instances begin and end in rounds of their own"

    eta: float = 0.5
    lam: float = 1e-3
    restart: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def init(self, world: World) -> State:
        """Start before any interval."""
        self.require_one(world)
        bank = world.bank
        R, N, J = bank.replicates, bank.kernels, _interval_lengths(world)
        return State(np.zeros((R, J, N, bank.width), bank.precision), np.zeros((R, J, N)), np.full((R, J), -np.inf))

    def lengthened(self, world: World, state: State) -> State:
        """With intervals longer than the planned stream."""
        R, J, N, P = state.theta.shape
        more = _interval_lengths(world) - J
        return replace(
            state,
            theta=np.concatenate([state.theta, np.zeros((R, more, N, P), state.theta.dtype)], axis=1),
            log_w=np.concatenate([state.log_w, np.zeros((R, more, N))], axis=1),
            log_h=np.concatenate([state.log_h, np.full((R, more), -np.inf)], axis=1),
        )

    def play(self, world: World, state: State, rounds: slice) -> State:
        """The instances are independent, so each learns the block alone; then they are combined."""
        x, y = samples(world, rounds)
        theta, log_w, log_h = state.theta.copy(), state.log_w.copy(), state.log_h.copy()
        R, J = log_h.shape
        f, squared_norm = np.zeros((R, len(y), J)), np.zeros((R, len(y), J))
        for j in range(J):
            own, step = np.ascontiguousarray(theta[:, j]), self._step_of_interval(j)
            # A block may hold the end of one interval, several whole ones, and the beginning of the next.
            for part, begins in _parts_by_interval(j, rounds):
                if begins and self.restart:
                    own[:], log_w[:, j] = 0, 0
                eta = np.full(part.stop - part.start, step)
                of_kernels, squared, own = world.bank.follow(x[part], y[part], eta, self.lam, own)
                losses = (of_kernels - y[part, None]) ** 2 + self.lam * squared
                before, log_w[:, j] = falling_weights(log_w[:, j], step * losses)
                w = softmax(before)
                f[:, part, j] = (w * of_kernels).sum(axis=-1)
                squared_norm[:, part, j] = (w * squared).sum(axis=-1)
            theta[:, j] = own
        y_hat, norm = np.empty((R, len(y))), np.empty((R, len(y)))
        steps = np.array([self._step_of_interval(j) for j in range(J)])
        for b, t in enumerate(range(rounds.start, rounds.stop)):
            # h_I = eta_I where an interval begins; lengths that have not begun have log h = -inf, and so no weight.
            log_h[:, _intervals_begin(J, t)] = np.log(steps[_intervals_begin(J, t)])
            h = softmax(log_h)
            y_hat[:, b], norm[:, b] = (h * f[:, b]).sum(axis=1), (h * squared_norm[:, b]).sum(axis=1)
            losses = (f[:, b] - y[b]) ** 2 + self.lam * squared_norm[:, b]
            log_h -= steps * (losses - ((y_hat[:, b] - y[b]) ** 2 + self.lam * norm[:, b])[:, None])
        return State(theta, log_w, log_h, Played(y_hat, norm))

    def functions(self, world: World, state: State, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of all kernels of all instances; some instances begin in round t."""
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
    """Number of lengths that have begun by round t = T + 1, counted from 1, to which a learned function belongs."""
    rounds: int = world.problem.rounds
    return (rounds + 1).bit_length()


def _intervals_begin(J: int, t: int) -> Array:
    """Lengths (J,) for which an interval begins in round t, counted from 0."""
    return (t + 1) % 2 ** np.arange(J) == 0


def _parts_by_interval(j: int, rounds: slice) -> Iterator[tuple[slice, bool]]:
    """Parts of a block in one interval of length 2^j, from the block's first round, and if it begins there."""
    size, begin = 2**j, max(rounds.start, 2**j - 1)
    while begin < rounds.stop:
        end = min(rounds.stop, (begin + 1) // size * size + size - 1)
        yield slice(begin - rounds.start, end - rounds.start), (begin + 1) % size == 0
        begin = end
