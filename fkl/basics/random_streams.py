"""Random numbers: one independent stream for each (seed, replicate, role).

Every draw is a function of the seed, the replicate, the role and, for a draw in a round, the round. Two methods with
one seed therefore have the same data order and the same random features. No result depends on the number of replicates
that run together, on threads, or on the round at which a run was resumed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NUMBERS_A_COUNT = 4
"""Numbers that Philox makes from one value of its counter."""


class Role(IntEnum):
    """Purpose of a stream. Numbers are part of the seed: never reuse or reorder them."""

    DATA = 0
    FEATURES = 1
    SELECTION = 2
    NETWORK_WEIGHTS = 3
    TOPOLOGY = 4
    LOSS = 5
    PHASES = 6
    MASKS = 7
    PARTICIPATION = 8
    COMPRESSION = 9
    PRIVACY = 10
    DELAY = 11
    TIMES = 12
    SECURE = 13
    LINKS = 14
    COMPRESSION_DOWN = 15
    PRIVACY_OF_SERVER = 16
    OWN_FEATURES = 17
    CENTRES = 18
    ATTACKERS = 19
    ATTACK = 20
    INTERVALS = 21
    CANARIES = 22


@dataclass(frozen=True)
class Streams:
    """The streams of some of a run's replicates.

    Parameters
    ----------
    seed : int
        The run's seed.
    replicates : tuple of int
        Numbers of the replicates that run together; the leading axis of every state array.
    """

    seed: int
    replicates: tuple[int, ...]

    def replicate(self, r: int) -> "Streams":
        """The streams of the replicate at index r."""
        return Streams(self.seed, (self.replicates[r],))

    def generators(self, role: Role) -> list[np.random.Generator]:
        """One generator per replicate, at the start of its stream."""
        self._require_shared(role)
        entropy = [self._seed_sequence(replicate, role).entropy for replicate in self.replicates]
        return [np.random.default_rng(np.random.SeedSequence(one)) for one in entropy]  # spawning is allowed

    def of_all_replicates(self, role: Role) -> np.random.Generator:
        """A stream that all replicates share."""
        self._require_shared(role)
        return shared_generator(self._seed, role)

    def uniform(self, role: Role, t: int, size: int, first: int = 0) -> NDArray[np.float64]:
        """Numbers first, first + 1, ... in [0, 1) of round t, (R, size), independent of other draws."""
        if role != Role.FEATURES:  # all parties draw the same
            self._require_own(role, range(first, first + size))
        block, skipped = divmod(first, NUMBERS_A_COUNT)
        drawn = [stream.random(skipped + size)[skipped:] for stream in self._of_round(role, [block, 0, 0, t])]
        return np.array(drawn)  # in a quarter of the time of np.stack

    def vectors(self, role: Role, t: int, clients: range, size: int, draw: int = 0) -> NDArray[np.float64]:
        """Numbers in [0, 1) of round t, `size` for each client, (R, K, size): each client has its own numbers.

        Parameters
        ----------
        draw : int
            Number of the draw in this round for this role, from 0; two draws are independent.
        """
        self._require_own(role, clients)
        block, skipped = divmod(clients.start * size, NUMBERS_A_COUNT)
        count = len(clients) * size
        drawn = [stream.random(skipped + count)[skipped:] for stream in self._of_round(role, [block, 0, draw, t])]
        return np.stack(drawn).reshape(len(self.replicates), len(clients), size)

    def uniform_for_all(self, role: Role, t: int, size: int) -> NDArray[np.float64]:
        """Numbers in [0, 1) of round t, (size,), that all replicates share; they do not depend on the size."""
        self._require_own(role, range(0))  # belongs to no single party, but others must not draw from it
        sequence = np.random.SeedSequence((self._seed, 0, int(role)))
        return np.random.Generator(np.random.Philox(sequence, counter=[0, 0, 0, t])).random(size)

    def uniform_of_secret(self, role: Role, client: int, t: int, size: int) -> NDArray[np.float64]:
        """Numbers in [0, 1) of shape (R, size) for round t from a client's own secret seed."""
        self._require_own(role, range(client, client + 1))
        start = [0, 0, 0, t]
        seeds = [_seed_sequence(self._seed, replicate, role, client) for replicate in self.replicates]
        return np.array([np.random.Generator(np.random.Philox(seed, counter=start)).random(size) for seed in seeds])

    def uniform_of_rounds(self, role: Role, rounds: Sequence[int], size: int) -> NDArray[np.float64]:
        """Numbers of `uniform` for several rounds, (T, R, size), in half the time, if all parties share the role."""
        self._require_shared(role)
        sequences = [self._seed_sequence(replicate, role) for replicate in self.replicates]
        return np.stack([_of_rounds(sequence, rounds, size) for sequence in sequences], axis=1)

    def private_of_rounds(self, role: Role, client: int, rounds: Sequence[int], size: int) -> NDArray[np.float64]:
        """Numbers of `uniform_of_secret` for several rounds at once, (T, R, size)."""
        self._require_own(role, range(client, client + 1))
        sequences = [_seed_sequence(self._seed, replicate, role, client) for replicate in self.replicates]
        return np.stack([_of_rounds(sequence, rounds, size) for sequence in sequences], axis=1)

    def own(self, parties: range, shared: "tuple[Role, ...] | None" = None) -> "OwnStreams":
        """The part of these streams that these parties may draw; `shared` as in `OwnStreams`."""
        return OwnStreams(self, parties, SHARED if shared is None else shared)

    @property
    def _seed(self) -> int:
        return self.seed

    def _require_shared(self, role: Role) -> None:
        """Refuse a role whose stream the parties do not share; this class refuses nothing."""

    def _require_own(self, role: Role, numbers: range) -> None:
        """Refuse draws for clients, agents or parties of other numbers; this class refuses nothing."""

    def _of_round(self, role: Role, counter: list[int]) -> list[np.random.Generator]:
        """One generator per replicate, at the position of a round's numbers in the stream."""
        sequences = [self._seed_sequence(replicate, role) for replicate in self.replicates]
        return [np.random.Generator(np.random.Philox(sequence, counter=counter)) for sequence in sequences]

    def _seed_sequence(self, replicate: int, role: Role) -> np.random.SeedSequence:
        return _seed_sequence(self._seed, replicate, role)


@lru_cache(maxsize=1 << 12)
def _seed_sequence(seed: int, replicate: int, role: Role, *client: int) -> np.random.SeedSequence:
    """The seed of a stream, made once and not in every round. Never spawn from it: that would change it."""
    return np.random.SeedSequence((seed, replicate, int(role), *client))


def _of_rounds(sequence: np.random.SeedSequence, rounds: Sequence[int], size: int) -> NDArray[np.float64]:
    """First numbers of some rounds, (T, size), from one generator that jumps from round to round."""
    stream = np.random.Generator(np.random.Philox(sequence))
    state = stream.bit_generator.state
    out = np.empty((len(rounds), size))
    for row, t in zip(out, rounds, strict=True):
        state["state"]["counter"][-1] = t
        stream.bit_generator.state = state
        stream.random(out=row)
    return out


SHARED = (Role.FEATURES, Role.NETWORK_WEIGHTS, Role.SELECTION, Role.ATTACKERS)
"""Roles whose whole streams all parties may draw. A client's number in a round comes from another stream."""


class NotYoursError(Exception):
    """A party tries to draw another party's numbers."""


class OwnStreams(Streams):
    """The streams of one isolated party: the shared streams, and its own numbers.

    Parameters
    ----------
    streams : Streams
        Streams of all parties.
    parties : range
        Numbers of the clients, agents or parties whose numbers may be drawn.
    shared : tuple of Role
        Roles whose generators are allowed.
    drawn : set of Role, optional
        Collects the roles for which numbers of a client were drawn.
    """

    _all: Streams
    _parties: range
    _shared: tuple[Role, ...]
    drawn: set[Role]

    def __init__(
        self, streams: Streams, parties: range, shared: tuple[Role, ...], drawn: set[Role] | None = None
    ) -> None:
        hidden = {"_all": streams, "_parties": parties, "_shared": shared, "drawn": set() if drawn is None else drawn}
        vars(self).update(hidden, replicates=streams.replicates)

    @property
    def seed(self) -> int:  # type: ignore[override]
        """Refused: with the seed, a party could draw all parties' numbers."""
        raise NotYoursError("it reads the seed, from which all parties' numbers follow")

    def replicate(self, r: int) -> "OwnStreams":
        """The streams of the replicate at index r."""
        return OwnStreams(self._all.replicate(r), self._parties, self._shared, self.drawn)

    @property
    def _seed(self) -> int:
        return self._all._seed

    def _seed_sequence(self, replicate: int, role: Role) -> np.random.SeedSequence:
        return self._all._seed_sequence(replicate, role)

    def _require_shared(self, role: Role) -> None:
        if role not in self._shared:
            raise NotYoursError(f"it draws from the stream {Role(role).name}, which parties do not share")

    def _require_own(self, role: Role, numbers: range) -> None:
        self.drawn.add(Role(role))
        for number in numbers:
            if number not in self._parties:
                raise NotYoursError(f"it draws party {number}'s numbers of {Role(role).name}")


def shared_generator(seed: int, role: Role) -> np.random.Generator:
    """A stream that all replicates share: for making and ordering the data, or for drawing the graph."""
    return np.random.default_rng(np.random.SeedSequence((seed, 0, int(role))))
