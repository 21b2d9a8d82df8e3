"""A task of my own: clustering. A client says which centre its sample is nearest to, and is never told anything."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.contract.world import Algorithm, World
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import Panel, Probe, RecordColumns, other_values, require_shape

MOST_SAMPLES = 2000
"""Of those whose spread is computed, from all kernel values between them."""


@dataclass(frozen=True)
class Assigned:
    """What a round shows.

    Parameters
    ----------
    nearest : (R, K) int
        Number of the centre that each client's sample belongs to.
    distance : (R, K)
        Squared distance to it in the kernel's space, before anyone learned.
    """

    nearest: NDArray[np.int64]
    distance: NDArray[np.float64]


class ClusteringTask(StreamTask):
    """The samples come as a stream does; what is judged is another thing, and targets are of no use to anyone."""

    def judge(self, world: World, method: Algorithm) -> "Distortion":
        """How far samples are from their centres."""
        return Distortion(world.problem, len(world.streams.replicates))

    def hindsight_losses(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> float:
        """Mean squared distance of all samples from their mean in the kernel's space: the distortion of one centre."""
        x = self.problem.x[self.problem.present].astype(np.float64)
        x = x[:: -(-len(x) // MOST_SAMPLES)]
        values = dictionary.gram(0, x, x)
        return float(values.diagonal().mean() - values.mean())

    def columns(self, judge: Any, elapsed: NDArray[np.float64], beside: Any = None) -> RecordColumns:
        """Distortion so far, and that of one centre."""
        columns: RecordColumns = judge.columns()
        columns.summary["distortion_of_one"] = np.full(elapsed.shape[1], np.nan if beside is None else beside)
        return columns

    def panels(self) -> dict[str, Panel]:
        """One figure."""
        return {"distortion": Panel("mean squared distance so far", {"distortion": "from the nearest centre"})}

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Centres and distances, whose replicates and clients come first."""
        told = {"nearest": outcome.nearest, "distance": outcome.distance}
        for name, values in told.items():
            require_shape(name, values, len(world.streams.replicates), world.problem.clients)
        return told

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Other targets, which change nothing ever."""
        yield Probe(replace(self.problem, y=other_values(self.problem.y, numbers)), "other targets")


@dataclass
class Distortion:
    """Judges how far samples are from their centres; a dataclass, so that a checkpoint can hold it."""

    problem: Problem
    replicates: int
    distance: NDArray[np.float64] = field(init=False)
    by_round: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.distance = np.zeros((self.replicates, self.problem.clients))
        self.by_round = np.zeros((self.problem.rounds, self.replicates))

    def enter(self, t: int, outcome: Assigned) -> bool:
        """Book round t, and tell whether all is finite."""
        self.distance += self.problem.present[t] * outcome.distance
        self.by_round[t] = self.distance.sum(axis=1) / self.problem.present[: t + 1].sum()
        return bool(np.isfinite(self.by_round[t]).all())

    def close(self) -> None:
        """Nothing is left to do."""

    def columns(self) -> RecordColumns:
        """What the records tell."""
        rounds = self.problem.present.sum(axis=0)
        by_client = {"rounds": rounds, "distortion": self.distance / np.maximum(rounds, 1)}
        return RecordColumns({"distortion": self.by_round}, by_client, {})
