"""Figure 4's sums by real processes on this machine, one per worker, with a pipe for every link."""

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from time import perf_counter

import numpy as np

from fkl.algorithms.vertical.sum_trees import STRUCTURES, Link, Tree
from fkl.basics.errors import FklError

Ends = dict[Link, Connection]


def measured(structure: str, workers: int, entries: int, repeats: int = 3) -> float:
    """Seconds until the first worker has the sum of all workers' arrays; the median of some sums.

    Parameters
    ----------
    structure : str
        One of `fkl.algorithms.vertical.sum_trees.STRUCTURES`.
    workers : int
        Number of processes; those that share a core wait for each other, which is not in the cost model.
    entries : int
        Entries of each array, with 8 bytes each.
    repeats : int
        Sums, one after another.

    Raises
    ------
    fkl.basics.errors.FklError
        If processes cannot be forked.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise FklError("real processes are timed only where they can be forked, as on Linux")
    context = multiprocessing.get_context("fork")
    plan = STRUCTURES[structure](list(range(workers)))
    pipes = {link: context.Pipe(duplex=False) for link in plan.links}
    barrier, answer = context.Barrier(workers), context.Pipe(duplex=False)
    processes = [
        context.Process(target=_work, args=(number, plan, pipes, barrier, answer[1], entries, repeats))
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    found: list[float] = answer[0].recv()
    for process in processes:
        process.join()
    return float(np.median(found))


def _work(
    number: int,
    plan: Tree,
    pipes: dict[Link, tuple[Connection, Connection]],
    barrier: Barrier,
    answer: Connection,
    entries: int,
    repeats: int,
) -> None:
    """One worker. It sends, or adds what it receives, according to the plan; the root reports the time."""
    own, came = np.full(entries, float(number)), np.empty(entries)
    seconds = []
    for _ in range(repeats):
        gathered = own.copy()
        barrier.wait()
        start = perf_counter()
        for sender, receiver in plan.links:
            if sender == number:
                pipes[sender, receiver][1].send_bytes(gathered.data)
            elif receiver == number:
                pipes[sender, receiver][0].recv_bytes_into(came)
                gathered += came
        seconds.append(perf_counter() - start)
    if number == plan.root:
        if gathered[0] != sum(range(len(plan.workers))):
            raise AssertionError("the sum is wrong")
        answer.send(seconds)
