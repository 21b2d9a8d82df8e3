"""Response times of clients, or compute times of agents, and the deadline for them."""

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
        From receiving the server's message to sending the answer, in each exchange of a round; on a graph, of an
        iteration.
    latency : (K,)
        Latency of a message down or up, whatever its length; the kinds of a message travel together.
    bandwidth : (K,)
        Bytes per second of a client's link; infinite if bytes take no time.
    deadline : float
        Seconds after which the server continues without clients that have not answered.
    """

    compute: Array
    latency: Array
    bandwidth: Array
    deadline: float

    def answer(self, t: int, down: NDArray[np.int64], up: NDArray[np.int64]) -> Array:
        """Seconds (..., K) until the answers arrive, from the bytes of both messages, (..., K)."""
        links = (down > 0) * self.latency + down / self.bandwidth + (up > 0) * self.latency + up / self.bandwidth
        return self.compute[t] + links

    def waited(self, answer: Array, present: NDArray[np.bool_]) -> Array:
        """Seconds (...) that the server waits: for the slowest present client, but not longer than the deadline."""
        slowest: Array = np.where(present, answer, 0.0).max(axis=-1)
        return np.minimum(slowest, self.deadline)

    def among(self, present: NDArray[np.bool_]) -> "Times":
        """The same for agents on a graph, if only these, (T, K), compute."""
        return replace(self, compute=np.where(present, self.compute, 0.0))

    @property
    def in_time(self) -> NDArray[np.bool_]:
        """Whether each agent has finished computing before the deadline, (T, K)."""
        return self.compute <= self.deadline

    def iteration(self, t: int, messages: NDArray[np.int64], size: NDArray[np.int64]) -> Array:
        """Seconds (...) of an iteration of agents: computing, and then one message after another, (..., K) for each."""
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
        Seconds per message, whatever its length.
    bandwidth_bytes_per_s : float
        Bytes per second of each client's own link.
    """

    latency_s: float
    bandwidth_bytes_per_s: float

    def seconds(self, messages: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds (R,) for one kind of message, from messages and bytes of shape (R, K)."""
        return (messages * self.latency_s + size / self.bandwidth_bytes_per_s).max(axis=-1)
