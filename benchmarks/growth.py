"""`python -m benchmarks.growth`: how time and memory grow; docs/findings/bench.md has its table.

Each row changes one number over two decades. Time is processor time of all rounds in one thread, because other
processes change it least: the median of several runs. Memory is the peak of what a run allocates besides its data.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.floor import random_stream
from fkl.algorithms.decentralized.consensus import Dkla
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.basics.memory import peak_bytes
from fkl.data.problem import Batch, Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.engines.base import Experiment, make_world
from fkl.engines.rounds import before_first_round
from fkl.kernels import Dictionary
from fkl.kernels.threads import at_most
from fkl.network import Network
from fkl.network.topology import topology_of_graph
from fkl.screen.sheet import Sheet

STEPS = np.geomspace(1, 100, 5)
RUNS = 3
DEGREE = 4
HEADINGS = ("method", "number", "from", "to", "CPU time from, ms", "to, ms", "exponents of time", "theory",
            "exponents of memory", "theory")  # fmt: skip
ONE_KERNEL: dict[str, Any] = {"N": 1, "smallest": 1.0, "largest": 1.0, "bandwidth_convention": "deviation"}


def star(method: Any) -> Callable[..., Experiment]:
    """Experiments of a method with a server."""

    def made(K: int, N: int, D: int, T: int, R: int, d: int) -> Experiment:
        return Experiment(random_stream(T, K, d, 0.05), Dictionary(N=N, D=D), Network(), method, 0, R, "float32")

    return made


def on_a_graph(K: int, n: int, D: int, T: int, R: int, d: int) -> Experiment:
    """DKLA, with four neighbours and n samples an agent."""
    method: Any = Dkla(iterations=T)
    batch = Batch.from_problem(random_stream(n, K, d), T, method.test_share, None, np.random.default_rng(0))
    graph = topology_of_graph(nx.random_regular_graph(DEGREE, K, seed=0))
    return Experiment(batch, Dictionary(D=D, **ONE_KERNEL), Network(), method, 0, R, "float32", graph)


def in_parties(K: int, D: int, T: int, R: int, d: int) -> Experiment:
    """FDSKL of K workers, with T iterations of one row and D features."""
    stream, random = random_stream(2 * T, 1, d), np.random.default_rng(0)
    table = Table.of_one_site(stream.x[:, 0].astype(float), (stream.y[:, 0] > 0.5) * 1.0, tuple(map(str, range(d))))
    problem = FeatureGroups(K).split(table, random)
    method: Any = Fdskl(iterations=T, marks=1, batch=1, features=D)
    given = Vertical(problem.x, problem.y, problem.groups, problem.active, problem.test_share, method.rounds)
    return Experiment(given, Dictionary(**ONE_KERNEL), Network(), method, 0, R, "float32")


Number = tuple[int, str, str, dict[str, int]]
METHODS: dict[str, tuple[Callable[..., Experiment], dict[str, int], dict[str, Number]]] = {
    "POF-MKL": (
        star(PofMkl()),
        {"K": 240, "N": 51, "D": 100, "T": 20, "R": 1, "d": 14},
        {
            "K": (24, "1", "1", {}),
            "N": (5, "1", "1", {}),
            "D": (10, "1", "0 to 1", {}),
            "T": (5, "1", "0 to 1", {}),
            "R": (1, "1", "1", {}),
            "d": (4, "0 to 1", "0 to 1", {}),
        },
    ),
    "RF-GP": (
        star(RfGp()),
        {"K": 240, "N": 10, "D": 20, "T": 20, "R": 1, "d": 14},
        {
            "K": (24, "0 to 1", "0 to 1", {}),
            "N": (2, "1", "1", {}),
            "D": (2, "2 to 3", "1 to 2", {}),
            "T": (2, "1", "0 to 1", {}),
            "R": (1, "1", "1", {}),
            "d": (4, "0 to 1", "0 to 1", {}),
        },
    ),
    "DKLA": (
        on_a_graph,
        {"K": 10, "n": 100, "D": 50, "T": 100, "R": 1, "d": 14},
        {
            "K": (6, "1", "1", {}),
            "D": (5, "2", "2", {"n": 1500}),
            "T": (10, "1", "0 to 1", {}),
            "R": (1, "1", "1", {}),
            "d": (4, "0", "0 to 1", {}),
        },
    ),
    "FDSKL": (
        in_parties,
        {"K": 8, "D": 1, "T": 6000, "R": 1, "d": 20},
        {
            "K": (2, "0 to 1", "0 to 1", {"d": 200}),
            "D": (1, "1", "1", {}),
            "T": (600, "2", "1", {}),
            "R": (1, "1", "1", {}),
            "d": (8, "0 to 1", "0 to 1", {}),
        },
    ),
}
"""Experiments of a method, its usual sizes, and for each number the smallest, exponents of theory, and other sizes."""


def play(experiment: Experiment) -> float:
    """Seconds of the processor in all rounds of all replicates together, after the first state."""
    with at_most(1), np.errstate(all="ignore"):
        world, _ = make_world(experiment, tuple(range(experiment.replicates)))
        in_progress = before_first_round(experiment, world)
        start = time.process_time()
        for _ in experiment.engine.rounds(experiment.algorithm, world, in_progress):
            pass
        return time.process_time() - start


def exponents(values: list[int], costs: list[float]) -> str:
    """The slope of log cost over log value, in the first decade and in the second."""
    halves = [np.polyfit(np.log(values[part]), np.log(costs[part]), 1)[0] for part in (slice(3), slice(2, None))]
    return "{:.2f}, {:.2f}".format(*halves)


def main() -> None:
    """Print the table."""
    rows = []
    for name, (made, usual, numbers) in METHODS.items():
        play(made(**usual))  # compiles
        for letter, (smallest, of_time, of_memory, other) in numbers.items():
            values = [round(smallest * step) for step in STEPS]
            experiments = [made(**usual | other | {letter: value}) for value in values]
            turns = [[play(experiment) for experiment in experiments] for _ in range(RUNS)]
            seconds = np.median(turns, axis=0).tolist()
            memory = [float(peak_bytes(lambda one=one: play(one))) for one in experiments]  # type: ignore[misc]
            ends = f"{1000 * seconds[0]:.3g}", f"{1000 * seconds[-1]:.3g}"
            grown = exponents(values, seconds), of_time, exponents(values, memory), of_memory
            rows.append((name, letter, values[0], values[-1], *ends, *grown))
            print(*rows[-1], file=sys.stderr, flush=True)
        print(f"{name}: {', '.join(f'{letter} = {value}' for letter, value in usual.items())}\n")
    Sheet.from_rows(HEADINGS, rows).print_sheet("markdown")


if __name__ == "__main__":
    main()
