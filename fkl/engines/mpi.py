"""Clients on several processes, `engine=mpi`: each rank plays some, and sums go over all ranks.

A rank has whole tiles of `CLIENT_TILE` clients, and sums go from rank to rank. Each rank adds its tiles to the sum of
the earlier ranks. The order of additions, and therefore the bytes, are those of one process.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.environment import variable
from fkl.basics.errors import FklError, plural, requires_extra
from fkl.conditions import Wrapped
from fkl.conditions.wrapped import SumOnly
from fkl.config import Run
from fkl.contract.star import Star
from fkl.contract.world import World
from fkl.data.dealt_rows import is_judged
from fkl.data.problem import Problem, Slice
from fkl.engines.base import Engine, why_not_a_part_at_a_time
from fkl.engines.checkpoint import CHECKPOINTS, Checkpoint, Follower
from fkl.engines.experiment import Experiment
from fkl.engines.local import Numba
from fkl.engines.rounds import Chunk
from fkl.kernels.client_tiles import CLIENT_TILE, sum_in_order
from fkl.kernels.traceable import parts
from fkl.kernels.traceable import rebuilt as rebuilt_state
from fkl.network.response_times import CostModel
from fkl.screen.messages import warning
from fkl.wire.channel import Channel
from fkl.wire.ledger import Ledger
from fkl.wire.payloads import Summable, for_clients, kinds, rebuilt, received_message

Array = NDArray[np.floating]
GRACE_S = 2.0
"""Seconds for the other ranks to fail as well, before a failed rank ends them."""
PAUSE_S = 0.01
NUMBERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables with the number of this process in MPICH, in PMIx launchers and in Open MPI."""
_LOUD = [2]
"""File descriptors of stderr; output to the last one is shown."""


class Ranks:
    """The processes that play a run together.

    Attributes
    ----------
    number, size : int
    bytes_summed : int
        Bytes of all sums so far, from each rank to the next, and then to all.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.number, self.size = int(comm.rank), int(comm.size)
        self.bytes_summed = 0

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and prints."""
        return self.number == 0

    def with_clients(self, clients: int) -> "Ranks | None":
        """The ranks with some of this many clients; None on a rank without clients."""
        some = min(self.size, -(-clients // CLIENT_TILE))
        if some == self.size:
            return self
        mine = self.comm.Split(int(self.number >= some), self.number)
        return Ranks(mine) if self.number < some else None

    def mine(self, clients: int) -> range:
        """Indices of this rank's clients: complete tiles, as many as other ranks have, or one tile less."""
        count = -(-clients // CLIENT_TILE)
        begin, end = (count * number // self.size * CLIENT_TILE for number in (self.number, self.number + 1))
        return range(begin, min(end, clients))

    def added(self, terms: Sequence[Array]) -> list[Array]:
        """Sums over the tiles of all ranks, tile after tile.

        Parameters
        ----------
        terms : sequence of (tiles, ...)
            Terms of this rank; on the first rank, one term may be the sum of several.
        """
        rows = np.zeros((max(map(len, terms)), sum(one[0].size for one in terms)))
        ends = np.cumsum([one[0].size for one in terms])[:-1]
        for part, one in zip(np.split(rows, ends, axis=1), terms, strict=True):
            part[: len(one)] = np.reshape(one, (len(one), -1))  # if others have more tiles, 0 is added
        if self.first:
            total = np.array(sum_in_order(rows))
        else:
            total = np.empty(rows.shape[1])
            self.comm.Recv(total, self.number - 1)
            for row in rows:
                total += row
        last = self.size - 1
        if self.number < last:
            self.comm.Send(total, self.number + 1)
        self.comm.Bcast(total, last)
        self.bytes_summed += total.nbytes
        return [part.reshape(one.shape[1:]) for part, one in zip(np.split(total, ends), terms, strict=True)]

    def least(self, number: int) -> int:
        """The minimum of a number over all ranks."""
        return int(min(self.comm.allgather(number)))

    def reduced(self, values: NDArray[Any], how: str) -> NDArray[Any]:
        """SUM, or MAX, of each entry over all ranks."""
        from mpi4py import MPI

        found = np.array(values)
        self.comm.Allreduce(MPI.IN_PLACE, found, getattr(MPI, how))
        return found

    def say(self, words: Any = None) -> Any:
        """Send a value from the first rank to all ranks, and return it."""
        return self.comm.bcast(words, 0)

    def all_say(self, words: Any) -> list[Any]:
        """Send the value of each rank to all ranks, and return all of them."""
        return self.comm.allgather(words)

    def gather_clients(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (R, K, ...) of the clients of all ranks, on the first rank; on other ranks only its own."""
        own = np.ascontiguousarray(np.moveaxis(values, 1, 0))
        sizes = [int(size) for size in self.comm.allgather(own.size)]
        if not self.first:
            self.comm.Gatherv(own, None)
            return values
        found = np.empty((sum(sizes) // max(own[0].size, 1), *own.shape[1:]), own.dtype)
        self.comm.Gatherv(own, (found, sizes))
        return np.ascontiguousarray(np.moveaxis(found, 0, 1))

    def gather_ledger(self, ledger: Ledger) -> Ledger:
        """On the first rank the ledger of all clients; elsewhere the counts of all, with only its own clients."""
        rounds, (replicates, clients) = len(ledger.seconds), ledger.shape
        found = {name: self.gather_clients(tally.by_client) for name, tally in ledger.tallies.items()}
        everyone = max((tally.shape[1] for tally in found.values()), default=clients)
        made = Ledger(rounds, replicates, everyone, ledger.cost, tuple(ledger.tallies))
        for name, whole in made.tallies.items():
            whole.by_client, whole.by_round = found[name], self.reduced(ledger.tallies[name].by_round, "SUM")
        made.seconds = ledger.seconds
        for kinds_there in self.all_say(ledger.kinds):
            for kind, scalars in kinds_there.items():
                made.kinds[kind] = made.kinds.get(kind, 0) + scalars
        return made

    def gone_within(self, seconds: float) -> bool:
        """Whether every rank reaches this line within this many seconds."""
        if self.comm.size == 1:
            return True
        request, until = self.comm.Ibarrier(), time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE_S)
        return True


class OverRanks(Channel):
    """The channel of a rank with some of the clients; every rank plays the same server.

    Parameters
    ----------
    ranks : Ranks
    problem : Slice
        The streams of this rank's clients.
    given : as in `Channel`
    """

    def __init__(self, ranks: Ranks, problem: Slice, *given: Any) -> None:
        super().__init__(*given)
        self._ranks, self._problem, self._mine = ranks, problem, np.array(problem.numbers)

    def down(self, message: Any) -> Any:
        """Pass the server's message on to the clients of this rank."""
        if message is None:
            return None
        everyone = {"R": self.ledger.shape[0], "K": self._problem.everyone, "L": 0}
        return super().down(for_clients(received_message(message, everyone, self.width), self._mine))

    def up(self, message: Any) -> Any:
        """Pass the messages of the clients of all ranks to the server, which can ask for their means."""
        message = super().up(message)
        if message is None:
            return None
        parts: list[Any] = [part for _, payloads in kinds(message) for part in payloads]
        letter = _Letter(self._ranks, self._mine, parts)
        return rebuilt(message, [OfAllRanks(part, letter, place) for place, part in enumerate(parts)])

    def answered(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shares (everyone,) of the clients of all ranks: every participating client has answered."""
        return self._problem.share_of_all(self._t)


@dataclass(frozen=True)
class OfAllRanks(SumOnly):
    """A payload of the clients of all ranks; the server can compute its mean."""

    refusal: ClassVar[tuple[str, str, str]] = (
        "engine", "mpi", "numba or numpy for a method whose server reads what each client sent",
    )  # fmt: skip

    letter: "_Letter"
    place: int

    def mean(self, share: Array) -> Array:
        """Sum over the clients of all ranks, weighted by their share (everyone,)."""
        return self.letter.mean(self.place, share)


@dataclass(frozen=True)
class SlowestOfAll(CostModel):
    """As `CostModel`, with the clients of all ranks."""

    ranks: Ranks | None = None

    def seconds(self, messages: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.float64]:
        """As `CostModel.seconds`, of this rank's clients."""
        assert self.ranks is not None
        return self.ranks.reduced(super().seconds(messages, size), "MAX")


class _Letter:
    """Payloads of all clients that arrived together: one exchange computes the means of all when one is needed."""

    def __init__(self, ranks: Ranks, mine: NDArray[np.int64], payloads: Sequence[Summable]) -> None:
        self._ranks, self._mine, self._payloads = ranks, mine, payloads
        self._share: Any = None
        self._means: list[Array] = []

    def mean(self, place: int, share: Array) -> Array:
        if share is not self._share:
            own = share[self._mine]
            if self._ranks.first:  # nothing comes before its tiles
                terms = [tuple(total[None] for total in payload.sums(own)) for payload in self._payloads]
            else:
                terms = [payload.tile_sums(own) for payload in self._payloads]
            sums = iter(self._ranks.added([term for of_one in terms for term in of_one]))
            parts = [[next(sums) for _ in of_one] for of_one in terms]
            self._share = share
            self._means = [payload.of_sums(*part) for payload, part in zip(self._payloads, parts, strict=True)]
        return self._means[place]


class CommonCheckpoint(Checkpoint):
    """State of each rank of a run, in two files in turn: one of them is from a round that all have stored.

    Sums of every round go through all ranks, so no rank stores a round before all have stored the previous due one.

    Parameters
    ----------
    folder : Path
        Folder for the files of all ranks.
    ranks : Ranks
    every, digest, follower : as in `Checkpoint`
        The seconds are those of the first rank.
    """

    def __init__(self, folder: Path, ranks: Ranks, every: float | None, digest: str, follower: Follower | None) -> None:
        folder.mkdir(exist_ok=True)
        name, digest = f"{ranks.number + 1}of{ranks.size}", f"{digest}, rank {ranks.number} of {ranks.size}"
        self._ranks, self._seldom = ranks, every is None
        self._two = [Checkpoint(folder / f"{name}.{turn}", every, digest, follower) for turn in ("a", "b")]
        self._turn = 0

    @property
    def due(self) -> bool:
        """Whether it is time to save, according to the first rank."""
        return not self._seldom and bool(self._ranks.say(self._two[self._turn].due))

    def place(self) -> tuple[int, int] | None:
        """As in `Checkpoint`, for the last round that all ranks have stored; later ones are discarded."""
        kept = {found: turn for turn, file in enumerate(self._two) if (found := file.rounds()) is not None}
        common = set.intersection(*map(set, self._ranks.all_say(list(kept))))
        if not common:
            return None
        self._turn = kept[last := max(common, key=lambda found: (found[0], found[2]))]
        return last[:2]

    def load(self, owner: Any, kind: type[Any]) -> Any:
        """As in `Checkpoint`, on all ranks or on none."""
        done = self._two[self._turn].load(owner, kind)
        if not all(self._ranks.all_say(done is not None)):
            return None
        self._turn = 1 - self._turn
        return done

    def save(self, place: tuple[int, int], done: Any, owned: Mapping[str, Any]) -> None:
        """As in `Checkpoint`, overwriting the older of the two files."""
        self._two[self._turn].save(place, done, owned)
        self._turn = 1 - self._turn
        self._two[self._turn].wait()


class Mpi(Numba):
    """The processes that mpirun has started; each plays some of the clients, with compiled loops."""

    name: ClassVar[str] = "mpi"
    library: ClassVar[str] = "mpi4py"
    threads: ClassVar[int | None] = 1

    def can_play(self, run: Run) -> str | None:
        """It plays clients of a server that needs only means over them, also in its conditions."""
        if why := why_not_a_part_at_a_time(run):
            return why
        if is_judged(run.settings.rows):
            return f"with rows={run.settings.rows} all clients have to be on one process"
        if run.settings.learners != "federated":
            return f"with learners={run.settings.learners} all clients have to be on one process"
        for name in ("stop_when", "metrics"):
            if getattr(run.settings, name):
                return f"with {name} all clients have to be on one process"
        if run.intervals is not None:
            return "with intervals all clients have to be on one process"
        return None

    def before_run(self, *, multirun: bool) -> None:
        """Let one process print, and refuse a sweep."""
        hush()
        if multirun:
            raise FklError("engine=mpi: one run at a time, without -m")

    @contextmanager
    def opened(self) -> Iterator[Engine]:
        """Find the other processes, and end together with them."""
        ranks = started()
        with ending_together(ranks):
            yield OnRanks(ranks)

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate from the first rounds on one thread; None if only one process is available."""
        some = min(os.cpu_count() or 1, -(-experiment.problem.clients // CLIENT_TILE))
        if some == 1:
            return None
        seconds = sampled(replace(experiment, engine=self), 1) / some
        return seconds, f" on {some} ranks, if clients divide as they should"


class OnRanks(Mpi):
    """One of these processes.

    Parameters
    ----------
    ranks : Ranks
    again : callable or None
        Prepares the experiment of all clients again; None before this process has its part of it.
    """

    has_all_clients: ClassVar[bool] = False

    def __init__(self, ranks: Ranks, again: Callable[[], Experiment] | None = None) -> None:
        self._ranks, self.speaks = ranks, ranks.first
        self._again = None if again is None else cache(again)

    def broadcast(self, value: Any = None) -> Any:
        """The first rank's value."""
        return self._ranks.say(value)

    def own_part(self, experiment: Experiment, again: Callable[[], Experiment]) -> Experiment | None:
        """Only the clients of this rank; None if it has none."""
        clients = experiment.problem.clients
        some = self._ranks.with_clients(clients)
        if some is None or some.size < self._ranks.size:
            tiles = -(-clients // CLIENT_TILE)
            of_all = f"{clients} clients are {plural(tiles, 'tile')} of {CLIENT_TILE}, and a rank has whole ones"
            idle = f"{self._ranks.size - tiles} of {self._ranks.size} ranks have none"
            warning(f"engine=mpi: {of_all}: {idle}")
        if some is None:
            return None

        def own(problem: Problem) -> Slice:
            return Slice.from_problem(problem, some.mine(clients))

        def own_in_replicate(replicate: int) -> tuple[Slice, None]:
            assert experiment.redraw is not None
            return own(experiment.redraw(replicate)[0]), None

        redraw = None if experiment.redraw is None else own_in_replicate
        return replace(experiment, problem=own(experiment.problem), redraw=redraw, engine=OnRanks(some, again))

    def channel(self, problem: Any, *given: Any) -> Channel:
        """A channel with the messages of the clients of all ranks."""
        return OverRanks(self._ranks, problem, *given)

    def cost(self, cost: CostModel | None) -> CostModel | None:
        """The network's cost, with the slowest client of all ranks."""
        if cost is None:
            return None
        return SlowestOfAll(cost.latency_s, cost.bandwidth_bytes_per_s, self._ranks)

    def added(self, terms: Sequence[Array]) -> list[Array]:
        """Sum over the tiles of all ranks, rank after rank."""
        return self._ranks.added(terms)

    def of_all_clients(self, values: Array) -> Array:
        """The chunk of all ranks, on the first one."""
        return self._ranks.gather_clients(values)

    def functions(self, algorithm: Any, world: World, state: Any, t: int) -> Any:
        """Functions from the state of the clients of all ranks, on the first one."""
        server, client = state.server, state.client
        while isinstance(algorithm, Wrapped):
            algorithm, server, client = algorithm.method, server.method, client.method
        gathered = []
        of_one, of_two = (parts(algorithm.start(world.common, clients)[1]) for clients in (1, 2))
        for values, one, two in zip(parts(client), of_one, of_two, strict=True):
            along = [axis for axis, size in enumerate(two.shape) if size != one.shape[axis]]  # which has the clients
            for axis in along:
                values = np.moveaxis(self.of_all_clients(np.moveaxis(values, axis, 1)), 1, axis)
            gathered.append(np.ascontiguousarray(values))
        return algorithm.functions(world, Star(server, rebuilt_state(client, gathered)), t)

    def least(self, number: int) -> int:
        """Of all ranks."""
        return self._ranks.least(number)

    def gathered(self, chunk: Chunk) -> Chunk:
        """On the first rank the judge and the ledger of all clients, with the streams of all."""
        judge: Any = chunk.judge
        judge, ledger = judge.gathered(self._ranks.gather_clients), self._ranks.gather_ledger(chunk.ledger)
        if self.speaks and self._again is not None:
            whole = self._again()
            judge.problem = whole.problem if whole.redraw is None else whole.redraw(chunk.first)[0]
        return replace(chunk, judge=judge, ledger=ledger)

    def checkpoint(self, folder: Path, every: float | None, digest: str, follower: Follower | None) -> Checkpoint:
        """A checkpoint that all ranks store for the same round."""
        return CommonCheckpoint(folder / CHECKPOINTS, self._ranks, every, digest, follower)

    def with_all_clients(self, experiment: Experiment) -> Experiment:
        """The experiment with all clients, prepared at the first use."""
        assert self._again is not None
        return self._again()

    def notes(self) -> dict[str, Any]:
        """Number of ranks with clients, and the bytes of their sums."""
        return {"ranks": self._ranks.size, "bytes_summed_over_ranks": self._ranks.bytes_summed}


def hush() -> None:
    """Silence all processes that MPI has started except the first, until one of them ends all."""
    number = next(filter(None, (variable(name, "") for name in NUMBERS)), "0")
    if number != "0" and len(_LOUD) == 1:
        _LOUD.append(os.dup(2))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)


def started() -> Ranks:
    """The ranks that mpirun has started with this one.

    Raises
    ------
    fkl.basics.errors.FklError
        If mpi4py is not installed, or finds no MPI.
    """
    with requires_extra("mpi", "engine=mpi"):
        import mpi4py
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise FklError(f"engine=mpi: mpi4py {mpi4py.__version__} finds no MPI ({why}): pip install mpich") from None
    return Ranks(MPI.COMM_WORLD)


@contextmanager
def ending_together(ranks: Ranks) -> Iterator[None]:
    """End all ranks when one fails in this block and the others do not, after its message is printed."""
    try:
        yield
    except BaseException as error:
        if not ranks.gone_within(GRACE_S):
            # One line for errors that the user can correct, and the full traceback for others
            print(end="", file=sys.stdout, flush=True)
            one_line = f"error: {' '.join(str(error).split())}\n"
            words = one_line if isinstance(error, FklError) else traceback.format_exc()
            os.write(_LOUD[-1], words.encode())
            ranks.comm.Abort(2)  # every rank, with exit code 2
        raise
    ranks.gone_within(float("inf"))
