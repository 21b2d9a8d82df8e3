"""Actors on a wire, each with its own features and letters as bytes, compared with the pooled path."""

from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.party_process import Apart, PartyError
from fkl.conformance.played import TOLERANCE, outcomes
from fkl.contract.parties import Actor, Booked, Own, Scored, VerticalMethod, Wire
from fkl.contract.world import World
from fkl.wire import Channel
from fkl.wire.letters import Posted, read


class LoneActor:
    """One party with only its own data."""

    who = "a party"

    def __init__(self, method: VerticalMethod, own: Own) -> None:
        self._method, self._own, self._wire = method, own, Wire()
        self._actor: Actor | None = None

    def work(self, post: Posted | None) -> tuple[list[Posted], int | None, Any]:
        """Take a letter and work until the next one is needed; return letters, the awaited sender, and the result."""
        waits_for, learned = None, None
        self._actor = self._actor or self._method.party(self._own, self._wire)
        try:
            waits_for = self._actor.send(None if post is None else read(post))
        except StopIteration as end:
            learned = end.value
        posts = self._wire.outbox.copy()
        self._wire.outbox.clear()
        return posts, waits_for, learned


class ActorInSight(LoneActor):
    """A party that runs in this process; its attributes can be read afterwards."""

    def __init__(self, actor: Actor, wire: Wire) -> None:
        self._actor, self._wire = actor, wire

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party itself, not of a copy."""
        return getattr(self, name)(*arguments)


class Heard(NamedTuple):
    """A letter as an eavesdropper on the wire sees it."""

    sender: int
    receiver: int
    kind: str
    values: NDArray[Any]
    about: tuple[int, ...]


class Mail:
    """Carries letters between parties and measures their bytes; stores them if `heard` is given."""

    def __init__(self, parties: list[Any], heard: list[Heard] | None = None) -> None:
        self._parties, self._heard = parties, heard
        self._waiting: dict[tuple[int, int], deque[Posted]] = defaultdict(deque)
        self._waits_for: dict[int, int] = {}
        self._learned: dict[int, Any] = {}
        self.sent: Booked = {}

    def deliver(self) -> list[Any]:
        """Run all parties to their end; return the result of each."""
        for party in range(len(self._parties)):
            self._let_party_work(party, None)
        while len(self._learned) < len(self._parties):
            ready = [
                party
                for party, sender in self._waits_for.items()
                if self._waiting[sender, party] or sender in self._learned
            ]
            if not ready:
                raise BrokenPromiseError(f"parties wait for one another for ever: {self._waits_for}")
            for party in ready:
                letters = self._waiting[self._waits_for.pop(party), party]
                self._let_party_work(party, letters.popleft() if letters else None)
        return [self._learned[party] for party in range(len(self._parties))]

    def _let_party_work(self, party: int, post: Posted | None) -> None:
        posts, waits_for, learned = self._parties[party].ask("work", post)
        for one in posts:
            size = self.sent.setdefault(one.kind.kind, np.zeros((len(self._parties), 3), np.int64))
            size[party] += 1, one.scalars, len(one.body)
            self._waiting[party, one.receiver].append(one)
            if self._heard is not None:
                self._heard.append(Heard(party, one.receiver, one.kind.kind, read(one).values, one.about))
        if waits_for is None:
            self._learned[party] = learned
        else:
            self._waits_for[party] = waits_for


class Watched(Channel):
    """A channel that records all bookings, by kind and sender."""

    def __init__(self, channel: Channel, parties: int) -> None:
        vars(self).update(vars(channel))
        self.booked: Booked = {}
        self._parties = parties

    def record_messages(self, kind: str, messages: Any, scalars: Any, size: Any, timed: bool = True) -> None:
        """Record a booking, and book it."""
        of_kind = self.booked.setdefault(kind, np.zeros((self._parties, 3), np.int64))
        of_kind += np.stack([messages[0], scalars[0], size[0]], axis=-1)
        super().record_messages(kind, messages, scalars, size, timed)


def play_apart(method: VerticalMethod, parties: list[Own], party: Apart) -> tuple[list[Any], Booked]:
    """Results and messages of isolated parties."""
    with ExitStack() as ends:
        mail = Mail([ends.enter_context(closing(party(LoneActor, method, own))) for own in parties])
        return mail.deliver(), mail.sent


def require_actors_agree(method: VerticalMethod, world: Callable[[], World], party: Apart) -> None:
    """Compare isolated parties with the pooled path: f is the same, and the booked bytes are exactly those sent.

    Features are scaled to at most 1: otherwise long steps could amplify the rounding of the two paths without limit.

    Parameters
    ----------
    method : VerticalMethod
    world : callable
        Makes worlds of one replicate, in float64.
    party : PartyObject or PartyProcess

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the difference.
    """
    here = world()
    problem = replace(here.problem, x=here.problem.x / (abs(here.problem.x).max() or 1.0))
    channel = Watched(here.channel, problem.parties)
    # The pooled path, up to its final values f of the test rows.
    f, scored = np.zeros(0), Scored((), (), 0)
    for scored in outcomes(method, replace(here, channel=channel, problem=problem)):
        f = scored.f[0]()  # which a later round may change
    if method.pooled:
        if channel.booked:
            raise BrokenPromiseError(f"{method.label} is on pooled data, and yet books {', '.join(channel.booked)}")
        return
    held, parties = method.dealt(here.common, problem)
    try:
        parts, sent = play_apart(method, parties, party)
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from error
    found = method.assembled(parts, held).decision(problem.x[scored.rows[0]])
    tolerance = method.tolerance * TOLERANCE[here.precision] / TOLERANCE["float64"]
    if not np.allclose(f, found, rtol=tolerance, atol=tolerance):
        raise BrokenPromiseError(f"f is another where parties are {party.apart}: the pooled path is not the protocol's")
    require_sent(channel.booked, sent)


def require_sent(booked: Booked, sent: Booked) -> None:
    """Compare bookings with messages, by kind and sender."""
    for kind in sorted(booked.keys() | sent.keys()):
        nothing = np.zeros_like(next(iter((booked | sent).values())))
        mine, theirs = booked.get(kind, nothing), sent.get(kind, nothing)
        for j in np.flatnonzero((mine != theirs).any(axis=1))[:1]:
            units = "messages, scalars and bytes"
            raise BrokenPromiseError(f"{kind} of party {j}: {units} {mine[j]} are booked and {theirs[j]} sent")
