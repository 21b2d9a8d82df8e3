"""What methods over a vertical partition share with the loop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.messages import Array, Count, Groups
from fkl.data.problem import FOLDS
from fkl.data.vertical import Split
from fkl.errors import require
from fkl.streams import Role

Booked = dict[str, NDArray[np.int64]]
"""By kind of message: messages, scalars and bytes that each party sent, (q, 3)."""


@dataclass(frozen=True)
class OverParties:
    """Keys of every method whose parties hold different features of the same samples.

    Parameters
    ----------
    fold : int or None
        For cross-validation: leave the rows to be tested on aside and test on this fifth of the others.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str]

    fold: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        folds = f"a whole number from 0 to {FOLDS - 1}, or null"
        require(self.fold is None or 0 <= self.fold < FOLDS, "fold", self.fold, folds)

    @property
    def rounds(self) -> int:
        """Rounds of the loop."""
        return 1


class Model(Protocol):
    """What was learned so far."""

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,)."""
        ...


@dataclass
class State:
    """One training a replicate, under way."""

    splits: list[Split]
    models: list[Iterator[Model]]
    booked: list[Booked]


@dataclass(frozen=True)
class Learning(OverParties):
    """A method that yields a model after each of its rounds."""

    def learn(
        self, x: Array, y: Array, groups: Groups, active: tuple[int, ...], rng: np.random.Generator, count: Count
    ) -> Iterator[Any]:
        """The model after each round, from training samples x (N, d), y (N,)."""
        raise NotImplementedError

    def init(self, world: World) -> State:
        """Draw the splits; nothing is learned yet."""
        problem = world.problem
        problem.require_classes(self.label)
        state = State([], [], [])
        drawn = zip(world.streams.generators(Role.DATA), world.streams.generators(Role.NETWORK_WEIGHTS), strict=True)
        for data, own in drawn:
            split = problem.rows(data.spawn(1)[0], self.fold)
            booked: Booked = {}
            x, y = problem.x[split.training], problem.y[split.training]
            state.splits.append(split)
            state.booked.append(booked)
            state.models.append(
                self.learn(x, y, problem.groups, problem.active, own, _counter(booked, problem.parties))
            )
        return state

    def step(self, world: World, state: State, t: int) -> tuple[State, Scored]:
        """One round of every replicate, and f of its test rows."""
        models = [next(model) for model in state.models]
        book(world, state.booked)
        for booked in state.booked:
            booked.clear()
        rows = tuple(split.test for split in state.splits)
        f = tuple(model.decision(world.problem.x[test]) for model, test in zip(models, rows, strict=True))
        return state, Scored(f, rows, t + 1)


def book(world: World, booked: list[Booked], timed: bool = True) -> None:
    """Enter what the parties of each replicate sent."""
    nothing = np.zeros((world.problem.parties, 3), np.int64)
    for kind in sorted({kind for one in booked for kind in one}):
        sent = np.stack([one.get(kind, nothing) for one in booked])
        world.channel.exchanged(kind, sent[..., 0], sent[..., 1], sent[..., 2], timed)


def _counter(booked: Booked, parties: int) -> Count:
    def count(kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        booked.setdefault(kind, np.zeros((parties, 3), np.int64))[sender] += messages, items, size

    return count
