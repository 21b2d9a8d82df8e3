"""vM-KOFL, eM-KOFL, Fed-POE and FOMD-OMS on POF-MKL's shape, with fewer rounds.

Their floors have, as POF-MKL's, one projection of every sample on every frequency (BLAS), and one sine and one cosine
of every projection. They also have, with the same threads (`benchmarks.floor.round_seconds`):

- vM-KOFL: the inner products with theta, and the sums over clients of residual times features, for the gradients.
- eM-KOFL: a step of every client's own theta of every kernel, in memory: inner products, norms and steps.
- Fed-POE: both.
- FOMD-OMS: the inner products with theta. The judge asks for the losses of all kernels, although a client learns two.
"""

from functools import partial
from typing import Any

from benchmarks.case import Case
from benchmarks.floor import projections_seconds, random_stream, replicate_bytes, round_seconds, run_seconds
from fkl.algorithms.federated.descent import EmKofl, VmKofl
from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.algorithms.federated.fomd_oms import FomdOms
from fkl.basics.random_streams import Streams
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

K, T, N, D, R, DIMENSION = 240, 100, 51, 100, 4, 14
FLOOR_ROUNDS = 25


def cases() -> list[Case]:
    """A case for each method."""
    problem, dictionary = random_stream(T, K, DIMENSION), Dictionary(N=N, bandwidth_convention="variance", D=D)
    rho = dictionary.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").rho

    def floor(together: int, own: bool) -> float:
        multiply = projections_seconds(problem.x[:FLOOR_ROUNDS], rho)
        return (multiply + round_seconds(R * N, K, D, FLOOR_ROUNDS, together, own)) * T / FLOOR_ROUNDS

    def case(method: Any, words: str, together: int, own: bool) -> Case:
        experiment = Experiment(problem, dictionary, Network(), method, 0, R, "float32")
        shape = f"K={K} T={T} N={N} D={D} R={R} d={DIMENSION}"
        work = partial(run_seconds, experiment), partial(floor, together, own)
        return Case(method.label, shape, words, *work, 1.5, memory=partial(replicate_bytes, experiment))

    words = "projections, sines and cosines"
    return [
        case(VmKofl(), f"{words}, inner products, sums of gradients", 2, False),
        case(EmKofl(), f"{words}, steps of clients' own theta", 0, True),
        case(FedPoe(), f"{words}, inner products, sums of gradients, steps of own theta", 2, True),
        case(FomdOms(), f"{words}, inner products", 1, False),
    ]
