"""The devices of `engine=jax`: where there are several, replicates and clients are divided among them."""

from math import gcd
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec


class Devices:
    """As many devices as divide the replicates, and as many for each of these as divide the clients.

    XLA divides the work as arrays are divided, and adds what devices have to add together. What it computes is the
    same, but for rounding.

    Parameters
    ----------
    replicates, clients : int
        How many there are.
    """

    def __init__(self, replicates: int, clients: int) -> None:
        count = len(jax.devices())
        rows = gcd(replicates, count)
        columns = gcd(clients, count // rows)
        self._sizes = {"replicates": replicates, "clients": clients}
        used, both = jax.devices()[: rows * columns], (AxisType.Auto, AxisType.Auto)
        self._mesh = jax.make_mesh((rows, columns), tuple(self._sizes), both, devices=used)

    def placed(self, arrays: Any, before: int = 0) -> Any:
        """These arrays on the devices, divided along the axes of replicates and of clients.

        Parameters
        ----------
        arrays : tree of arrays
            The first axis as long as there are replicates is theirs, and the next one as long as there are clients.
        before : int
            Axes before these.
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
