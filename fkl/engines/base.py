"""The engine of a run, which plays its rounds. `fkl.config.ENGINES` has the names of engines on a command line."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.config import Run
from fkl.contract.world import Algorithm, World
from fkl.engines.checkpoint import CHECKPOINT, Checkpoint, Follower
from fkl.kernels.client_tiles import sums_in_order
from fkl.network.response_times import CostModel
from fkl.tasks import task_of
from fkl.tasks.stream import StreamTask
from fkl.wire import Channel

Array = NDArray[np.floating]


class Engine:
    """Plays the rounds of a run: in this process, on a device, or in several processes.

    No other part of fkl knows how many processes there are. Each engine writes `can_play` and `rounds`; the other
    methods are written here for one process that has all clients.
    """

    name: ClassVar[str]
    """Value of the key `engine`."""
    library: ClassVar[str] = "fkl"
    """The package that has to be installed for it."""
    bank: ClassVar[str] = "numba"
    """The bank that makes random features, a key of `fkl.kernels.BANKS`."""
    threads: ClassVar[int | None] = None
    """Threads of the compiled kernels where a run does not say how many; None for all."""
    has_all_clients: ClassVar[bool] = True
    all_together: ClassVar[bool] = False
    """Whether all replicates have to run together."""
    speaks: bool = True
    """Whether this process writes the run's files and prints; of several processes the first one does."""

    # Before the rounds

    def can_play(self, run: Run) -> str | None:
        """Why it cannot play a run, as the end of a line; None where it can. It reads keys and classes, and no data."""
        raise NotImplementedError

    def before_run(self, *, multirun: bool) -> None:
        """Prepare this process for `fkl run`, before anything is read or printed.

        Parameters
        ----------
        multirun : bool
            Whether it is a sweep.
        """

    @contextmanager
    def opened(self) -> "Iterator[Engine]":
        """Start what it needs, and end it, whatever happens in the block."""
        yield self

    def broadcast(self, value: Any = None) -> Any:
        """Send a value from the process that speaks to all processes, and return it."""
        return value

    def own_part(self, experiment: Any, again: Callable[[], Any]) -> Any:
        """The part of an experiment that this process plays; None for nothing.

        Parameters
        ----------
        experiment : Experiment
            With all clients.
        again : callable
            Prepares the same experiment again.
        """
        return experiment

    # During the rounds

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Play the rounds that are left, and pause after each, or after some of them, outside the clock.

        Parameters
        ----------
        in_progress : fkl.engines.rounds.InProgress
            Is brought up to date before each pause.
        watched : bool
            Whether its state and judge are read in the pauses, so that they have to be arrays of numpy then.

        Yields
        ------
        int
            Rounds that were played since the last pause.

        Raises
        ------
        fkl.engines.divergence.NotFiniteError
            `in_progress.t` is then the number of rounds before the one that the judge refused.
        """
        raise NotImplementedError

    def channel(self, problem: Any, *given: Any) -> Channel:
        """The channel through which the clients of a problem speak."""
        return Channel(*given)

    def cost(self, cost: CostModel | None) -> CostModel | None:
        """The cost of messages, given the cost that the network states."""
        return cost

    def added(self, terms: Sequence[Array]) -> list[Array]:
        """The sum over all clients of each term (tiles, ...), tile after tile."""
        return sums_in_order(terms)

    def of_all_clients(self, values: Array) -> Array:
        """Values (R, K, ...) of all clients in the process that speaks; in other processes those of its own clients."""
        return values

    def functions(self, algorithm: Any, world: World, state: Any, t: int) -> Any:
        """What the process that speaks keeps as learned by all clients in t rounds, a function for each replicate."""
        return algorithm.functions(world, state, t)

    def least(self, number: int) -> int:
        """The smallest of a number that each process has."""
        return number

    def gathered(self, chunk: Any) -> Any:
        """The `fkl.engines.rounds.Chunk` with the results of all clients, in the process that speaks."""
        return chunk

    def checkpoint(self, folder: Path, every: float | None, digest: str, follower: Follower | None) -> Checkpoint:
        """The checkpoint of a run that is made in this folder."""
        return Checkpoint(folder / CHECKPOINT, every, digest, follower)

    # After the rounds

    def with_all_clients(self, experiment: Any) -> Any:
        """The experiment with all clients, from which tables and models are made."""
        return experiment

    def notes(self) -> dict[str, Any]:
        """What provenance.json says of this engine."""
        return {}

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate the seconds that a run would take, with a remark; None where no estimate is worth showing.

        Parameters
        ----------
        sampled : callable
            Estimates the seconds of all rounds of an experiment, on so many threads, from its first rounds.
        """
        raise NotImplementedError


def why_no_star(method: Algorithm) -> str | None:
    """Why a method is no star whose server hears all clients together, round after round; None where it is one.

    Only in such a star can each client be on another process, or be a site, since the server needs messages alone.
    """
    task: Any = task_of(method)
    if getattr(method, "on_a_graph", False):
        return "its agents speak to neighbours, not to a server"
    if task.of_features:
        return "its parties have features, and are no clients of a server"
    if getattr(method, "in_turn", False):
        return "its server serves one client after another"
    if not getattr(method, "all_at_once", False):
        return "it has no server that hears clients round after round"
    return None


def why_no_star_on_a_stream(method: Algorithm) -> str | None:
    """As `why_no_star`, of methods that see a sample in every round."""
    if (why := why_no_star(method)) is not None or task_of(method) is StreamTask:
        return why
    return "its clients learn from batches, and are tested on rows drawn from all of them"
