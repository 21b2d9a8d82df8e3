"""Rounds in this process: `engine=numba` by compiled loops, `engine=numpy` by the readable reference."""

from collections.abc import Callable, Generator
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

from fkl.config import Run
from fkl.contract.world import Algorithm, World
from fkl.engines.base import Engine
from fkl.engines.divergence import NotFiniteError


class Numba(Engine):
    """One process, by compiled loops."""

    name: ClassVar[str] = "numba"

    def can_play(self, run: Run) -> str | None:
        """It can play every run."""
        return None

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Play the remaining rounds, and pause after each."""
        problem, judge, seconds = world.problem, in_progress.judge, in_progress.seconds
        for t in range(in_progress.t, problem.rounds):
            world.channel.open_round(t, problem.present[t])
            start = perf_counter()
            in_progress.state, outcome = algorithm.step(world, in_progress.state, t)
            seconds += perf_counter() - start
            in_progress.elapsed[t] = seconds
            if not judge.enter(t, outcome):
                raise NotFiniteError
            del outcome  # before the next round needs the same memory
            in_progress.t = t + 1
            yield 1
        judge.close()

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> tuple[float, str] | None:
        """Estimate from the first rounds."""
        return sampled(replace(experiment, engine=self), threads), ""


class Numpy(Numba):
    """One process, only with numpy."""

    name: ClassVar[str] = "numpy"
    bank: ClassVar[str] = "numpy"

    def can_play(self, run: Run) -> str | None:
        """It cannot play methods that exist only compiled."""
        return "its loops exist only compiled" if getattr(run.algo, "compiled_only", False) else None
