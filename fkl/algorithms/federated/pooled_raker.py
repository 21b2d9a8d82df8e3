"""Raker at a server that receives all samples: shows the costs and benefits of pooling the data."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.pooled import Pooled
from fkl.algorithms.online.raker import Raker


@dataclass(frozen=True)
class PooledRaker(Pooled, Raker):
    """Parameters: see `Raker`; t in eta_t counts samples, not rounds."""

    label: ClassVar[str] = "Raker, pooled"
