"""k-means without others: every client keeps centres of its own, and nothing is sent."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from clustering.centres import Array, Clustering, assigned
from clustering_task import Assigned

from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common


@dataclass
class Client:
    """Its centres, (R, K, C, P)."""

    centres: Array


@dataclass(frozen=True)
class Alone(Clustering):
    """A centre moves by a client's own sample. Parameters: see `Clustering`."""

    label: ClassVar[str] = "k-means alone"

    def start(self, common: Common, clients: int) -> tuple[None, Client]:
        """Every client has the same first centres."""
        return None, Client(np.repeat(self.first_centres(common)[:, None], clients, axis=1))

    def broadcast(self, common: Common, server: None, turn: Turn) -> None:
        """Nothing."""

    def client(
        self, common: Common, client: Client, down: None, samples: Samples, turn: Turn
    ) -> tuple[Client, None, Assigned]:
        """Find the nearest centre, and move it."""
        outcome, away, chosen = assigned(common, samples.x, client.centres)
        step = self.eta * (chosen & samples.present[:, None])[..., None]
        return Client(client.centres + step * away), None, outcome

    def server(self, common: Common, server: None, up: None, share: Array, turn: Turn) -> None:
        """Nothing."""
