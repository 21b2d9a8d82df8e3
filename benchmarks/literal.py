"""Time of literal transcriptions of the papers relative to fkl: the speedup by arrays and compiled loops.

    PYTHONPATH=tests python -m benchmarks.literal

Each case runs in turn with its transcription in tests/literal, in this one process. A transcription
plays a few rounds of one replicate, and the time is scaled up. Figures are medians of several turns.
"""

from collections.abc import Callable, Iterator

import numpy as np
from literal import decentralized, omkl_gf, pof_mkl, raker
from literal.common import Data, frequencies

from benchmarks import coke, graph_omkl
from benchmarks import pof_mkl as bench_pof_mkl
from benchmarks.case import Case
from benchmarks.floor import random_stream, seconds
from fkl.algorithms.decentralized.consensus import Dkla
from fkl.basics.random_streams import Role, Streams
from fkl.engines.base import make_world
from fkl.screen.sheet import Sheet

Timed = tuple[Case, Callable[[], float]]
"""A case, and the estimated seconds of its complete transcription."""


def of_pof_mkl(rounds: int = 2) -> Iterator[Timed]:
    """Loops over clients and kernels, as in the paper."""
    K, T, R = bench_pof_mkl.K, bench_pof_mkl.T, bench_pof_mkl.R
    problem, method = random_stream(T, K, bench_pof_mkl.DIMENSION), bench_pof_mkl.ALGORITHM
    streams = Streams(0, tuple(range(R)))
    bank = bench_pof_mkl.DICTIONARY.bank(bench_pof_mkl.DIMENSION, streams, "float64")
    uniform = np.stack([streams.uniform(Role.SELECTION, t, K)[0] for t in range(rounds)])
    samples = problem.x[:rounds].astype(float), problem.y[:rounds], problem.present[:rounds]
    keys = {"eta": T**-0.5, "eta_k": T**-0.5, "lam": method.lam, "step_factor": method.step_factor}

    def play() -> None:
        pof_mkl.run(Data(*samples, bank.rho[0], bank.scale), uniform, M=method.M, xi=method.xi, **keys)

    [case] = bench_pof_mkl.cases()
    yield case, lambda: seconds(play) * R * T / rounds


def of_graph_omkl() -> Iterator[Timed]:
    """Loops over kernels, one sample after another."""
    T, R = graph_omkl.T, graph_omkl.R
    problem = random_stream(T, 1, graph_omkl.DIMENSION)
    x, y = problem.x[:, 0].astype(float), problem.y[:, 0]
    streams = Streams(0, tuple(range(R)))
    bank = graph_omkl.FEATURES.bank(graph_omkl.DIMENSION, streams, "float64")
    omega = frequencies(bank.rho[0], bank.scale)
    draws = next(iter(streams.generators(Role.SELECTION)))
    graph_draws, node_draws = draws.random((300, 2, 10)), draws.random(T)
    of_raker, of_gf = graph_omkl.cases()
    yield of_raker, lambda: R * seconds(lambda: raker.run(x, y, omega, eta=0.1, lam=1e-3))
    yield of_gf, lambda: R * seconds(lambda: omkl_gf.run(x, y, omega, graph_draws, node_draws, eta=0.1, lam=1e-3))


def of_dkla(iterations: int = 5) -> Iterator[Timed]:
    """One agent after another, with a system of equations solved in every iteration."""
    world, _ = make_world(coke.make_experiment(Dkla()), (0,))
    x, y, client = world.problem.part(True)
    phi = world.bank.features(x)[0, 0].astype(float)
    mine = [client == k for k in range(coke.K)]
    samples = [phi[k] for k in mine], [y[k] for k in mine], [sorted(coke.GRAPH[k]) for k in range(coke.K)]
    whole = coke.T * coke.R / iterations
    yield coke.cases()[0], lambda: whole * seconds(lambda: decentralized.dkla(*samples, 1e-3, 1e-2, iterations))


def main() -> None:
    """Print the table."""
    rows = []
    for cases in (of_pof_mkl(), of_graph_omkl(), of_dkla()):
        for case, literal in cases:
            ours, slow = np.transpose([(once, literal()) for once, _ in case.turns()])
            figures = f"{np.median(ours):.3g}", f"{np.median(slow):.3g}", f"{np.median(slow / ours):.0f}"
            rows.append((case.name, case.shape, *figures))
            print(" ".join(rows[-1]), flush=True)
    headings = "method", "case", "fkl, s", "literal, s", "literal / fkl"
    Sheet.from_rows(headings, rows, numbers=range(2, 5)).print_sheet("markdown")


if __name__ == "__main__":
    main()
