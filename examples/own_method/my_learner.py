"""A learner of my own: one client, a step that never shrinks, and the kernels that erred least of late."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World, softmax
from fkl.algorithms.online.learners import OnlineLearner, PlayedRounds, stream_samples
from fkl.basics.errors import require
from fkl.kernels.functions import OnFeatures


@dataclass
class State:
    """Theta (R, N, P), and the errors of each kernel of late, (R, N)."""

    theta: NDArray[np.float64]
    of_late: NDArray[np.float64]
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class OfLate(OnlineLearner):
    """theta_i <- theta_i - 2 eta (f_i - y) z_i, and a mixture by exp(-e_i), e_i <- memory e_i + (f_i - y)^2.

    Parameters
    ----------
    memory : float
        By what old errors shrink in a round.
    eta : float
        Step size of all rounds.
    """

    label: ClassVar[str] = "Of late"
    lam: ClassVar[float] = 0.0

    memory: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.memory <= 1, "memory", self.memory, "a number from 0 to 1")

    def init(self, world: World) -> State:
        """Nothing is known."""
        self.require_one(world)
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return State(np.zeros((*shape, bank.width), bank.precision), np.zeros(shape))

    def rates(self, rounds: slice) -> NDArray[np.float64]:
        """The same in every round."""
        return np.full(rounds.stop - rounds.start, self.eta)

    def play(self, world: World, state: State, rounds: slice) -> State:
        """Every kernel follows the block; then each round is predicted by what came before it."""
        x, y = stream_samples(world, rounds)
        f, squared_norm, theta = world.bank.follow(x, y, self.rates(rounds), 0.0, state.theta)
        of_late, w = state.of_late, np.empty_like(f)
        for b, loss in enumerate(np.moveaxis((f - y[:, None]) ** 2, 1, 0)):
            w[:, b] = softmax(-of_late)
            of_late = self.memory * of_late + loss
        return State(theta, of_late, PlayedRounds((w * f).sum(axis=-1), (w * squared_norm).sum(axis=-1)))

    def functions(self, world: World, state: State, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of all kernels."""
        learned = zip(state.theta, softmax(-state.of_late), strict=True)
        return tuple(OnFeatures.from_bank(world.bank, r, theta[None], w[None]) for r, (theta, w) in enumerate(learned))
