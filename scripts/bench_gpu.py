"""How far rounds of engine=jax are from what their sines and cosines alone take, on the device that JAX finds.

    python scripts/bench_gpu.py

The floor is measured in the same process on the same device: as many sines and cosines as a round has angles, each
round's after the one before, in one compiled scan that keeps none of them. Without a GPU it says so, and a smaller
version runs on the CPU, whose figures say nothing of a GPU. A figure is the least of several.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.config import engine as engine_of
from fkl.data.problem import Problem
from fkl.engines.experiment import Experiment, make_world
from fkl.engines.jax import device_name
from fkl.engines.jax_world import Scan
from fkl.engines.rounds import simulate
from fkl.kernels import Dictionary
from fkl.kernels.jax_bank import sine_and_cosine
from fkl.network import Network

TIMES = 5
KERNELS, FEATURES, DIMENSION = 51, 100, 5


class Shape(NamedTuple):
    """Of a run of POF-MKL, float32."""

    clients: int
    replicates: int
    rounds: int

    @property
    def angles(self) -> int:
        """Of one round."""
        return self.clients * self.replicates * KERNELS * FEATURES


AIR, MANY = Shape(240, 20, 500), Shape(1_000_000, 1, 100)
SMALL, SOME = Shape(240, 2, 40), Shape(20_000, 1, 8)
"""The same on a CPU."""


def least(work: Callable[[], object], times: int = TIMES) -> float:
    """Seconds, the least of so many times after a first one."""
    work()
    spent = []
    for _ in range(times):
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return min(spent)


def floor(angles: int, both: Callable[[Any], tuple[Any, Any]], rounds: int = 8) -> float:
    """Seconds a round of sines and cosines of so many angles, which no memory is read or written for."""

    def one(shift: Any, _: None) -> tuple[Any, None]:
        sine, cosine = both(jnp.arange(angles, dtype=jnp.float32) * 1e-6 + shift)
        return (sine + cosine).sum() * 1e-12, None

    played = jax.jit(lambda shift: lax.scan(one, shift, None, length=rounds)[0])
    return least(lambda: played(jnp.float32(0)).block_until_ready()) / rounds


def experiment(shape: Shape, engine: str) -> Experiment:
    """POF-MKL on numbers that mean nothing."""
    T, K, generator = shape.rounds, shape.clients, np.random.default_rng(0)
    x = generator.random((T, K, DIMENSION), np.float32)
    there, site = np.ones((T, K), np.bool_), np.zeros(K, np.int64)
    problem = Problem(x / np.sqrt(DIMENSION), generator.random((T, K)), there, site)
    keys = Dictionary(N=KERNELS, D=FEATURES), Network(), PofMkl(), 0, shape.replicates, "float32"
    return Experiment(problem, *keys, engine=engine_of(engine))


def scanned_round(shape: Shape) -> float:
    """Seconds a round on the device, whose random numbers are drawn already."""
    of = experiment(shape, "jax")
    world, _ = make_world(of, tuple(range(shape.replicates)))
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        judge: Any = of.task.judge(world, of.algorithm)
        state = of.algorithm.init(world)
        scan = Scan(of.algorithm, world, state, judge)
        given = jax.device_put(scan.given(range(min(scan.length, shape.rounds)), scan.length))

        def play() -> None:
            nonlocal state
            state, _ = scan.play(state, given)

        return least(play) / scan.length


def whole_run(shape: Shape, engine: str) -> float:
    """Seconds of a whole run but for compiling, drawing and moving included."""
    (chunk,) = simulate(experiment(shape, engine), None, shape.replicates, id)
    return chunk.seconds


def report(name: str, shape: Shape, of_numba: int) -> None:
    """Print the figures of one shape; numba plays so many of its rounds."""
    own = floor(shape.angles, lambda angle: sine_and_cosine(angle, np.dtype(np.float32)))
    xla = floor(shape.angles, lambda angle: (jnp.sin(angle), jnp.cos(angle)))
    least_of_all, scanned = min(own, xla), scanned_round(shape)
    run = whole_run(shape, "jax")
    numba = whole_run(shape._replace(rounds=of_numba), "numba") / of_numba
    size = f"{shape.clients} clients, {shape.replicates} replicates, {shape.rounds} rounds"
    print(f"{name}: {size}, {shape.angles:,} angles a round")
    print(f"  sines and cosines of fkl alone  {1e3 * own:10.3f} ms a round, of XLA {1e3 * xla:.3f}: the floor")
    print(f"  a scanned round                 {1e3 * scanned:10.3f} ms, {scanned / least_of_all:.1f} times the floor")
    print(f"  the run, without compiling      {run:10.3f} s, {1e3 * run / shape.rounds:.3f} ms a round")
    faster = numba * shape.rounds / run
    print(f"  engine=numba on this machine    {1e3 * numba:10.3f} ms a round, {faster:.2f} times the run's")


def main() -> None:
    """Print what was found."""
    on_cpu = jax.devices()[0].platform == "cpu"
    print(f"device: {device_name()}, JAX {jax.__version__}")
    if on_cpu:
        print("no GPU here: a small version on the CPU, whose figures say nothing of one")
    for name, shape in (("as on air", SMALL if on_cpu else AIR), ("many clients", SOME if on_cpu else MANY)):
        report(name, shape, min(4, shape.rounds))


if __name__ == "__main__":
    main()
