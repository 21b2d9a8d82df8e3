"""Everything that decides a run's numbers, and the world of some of its replicates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fkl.basics.random_streams import Role, Streams
from fkl.contract.world import Algorithm, World
from fkl.engines.base import Engine, Numba
from fkl.kernels import Dictionary
from fkl.network import Network, Topology
from fkl.network.links import Links
from fkl.tasks import Task, task_of
from fkl.tasks.task import Redraw
from fkl.wire import Ledger


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's numbers.

    Parameters
    ----------
    problem, topology
        Those of replicate 0 if each replicate draws its own; with all clients if participation differs by replicate.
    redraw : callable or None
        As in `fkl.tasks.task.Task`.
    links : Links or None
        Links of the topology that are up in each iteration; None for all.
    engine : Engine
        Engine of the rounds.
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
        """The problem's kind."""
        return task_of(self.algorithm)(self.problem, self.redraw)


def make_world(experiment: Experiment, replicates: tuple[int, ...]) -> tuple[World, Ledger]:
    """World of some replicates of an experiment, and the ledger behind its channel."""
    problem, network, precision = experiment.problem, experiment.network, experiment.precision
    topology, streams = experiment.topology, Streams(experiment.seed, replicates)
    if experiment.redraw is not None:
        [replicate] = replicates
        problem, drawn = experiment.redraw(replicate)
        topology = topology if drawn is None else drawn
    directions = experiment.task.directions(topology)
    if network.loss > 0:
        directions = (*directions, "lost")
    engine = experiment.engine
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, network.cost, directions)
    times = None
    if getattr(network, "timed", False):  # a user's network class may not have this field
        own = streams if experiment.redraw is not None else Streams(experiment.seed, (0,))
        times = network.times(problem.rounds, problem.clients, own.generators(Role.TIMES)[0])
        if topology is not None:  # on a graph, late agents miss the iteration
            times = times.among(problem.present)
            problem = problem.thinned(problem.present & times.in_time)
    label = experiment.algorithm.label
    passing = network, ledger, np.dtype(precision), label, streams, experiment.links, times
    channel = engine.channel(problem, *passing)
    known = problem, experiment.dictionary, channel, streams, precision, topology
    judged = experiment.metrics, experiment.intervals
    return World(*known, engine.bank, *judged, engine.exchange), ledger
