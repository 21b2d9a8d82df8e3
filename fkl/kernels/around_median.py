"""Bandwidths that suit the data: a dictionary around the median distance of some samples."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.kernels.dictionary import NARROWEST, WIDEST, Dictionary

METRICS = {"rbf": "euclidean", "laplacian": "cityblock"}


@dataclass(frozen=True)
class AroundMedian(Dictionary):
    """A dictionary whose bandwidths are multiples of the median distance between samples.

    For a stream these are the first samples of all clients, round by round. For a batch they are some training samples,
    from every client in proportion to its share. Only their features are used. Bandwidths are s for every family, the
    distance is that in the family's exponent, and equal samples do not count.

    In a federation the clients would have to agree on the median; a run books no messages for it.

    Parameters
    ----------
    smallest, largest : float
        Ends of the grid of bandwidths, times the median distance.
    samples : int
        Number of samples used.
    """

    N: int = 21
    smallest: float = 0.1
    largest: float = 10.0
    samples: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.family in METRICS, "family", self.family, f"one of {', '.join(METRICS)}")
        require(self.laplacians == 0, "laplacians", self.laplacians, "0: distances of the two families differ")
        convention = self.bandwidth_convention
        require(convention == "deviation", "bandwidth_convention", convention, "deviation: bandwidths are distances")
        require(2 <= self.samples <= 5000, "samples", self.samples, "an integer from 2 to 5000")

    def fitted(self, x: NDArray[np.floating]) -> Dictionary:
        """The dictionary for such samples (n, d); if all are equal, any bandwidth is right, and 1 is used."""
        from scipy.spatial.distance import pdist

        distances = pdist(x.astype(np.float64), METRICS[self.family])
        apart = distances[distances > 0]
        found = float(np.median(apart)) if len(apart) else 1.0
        median = float(np.clip(found, NARROWEST / self.smallest, WIDEST / self.largest))
        same = {field.name: getattr(self, field.name) for field in fields(Dictionary)}
        ends = {"smallest": max(median * self.smallest, NARROWEST), "largest": min(median * self.largest, WIDEST)}
        return Dictionary(**same | ends)
