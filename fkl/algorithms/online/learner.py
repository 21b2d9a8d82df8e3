"""Code that methods of one learner on a stream share: a decreasing step size, and rounds played in blocks."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World
from fkl.basics.errors import FklError, require
from fkl.kernels.traceable import namespace, traced


@dataclass(frozen=True)
class Played:
    """Results of a block of B rounds.

    Parameters
    ----------
    y_hat, squared_norm : (R, B)
        Predictions, and |f_hat|^2 as in the regularised loss of f_hat.
    loss : (R, B, N) or None
        Loss of each kernel's own prediction; None for a method that does not see all of them.
    """

    y_hat: Array
    squared_norm: Array
    loss: Array | None = None

    def outcome(self, b: int) -> Outcome:
        """Round b of the block, of the one client."""
        loss = None if self.loss is None else self.loss[:, b, None]
        return Outcome(self.y_hat[:, b, None], loss, lambda: self.squared_norm[:, b, None])


@dataclass(frozen=True)
class Learner:
    """One client and no network: predict x_t, see y_t, learn, in the order of the stream.

    Rounds are played in blocks of `block`, which changes numbers only by rounding: within `play` every prediction is
    made before its label is used. A subclass defines its state, with a field `played`, in `init`, and plays in `play`.

    Parameters
    ----------
    eta : float
        Step size: eta_t = eta / sqrt(t) with t from 1.
    """

    label: ClassVar[str]
    block: ClassVar[int] = 64
    alone: ClassVar[bool] = True
    """Whether it learns from a single client."""

    eta: float = 0.1

    def __post_init__(self) -> None:
        require(0 < self.eta < np.inf, "eta", self.eta, "a number > 0")

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
        """Outcome of round t. If round t opens a block, the block is played first."""
        if traced(t):  # its block is unknown, and does not matter
            after = self.play(world, state, slice(t, t + 1))
            return replace(after, played=None), after.played.outcome(0)
        b = t % self.block
        if b == 0:
            state = self.play(world, state, slice(t, min(t + self.block, world.problem.rounds)))
        return state, state.played.outcome(b)

    def round_by_round(self) -> Self:
        """The same learner with blocks of one round, whose state after a round is that of this round."""
        one = copy(self)
        vars(one)["block"] = 1
        return one

    def play(self, world: World, state: Any, rounds: slice) -> Any:
        """Play a block of rounds and return the state after it."""
        raise NotImplementedError

    def lengthened(self, world: World, state: Any) -> Any:
        """The same state with room for all rounds of the world, if a stream is longer than planned."""
        return state

    def rates(self, rounds: slice) -> NDArray[np.float64]:
        """eta_t of a block of rounds, (B,)."""
        first = rounds.start + 1
        if traced(first):  # of the only round
            return self.eta / namespace(first).sqrt(first[None])
        return self.eta / np.sqrt(np.arange(first, rounds.stop + 1))

    def require_one(self, world: World) -> None:
        """Refuse anything but one client that is always present."""
        if world.problem.clients != 1 or not world.problem.present.all():
            clients = world.problem.clients
            raise FklError(f"partition.clients={clients}: {self.label} is one learner and needs 1: partition=stream")


def samples(world: World, rounds: slice) -> tuple[Array, NDArray[np.float64]]:
    """The stream's x (B, d) and y (B,) in a block of rounds."""
    return world.problem.block(rounds)


def falling_weights(log_w: Array, losses: Array) -> tuple[Array, Array]:
    """Logarithms of weights that decrease by each round's losses.

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
    xp = namespace(losses)
    fallen = log_w[:, None] - xp.cumsum(losses, axis=1)
    return xp.concatenate([log_w[:, None], fallen[:, :-1]], axis=1), fallen[:, -1]
