"""The devices of `engine=jax`: with several devices, replicates and clients are divided among them."""

from math import gcd
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec


class Devices:
    """The largest mesh of devices whose sides divide the replicates and the clients.

    XLA divides the work in the same way as the arrays, and adds sums across devices. Results change only by rounding.

    Parameters
    ----------
    replicates, clients : int
        Numbers of replicates and clients.
    """

    def __init__(self, replicates: int, clients: int) -> None:
        count = len(jax.devices())
        rows = gcd(replicates, count)
        columns = gcd(clients, count // rows)
        self._sizes = {"replicates": replicates, "clients": clients}
        used, both = jax.devices()[: rows * columns], (AxisType.Auto, AxisType.Auto)
        self._mesh = jax.make_mesh((rows, columns), tuple(self._sizes), both, devices=used)

    def place_arrays(self, arrays: Any, before: int = 0) -> Any:
        """The arrays on the devices, divided along the axes of replicates and of clients.

        Parameters
        ----------
        arrays : tree of arrays
            The first axis whose length is the number of replicates counts as theirs, and the next axis whose length is
            the number of clients as the clients'.
        before : int
            Number of leading axes to skip.
        """
        if self._mesh.size == 1:
            return arrays
        return jax.tree.map(lambda array: jax.device_put(array, self._sharding(array.shape, before)), arrays)

    def _sharding(self, shape: tuple[int, ...], before: int) -> NamedSharding:
        left, names = dict(self._sizes), [None] * len(shape)
        for axis in range(before, len(shape)):
            name = next((name for name, size in left.items() if size == shape[axis]), None)
            if name is not None:
                names[axis] = name  # type: ignore[call-overload]
                left = {} if name == "clients" else {"clients": self._sizes["clients"]}
        return NamedSharding(self._mesh, PartitionSpec(*names))  # type: ignore[no-untyped-call]
