"""Raker and OMKL-GF on the shape of airfoil's data.

Their floor: the projection of every sample on the frequencies of all kernels (BLAS), and one sine and one cosine of
every projection (the compiled kernel on blocks that stay in the cache), with the same threads; for Raker, whose kernels
all learn from every sample, also each one's theta'z, |theta|^2 and step along z. OMKL-GF predicts only with the
features of its chosen kernels, but learns with those of all kernels that its feedback graph reveals.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.floor import parts_seconds, random_stream, replicate_bytes, run_seconds, sincos_seconds
from fkl.algorithms.online.learners import Raker
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.basics.random_streams import Streams
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.network import Network

T, DIMENSION, R = 1503, 5, 20
FEATURES = Dictionary(N=76, laplacians=25, bandwidth_convention="variance", D=50)


def cases() -> list[Case]:
    """Raker and OMKL-GF."""
    problem = random_stream(T, 1, DIMENSION)
    draws = FEATURES.bank(DIMENSION, Streams(0, tuple(range(R))), "float32").draws
    flat = [np.ascontiguousarray(omega.transpose(0, 2, 1, 3)).reshape(R, DIMENSION, -1) for omega in draws]
    samples = [problem.x[:, 0].astype(omega.dtype) for omega in flat]

    def products(begin: int, end: int) -> None:
        for stream, rho in zip(samples, flat, strict=True):
            for r in range(begin, end):
                stream @ rho[r]

    def floor(width: int) -> float:
        multiply = parts_seconds(products, R)
        return multiply + sum(sincos_seconds(R * T * rho.shape[-1], rho.dtype.type, width, width > 0) for rho in flat)

    def case(method: Any, words: str, width: int) -> Case:
        experiment = Experiment(problem, FEATURES, Network(), method, 0, R, "float32")
        shape = f"T={T} d={DIMENSION} N={FEATURES.N} D={FEATURES.D} R={R}"
        work, memory = (partial(run_seconds, experiment), partial(floor, width)), partial(replicate_bytes, experiment)
        return Case(method.label, shape, words, *work, 1.5, memory=memory)

    words = "projections, sines, cosines of all"
    return [
        case(Raker(), f"{words}, products with theta, norms, steps", FEATURES.D),
        case(OmklGf(), words, 0),
    ]
