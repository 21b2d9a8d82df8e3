"""What my clustering methods share: centres in the space of one kernel's random features."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from clustering_task import Assigned, ClusteringTask
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.basics.random_streams import Role
from fkl.contract.star import Federated
from fkl.contract.world import Common
from fkl.tasks.task import Task

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Clustering(Federated):
    """Online k-means: whichever centre is nearest to a sample moves towards it.

    Parameters
    ----------
    centres : int
    eta : float
        Share of the way that a centre moves.
    """

    task: ClassVar[type[Task]] = ClusteringTask

    centres: int = 5
    eta: float = 0.2

    def __post_init__(self) -> None:
        require(self.centres >= 1, "centres", self.centres, "an integer >= 1")
        require(0 < self.eta <= 1, "eta", self.eta, "a number > 0, at most 1")

    def first_centres(self, common: Common) -> Array:
        """Features of points in the unit ball that all parties draw alike, (R, C, P)."""
        require(common.bank.kernels == 1, "kernels.N", common.bank.kernels, "1: centres lie in one kernel's space")
        rng = common.streams.of_all_replicates(Role.NETWORK_WEIGHTS)
        points = rng.uniform(-1, 1, (self.centres, common.dimension)) / np.sqrt(common.dimension)
        return common.bank.features(points)[:, 0].astype(np.float64)


def assigned(common: Common, x: Array, centres: Array) -> tuple[Assigned, Array, NDArray[np.bool_]]:
    """What centres (R, K or 1, C, P) are nearest; the way to each of them; and which is the nearest, (R, K, C)."""
    away = common.bank.features(x)[:, 0, :, None] - centres
    distance = np.einsum("rkcp,rkcp->rkc", away, away)
    nearest = distance.argmin(axis=-1)
    return Assigned(nearest, distance.min(axis=-1)), away, nearest[..., None] == np.arange(distance.shape[-1])
