"""Speedup by ranks: latency and bandwidth between them, seconds per round of POF-MKL, and a model for many more.

    export OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
    mpirun -n 1 python scripts/bench_mpi.py
    mpirun -n 2 python scripts/bench_mpi.py

A figure is the minimum over several rounds, to reduce the influence of other work on the machine.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from time import perf_counter, process_time

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from fkl.config import load
from fkl.config.compose import compose
from fkl.engines.experiment import make_world
from fkl.engines.mpi import OnRanks, Ranks, hush, started
from fkl.kernels.client_tiles import CLIENT_TILE
from fkl.runs.prepare import prepare
from fkl.tasks.run_samples import without_output

ROUNDS, TIMES = 12, 2000
KERNELS, FEATURES = 51, 10
NUMBERS = KERNELS * (2 * FEATURES + 1)
"""Sums in a round of POF-MKL: gradients, and the weight of theta."""
LARGE = 2**20
MANY, RANKS = 1_000_000, (1, 2, 10, 100, 1000)


def least(ranks: Ranks, work: Callable[[], object], times: int) -> float:
    """Seconds of the slowest rank, the minimum over this many repetitions."""
    spent = []
    for _ in range(times):
        ranks.all_say(None)
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return min(max(both) for both in zip(*ranks.all_say(spent), strict=True))


def one_way(comm: MPI.Comm, numbers: int, times: int) -> float:
    """Seconds of a message with this many doubles from rank 0 to rank 1: half of a round trip, median."""
    message, spent = np.zeros(numbers), []
    for _ in range(times):
        start = perf_counter()
        if comm.rank == 0:
            comm.Send(message, 1)
            comm.Recv(message, 1)
        elif comm.rank == 1:
            comm.Recv(message, 0)
            comm.Send(message, 0)
        spent.append((perf_counter() - start) / 2)
    return float(np.median(spent))


def seconds_a_round(ranks: Ranks, clients: int) -> tuple[float, float]:
    """Seconds of one replicate, without the judge, and processor seconds without the exchange, in which ranks spin."""
    words = ("algo=pof_mkl", "dataset=synthetic", f"dataset.rows={clients * ROUNDS}", "dataset.dimension=10")
    words += (f"partition.clients={clients}", f"partition.rounds={ROUNDS}", f"kernels.D={FEATURES}", "engine=mpi")
    with without_output():
        whole = prepare(load(compose(*words, "replicates=1")))
    experiment = OnRanks(ranks).own_part(whole, lambda: whole)
    assert experiment is not None
    world, _ = make_world(experiment, (0,))
    state, t = experiment.algorithm.init(world), iter(range(ROUNDS))
    added, exchanged, worked = ranks.added, [0.0], []

    def timed(terms: Sequence[NDArray[np.floating]]) -> list[NDArray[np.floating]]:
        start = process_time()
        found = added(terms)
        exchanged[0] += process_time() - start
        return found

    def play() -> None:
        nonlocal state
        now, start, before = next(t), process_time(), exchanged[0]
        world.channel.open_round(now, world.problem.present[now])
        state, _ = experiment.algorithm.step(world, state, now)
        worked.append(process_time() - start - (exchanged[0] - before))

    ranks.added = timed  # type: ignore[method-assign]
    wall = least(ranks, play, ROUNDS)
    ranks.added = added  # type: ignore[method-assign]
    return wall, min(max(both) for both in zip(*ranks.all_say(worked), strict=True))


def adding(numbers: int) -> float:
    """Seconds to add one tile's sums to the earlier ones."""
    rows, total = np.ones((64, numbers)), np.zeros(numbers)
    spent = []
    for _ in range(50):
        start = perf_counter()
        for row in rows:
            total += row
        spent.append((perf_counter() - start) / len(rows))
    return min(spent)


def _tell(what: str, wall: float, busy: float) -> None:
    print(f"{what} {1e3 * wall:9.2f} ms a round, {1e3 * busy:9.2f} ms of the processor")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16384, help="of the strong scaling; of the weak one, a rank")
    clients = parser.parse_args().clients
    hush()
    ranks, comm = started(), MPI.COMM_WORLD
    print(f"{ranks.size} ranks, {os.cpu_count()} cores under a load of {os.getloadavg()[0]:.1f}, {MPI.get_vendor()}")
    print(f"POF-MKL, N={KERNELS}, D={FEATURES}, d=10, R=1")
    strong = seconds_a_round(ranks, clients)
    _tell(f"strong: {clients} clients in all", *strong)
    weak = seconds_a_round(ranks, clients * ranks.size) if ranks.size > 1 else strong
    _tell(f"weak:   {clients} clients a rank", *weak)
    if ranks.size > 1:
        latency, large = one_way(comm, 1, TIMES), one_way(comm, LARGE, 20)
        rate = 8 * LARGE / (large - latency)
        terms = [np.ones((1, NUMBERS))]
        summed = least(ranks, lambda: ranks.added(terms), TIMES)
        print(f"latency {1e6 * latency:.1f} us, bandwidth {rate / 1e9:.2f} GB/s, a sum {1e6 * summed:.1f} us")
    else:
        print(f"to add the sums of a tile to those before: {1e6 * adding(NUMBERS):.2f} us")
        print(f"model: {MANY} clients; latency 2 us and 10 GB/s, or 50 us and 1 GB/s, between any two ranks")
        for count in RANKS:
            told = []
            for latency, rate in ((2e-6, 1e10), (5e-5, 1e9)):
                hop = latency + 8 * NUMBERS / rate
                hops = count - 1 + np.ceil(np.log2(count))
                passing = hops * hop + (MANY / CLIENT_TILE * adding(NUMBERS) if count > 1 else 0)
                told.append(strong[1] / clients * MANY / count + passing)
            print(f"  {count:5} ranks {1e3 * told[0]:10.1f} ms {1e3 * told[1]:10.1f} ms a round")


if __name__ == "__main__":
    main()
