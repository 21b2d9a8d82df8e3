"""Bandwidths that suit the data: a dictionary around the median distance of some samples."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.kernels.dictionary import NARROWEST, WIDEST, Dictionary

METRICS = {"rbf": "euclidean", "laplacian": "cityblock"}


@dataclass(frozen=True)
class AroundMedian(Dictionary):
    """A dictionary whose bandwidths are given in median distances between samples.

    Of a stream these are the first samples, as all clients see them round by round; of a batch some that are learned
    from, as many of every client's as its share is. Only their features are looked at. Bandwidths are s, whatever the
    family, the distance is that of the family's exponent, and equal samples do not count.

    In a federation the clients would have to agree on the median; a run books no messages for it.

    Parameters
    ----------
    smallest, largest : float
        Ends of the grid of bandwidths, times the median distance.
    samples : int
        How many are looked at.
    """

    smallest: float = 0.1
    largest: float = 10.0
    bandwidth_convention: str = "deviation"
    samples: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.family in METRICS, "family", self.family, f"one of {', '.join(METRICS)}")
        require(self.laplacians == 0, "laplacians", self.laplacians, "0: distances of the two families differ")
        convention = self.bandwidth_convention
        require(convention == "deviation", "bandwidth_convention", convention, "deviation: bandwidths are distances")
        require(2 <= self.samples <= 5000, "samples", self.samples, "an integer from 2 to 5000")

    def fitted(self, x: NDArray[np.floating]) -> Dictionary:
        """The dictionary for samples such as these, (n, d); where all are alike, any bandwidth does, and 1 is taken."""
        from scipy.spatial.distance import pdist

        distances = pdist(x.astype(np.float64), METRICS[self.family])
        apart = distances[distances > 0]
        found = float(np.median(apart)) if len(apart) else 1.0
        median = float(np.clip(found, NARROWEST / self.smallest, WIDEST / self.largest))
        same = {field.name: getattr(self, field.name) for field in fields(Dictionary)}
        ends = {"smallest": max(median * self.smallest, NARROWEST), "largest": min(median * self.largest, WIDEST)}
        return Dictionary(**same | ends)
