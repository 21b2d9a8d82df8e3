"""Nystroem methods with a server: clients send centres, and theta is in the space that these span.

DKRR-NY-CM: Yin, Liu, Wang and Meng, Distributed Nystroem Kernel Learning with Communications, ICML 2021; the
communications are those of Lin, Wang and Zhou, Distributed Kernel Ridge Regression with Communications, JMLR 21 (2020).

FALKON: Rudi, Carratino and Rosasco, FALKON: An Optimal Large Scale Kernel Method, NeurIPS 2017.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.contract.star import OnBatches, StarState, Turn
from fkl.contract.world import FEATURE_KEYS, ClientRows, Common
from fkl.kernels.dictionary import CentreBank, Dictionary
from fkl.kernels.functions import OnPoints
from fkl.kernels.losses import Ridge, Rows
from fkl.tasks.batch import HoldOut, TogetherTask
from fkl.wire.payloads import PerClient, Ragged, SameForAll

SPACE = "span of the centres"


@dataclass(frozen=True)
class Centres:
    """Message with centres (m, d): each client's own, or those of all clients to all."""

    centres: Ragged


@dataclass(frozen=True)
class Vector:
    """Message with a vector: one per client (R, K, m), or the same for all (R, m)."""

    vector: PerClient | SameForAll


@dataclass
class CentresClient:
    """State of a client: all centres (R, m, d), empty before it receives them; theta and a direction, (R, K, m)."""

    centres: Array
    theta: Array
    direction: Array


@dataclass(frozen=True)
class Nystroem(HoldOut, OnBatches):
    """Minimise sum_k mean (y_k - f(x_k))^2 + lam |f|^2 over span{kappa(c, .)}, c the centres, with an exact kernel.

    Clients have equal weights, whatever their numbers of samples, as in COKE's eqs. (15) and (16). In the first round,
    every client sends some of its samples, drawn uniformly, and receives those of all clients. These samples are
    disclosed, even if later messages have noise, so privacy and other conditions on messages are refused.
    """

    task: ClassVar[Any] = TogetherTask
    label: ClassVar[str]
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    in_conditions: ClassVar[bool] = False
    not_sums: ClassVar[str] = "the clients' centres span the space of the model"

    per_client: ClassVar[tuple[str, ...]] = ("centres",)

    centres: int = key(10, "Number of samples that a client sends; a client with fewer sends all.", min=1, max=10000)
    iterations: int = key(20, "Number of rounds; the first exchanges the centres.", min=1, max=1_000_000)
    lam: float = key(1e-2, "Regularisation lambda of the sum over all clients.", above=0)

    @property
    def rounds(self) -> int:
        """Number of rounds: one per iteration."""
        return self.iterations

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )

    def client_before(self, common: Common, clients: int) -> CentresClient:
        """A client's state before it receives centres."""
        self.require_fits(common.dictionary)
        R = len(common.streams.replicates)
        return CentresClient(np.zeros((R, 0, common.dimension)), np.zeros((R, clients, 0)), np.zeros((R, clients, 0)))

    def given_centres(self, samples: ClientRows, turn: Turn) -> Centres:
        """Draw some of each client's samples, without replacement, as centres."""
        # A list of centres for each replicate and client; numbers of centres may differ, since clients may have fewer
        # samples
        drawn = turn.vectors(Role.CENTRES, self.centres)
        ends = np.cumsum(samples.count)
        some = [
            tuple(
                samples.x[_without_replacement(u, n) + end - n]
                for u, n, end in zip(of, samples.count, ends, strict=True)
            )
            for of in drawn
        ]
        return Centres(Ragged(tuple(some)))

    def told_centres(self, down: Centres, clients: int) -> CentresClient:
        """A client's state after it has received all centres."""
        centres = all_centres(down)
        zeros = np.zeros((len(centres), clients, centres.shape[1]))
        return CentresClient(centres, zeros, zeros)

    def rows(self, common: Common, client: CentresClient, samples: ClientRows) -> Rows:
        """The clients' samples in the space that the centres span."""
        return samples.rows(SPACE, lambda: CentreBank(common.dictionary, client.centres))

    def judged_in(self, world: World) -> tuple[Rows, Rows]:
        """All clients' training and test samples in the space of the centres, which follow from the seed."""
        everyone = Turn(0, 0, world.streams, range(world.problem.clients))
        bank = CentreBank(world.dictionary, all_centres(self.given_centres(world.held, everyone)))
        return world.held.rows(SPACE, lambda: bank), world.tested.rows(SPACE, lambda: bank)

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnPoints, ...]:
        """The common function, a sum over the centres; no client misses a round, so all clients have the same."""
        client: CentresClient = state.client
        dictionary = world.dictionary
        alpha = CentreBank(dictionary, client.centres).coefficients(client.theta[:, :1])
        kernel = np.array(dictionary.families), np.asarray(dictionary.scales, np.float64)
        return tuple(
            OnPoints(np.asarray(points, np.float64), *kernel, own[:, None], np.zeros(len(own)))
            for points, own in zip(client.centres, alpha, strict=True)
        )


def all_centres(message: Centres) -> Array:
    """All clients' centres, (R, m, d)."""
    return np.stack([np.concatenate(of_clients) for of_clients in message.centres.values]).astype(np.float64)


def gram_product(rows: Rows, vector: Array) -> Array:
    """Phi_k'Phi_k v_k / n_k for each client, with v (R, K, m)."""
    return rows.weigh(rows.predict(vector[..., None])[..., 0]) / rows.count[:, None]


def target_product(rows: Rows) -> Array:
    """Phi_k'y_k / n_k for each client, (R, K, m)."""
    return rows.weigh(rows.y) / rows.count[:, None]


def _without_replacement(u: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Distinct numbers below n, one for each u in [0, 1), until none are left."""
    left = list(range(n))
    return np.array([left.pop(int(u[i] * (n - i))) for i in range(min(len(u), n))])


@dataclass
class DkrrServer:
    """State of the server: centres (R, m, d), theta and the mean gradient (R, m)."""

    centres: Array
    theta: Array
    gradient: Array


@dataclass(frozen=True)
class DkrrNyCm(Nystroem):
    """theta <- theta - (1/K) sum_k (Phi_k'Phi_k / n_k + (lam / K) I)^-1 g, starting from the clients' mean solution.

    g = (1/K) sum_k Phi_k'(Phi_k theta - y_k) / n_k + (lam / K) theta is the mean gradient. In the first exchange of a
    round, clients send their gradients. In the second, the server sends the mean, and each client answers with a Newton
    step that uses its own curvature. In the third, the server sends theta. The first round exchanges the centres and
    the clients' own solutions, whose mean is DKRR-NY.

    The steps contract if each client's curvature is close to the clients' mean. This needs many samples compared with
    the number of centres, or a lam that is not small. On diabetes, with 4 clients of 70 samples and 10 centres each,
    lam = 0.001 diverges and lam = 0.01 does not.
    """

    label: ClassVar[str] = "DKRR-NY-CM"
    exchanges: ClassVar[int] = 3

    def start(self, common: Common, clients: int) -> tuple[DkrrServer, CentresClient]:
        """Start without centres."""
        client = self.client_before(common, clients)
        none = np.zeros((len(client.centres), 0))
        return DkrrServer(client.centres, none, none), client

    def broadcast(self, common: Common, server: DkrrServer, turn: Turn) -> Centres | Vector | None:
        """Send nothing, then all centres or the mean gradient, then theta."""
        if turn.exchange == 0:
            return None
        if turn.exchange == 2:
            return Vector(SameForAll(server.theta))
        return (
            Vector(SameForAll(server.gradient)) if turn.t else Centres(Ragged(tuple((one,) for one in server.centres)))
        )

    def client(
        self, common: Common, client: CentresClient, down: Centres | Vector | None, samples: ClientRows, turn: Turn
    ) -> tuple[CentresClient, Centres | Vector | None, Array | None]:
        """Send centres or the gradient, then the client's solution or step, then receive theta."""
        # First exchange: centres
        lam = self.lam / turn.clients_present  # a client's share of the regulariser of the sum over all clients
        if down is None and turn.t == 0:
            return client, self.given_centres(samples, turn), None
        # Second exchange of the first round: all centres have arrived, so solve with the client's own samples
        K = len(samples.count)
        if isinstance(down, Centres):
            client = self.told_centres(down, K)
            rows = self.rows(common, client, samples)
            return client, Vector(PerClient(_factor_ridge(samples, rows, lam).solve(target_product(rows)))), None
        # Later rounds: send the gradient at theta
        rows = self.rows(common, client, samples)
        if down is None:
            return client, Vector(PerClient(gram_product(rows, client.theta) - target_product(rows))), None
        # Then solve with the mean gradient, which is the client's step; the third exchange brings theta
        mean_vector = np.repeat(down.vector.dense().values[:, None], K, axis=1)
        if turn.exchange == 2:
            return CentresClient(client.centres, mean_vector, client.direction), None, mean_vector
        return client, Vector(PerClient(_factor_ridge(samples, rows, lam).solve(mean_vector))), None

    def server(
        self, common: Common, server: DkrrServer, up: Centres | Vector | None, share: Array, turn: Turn
    ) -> DkrrServer:
        """Store the centres, the mean gradient or theta."""
        # No client has answered
        if up is None:
            return server
        # Centres of all clients: start from theta = 0
        if isinstance(up, Centres):
            centres = all_centres(up)
            zeros = np.zeros(centres.shape[:2])
            return DkrrServer(centres, zeros, zeros)
        # A mean over clients: of gradients, of solutions, or of steps
        assert isinstance(up.vector, PerClient)
        mean = up.vector.mean(share)
        if turn.exchange == 0:
            return DkrrServer(server.centres, server.theta, mean + self.lam / len(share) * server.theta)
        # In the first round, clients send solutions; later, steps to subtract from theta
        theta = server.theta - mean if turn.t else mean
        return DkrrServer(server.centres, theta, server.gradient)


def _factor_ridge(samples: ClientRows, rows: Rows, lam: float) -> Ridge:
    """(Phi_k'Phi_k / n_k + lam I)^-1 for each client, factored once."""
    cached = samples.cache.values
    if "ridge" not in cached:
        cached["ridge"] = Ridge.from_rows(rows, 1.0, np.full(len(samples.count), lam / 2))
    return cached["ridge"]


@dataclass
class FalkonServer:
    """State of the server: centres (R, m, d); M^-1 (R, m, m); r, p (R, m); r'M^-1 r and the step to send (R, 1)."""

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

    def start(self, common: Common, clients: int) -> tuple[FalkonServer, CentresClient]:
        """Start without centres."""
        client = self.client_before(common, clients)
        none = np.zeros((len(client.centres), 0))
        return FalkonServer(client.centres, np.zeros((len(none), 0, 0)), none, none, none, none), client

    def broadcast(self, common: Common, server: FalkonServer, turn: Turn) -> Centres | Vector | None:
        """Send all centres in the first round; later send p, and then the step along p."""
        if turn.t == 0:
            return Centres(Ragged(tuple((one,) for one in server.centres))) if turn.exchange else None
        return Vector(SameForAll(server.step if turn.exchange else server.direction))

    def client(
        self, common: Common, client: CentresClient, down: Centres | Vector | None, samples: ClientRows, turn: Turn
    ) -> tuple[CentresClient, Centres | Vector | None, Array | None]:
        """Send centres and b_k in the first round; later send a product and take the step."""
        # Centres, and b_k = Phi_k'y_k / n_k
        if down is None:
            return client, self.given_centres(samples, turn), None
        K = len(samples.count)
        if isinstance(down, Centres):
            client = self.told_centres(down, K)
            return client, Vector(PerClient(target_product(self.rows(common, client, samples)))), client.theta
        # Clients receive p, and in the second exchange the step along p
        received = np.repeat(down.vector.dense().values.reshape(len(client.theta), 1, -1), K, axis=1)
        if turn.exchange == 0:
            sent = Vector(PerClient(gram_product(self.rows(common, client, samples), received)))
            return CentresClient(client.centres, client.theta, received), sent, None
        theta = client.theta + received * client.direction
        return CentresClient(client.centres, theta, client.direction), None, theta

    def server(
        self, common: Common, server: FalkonServer, up: Centres | Vector | None, share: Array, turn: Turn
    ) -> FalkonServer:
        """Start, or take a step of conjugate gradients."""
        # No client has answered
        if up is None:
            return server
        if isinstance(up, Centres):
            # Compute M from all centres, before any sums over samples arrive
            centres = all_centres(up)
            phi = CentreBank(common.dictionary, centres).of_centres()
            R, m, _ = phi.shape
            curvature = len(share) / m * np.matmul(phi.swapaxes(1, 2), phi) + self.lam * np.eye(m)
            zeros, ones = np.zeros((R, m)), np.zeros((R, 1))
            return FalkonServer(centres, np.linalg.inv(curvature), zeros, zeros, ones, ones)
        assert isinstance(up.vector, PerClient)
        summed = up.vector.mean(share) * len(share)  # all clients take part in every round, with equal shares
        # The first sum is b, so the residual of theta = 0 is b, and the first direction M^-1 b
        if turn.t == 0:
            direction = np.einsum("rij,rj->ri", server.inverse, summed)
            squared = (summed * direction).sum(axis=1, keepdims=True)
            return FalkonServer(server.centres, server.inverse, summed, direction, squared, np.zeros_like(squared))
        # Conjugate gradients: H p = sum_k Phi_k'Phi_k p / n_k + lam p, then r, M^-1 r and the next direction
        along = summed + self.lam * server.direction
        curved = (server.direction * along).sum(axis=1, keepdims=True)
        step = _quotient_or_zero(server.squared, curved)
        residual = server.residual - step * along
        turned = np.einsum("rij,rj->ri", server.inverse, residual)
        squared = (residual * turned).sum(axis=1, keepdims=True)
        direction = turned + _quotient_or_zero(squared, server.squared) * server.direction
        return FalkonServer(server.centres, server.inverse, residual, direction, squared, step)


def _quotient_or_zero(a: Array, b: Array) -> Array:
    """The quotient a / b, or 0 after convergence."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
