"""The engine of a run, which plays its rounds: the base class, and the engines of this process."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.config import Run
from fkl.contract.world import Algorithm, Common, World, all_together
from fkl.engines.checkpoint import CHECKPOINT, Checkpoint, Follower
from fkl.engines.divergence import NotFiniteError
from fkl.kernels.losses import OF_CLASSES
from fkl.tasks import task_of
from fkl.tasks.stream import StreamTask
from fkl.wire import Channel

Array = NDArray[np.floating]


class Engine:
    """Plays the rounds of a run: by compiled loops, on a device, or with some clients in memory at a time.

    Each engine writes `can_play` and `rounds`; the other methods are those of an engine with all clients in memory.
    """

    name: ClassVar[str]
    """Value of the key `engine`."""
    bank: ClassVar[str] = "numba"
    """The bank of random features, a key of `fkl.kernels.BANKS`."""
    threads: ClassVar[int | None] = None
    """Threads of the compiled kernels if a run does not set them; None for all."""
    has_all_clients: ClassVar[bool] = True
    """Whether the states of all clients are in memory, so loggers can read them between rounds."""
    all_together: ClassVar[bool] = False
    """Whether all replicates have to run together."""

    # Before the rounds

    def can_play(self, run: Run) -> str | None:
        """Why it cannot play a run, as the end of a line; None if it can. It reads keys and classes, but no data."""
        raise NotImplementedError

    @contextmanager
    def opened(self) -> "Iterator[Engine]":
        """Start the resources that it needs, and release them after the block in every case."""
        yield self

    def announce(self) -> None:
        """Say what the user has to know of it, before the first round."""

    # During the rounds

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Play the remaining rounds, and pause after each, or after some of them, outside the clock.

        Parameters
        ----------
        in_progress : fkl.engines.rounds.InProgress
            Is brought up to date before each pause.
        watched : bool
            Whether its state and judge are read in the pauses; they then have to be numpy arrays.

        Yields
        ------
        int
            Number of rounds since the last pause.

        Raises
        ------
        fkl.engines.divergence.NotFiniteError
            `in_progress.t` is then the number of rounds before the refused one.
        """
        raise NotImplementedError

    def channel(self, problem: Any, *given: Any) -> Channel:
        """The channel for messages of a problem's clients."""
        return Channel(*given)

    def exchange(
        self, method: Any, common: Common, channel: Any, client: Any, down: Any, samples: Any, share: Array, turn: Any
    ) -> tuple[Any, Any, Any]:
        """Let the clients of a method with a server play an exchange, as `fkl.contract.world.all_together`."""
        return all_together(method, common, channel, client, down, samples, share, turn)

    def gathered(self, chunk: Any) -> Any:
        """The `fkl.engines.rounds.Chunk` as it is recorded."""
        return chunk

    def checkpoint(self, folder: Path, every: float | None, digest: str, follower: Follower | None) -> Checkpoint:
        """The checkpoint of a run in this folder."""
        return Checkpoint(folder / CHECKPOINT, every, digest, follower)

    # After the rounds

    def notes(self) -> dict[str, Any]:
        """Entry about this engine in provenance.json."""
        return {}

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate the seconds of a run, with a remark; None if no estimate is useful.

        Parameters
        ----------
        sampled : callable
            Estimates the seconds of all rounds of an experiment, on this many threads, from its first rounds.
        """
        raise NotImplementedError


def why_no_star(method: Algorithm) -> str | None:
    """Why a method is not a star with one exchange for all clients together in each round; None if it is one.

    Only in such a star can clients play one part after another, or be sites, because the server needs only messages.
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


def why_not_a_part_at_a_time(run: Run) -> str | None:
    """Why some clients of a run cannot play without the others, with means for the server; None where they can."""
    if why := why_no_star_on_a_stream(run.algo):
        return why
    if not getattr(run.algo, "means_only", False):
        return "its server asks for more than means over clients that are added up in a fixed order"
    inside = [name for name, one in run.conditions.items() if not getattr(one, "means_only", True)]
    inside += ["network.compute_s"] * getattr(run.network, "timed", False)
    return f"some of the clients alone know no {', '.join(inside)}" if inside else None


def why_not_at_sites(method: Algorithm) -> str | None:
    """Why real sites cannot play a method; None where they can, which are stars of streams and of batches."""
    if getattr(method, "loss", None) in OF_CLASSES:
        return "its parties have to know all classes, and a site knows those of its own rows"
    return why_no_star(method) if task_of(method).has_rows_at_clients else why_no_star_on_a_stream(method)


class Numba(Engine):
    """One process, by compiled loops."""

    name: ClassVar[str] = "numba"

    def can_play(self, run: Run) -> str | None:
        """It can play every run."""
        return None

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Play the remaining rounds, and pause after each."""
        problem, judge, seconds = world.problem, in_progress.judge, in_progress.seconds
        for t in range(in_progress.t, problem.rounds):
            world.channel.open_round(t, problem.present[t])
            start = perf_counter()
            in_progress.state, outcome = algorithm.step(world, in_progress.state, t)
            seconds += perf_counter() - start
            in_progress.elapsed[t] = seconds
            if not judge.enter(t, outcome):
                raise NotFiniteError
            del outcome  # before the next round needs the same memory
            in_progress.t = t + 1
            yield 1
        judge.close()

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate from the first rounds."""
        return sampled(replace(experiment, engine=self), threads), ""


class Numpy(Numba):
    """One process, only with numpy."""

    name: ClassVar[str] = "numpy"
    bank: ClassVar[str] = "numpy"

    def can_play(self, run: Run) -> str | None:
        """It cannot play methods that exist only compiled."""
        return "its loops exist only compiled" if getattr(run.algo, "compiled_only", False) else None
