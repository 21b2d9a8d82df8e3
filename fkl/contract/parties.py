"""Methods of parties that hold different features of the same samples, as actors that send letters.

An actor holds its own features, and labels if it is active. It knows about the others only what letters contain. A
simulation runs all actors in turn. If letters would take most of the time, a method also has a pooled path. It computes
the parties' sums at once, with all features in one array, and counts the letters that they would send.
`fkl.conformance` compares the simulation with isolated parties.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError
from fkl.basics.keys import Keys
from fkl.basics.random_streams import Role, Streams
from fkl.contract.world import Common, World
from fkl.data.vertical import RowSplit, Vertical
from fkl.kernels.functions import SavedFunction
from fkl.wire.letters import Count, Letter, uncounted_letter

Integers = NDArray[np.integer]
Groups = tuple[Integers, ...]
"""Feature numbers of each party."""
Booked = dict[str, NDArray[np.int64]]
"""Messages, scalars and bytes that each party sent, (q, 3), by kind of letter."""
Actor = Generator[int, Letter | None, Any]
"""A running party: it yields the number of the party for which it waits, receives that letter, and returns its result.

It receives None instead of a letter if that party has ended and no letter from it is left."""


@dataclass(frozen=True)
class Scored:
    """Predictions of a vertical method for each replicate's test rows.

    Parameters
    ----------
    f : tuple of callable
        Functions that return values (n_r,), whose sign is the class, or which estimate the target. They are called
        before the next step, outside the clock.
    rows : tuple of (n_r,) int
        Rows whose targets are predicted.
    iterations : int
        Number of draws of features, passes or trees so far.
    """

    f: tuple[Callable[[], Array], ...]
    rows: tuple[NDArray[np.int64], ...]
    iterations: int


class PartyRows(NamedTuple):
    """All parties' training samples in one place.

    Parameters
    ----------
    x : (N, d)
    y : (N,)
        -1 or 1; any number for a regression loss.
    groups : tuple of int arrays
        Features of each party.
    active : tuple of int
        Parties that hold the labels y.
    """

    x: Array
    y: Array
    groups: Groups
    active: tuple[int, ...]


@dataclass(frozen=True)
class PartyData:
    """One party's part of the training samples, and what all parties know.

    Parameters
    ----------
    number : int
    x : (N, d_j)
        The party's own features.
    y : (N,) or None
        None for a party that is not active.
    groups : tuple of int arrays
        Features of each party.
    active : tuple of int
    rng : numpy.random.Generator or None
        The party's random generator, see `Learning.generators`; None if it draws nothing.
    """

    number: int
    x: Array
    y: Array | None
    groups: Groups
    active: tuple[int, ...]
    rng: np.random.Generator | None

    @property
    def parties(self) -> int:
        """Number q of parties."""
        return len(self.groups)

    @property
    def root(self) -> int:
        """The first active party."""
        return self.active[0]

    @property
    def features(self) -> Integers:
        """Numbers of the party's own features."""
        return self.groups[self.number]

    @property
    def labels(self) -> Array:
        """The labels, for an active party."""
        assert self.y is not None, f"party {self.number} has no labels"
        return self.y


@dataclass
class Wire:
    """One party's end of the wire.

    Parameters
    ----------
    outbox : list of (receiver, letter)
    """

    outbox: list[tuple[int, Letter]] = field(default_factory=list)

    def send(self, receiver: int, letter: Letter) -> None:
        """Send a letter; the receiver may overwrite its values."""
        self.outbox.append((receiver, letter))


Worked = tuple[list[tuple[int, Any]], int | None, Any]
"""Letters that a party sent, with receivers; the party for which it waits, None if it has ended; its result."""


def work_until_letter(actor: Actor, wire: Wire, letter: Letter | None) -> Worked:
    """Give an actor a letter, or None at its start, and let it work until it needs the next letter."""
    awaited, result = None, None
    try:
        awaited = actor.send(letter)  # type: ignore[arg-type]
    except StopIteration as end:
        result = end.value
    sent, wire.outbox = wire.outbox, []
    return sent, awaited, result


def exchange_letters(work: Callable[[int, Any], Worked], parties: int) -> list[Any]:
    """Deliver letters between parties until all parties have ended; return their results.

    Parameters
    ----------
    work : callable
        ``work(party, letter)`` lets a party work until it needs another letter, see `work_until_letter`.
    parties : int

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If parties wait for one another.
    """
    waiting: dict[tuple[int, int], deque[Any]] = defaultdict(deque)
    awaited: dict[int, int] = {}
    results: dict[int, Any] = {}
    due: list[tuple[int, Any]] = [(party, None) for party in range(parties)]
    while due:
        for party, letter in due:
            sent, sender, result = work(party, letter)
            for receiver, one in sent:
                waiting[party, receiver].append(one)
            if sender is None:
                results[party] = result
            else:
                awaited[party] = sender
        ready = [party for party, sender in awaited.items() if waiting[sender, party] or sender in results]
        letters = [waiting[awaited.pop(party), party] for party in ready]
        due = [(party, its.popleft() if its else None) for party, its in zip(ready, letters, strict=True)]
    if awaited:
        raise BrokenPromiseError(f"parties wait for one another forever: {awaited}")
    return [results[party] for party in range(parties)]


class VerticalMethod(Keys):
    """Base class of methods whose parties hold different features of the same samples.

    You write `label`, and for the protocol

    - ``party(own, wire)``: one party's program, a generator. It sends with ``wire.send(receiver, letter)``, waits with
      ``letter = yield sender``, and returns its result after the last round.
    - ``assembled(parts, held)``: the model from all parties' results; ``model.decision(x)`` is f (n,) of samples (n,
      d), ``model.function`` an `fkl.kernels.functions.SavedFunction`.

    Most methods derive from `Learning`. A baseline on pooled data sets `pooled = True` and has no protocol. You may
    write `tolerance`, and set the facts below.
    """

    label: ClassVar[str]
    not_traceable: ClassVar[str] = "its parties take turns within a round"
    """Why JAX cannot trace the rounds."""
    pooled: ClassVar[bool] = False
    """Whether the method computes on pooled data, without a protocol."""
    uses_kernels: ClassVar[bool] = False
    """Whether the method uses the configuration's `kernels`."""
    fold: int | None

    @property
    def tolerance(self) -> float:
        """Largest allowed difference in f between isolated parties and the pooled path, which adds in another order."""
        return 1e-9

    def dealt(self, common: Common, problem: Vertical) -> tuple[PartyRows, list[PartyData]]:
        """The parties' initial data in one replicate: all data together, and each party's part."""
        raise NotImplementedError

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """One party's part of the protocol, until the end of the last round."""
        raise NotImplementedError

    def assembled(self, parts: list[Any], held: PartyRows) -> Any:
        """The model from the parties' results, with `decision`; it may refer to samples of `held`."""
        raise NotImplementedError


@dataclass
class TrainingState:
    """The training of all replicates, between two rounds.

    The fields hold, by replicate: row splits, the parties' training samples, the last result of `advance`, models, and
    the last result of `values`.
    """

    splits: list[RowSplit]
    held: list[PartyRows]
    learned: list[Any]
    models: list[Any] = field(default_factory=list)
    tested: dict[int, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out attributes that follow from splits and models: a checkpoint does not contain the samples."""
        return {**vars(self), "held": [], "tested": {}}


@dataclass
class Memories:
    """All parties between two rounds: the memory of each, and its random generator."""

    memories: list[Any]
    generators: list[np.random.Generator | None]


class Learning(VerticalMethod):
    """Base class of vertical methods with a model after each round.

    In addition to `label` and `assembled` you write, for one party,

    - ``play(own, memory, wire)``: its part of one round, a generator like `party`, which returns its new memory.
    - ``start(own)``: its memory before the first round, as arrays, because checkpoints store it; the default is None.

    If letters would take most of a simulation's time, write `party` instead, and a pooled path to the same model:

    - ``begin(held, rng)``: the state before the first round, as arrays.
    - ``advance(held, learned, count) -> (learned, model)``: one round with all features x (N, d) at once;
      ``count(kind, sender, receiver, messages, items, size)`` records the letters that the parties would send.

    You may write `rounds`, `generators` (if parties other than the first active one draw numbers), `values` (if f of
    the test rows is cheaper to compute from that of the last model) and `loss_of_classes`.
    """

    @property
    def loss_of_classes(self) -> str | None:
        """The method's loss if that needs two classes, -1 and 1; None if it can also learn real targets."""
        return None

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return 1

    def generators(self, rng: np.random.Generator, parties: int, root: int) -> list[np.random.Generator | None]:
        """Each party's random generator: here only `root`, the first active party, has one."""
        return [rng if party == root else None for party in range(parties)]

    def dealt(self, common: Common, problem: Vertical) -> tuple[PartyRows, list[PartyData]]:
        """The training rows of one replicate: of all parties together, and of each party."""
        split, rng = draw_split_and_generator(problem, common.streams, self.fold)
        held = held_for_training(problem, split)
        return held, deal_features(held, self.generators(rng, len(held.groups), held.active[0]))

    def start(self, own: PartyData) -> Any:
        """A party's memory before the first round."""
        return None

    def play(self, own: PartyData, memory: Any, wire: Wire) -> Actor:
        """A party's part of one round; returns its memory after the round."""
        raise NotImplementedError

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """A party's part of all rounds."""
        memory = self.start(own)
        for _ in range(self.rounds):
            memory = yield from self.play(own, memory, wire)
        return memory

    def begin(self, held: PartyRows, rng: np.random.Generator) -> Any:
        """The state before the first round."""
        generators = self.generators(rng, len(held.groups), held.active[0])
        return Memories([self.start(own) for own in deal_features(held, generators)], generators)

    def advance(self, held: PartyRows, learned: Any, count: Count) -> tuple[Any, Any]:
        """Run one round; return the state and the model after it."""
        parties = deal_features(held, learned.generators)
        wires = [Wire() for _ in parties]
        actors = [self.play(*each) for each in zip(parties, learned.memories, wires, strict=True)]

        def work(j: int, letter: Letter | None) -> Worked:
            worked = work_until_letter(actors[j], wires[j], letter)
            for receiver, one in worked[0]:
                count(one.kind, j, receiver, 1, one.values.size, one.bytes)
            return worked

        memories = exchange_letters(work, len(parties))
        return Memories(memories, learned.generators), self.assembled(memories, held)

    def learn(
        self,
        x: Array,
        y: Array,
        groups: Groups = (),
        active: tuple[int, ...] = (),
        rng: np.random.Generator | None = None,
        count: Count = uncounted_letter,
    ) -> Iterator[Any]:
        """The model after each round, without a loop around it.

        Parameters
        ----------
        x, y, groups, active :
            As in `PartyRows`.
        rng : numpy.random.Generator or None
            The method's random generator; None for a generator with seed 0.
        count : Count
        """
        held = PartyRows(x, y, groups, active)
        learned = self.begin(held, rng or np.random.default_rng(0))
        for _ in range(self.rounds):
            learned, model = self.advance(held, learned, count)
            yield model

    def fit(self, *held: Any, **more: Any) -> Any:
        """The last model of `learn`, whose parameters this takes."""
        *_, model = self.learn(*held, **more)
        return model

    def init(self, world: World) -> TrainingState:
        """Draw the splits, and set up each replicate's state before the first round."""
        problem = world.problem
        if self.loss_of_classes:
            problem.require_classes(self.loss_of_classes)
        alone = map(world.streams.replicate, range(len(world.streams.replicates)))
        splits, rngs = zip(*(draw_split_and_generator(problem, streams, self.fold) for streams in alone), strict=True)
        for split in splits if self.loss_of_classes or problem.two_classes else ():
            problem.require_learned_classes(split.training)
        held = [held_for_training(problem, split) for split in splits]
        return TrainingState(list(splits), held, [self.begin(*both) for both in zip(held, rngs, strict=True)])

    def step(self, world: World, state: TrainingState, t: int) -> tuple[TrainingState, Scored]:
        """Run one round of every replicate; return the state, and predictions f."""
        problem = world.problem
        # A state from a checkpoint has no samples: see `State.__getstate__`.
        state.held = state.held or [held_for_training(problem, split) for split in state.splits]
        booked: list[Booked] = [{} for _ in state.splits]
        models = []
        for r, (held, sent) in enumerate(zip(state.held, booked, strict=True)):
            state.learned[r], model = self.advance(held, state.learned[r], counting_into(sent, problem.parties))
            models.append(model)
        book_letters(world, booked)
        rows = tuple(split.test for split in state.splits)

        def tested(r: int) -> Array:
            f, state.tested[r] = self.values(models[r], problem.x, rows[r], state.tested.get(r))
            return f

        state.models = models
        return state, Scored(tuple(partial(tested, r) for r in range(len(models))), rows, t + 1)

    def values(self, model: Any, x: Array, rows: NDArray[np.int64], before: Any) -> tuple[Array, Any]:
        """Values f (m,) of some rows of samples (n, d), and an object that helps to compute the next model's values.

        `before` is the result of the last call for the same rows, or None.
        """
        return model.decision(x[rows]), None

    def functions(self, world: World, state: TrainingState, t: int) -> tuple[SavedFunction, ...]:
        """Every replicate's model."""
        return tuple(model.function for model in state.models)


def draw_split_and_generator(
    problem: Vertical, streams: Streams, fold: int | None
) -> tuple[RowSplit, np.random.Generator]:
    """One replicate's rows, and the method's random generator."""
    [data], [own] = streams.generators(Role.DATA), streams.generators(Role.NETWORK_WEIGHTS)
    return problem.rows(data.spawn(1)[0], fold), own


def held_for_training(problem: Vertical, split: RowSplit) -> PartyRows:
    """The parties' parts of the training rows."""
    return PartyRows(problem.x[split.training], problem.y[split.training], problem.groups, problem.active)


def deal_features(held: PartyRows, generators: Sequence[np.random.Generator | None]) -> list[PartyData]:
    """Each party's part of the data, with its generator."""
    return [
        PartyData(j, held.x[:, features], held.y if j in held.active else None, held.groups, held.active, generator)
        for j, (features, generator) in enumerate(zip(held.groups, generators, strict=True))
    ]


def book_letters(world: World, booked: list[Booked], timed: bool = True) -> None:
    """Record the letters of each replicate's parties."""
    nothing = np.zeros((world.problem.parties, 3), np.int64)
    for kind in sorted({kind for one in booked for kind in one}):
        sent = np.stack([one.get(kind, nothing) for one in booked])
        world.channel.record_messages(kind, sent[..., 0], sent[..., 1], sent[..., 2], timed)


def counting_into(booked: Booked, parties: int) -> Count:
    """A `Count` that adds to `booked`."""

    def count(kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        booked.setdefault(kind, np.zeros((parties, 3), np.int64))[sender] += messages, items, size

    return count
