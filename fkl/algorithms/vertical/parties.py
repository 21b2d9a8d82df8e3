"""What methods over a vertical partition share with the loop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.messages import Array, Count, Groups, uncounted
from fkl.data.problem import FOLDS
from fkl.data.vertical import Split, Vertical
from fkl.errors import FklError, require
from fkl.streams import Role
from fkl.tasks.task import Task
from fkl.tasks.vertical import VerticalTask

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
    task: ClassVar[type[Task]] = VerticalTask

    fold: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        folds = f"a whole number from 0 to {FOLDS - 1}, or null"
        require(self.fold is None or 0 <= self.fold < FOLDS, "fold", self.fold, folds)

    @property
    def rounds(self) -> int:
        """Rounds of the loop."""
        return 1


class Held(NamedTuple):
    """What the parties hold of the samples to learn from.

    Parameters
    ----------
    x : (N, d)
    y : (N,)
        -1 or 1; any number for a loss of regression.
    groups : tuple of int arrays
        Features of each party.
    active : tuple of int
        Parties that hold y.
    """

    x: Array
    y: Array
    groups: Groups
    active: tuple[int, ...]


@dataclass
class State:
    """One training a replicate, under way: its rows, what the parties hold of them, and what `advance` hands on."""

    splits: list[Split]
    held: list[Held]
    learned: list[Any]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what the splits say already: a checkpoint need not hold the samples."""
        return {**vars(self), "held": []}


@dataclass(frozen=True)
class Learning(OverParties):
    """A method that has a model after each of its rounds."""

    def begin(self, held: Held, rng: np.random.Generator) -> Any:
        """What is known before the first round, as arrays: it is saved with a run that is interrupted."""
        raise NotImplementedError

    def advance(self, held: Held, learned: Any, count: Count) -> tuple[Any, Any]:
        """One round: what is known after it, and the model."""
        raise NotImplementedError

    def learn(
        self,
        x: Array,
        y: Array,
        groups: Groups = (),
        active: tuple[int, ...] = (),
        rng: np.random.Generator | None = None,
        count: Count = uncounted,
    ) -> Iterator[Any]:
        """The model after each round, without a loop around it.

        Parameters
        ----------
        x, y, groups, active :
            As in `Held`.
        rng : numpy.random.Generator or None
            The method's own; None for one with seed 0.
        count : Count
        """
        held = Held(x, y, groups, active)
        learned = self.begin(held, rng or np.random.default_rng(0))
        for _ in range(self.rounds):
            learned, model = self.advance(held, learned, count)
            yield model

    def fit(
        self,
        x: Array,
        y: Array,
        groups: Groups = (),
        active: tuple[int, ...] = (),
        rng: np.random.Generator | None = None,
        count: Count = uncounted,
    ) -> Any:
        """The last model of `learn`."""
        *_, model = self.learn(x, y, groups, active, rng, count)
        return model

    def init(self, world: World) -> State:
        """Draw the splits; nothing is learned yet."""
        problem = world.problem
        if not problem.two_classes:
            values = len(np.unique(problem.y))
            raise FklError(f"the target has {values} values, where {self.label} learns two classes")
        state = State([], [], [])
        drawn = zip(world.streams.generators(Role.DATA), world.streams.generators(Role.NETWORK_WEIGHTS), strict=True)
        for data, own in drawn:
            split = problem.rows(data.spawn(1)[0], self.fold)
            held = _held(problem, split)
            state.splits.append(split)
            state.held.append(held)
            state.learned.append(self.begin(held, own))
        return state

    def step(self, world: World, state: State, t: int) -> tuple[State, Scored]:
        """One round of every replicate, and the f that there is then."""
        problem = world.problem
        state.held = state.held or [_held(problem, split) for split in state.splits]
        booked: list[Booked] = [{} for _ in state.splits]
        models = []
        for r, (held, sent) in enumerate(zip(state.held, booked, strict=True)):
            state.learned[r], model = self.advance(held, state.learned[r], _counter(sent, problem.parties))
            models.append(model)
        book(world, booked)
        rows = tuple(split.test for split in state.splits)
        f = tuple(partial(_values, model, problem.x, test) for model, test in zip(models, rows, strict=True))
        return state, Scored(f, rows, t + 1)


def _held(problem: Vertical, split: Split) -> Held:
    return Held(problem.x[split.training], problem.y[split.training], problem.groups, problem.active)


def book(world: World, booked: list[Booked], timed: bool = True) -> None:
    """Enter what the parties of each replicate sent."""
    nothing = np.zeros((world.problem.parties, 3), np.int64)
    for kind in sorted({kind for one in booked for kind in one}):
        sent = np.stack([one.get(kind, nothing) for one in booked])
        world.channel.exchanged(kind, sent[..., 0], sent[..., 1], sent[..., 2], timed)


def _values(model: Any, x: Array, rows: NDArray[np.int64]) -> Array:
    return model.decision(x[rows])


def _counter(booked: Booked, parties: int) -> Count:
    def count(kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        booked.setdefault(kind, np.zeros((parties, 3), np.int64))[sender] += messages, items, size

    return count
