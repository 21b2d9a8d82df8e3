"""The ledger: data sent by each party, per round, direction and client."""

from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fkl.basics.large_arrays import zeros
from fkl.network.settings import CostModel

Direction = Literal["uplink", "downlink", "broadcast", "link", "lost"]
WITH_A_SERVER: tuple[Direction, ...] = ("uplink", "downlink")
BETWEEN_PEERS: tuple[Direction, ...] = ("broadcast", "link")
"""One broadcast is one message on the link to each neighbour; lost messages count too."""
BETWEEN_PARTIES: tuple[Direction, ...] = ("link",)
ON_WIRES: tuple[Direction, ...] = ("uplink", "downlink", "link")
"""Directions that take simulated time, each message once."""


@dataclass
class Tally:
    """Messages, scalars and bytes of one direction.

    Parameters
    ----------
    by_round : (T, R, 3) int64
        Sum over all clients.
    by_client : (R, K, 3) int64
        Sum over all rounds.
    """

    by_round: NDArray[np.int64]
    by_client: NDArray[np.int64]


UNITS = ("messages", "scalars", "bytes")


class Ledger:
    """Counts of everything that passed a `Channel`, in messages, scalars and bytes.

    Parameters
    ----------
    rounds, replicates, clients : int
    cost : CostModel or None
        If given, `seconds` (T, R) has the simulated communication time of each round.
    directions : tuple of str
        Directions that are counted.
    """

    def __init__(
        self,
        rounds: int,
        replicates: int,
        clients: int,
        cost: CostModel | None = None,
        directions: tuple[Direction, ...] = WITH_A_SERVER,
    ) -> None:
        shapes = (rounds, replicates, 3), (replicates, clients, 3)
        self.tallies = {direction: Tally(*(zeros(shape, np.int64) for shape in shapes)) for direction in directions}
        self.shape = replicates, clients
        self.cost = cost
        self.seconds = np.zeros((rounds, replicates))
        self.kinds: dict[tuple[Direction, str], int] = {}

    def of_clients(self, some: slice) -> "Ledger":
        """The ledger for some of the clients; what they enter is in both."""
        part = copy(self)
        part.tallies = {name: Tally(tally.by_round, tally.by_client[:, some]) for name, tally in self.tallies.items()}
        part.shape = self.shape[0], next(iter(part.tallies.values())).by_client.shape[1]
        return part

    def enter(
        self,
        t: int,
        direction: Direction,
        kind: str,
        messages: NDArray[np.int64],
        scalars: NDArray[np.int64],
        size: NDArray[np.int64],
        timed: bool = True,
    ) -> None:
        """Book one kind of message of round t.

        Parameters
        ----------
        t : int
        direction : str
            One of the counted directions.
        kind : str
            Kind of message, for example ``"theta"``.
        messages, scalars, size : (R, K) int
            Counts of each client that sends, or that receives a downlink; size in bytes.
        timed : bool
            Whether to add the cost model's seconds for it.
        """
        counts = np.empty((*self.shape, len(UNITS)), np.int64)
        counts[..., 0], counts[..., 1], counts[..., 2] = messages, scalars, size
        tally = self.tallies[direction]
        tally.by_client += counts
        tally.by_round[t] += counts.sum(axis=1)
        self.kinds[direction, kind] = self.kinds.get((direction, kind), 0) + int(scalars.sum())
        if self.cost is not None and timed and direction in ON_WIRES:
            self.seconds[t] += self.cost.seconds(messages, size)
