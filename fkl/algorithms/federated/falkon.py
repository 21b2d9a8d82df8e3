"""Federated FALKON: preconditioned conjugate gradients on Nystroem's equations, one product per client and step.

Rudi, Carratino and Rosasco, FALKON: An Optimal Large Scale Kernel Method, NeurIPS 2017.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array
from fkl.algorithms.federated.nystroem import (
    Centres,
    Client,
    Nystroem,
    Vector,
    all_centres,
    gram_product,
    target_product,
)
from fkl.contract.held_samples import Held
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.kernels.centres import CentreBank
from fkl.wire.payloads import PerClient, Ragged, SameForAll


@dataclass
class Server:
    """Centres (R, m, d); M^-1 (R, m, m); r, p (R, m); r'M^-1 r and the step that the server sends (R, 1)."""

    centres: Array
    inverse: Array
    residual: Array
    direction: Array
    squared: Array
    step: Array


@dataclass(frozen=True)
class Falkon(Nystroem):
    """Conjugate gradients on H theta = b, H = sum_k Phi_k'Phi_k / n_k + lam I, b = sum_k Phi_k'y_k / n_k.

    The preconditioner is M = (K / m) Phi_c'Phi_c + lam I, with Phi_c the features of the m centres, which the server
    has. This is the paper's B B' (eq. 13) with theta = T alpha. In each round after the first, the server sends p,
    clients answer with Phi_k'Phi_k p / n_k, and the server sends the step along p.
    """

    label: ClassVar[str] = "FALKON"
    exchanges: ClassVar[int] = 2

    def start(self, common: Common, clients: int) -> tuple[Server, Client]:
        """Start without centres."""
        client = self.client_before(common, clients)
        none = np.zeros((len(client.centres), 0))
        return Server(client.centres, np.zeros((len(none), 0, 0)), none, none, none, none), client

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Centres | Vector | None:
        """All centres, once the server has them; then p, and the step along it."""
        if turn.t == 0:
            return Centres(Ragged(tuple((one,) for one in server.centres))) if turn.exchange else None
        return Vector(SameForAll(server.step if turn.exchange else server.direction))

    def client(
        self, common: Common, client: Client, down: Centres | Vector | None, samples: Held, turn: Turn
    ) -> tuple[Client, Centres | Vector | None, Array | None]:
        """Send centres and b_k; then, in each round, send a product and take the step."""
        if down is None:
            return client, self.given_centres(samples, turn), None
        K = len(samples.count)
        if isinstance(down, Centres):
            client = self.told_centres(down, K)
            return client, Vector(PerClient(target_product(self.rows(common, client, samples)))), client.theta
        # Clients receive p, and in the second exchange the step along it.
        told = np.repeat(down.vector.dense().values.reshape(len(client.theta), 1, -1), K, axis=1)
        if turn.exchange == 0:
            sent = Vector(PerClient(gram_product(self.rows(common, client, samples), told)))
            return Client(client.centres, client.theta, told), sent, None
        theta = client.theta + told * client.direction
        return Client(client.centres, theta, client.direction), None, theta

    def server(self, common: Common, server: Server, up: Centres | Vector | None, share: Array, turn: Turn) -> Server:
        """Begin, or take a step of conjugate gradients."""
        if up is None:
            return server
        if isinstance(up, Centres):
            # M of all centres, before any sums over the samples.
            centres = all_centres(up)
            phi = CentreBank(common.dictionary, centres).of_centres()
            R, m, _ = phi.shape
            curvature = len(share) / m * np.matmul(phi.swapaxes(1, 2), phi) + self.lam * np.eye(m)
            zeros, one = np.zeros((R, m)), np.zeros((R, 1))
            return Server(centres, np.linalg.inv(curvature), zeros, zeros, one, one)
        assert isinstance(up.vector, PerClient)
        summed = up.vector.mean(share) * len(share)  # all clients are needed in every round, with equal shares
        if turn.t == 0:
            direction = np.einsum("rij,rj->ri", server.inverse, summed)
            squared = (summed * direction).sum(axis=1, keepdims=True)
            return Server(server.centres, server.inverse, summed, direction, squared, np.zeros_like(squared))
        # Conjugate gradients: H p = sum_k Phi_k'Phi_k p / n_k + lam p, then r, M^-1 r and the next direction.
        along = summed + self.lam * server.direction
        curved = (server.direction * along).sum(axis=1, keepdims=True)
        step = _quotient_or_zero(server.squared, curved)
        residual = server.residual - step * along
        turned = np.einsum("rij,rj->ri", server.inverse, residual)
        squared = (residual * turned).sum(axis=1, keepdims=True)
        direction = turned + _quotient_or_zero(squared, server.squared) * server.direction
        return Server(server.centres, server.inverse, residual, direction, squared, step)


def _quotient_or_zero(a: Array, b: Array) -> Array:
    """Quotient a / b, and 0 after convergence."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
