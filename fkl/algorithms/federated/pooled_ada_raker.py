"""AdaRaker at a server that receives all samples: shows the benefit of pooling the data if targets drift."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.pooled import Pooled
from fkl.algorithms.online.ada_raker import AdaRaker


@dataclass(frozen=True)
class PooledAdaRaker(Pooled, AdaRaker):
    """Parameters: see `AdaRaker`; the lengths of its intervals count samples, not rounds."""

    label: ClassVar[str] = "AdaRaker, pooled"

    eta: float = 0.5
