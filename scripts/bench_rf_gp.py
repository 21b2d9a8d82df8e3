"""How much memory a replicate of RF-GP needs, and its time beside the floor of its own products, in this one process.

`fkl.bench.rf_gp` says what the floor is. Beside clocks on the wall, which others on the machine slow down, it tells
processor time of all threads.
"""

import time
from collections.abc import Callable

import numpy as np

from fkl.bench.rf_gp import cases, make_experiment
from fkl.engines.memory_fit import rehearse
from fkl.memory import shown_bytes


def main() -> None:
    """Print memory, the times and their ratio."""
    experiment = make_experiment()
    kept, peak = rehearse(experiment)
    least = experiment.algorithm.needs(experiment.dictionary, experiment.problem)
    print(f"a replicate takes at least {shown_bytes(least)}; keeps {shown_bytes(kept)}, most {shown_bytes(peak)}")
    [case] = cases()
    case.ours()
    figures = []
    for repeat in range(case.repeats):
        floor, of_floor = clocks(case.floor)
        ours, of_ours = clocks(case.ours)
        figures.append((ours / floor, of_ours / of_floor))
        print(f"{repeat + 1}: floor {floor:.2f} s, RF-GP {ours:.2f} s", flush=True)
    print(f"RF-GP, {case.shape}: median of {case.repeats}")
    wall, processor = np.median(figures, axis=0)
    print(f"  time / floor of its products:           {wall:.2f} (goal: at most {case.goal})")
    print(f"  processor time / that of its products:  {processor:.2f}")


def clocks(work: Callable[[], float]) -> tuple[float, float]:
    """The seconds that a timed call tells, and processor time of all threads meanwhile."""
    begin = time.process_time()
    told = work()
    return told, time.process_time() - begin


if __name__ == "__main__":
    main()
