"""Rounds of engine=jax on the device that JAX finds, a GPU or, with fewer clients, this machine's CPU.

The floor is measured in the same process on the same device: as many sines and cosines as a round has angles, round
after round, in one compiled scan that stores none of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.case import Case
from benchmarks.floor import seconds
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.config.loading import load_engine
from fkl.data.problem import Problem
from fkl.engines.base import Experiment, make_world
from fkl.engines.jax import device_name
from fkl.engines.jax_world import Scan
from fkl.kernels import Dictionary
from fkl.kernels.jax_bank import sine_and_cosine
from fkl.network import Network

N, D, DIMENSION = 51, 100, 5
FLOOR_ROUNDS = 8
ON_A_GPU = ((240, 20, 500), (1_000_000, 1, 100))
ON_A_CPU = ((240, 2, 40), (20_000, 1, 8))
"""Clients, replicates and rounds."""


def cases() -> list[Case]:
    """The number of clients of the air quality data, and a large number."""
    shapes = ON_A_CPU if jax.devices()[0].platform == "cpu" else ON_A_GPU
    return [case(*shape) for shape in shapes]


def case(K: int, R: int, T: int) -> Case:
    """A round of this many clients and replicates, after drawing random numbers and compiling the scan."""
    generator = np.random.default_rng(0)
    x, there = generator.random((T, K, DIMENSION), np.float32) / np.sqrt(DIMENSION), np.ones((T, K), np.bool_)
    problem = Problem(x, generator.random((T, K)), there, np.zeros(K, np.int64))
    method: Any = PofMkl()
    experiment = Experiment(
        problem,
        Dictionary(N=N, bandwidth_convention="variance", D=D),
        Network(),
        method,
        0,
        R,
        "float32",
        engine=load_engine("jax"),
    )
    world, _ = make_world(experiment, tuple(range(R)))
    with precise():
        judge: Any = experiment.task.judge(world, experiment.algorithm)
        state = experiment.algorithm.init(world)
        scan = Scan(experiment.algorithm, world, state, judge)
        given = jax.device_put(scan.scan_input(range(min(scan.length, T)), scan.length))

    def round_seconds() -> float:
        def play() -> None:
            nonlocal state
            state, _ = scan.run_program(state, given)

        with precise():
            return seconds(play) / scan.length

    own = sines_and_cosines(K * R * N * D, lambda angle: sine_and_cosine(angle, np.dtype(np.float32)))
    xla = sines_and_cosines(K * R * N * D, lambda angle: (jnp.sin(angle), jnp.cos(angle)))
    shape = f"a round, K={K} N={N} D={D} R={R}, {device_name()}"
    return Case("POF-MKL on jax", shape, "sines and cosines on the device", round_seconds, lambda: min(own(), xla()))


@contextmanager
def precise() -> Iterator[None]:
    """Float64 for float64 arrays, and products in full precision on a GPU."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def sines_and_cosines(angles: int, both: Callable[[Any], tuple[Any, Any]]) -> Callable[[], float]:
    """Seconds per round for the sines and cosines of this many angles, without memory access."""

    def one(shift: Any, _: None) -> tuple[Any, None]:
        sine, cosine = both(jnp.arange(angles, dtype=jnp.float32) * 1e-6 + shift)
        return (sine + cosine).sum() * 1e-12, None

    played = jax.jit(lambda shift: lax.scan(one, shift, None, length=FLOOR_ROUNDS)[0])
    played(jnp.float32(0)).block_until_ready()
    return lambda: seconds(lambda: played(jnp.float32(0)).block_until_ready()) / FLOOR_ROUNDS
