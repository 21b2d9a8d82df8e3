"""A client's loss for each kernel, and its gradient, at points that the client reaches from the server's theta.

Both classes have the same functions. Points are arrays that can be added and multiplied by numbers, so a method's
equations are the same for one sample and for all samples of a client.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fkl.algorithms.base import Outcome, squared_norms
from fkl.basics.arrays import Array, is_traced
from fkl.basics.pointwise import PointwiseLoss
from fkl.contract.star import Samples
from fkl.contract.world import FEATURES, ClientRows, Common
from fkl.kernels.client_tiles import client_tiles
from fkl.kernels.losses import Rows
from fkl.wire.payloads import FeatureGradients, PerClient


@dataclass
class LossOfSample:
    """The loss l(theta'z, y) + lam |theta|^2 of each kernel, on a client's sample of the round.

    A point is a combination a theta + b z + c v of the server's theta, the sample's features z, and a client's own
    vector v. It is stored as (a, b, c), because gradients at such points are again such combinations. Products of
    vectors follow from those of theta, z and v, so the features of all clients are in memory only if there is a v.

    Parameters
    ----------
    common : Common
    samples : Samples
    theta : (R, N, P)
        The server's theta.
    lam : float
    loss : PointwiseLoss
        l.
    own : (R, K, N, P) or None
        The client's own vector v.
    """

    common: Common
    samples: Samples
    theta: Array
    lam: float
    loss: PointwiseLoss
    own: Any = None

    def __post_init__(self) -> None:
        xp, x = self.common.xp, self.samples.x
        f, square = self.common.bank.predict(x, self.theta), self.common.bank.squared_norms(x)
        norm = xp.broadcast_to(squared_norms(self.theta)[:, None], f.shape)
        products = [[norm, f], [f, square]]
        if self.own is not None:
            of_theta, of_z = ((self.own * one).sum(axis=-1) for one in (self.theta[:, None], self._z))
            products = [[norm, f, of_theta], [f, square, of_z], [of_theta, of_z, (self.own**2).sum(axis=-1)]]
        self.products = xp.stack([xp.stack(row, axis=-1) for row in products], axis=-2)  # (R, K, N, 2 or 3, 2 or 3)
        self.units = xp.eye(len(products))

    @cached_property
    def _z(self) -> Array:
        """Features of every client, (R, K, N, P)."""
        bank, x = self.common.bank, self.samples.x
        # In tiles of clients, because BLAS rounds by the number of rows
        z = [bank.features(x[tile]) for tile in ([slice(None)] if is_traced(self.theta) else client_tiles(len(x)))]
        return self.common.xp.concatenate(z, axis=2).swapaxes(1, 2)

    @property
    def at_server(self) -> Array:
        """The server's theta."""
        return self.units[0]

    @property
    def at_own(self) -> Array:
        """The client's own vector."""
        return self.units[2]

    def gradient(self, point: Array) -> Array:
        """The gradient l'(f, y) z + 2 lam theta."""
        slope = self.loss.derivative(self._prediction(point), self.samples.y[:, None])
        return slope[..., None] * self.units[1] + 2 * self.lam * point

    def value(self, point: Array) -> Array:
        """The loss, (R, K, N)."""
        loss = self.loss.value(self._prediction(point), self.samples.y[:, None])
        return loss + self.lam * self.squared_norm(point)

    def squared_norm(self, point: Array) -> Array:
        """The squared norm |theta|^2, (R, K, N)."""
        return ((self.products * point[..., None, :]).sum(axis=-1) * point).sum(axis=-1)

    def dense(self, point: Array) -> Array:
        """The point as a vector, (R, K, N, P)."""
        vectors = (self.theta[:, None], self._z, self.own)
        return sum(point[..., j, None] * vector for j, vector in enumerate(vectors))

    def message(self, change: Array) -> FeatureGradients | PerClient:
        """A payload with this change, which is a combination of theta and z."""
        return FeatureGradients(self.common.bank, self.samples.x, change[..., 1], self.theta, 0.5, change[..., 0])

    def outcome(self, point: Array) -> Outcome:
        """The outcome of predicting with the plain mean of all kernels at this point."""
        f, norm = self._prediction(point), self.squared_norm(point)
        return Outcome(f.mean(axis=-1), self.value(point), lambda: norm.mean(axis=-1))

    def _prediction(self, point: Array) -> Array:
        return (self.products[..., 1, :] * point).sum(axis=-1)


@dataclass
class LossOfAll:
    """The mean loss of all samples of a client + lam |theta|^2, for one kernel; a point is (R, K, 1, P).

    Parameters
    ----------
    common : Common
    samples : Held
    theta : (R, 1, P)
        The server's theta.
    lam : float
    own : (R, K, 1, P) or None
        The client's own vector.
    """

    common: Common
    samples: ClientRows
    theta: Array
    lam: float
    own: Any = None
    rows: Rows = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.samples.rows(FEATURES, lambda: self.common.bank)

    @cached_property
    def at_server(self) -> Array:
        """The server's theta."""
        each = self.theta[:, None].astype(np.float64)
        return self.common.xp.repeat(each, len(self.samples.count), axis=1)

    @property
    def at_own(self) -> Array:
        """The client's own vector."""
        return self.own

    def gradient(self, point: Array) -> Array:
        """The mean gradient over all samples + 2 lam theta."""
        return self.samples.loss.gradient(self.rows, point[:, :, 0])[:, :, None] + 2 * self.lam * point

    def value(self, point: Array) -> Array:
        """The loss, (R, K, 1)."""
        return self.samples.loss.mean(self.rows, point[:, :, 0])[..., None] + self.lam * self.squared_norm(point)

    def squared_norm(self, point: Array) -> Array:
        """The squared norm |theta|^2, (R, K, 1)."""
        return (point**2).sum(axis=-1)

    def dense(self, point: Array) -> Array:
        """The point itself."""
        return point

    def message(self, change: Array) -> FeatureGradients | PerClient:
        """A payload with this change."""
        return PerClient(change)

    def outcome(self, point: Array) -> Array:
        """Theta of every client, (R, K, P)."""
        return point[:, :, 0]
