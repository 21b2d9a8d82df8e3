"""How long clients take to answer, each its own time, and how long the server waits for them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """Seconds of one replicate's clients.

    Parameters
    ----------
    compute : (T, K)
        From having heard the server to sending the answer, in each exchange of a round.
    latency : (K,)
        Of a message down or up, whatever its length; the kinds of a message travel together.
    bandwidth : (K,)
        Bytes a second of a client's own link; infinite where bytes take no time.
    deadline : float
        Seconds after which the server goes on without whoever has not answered.
    """

    compute: Array
    latency: Array
    bandwidth: Array
    deadline: float

    def answer(self, t: int, down: NDArray[np.int64], up: NDArray[np.int64]) -> Array:
        """Seconds (..., K) after which the answers are there, from bytes of both messages, (..., K)."""
        links = (down > 0) * self.latency + down / self.bandwidth + (up > 0) * self.latency + up / self.bandwidth
        return self.compute[t] + links

    def waited(self, answer: Array, present: NDArray[np.bool_]) -> Array:
        """Seconds (...) that the server waits: for the slowest of those that are present, and no longer than it may."""
        slowest: Array = np.where(present, answer, 0.0).max(axis=-1)
        return np.minimum(slowest, self.deadline)


def around_one(spread: float, normal: Array) -> Array:
    """Lognormal factors of mean 1, `spread` the standard deviation of their logarithm, from standard normal numbers."""
    return np.exp(spread * normal - spread**2 / 2)
