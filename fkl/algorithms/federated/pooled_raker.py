"""Raker at a server that all samples are sent to: what pooling the data would cost, and bring."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.pooled import Pooled
from fkl.algorithms.online.raker import Raker


@dataclass(frozen=True)
class PooledRaker(Pooled, Raker):
    """Parameters: see `Raker`; t in eta_t counts samples, not rounds."""

    label: ClassVar[str] = "Raker, pooled"
