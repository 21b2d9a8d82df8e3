"""How long clients take to answer, or agents to compute, each its own time, and how long they are waited for."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """Seconds of one replicate's clients.

    Parameters
    ----------
    compute : (T, K)
        From having heard the server to sending the answer, in each exchange of a round; on a graph, of an iteration.
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

    def among(self, present: NDArray[np.bool_]) -> "Times":
        """The same of agents on a graph of which only these, (T, K), compute."""
        return replace(self, compute=np.where(present, self.compute, 0.0))

    @property
    def in_time(self) -> NDArray[np.bool_]:
        """Which agents have computed before the deadline, (T, K)."""
        return self.compute <= self.deadline

    def iteration(self, t: int, messages: NDArray[np.int64], size: NDArray[np.int64]) -> Array:
        """Seconds (...) of an iteration of agents: computing, and then one message after another, (..., K) of each."""
        sending: Array = (messages * self.latency + size / self.bandwidth).max(axis=-1)
        return np.minimum(self.compute[t].max(), self.deadline) + sending


def around_one(spread: float, normal: Array) -> Array:
    """Lognormal factors of mean 1, `spread` the standard deviation of their logarithm, from standard normal numbers."""
    return np.exp(spread * normal - spread**2 / 2)


@dataclass(frozen=True)
class CostModel:
    """Simulated time of a synchronous round: one kind of message after another, each as slow as its slowest client.

    Parameters
    ----------
    latency_s : float
        Seconds a message takes whatever its length.
    bandwidth_bytes_per_s : float
        Bytes a second of each client's own link.
    """

    latency_s: float
    bandwidth_bytes_per_s: float

    def seconds(self, messages: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds (R,) that one kind of message takes, from messages and bytes of shape (R, K)."""
        return (messages * self.latency_s + size / self.bandwidth_bytes_per_s).max(axis=-1)
