"""A run that ends after the first round in which a column of rounds.csv is below or above a number."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any, ClassVar

from fkl.basics.errors import FklError
from fkl.config.settings import STOP_WHEN
from fkl.contract.world import Algorithm, World
from fkl.engines.experiment import Experiment
from fkl.engines.local import Numba
from fkl.engines.rounds import Chunk
from fkl.results.tables import TIMING_COLUMNS, find_comparison, rounds_so_far


class Stopping(Numba):
    """An experiment's engine that stops after the round in which a condition holds.

    The condition depends only on data in the checkpoint, so a resumed run ends at the same round.

    Parameters
    ----------
    experiment : Experiment
        Experiment with the engine that plays its rounds, in this process.
    when : str
        Value of the key `stop_when`.
    cache : Path
        As in `fkl.results.tables.Tables`.
    """

    all_together: ClassVar[bool] = True

    def __init__(self, experiment: Experiment, when: str, cache: Path) -> None:
        self.name, self.bank = experiment.engine.name, experiment.engine.bank  # type: ignore[misc]
        self._experiment, self._when, self._cache = experiment, when, cache
        self._stopped_at = nan

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Play the remaining rounds until the condition holds, and pause after each."""
        self._stopped_at, judge = nan, in_progress.judge
        if not hasattr(judge, "end"):
            raise FklError(f"stop_when: {type(judge).__name__}, the judge of {algorithm.label}, has no end(t)")
        with closing(super().rounds(algorithm, world, in_progress, watched)) as playing:
            while not self._holds(in_progress):
                done = next(playing, None)
                if done is None:  # it was the last one
                    return
                yield done
        self._stopped_at = in_progress.t
        judge.end(in_progress.t)
        judge.close()

    def gathered(self, chunk: Chunk) -> Chunk:
        """The chunk without the rounds after the last one played."""
        stopped_at = self._stopped_at
        elapsed = chunk.elapsed if stopped_at != stopped_at else chunk.elapsed[: int(stopped_at)]
        return replace(chunk, elapsed=elapsed, stopped_at=stopped_at)

    def _holds(self, in_progress: Any) -> bool:
        if not in_progress.t:
            return False
        if getattr(in_progress.judge, "pending", None):  # these rounds are otherwise judged together
            in_progress.judge.judge_pending()
        chunk = Chunk(in_progress.judge, in_progress.ledger, in_progress.elapsed, 0)
        means = rounds_so_far(self._experiment, chunk, in_progress.t, self._comparison)
        means = means.drop(columns=[*TIMING_COLUMNS], errors="ignore")  # runs would not end at the same round
        column, sign, number = STOP_WHEN.fullmatch(self._when).groups()  # type: ignore[union-attr]
        if column not in means:
            raise FklError(f"stop_when={self._when}: must be of a column of rounds.csv: {', '.join(map(str, means))}")
        mean, bound = float(means[column].iloc[-1]), float(number)
        return mean < bound if sign == "<" else mean > bound

    @cached_property
    def _comparison(self) -> Any:
        return find_comparison(self._experiment, self._cache)
