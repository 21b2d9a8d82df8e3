"""Experiments and engines, which run the rounds: the base class, and the engines of this process.

The end of the file has the messages about a diverged run.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.basics.memory import by_block
from fkl.basics.random_streams import Role, Streams
from fkl.config.loading import Run
from fkl.contract.world import Algorithm, World, innermost_method
from fkl.kernels import Dictionary
from fkl.kernels.losses import OF_CLASSES
from fkl.network import Network, Topology
from fkl.network.topology import Links
from fkl.tasks import task_of
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Redraw, Task
from fkl.wire import Channel, Ledger


class Engine:
    """Runs the rounds of an experiment: by compiled loops, or on a device.

    Each engine defines `can_play` and `rounds`; the other methods here suit an engine with all clients in memory.
    """

    name: ClassVar[str]
    """Value of the key `engine`."""
    bank: ClassVar[str] = "numba"
    """Name of the bank of random features in `fkl.kernels.BANKS`."""
    threads: ClassVar[int | None] = None
    """Number of threads of the compiled kernels if a run does not set it; None for all."""
    at_once: ClassVar[bool] = False
    """Whether it plays several rounds at once where the method can (`play_next`)."""
    needs_all_replicates: ClassVar[bool] = False
    """Whether all replicates have to run together."""
    stopped_at: float | None = None
    """Round after which it ended the last rounds, NaN if they are complete; None if it always completes them."""

    # Before the rounds

    def can_play(self, run: Run) -> str | None:
        """Why the engine cannot execute a run, as the end of a line; None if it can. It reads no data."""
        raise NotImplementedError

    def require_installed(self) -> None:
        """Refuse to begin without the libraries that the engine needs."""

    def announce_engine(self) -> None:
        """Print what the user has to know about the engine, before the first round."""

    # During the rounds

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Run the remaining rounds, and pause after each, or after several of them, outside the clock.

        Parameters
        ----------
        in_progress : fkl.engines.rounds.InProgress
            Updated before each pause.
        watched : bool
            Whether its state and judge are read in the pauses, so they have to hold numpy arrays.

        Yields
        ------
        int
            Number of rounds since the last pause.

        Raises
        ------
        fkl.engines.base.RoundNotFiniteError
            If numbers are not finite; `in_progress.t` is then the number of rounds before the refused round.
        """
        raise NotImplementedError

    # After the rounds

    def provenance_notes(self) -> dict[str, Any]:
        """Entries about this engine in provenance.json."""
        return {}

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate the seconds of a run, with a remark; None without a useful estimate.

        Parameters
        ----------
        sampled : callable
            Estimates the seconds of all rounds of an experiment, on this many threads, from its first rounds.
        """
        raise NotImplementedError


def why_no_star(method: Algorithm) -> str | None:
    """Why a method is not a star whose clients exchange messages together in each round; None if it is one.

    Only in such a star can clients run one part after another, or be sites, because the server needs only messages.
    """
    # In the order in which a user would ask: the graph, the features, the server, the rounds
    task: Any = task_of(method)
    if getattr(method, "on_a_graph", False):
        return "its agents send messages to neighbours, not to a server"
    if task.of_features:
        return "its parties hold features, and are not clients of a server"
    if getattr(method, "in_turn", False):
        return "its server serves one client after another"
    if not getattr(method, "all_at_once", False):
        return "it has no server that receives messages of clients round after round"
    return None


def why_no_star_on_a_stream(method: Algorithm) -> str | None:
    """Why a method is not a star whose clients see one sample per round; None if it is one."""
    if (why := why_no_star(method)) is not None or task_of(method) is StreamTask:
        return why
    return "its clients learn from batches, and are tested on rows drawn from all clients"


def why_not_at_sites(method: Algorithm) -> str | None:
    """Why real sites cannot run a method; None if they can, as for stars on streams and on batches."""
    if getattr(method, "loss", None) in OF_CLASSES:
        return "its parties have to know all classes, and a site knows only those of its own rows"
    return why_no_star(method) if task_of(method).has_rows_at_clients else why_no_star_on_a_stream(method)


class Numba(Engine):
    """One process, by compiled loops."""

    name: ClassVar[str] = "numba"
    at_once: ClassVar[bool] = True

    def can_play(self, run: Run) -> str | None:
        """None: this engine can execute every run."""
        return None

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Run the remaining rounds, and pause after each."""
        problem, judge = world.problem, in_progress.judge
        while in_progress.t < problem.rounds:
            # The next rounds: a step, or several rounds at once; then their time is divided equally
            first, seconds, start = in_progress.t, in_progress.seconds, perf_counter()
            judging = 0.0
            for reached, outcome in play_next(algorithm, world, in_progress.state, first, self.at_once):
                begun = perf_counter()
                if not judge.enter(in_progress.t, outcome):
                    raise RoundNotFiniteError
                state = reached
                in_progress.t += 1
                del outcome  # before the next round needs the same memory
                judging += perf_counter() - begun
            in_progress.state, done = state, in_progress.t - first
            took = perf_counter() - start - judging
            in_progress.elapsed[first : in_progress.t] = seconds + took * np.arange(1, done + 1) / done
            yield done
        judge.close()

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate the seconds from the first rounds."""
        return sampled(replace(experiment, engine=self), threads), ""


class Numpy(Numba):
    """One process that uses only numpy."""

    name: ClassVar[str] = "numpy"
    bank: ClassVar[str] = "numpy"

    def can_play(self, run: Run) -> str | None:
        """Why not: this engine cannot run methods whose loops exist only compiled."""
        return "its loops exist only compiled" if getattr(run.algo, "compiled_only", False) else None


IN_CACHE = 240
"""Number of samples whose features of one kernel stay in the cache."""
AT_ONCE = 2**21
"""Largest number of entries of an array of several rounds."""
LOOKS = 8
"""Number of parts of a run. Rounds on both sides of a part's end are not played at once: someone may look there."""


def play_next(algorithm: Any, world: World, state: Any, t: int, at_once: bool = True) -> Iterator[tuple[Any, Any]]:
    """State and outcome of round t, or of several rounds from t on that a method can play at once."""
    problem = world.problem
    rounds = next(end for number in range(1, LOOKS + 1) if (end := problem.rounds * number // LOOKS) > t) - t
    # Not for a method in conditions, which change messages of single rounds
    if at_once and hasattr(type(algorithm), "play_rounds") and not algorithm.why_round_by_round(world):
        bank = world.bank
        entries = bank.replicates * bank.kernels * max(problem.clients, bank.width)
        rounds = min(rounds, IN_CACHE // problem.clients, AT_ONCE // entries)
        if rounds > 1:
            yield from algorithm.play_rounds(world, state, t, rounds)
            return
    world.channel.open_round(t, problem.present[t])
    yield algorithm.step(world, state, t)


# ---- Experiments


@dataclass(frozen=True)
class Experiment:
    """Everything on which a run's numbers depend.

    Parameters
    ----------
    problem, topology
        Data and graph; of replicate 0 if each replicate draws its own, with all clients if participation differs.
    redraw : callable or None
        As in `fkl.tasks.task.Task`.
    links : Links or None
        Model of the links that are up in each iteration; None if all links always are.
    engine : Engine
        Engine that runs the rounds.
    metrics : dict of str to str
        The key of this name.
    intervals : object or None
        The node of this name.
    """

    problem: Any
    dictionary: Dictionary
    network: Network
    algorithm: Algorithm
    seed: int
    replicates: int
    precision: str
    topology: Topology | None = None
    redraw: Redraw | None = None
    engine: Engine = field(default_factory=Numba)
    links: Links | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    intervals: Any = None

    @cached_property
    def task(self) -> Task:
        """The task of the method, with this problem."""
        return task_of(self.algorithm)(self.problem, self.redraw)


def make_world(experiment: Experiment, replicates: tuple[int, ...]) -> tuple[World, Ledger]:
    """World of some replicates of an experiment, and the ledger of its channel."""
    # A replicate may have its own problem and graph
    problem, network, precision = experiment.problem, experiment.network, experiment.precision
    topology, streams = experiment.topology, Streams(experiment.seed, replicates)
    if experiment.redraw is not None:
        [replicate] = replicates
        problem, drawn = experiment.redraw(replicate)
        topology = topology if drawn is None else drawn
    # Kinds of messages that the ledger counts
    directions = experiment.task.directions(topology)
    if network.loss > 0:
        directions = (*directions, "lost")
    engine = experiment.engine
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, network.cost, directions)
    # Delays are drawn once, before the first round
    times = None
    if getattr(network, "timed", False):  # a user's network class may not have this field
        streams_of_features = streams if experiment.redraw is not None else Streams(experiment.seed, (0,))
        times = network.times(problem.rounds, problem.clients, streams_of_features.generators(Role.TIMES)[0])
        if topology is not None:  # on a graph, agents that are late miss the iteration
            times = times.times_among_agents(problem.present)
            problem = problem.thinned(problem.present & times.in_time)
    # The channel, and everything that a method may see
    label = experiment.algorithm.label
    passing = network, ledger, np.dtype(precision), label, streams, experiment.links, times
    channel = Channel(*passing)
    facts = problem, experiment.dictionary, channel, streams, precision, topology
    judged = experiment.metrics, experiment.intervals
    return World(*facts, engine.bank, *judged), ledger


# ---- Diverged runs: keys to lower, and errors that are finite but too large

STEP_SIZES = ("step_size", "eta", "gamma", "rho")
"""Names of the step size in methods."""
OTHER_STEPS = ("step_factor", "alpha", "eta_k")
"""Keys that multiply the step size, or that are step sizes of other updates."""
LARGEST_STEP = 2.0
"""Above the step size of any paper: twice that at which descent on a squared error with features of norm 1
overshoots."""
WORSE = 2.0
"""Largest error that is not reported, as a multiple of the error of predicting 0.

Every method starts by predicting 0. Stable descent, with steps up to half of the unstable size, stays below twice its
possible error, even on pure noise. Published errors can be close to the error of 0 (0.96 to 1.00 times it for POLY-2 on
airfoil, and RFOMKR on bias, concrete and naval), so comparing with the best constant would give false alarms.
"""


class RoundNotFiniteError(Exception):
    """The judge refused a round because its numbers are not finite."""


class DivergedError(FklError):
    """An error for a method whose numbers are no longer finite.

    Parameters
    ----------
    algorithm : Algorithm
    failed : Chunk
        Replicates that ran when the method diverged; their judge and ledger are valid up to round t. Earlier replicates
        ended normally.
    t : int
        Number of rounds before the divergence.
    not_finite : str
        The first array that was not finite, if the divergence was too early to be caused by a usual step size; else
        empty.

    Attributes
    ----------
    folder : Path or None
        Folder with the rounds before the divergence.
    """

    def __init__(self, algorithm: Any, failed: Any, t: int, not_finite: str = "") -> None:
        keys, mend = _blame_large_keys(algorithm, len(failed.elapsed))
        said = f"{algorithm.label} diverged in round {t + 1} {mend}"
        super().__init__(f"{algorithm.label}: {not_finite}" if not_finite and not keys else said)
        self.failed, self.t = failed, t
        self.folder: Path | None = None

    def __str__(self) -> str:
        kept = "the rounds before it are in" if self.t or self.failed.first else "see"
        return f"{self.args[0]}; {kept} {self.folder}" if self.folder else str(self.args[0])


def blame_keys(algorithm: Any, rounds: int) -> str:
    """Names the keys that made a method diverge, as the end of a sentence: ``with algo.eta=5.0: lower it``.

    The step theta <- theta - step (gradient + 2 lam theta) overshoots because of the regulariser if step lam is above
    1, and because of the loss if step is above about 1. DSG, FDSKL, FD-SVRG and CTA have the same limits with other
    constants. DKLA, COKE and SecureBoost minimise exactly and work with any lam.

    Parameters
    ----------
    algorithm : Algorithm
    rounds : int
        Number T of rounds, because eta=null means 1/sqrt(T).
    """
    return _blame_large_keys(algorithm, rounds)[1]


def _blame_large_keys(algorithm: Any, rounds: int) -> tuple[bool, str]:
    """Whether any key is unusually large, and the message of `blame_keys`."""
    # The step size, and other factors that make a step large
    algorithm = innermost_method(algorithm)  # conditions have no step size
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    size = next((name for name in STEP_SIZES if name in values), None)
    if size is None:
        return False, "see algo"
    step = values[size] if values[size] is not None else 1 / np.sqrt(rounds)
    others = [name for name in OTHER_STEPS if (values.get(name) or 0) > LARGEST_STEP]
    usual = min(step, 1.0) * min(values.get("step_factor", 1.0), LARGEST_STEP)
    # Name the keys that are unusually large, otherwise the step size
    if usual * values.get("lam", 0.0) > 1:  # too large even with a smaller step
        others.append("lam")
    keys, beyond = others if others and step <= 1 else [size, *others], bool(others) or step > LARGEST_STEP
    usual_step = "theory's" if size == "step_size" else "1/sqrt(T)"
    told = [f"algo.{key}={f'null, which is {usual_step}' if values[key] is None else values[key]}" for key in keys]
    if keys == ["lam"]:
        return beyond, f"with {told[0]}: lower it, for steps of {usual:.3g} to less than {1 / usual:.3g}"
    return beyond, f"with {' and '.join(told)}: lower {'it' if len(keys) == 1 else 'them'}"


def worse_than_zero(targets: NDArray[Any], mse: NDArray[np.float64]) -> str | None:
    """A message if errors are finite but larger than those of any method that learns; else None.

    Parameters
    ----------
    targets : array
    mse : (R,)
        Final mean squared error of each replicate, over these samples or part of them.
    """
    # Far above the error of predicting 0, which no learning method exceeds
    zero = float(by_block(lambda some: np.square(some, dtype=np.float64), targets).mean())
    worse = int((mse > WORSE * zero).sum())
    if not worse:
        return None
    return (
        f"the mean squared error of {worse} of {len(mse)} replicates, {np.max(mse):.3g} at worst, is more than "
        f"{WORSE:g} times the {zero:.3g} of predicting 0 for every sample"
    )
