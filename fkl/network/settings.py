"""The settings `network`: limits and costs of links, and response times of clients or compute times of agents."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import Keys, key


@dataclass(frozen=True)
class Times:
    """Compute and link times of one replicate's clients, in seconds.

    Parameters
    ----------
    compute : (T, K)
        Seconds from receiving the server's message to sending the answer, in each exchange of a round; on a graph, in
        an iteration.
    latency : (K,)
        Latency of a message down or up, of any length; the kinds of a message are sent together.
    bandwidth : (K,)
        Bandwidth of a client's link in bytes per second; infinite if bytes take no time.
    deadline : float
        Seconds after which the server continues without clients that have not answered.
    """

    compute: Array
    latency: Array
    bandwidth: Array
    deadline: float

    def seconds_until_answers(self, t: int, down: NDArray[np.int64], up: NDArray[np.int64]) -> Array:
        """Seconds (..., K) until the answers arrive, from the bytes of both messages, (..., K)."""
        links = (down > 0) * self.latency + down / self.bandwidth + (up > 0) * self.latency + up / self.bandwidth
        return self.compute[t] + links

    def seconds_waited(self, answer: Array, present: NDArray[np.bool_]) -> Array:
        """Seconds (...) that the server waits: for the slowest present client, but not longer than the deadline."""
        slowest: Array = np.where(present, answer, 0.0).max(axis=-1)
        return np.minimum(slowest, self.deadline)

    def times_among_agents(self, present: NDArray[np.bool_]) -> "Times":
        """The times for agents on a graph, if only the `present` (T, K) ones compute."""
        return replace(self, compute=np.where(present, self.compute, 0.0))

    @property
    def in_time(self) -> NDArray[np.bool_]:
        """Whether each agent finishes computing before the deadline, (T, K)."""
        return self.compute <= self.deadline

    def iteration_seconds(self, t: int, messages: NDArray[np.int64], size: NDArray[np.int64]) -> Array:
        """Seconds (...) of an iteration of agents: compute time, then one message after another, (..., K) each."""
        sending: Array = (messages * self.latency + size / self.bandwidth).max(axis=-1)
        return np.minimum(self.compute[t].max(), self.deadline) + sending


def around_one(spread: float, normal: Array) -> Array:
    """Lognormal factors with mean 1 from standard normal numbers; their logarithm has standard deviation `spread`."""
    return np.exp(spread * normal - spread**2 / 2)


@dataclass(frozen=True)
class CostModel:
    """Simulated time of a synchronous round: kinds of message follow one another, each as slow as its slowest client.

    Parameters
    ----------
    latency_s : float
        Seconds per message, for any length.
    bandwidth_bytes_per_s : float
        Bytes per second of each client's own link.
    """

    latency_s: float
    bandwidth_bytes_per_s: float

    def seconds(self, messages: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds (R,) for one kind of message, from numbers of messages and bytes (R, K)."""
        return (messages * self.latency_s + size / self.bandwidth_bytes_per_s).max(axis=-1)


MOST_SPREAD = 5
"""Largest spread of logarithms: with it, one client in twenty is 20,000 times as slow as the median."""


@dataclass(frozen=True)
class Network(Keys):
    """Limits and costs of the links between server and clients, or between agents on a graph."""

    uplink_budget: int | None = key(
        None,
        "Maximum number of scalars that a client may send in a round; None for no limit. A broadcast to all "
        "neighbours counts once.",
        min=1,
        must="a number of scalars >= 1, or null",
    )
    loss: float = key(
        0.0,
        "Probability that a message between two agents is lost; neither agent is notified.",
        min=0,
        below=1,
    )
    latency_s: float | None = key(
        None,
        "If both are given, the run records simulated communication seconds.",
        min=0,
        must="seconds >= 0, or null",
    )
    bandwidth_bytes_per_s: float | None = key(
        None,
        "If both are given, the run records simulated communication seconds.",
        above=0,
        must="bytes a second > 0, or null",
    )
    compute_s: float | None = key(
        None,
        "Mean compute seconds of a client in each exchange of a round, which simulated seconds then include; None "
        "for no compute time.",
        above=0,
        must="seconds > 0, or null",
    )
    compute_spread: float = key(
        0.0,
        "Spread between clients: standard deviation of the logarithm of a client's own mean, lognormal around "
        "`compute_s`. Every replicate draws its own times.",
        min=0,
        max=MOST_SPREAD,
    )
    compute_jitter: float = key(
        0.0,
        "Spread between rounds: standard deviation of the logarithm of a round's seconds around the client's mean.",
        min=0,
        max=MOST_SPREAD,
    )
    link_spread: float = key(
        0.0,
        "Spread between links: standard deviation of the logarithm of a client's latency, and of its bandwidth.",
        min=0,
        max=MOST_SPREAD,
    )
    deadline_s: float | None = key(
        None,
        "Seconds after which the server continues with the mean of the answers that arrived. A late client "
        "has predicted, but its bytes are wasted. On a graph, seconds after which an agent that still computes "
        "misses the iteration. None to wait for all.",
        above=0,
        must="seconds > 0, or null",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        latency, compute, deadline = self.latency_s, self.compute_s, self.deadline_s
        both = (latency is None) == (self.bandwidth_bytes_per_s is None)
        require(both, "latency_s", latency, "given together with bandwidth_bytes_per_s, or both null")
        for name in ("compute_spread", "compute_jitter", "link_spread"):
            needs = "latency_s" if name == "link_spread" else "compute_s"
            there = getattr(self, needs) is not None or getattr(self, name) == 0
            require(there, name, getattr(self, name), f"0 without {needs}")
        times = deadline is None or latency is not None or compute is not None
        require(times, "deadline_s", deadline, "null without compute_s or latency_s, because no message is ever late")

    @property
    def cost(self) -> CostModel | None:
        """The cost model if one is configured, else None; clients' times replace it."""
        if self.latency_s is None or self.bandwidth_bytes_per_s is None:
            return CostModel(0.0, np.inf) if self.timed else None
        return CostModel(self.latency_s, self.bandwidth_bytes_per_s)

    @property
    def timed(self) -> bool:
        """Whether clients have individual times, or a deadline."""
        return self.compute_s is not None or self.link_spread > 0 or self.deadline_s is not None

    def times(self, rounds: int, clients: int, generator: np.random.Generator) -> Times:
        """Draw one replicate's times; each key has its own random numbers, so no key changes the draws of another."""
        speed, slow, wide = generator.standard_normal((3, clients))
        compute = (self.compute_s or 0.0) * around_one(self.compute_spread, speed)
        jitter = around_one(self.compute_jitter, generator.standard_normal((rounds, clients)))
        latency = (self.latency_s or 0.0) * around_one(self.link_spread, slow)
        bandwidth = (self.bandwidth_bytes_per_s or np.inf) * around_one(self.link_spread, wide)
        return Times(compute * jitter, latency, bandwidth, np.inf if self.deadline_s is None else self.deadline_s)
