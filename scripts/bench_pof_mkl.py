"""Time POF-MKL on the air shape beside the floor of its own arithmetic and beside literal transcriptions.

All run in this one process, in turn, several times; ratios are medians. `fkl.bench.pof_mkl` says what the floor is. Of
the two transcriptions in tests/literal one loops over clients and kernels as the paper is written, the other over
clients with arrays over kernels and features.
"""

from collections.abc import Callable

import numpy as np
from literal import pof_mkl

from fkl.bench.floor import seconds
from fkl.bench.pof_mkl import ALGORITHM, DICTIONARY, DIMENSION, K, R, T, case, make_problem
from fkl.streams import Role, Streams

LITERAL_ROUNDS = 2


def main() -> None:
    """Print the three times and the two ratios."""
    problem = make_problem()
    timed = case(problem)
    streams = Streams(0, tuple(range(R)))
    bank64 = DICTIONARY.bank(DIMENSION, streams, "float64")
    uniform = np.stack([streams.uniform(Role.SELECTION, t, K)[0] for t in range(LITERAL_ROUNDS)])
    rounds = slice(0, LITERAL_ROUNDS)
    rate = {"eta": T**-0.5, "eta_k": T**-0.5, "lam": ALGORITHM.lam, "step_factor": ALGORITHM.step_factor}

    def transcription(run: Callable[..., object]) -> float:
        """Seconds of all rounds and replicates, from the first rounds of one replicate."""
        samples = problem.x[rounds].astype(float), problem.y[rounds], problem.present[rounds]
        rest = bank64.rho[0], bank64.scale, uniform
        once = seconds(lambda: run(*samples, *rest, M=ALGORITHM.M, xi=ALGORITHM.xi, **rate))
        return once * R * T / LITERAL_ROUNDS

    figures = []
    for repeat, (ours, floor) in enumerate(timed.turns(), 1):
        literal, by_client = transcription(pof_mkl.run), transcription(pof_mkl.per_client)
        figures.append((ours / floor, literal / ours, by_client / ours))
        print(
            f"{repeat}: floor {floor:.2f} s, POF-MKL {ours:.2f} s, literal {literal:.0f} s, literal with arrays over "
            f"kernels {by_client:.0f} s (both from {LITERAL_ROUNDS} rounds)",
            flush=True,
        )
    to_floor, to_literal, to_by_client = np.median(figures, axis=0)
    print(f"POF-MKL, {timed.shape}: medians of {timed.repeats}")
    print(f"  time / floor of its arithmetic:                    {to_floor:.2f} (goal: at most {timed.goal})")
    print(f"  literal, per client and kernel / time:             {to_literal:.0f} (goal: at least 100)")
    print(f"  literal, per client, arrays over kernels / time:   {to_by_client:.0f}")


if __name__ == "__main__":
    main()
