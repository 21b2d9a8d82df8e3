"""Federated k-means: the server keeps the centres, and clients say where theirs should move."""

from dataclasses import dataclass
from typing import ClassVar

from clustering.centres import Array, Clustering, assigned
from clustering_task import Assigned

from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Down:
    """All centres, (R, C, P)."""

    centres: SameForAll


@dataclass(frozen=True)
class Up:
    """The way from its centre to a client's sample, (R, K, C, P), of which one a client travels."""

    way: PerClient


@dataclass
class Server:
    """The centres, (R, C, P)."""

    centres: Array


@dataclass(frozen=True)
class KMeans(Clustering):
    """A centre moves by the mean of what clients tell. Parameters: see `Clustering`."""

    label: ClassVar[str] = "k-means"

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """The server has the first centres; clients hold nothing."""
        return Server(self.first_centres(common)), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """All centres to all clients."""
        return Down(SameForAll(server.centres))

    def client(
        self, common: Common, client: None, down: Down, samples: Samples, turn: Turn
    ) -> tuple[None, Up, Assigned]:
        """Find the nearest centre, and tell the way to it."""
        outcome, away, chosen = assigned(common, samples.x, down.centres.values[:, None])
        return None, Up(PerClient(away * chosen[..., None], chosen)), outcome

    def server(self, common: Common, server: Server, up: Up, share: Array, turn: Turn) -> Server:
        """Move each centre, `share` being each client's weight in a mean."""
        return Server(server.centres + self.eta * up.way.mean(share))
