"""Code that Nystroem methods of a star share: centres that clients send, and theta in the space that these span."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, HoldOut, World
from fkl.basics.errors import require
from fkl.basics.random_streams import Role
from fkl.contract.batches import OnBatches
from fkl.contract.held_samples import Held
from fkl.contract.star import Star, Turn
from fkl.contract.world import FEATURE_KEYS, Common
from fkl.kernels.centres import CentreBank
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.feature_rows import Rows
from fkl.kernels.functions import OnPoints
from fkl.tasks.batch import TogetherTask
from fkl.wire.payloads import PerClient, Ragged, SameForAll

SPACE = "span of the centres"


@dataclass(frozen=True)
class Centres:
    """Centres (m, d): each client's own, or those of all clients, the same for all."""

    centres: Ragged


@dataclass(frozen=True)
class Vector:
    """One vector per client (R, K, m), or the same for all (R, m)."""

    vector: PerClient | SameForAll


@dataclass
class Client:
    """Centres (R, m, d) of all clients, empty before the client receives them; theta and further vectors, (R, K, m)."""

    centres: Array
    theta: Array
    direction: Array


@dataclass(frozen=True)
class Nystroem(HoldOut, OnBatches):
    """min over f in span{kappa(c, .)} of sum_k mean (y_k - f(x_k))^2 + lam |f|^2, c the centres, for one exact kernel.

    Clients have equal weights however many samples they have, as in COKE's eqs. (15) and (16). In the first round every
    client sends some of its samples, drawn uniformly, and receives those of all clients. These samples are disclosed,
    even if later messages had noise, so privacy and other conditions on messages are refused.

    Parameters
    ----------
    centres : int
        Samples that a client sends; a client with fewer sends all.
    iterations : int
        Rounds; the first one exchanges the centres.
    lam : float
        Regularisation lambda of the sum over all clients.
    """

    task: ClassVar[Any] = TogetherTask
    label: ClassVar[str]
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    in_conditions: ClassVar[bool] = False

    centres: int = 10
    iterations: int = 20
    lam: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.centres <= 10_000, "centres", self.centres, "an integer from 1 to 10000")
        require(1 <= self.iterations <= 10**6, "iterations", self.iterations, "an integer from 1 to 1000000")
        require(0 < self.lam < np.inf, "lam", self.lam, "a number > 0")

    @property
    def rounds(self) -> int:
        """One round per iteration."""
        return self.iterations

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel")

    def client_before(self, common: Common, clients: int) -> Client:
        """A client's state before it receives centres."""
        self.require_fits(common.dictionary)
        R = len(common.streams.replicates)
        return Client(np.zeros((R, 0, common.dimension)), np.zeros((R, clients, 0)), np.zeros((R, clients, 0)))

    def given_centres(self, samples: Held, turn: Turn) -> Centres:
        """Some of each client's samples, drawn without replacement."""
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

    def told_centres(self, down: Centres, clients: int) -> Client:
        """A client's state after it has received all centres."""
        centres = all_centres(down)
        zeros = np.zeros((len(centres), clients, centres.shape[1]))
        return Client(centres, zeros, zeros)

    def rows(self, common: Common, client: Client, samples: Held) -> Rows:
        """The clients' samples in the space that the centres span."""
        return samples.rows(SPACE, lambda: CentreBank(common.dictionary, client.centres))

    def judged_in(self, world: World) -> tuple[Rows, Rows]:
        """The same for all clients and for the test samples: the centres follow from the seed."""
        everyone = Turn(0, 0, world.streams, range(world.problem.clients))
        bank = CentreBank(world.dictionary, all_centres(self.given_centres(world.held, everyone)))
        return world.held.rows(SPACE, lambda: bank), world.tested.rows(SPACE, lambda: bank)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnPoints, ...]:
        """A sum over the centres; no client misses a round, so all have the same."""
        client: Client = state.client
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
    """Distinct numbers below n, one for each u in [0, 1), as long as any are left."""
    left = list(range(n))
    return np.array([left.pop(int(u[i] * (n - i))) for i in range(min(len(u), n))])
