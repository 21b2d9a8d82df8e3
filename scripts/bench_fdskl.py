"""Time FDSKL with one sample and one feature an iteration, a pass over a9a, beside the floor of its arithmetic.

`fkl.bench.fdskl` says what the floor is. The fast path takes features when they are drawn, at the rows still to come,
so its iterations become cheaper and the sum is the same; growth is therefore fitted over whole passes. Growth with the
number of workers is that of the ledger, and of the protocol played message by message.
"""

import resource
import time

import numpy as np
from numpy.typing import NDArray

from fkl.bench.fdskl import FEATURES, KERNEL, PASS, ROWS, WORKERS, cases, literal, make_problem, run_seconds
from fkl.bench.floor import THREADS
from fkl.conformance.isolated_vertical import play_apart
from fkl.conformance.party_process import PartyObject
from fkl.contract.world import Common
from fkl.data.vertical import Vertical
from fkl.streams import Streams

SHORTER = (4579, 9158, 18316, PASS)
DIMENSIONS = (16, 32, 64, 128, 256)
MANY_WORKERS = (2, 4, 8, 16, 32)
MESSAGES = (40, 80, 120, 160)
"""Iterations that are played message by message: what those from one to the next take is a difference."""
GOAL_SECONDS, GOAL_GIB = 60, 2


def fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Slope, value at 0 and R^2 of a straight line."""
    slope, at_zero = np.polyfit(x, y, 1)
    left = np.square(y - slope * x - at_zero).sum() / np.square(y - y.mean()).sum()
    return float(slope), float(at_zero), float(1 - left)


def whole_pass() -> None:
    """The goal: one pass over a9a's training rows."""
    [case] = cases()
    print(f"{case.shape}, one sample and one feature an iteration:")
    ratios = []
    for repeat, (ours, floor) in enumerate(case.turns(), 1):
        ratios.append(ours / floor)
        print(f"  {repeat}: {ours:.1f} s; floor {floor:.2f} s", flush=True)
    slow = run_seconds(make_problem(ROWS, FEATURES, WORKERS), literal(PASS), "float64")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  ours / floor {np.median(ratios):.2f}, median of {case.repeats}; float64 {slow:.1f} s")
    print(f"  goal: {GOAL_SECONDS} s and {GOAL_GIB} GiB; whole process at most {peak:.2f} GiB, {THREADS} threads")


def growth_with_iterations_and_features() -> None:
    """Time of an iteration against the features before it, T / 2 in the mean of a pass, and against d."""
    problem = make_problem(ROWS, FEATURES, WORKERS)
    times = [best_microseconds(problem, iterations) for iterations in SHORTER]
    slope, at_zero, fitted = fit(np.array(SHORTER) / 2, np.array(times))
    words = ", ".join(f"{each:.0f}" for each in times)
    print(
        f"T = {SHORTER}: {words} us an iteration; {at_zero:.0f} us + {1e3 * slope:.1f} ns for each t, R^2 {fitted:.4f}"
    )
    times = [best_microseconds(make_problem(ROWS, features, WORKERS, 8), PASS) for features in DIMENSIONS]
    slope, at_zero, fitted = fit(np.array(DIMENSIONS, float), np.array(times))
    words = ", ".join(f"{each:.0f}" for each in times)
    print(f"d = {DIMENSIONS}: {words} us an iteration; {at_zero:.0f} us + {slope:.2f} us for each d, R^2 {fitted:.4f}")


def best_microseconds(problem: Vertical, iterations: int) -> float:
    """Time of an iteration, the lower one of two passes."""
    return 1e6 / iterations * min(run_seconds(problem, literal(iterations)) for _ in range(2))


def message_by_message(iterations: int, common: Common, problem: Vertical) -> tuple[float, float]:
    """Seconds, and scalars that are sent."""
    method = literal(iterations)
    _, parties = method.dealt(common, problem)
    start = time.perf_counter()
    _, sent = play_apart(method, parties, PartyObject)
    return time.perf_counter() - start, float(sum(int(count[:, 1].sum()) for count in sent.values()))


def growth_with_workers() -> None:
    """Scalars of an iteration against t and q by the ledger, and time of the protocol message by message."""
    print(f"message by message, {MESSAGES[-1]} iterations, {FEATURES} features:")
    slopes, costs = [], []
    for workers in MANY_WORKERS:
        problem = make_problem(2000, FEATURES, workers)
        common = Common(KERNEL, problem.dimension, 1, Streams(0, (0,)), "float64")
        whole = np.array([(0.0, 0.0), *(message_by_message(iterations, common, problem) for iterations in MESSAGES)])
        ends = np.array([0, *MESSAGES])
        seconds, sent = np.diff(whole, axis=0).T / np.diff(ends)
        asked = (ends[1:] + ends[:-1] - 1) / 2
        (scalars, _, exact), (cost, _, fitted) = fit(asked, sent), fit(asked, 1e6 * seconds)
        print(
            f"  q = {workers}: {scalars:.2f} scalars for each t, R^2 {exact:.4f}; {cost:.0f} us for each t, "
            f"R^2 {fitted:.4f}",
            flush=True,
        )
        slopes.append(scalars)
        costs.append(cost)
    q = np.array(MANY_WORKERS, float)
    (scalars, _, exact), (cost, at_zero, fitted) = fit(q, np.array(slopes)), fit(q, np.array(costs))
    print(f"  scalars for each q t: {scalars:.2f}, R^2 {exact:.4f}")
    print(f"  time for each t: {at_zero:.0f} us + {cost:.1f} us for each q, R^2 {fitted:.4f}")


def main() -> None:
    """Print times, ratios and the growth with t, d and q."""
    whole_pass()
    growth_with_iterations_and_features()
    growth_with_workers()


if __name__ == "__main__":
    main()
