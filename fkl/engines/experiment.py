"""Everything that decides a run's numbers, and the world that some of its replicates live in."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fkl.contract.world import Algorithm, World
from fkl.engines.mpi import OverRanks, Ranks, SlowestOfAll
from fkl.kernels import Dictionary
from fkl.network import Channel, Ledger, Network, Topology
from fkl.network.links import Links
from fkl.streams import Role, Streams
from fkl.tasks import Task, task_of
from fkl.tasks.task import Redraw


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's numbers.

    Parameters
    ----------
    problem, topology
        Where they are drawn anew, those of replicate 0; where other clients take part, of all that are there.
    redraw : callable or None
        As in `fkl.tasks.task.Task`.
    links : Links or None
        Which of the topology's are up in each iteration; None for all.
    ranks : Ranks or None
        The processes that play it together, of which this one has the clients of `problem`; None for one.
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
    engine: str = "numba"
    links: Links | None = None
    ranks: Ranks | None = None

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
    cost, ranks = network.cost, experiment.ranks
    if cost is not None and ranks is not None:
        cost = SlowestOfAll(cost.latency_s, cost.bandwidth_bytes_per_s, ranks)
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, cost, directions)
    times = None
    if getattr(network, "timed", False):  # a network of the user's own may know nothing of times
        own = streams if experiment.redraw is not None else Streams(experiment.seed, (0,))
        times = network.times(problem.rounds, problem.clients, own.generators(Role.TIMES)[0])
        if topology is not None:  # on a graph, who is late misses the iteration
            times = times.among(problem.present)
            problem = problem.thinned(problem.present & times.in_time)
    label = experiment.algorithm.label
    passing = network, ledger, np.dtype(precision), label, streams, experiment.links, times
    channel = Channel(*passing) if ranks is None else OverRanks(ranks, problem.numbers, problem.everyone, *passing)
    known = problem, experiment.dictionary, channel, streams, precision, topology, experiment.engine, ranks
    return World(*known), ledger
