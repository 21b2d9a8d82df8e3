"""OMKL-GF at a server that receives all samples: shows the costs and benefits of pooling the data."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.pooled import Pooled
from fkl.algorithms.online.omkl_gf import OmklGf


@dataclass(frozen=True)
class PooledOmklGf(Pooled, OmklGf):
    """Parameters: see `OmklGf`; t in eta_t, and `exploring`, count samples, not rounds."""

    label: ClassVar[str] = "OMKL-GF, pooled"
