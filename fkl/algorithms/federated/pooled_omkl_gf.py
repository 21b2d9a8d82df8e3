"""OMKL-GF at a server that all samples are sent to: what pooling the data would cost, and bring."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.pooled import Pooled
from fkl.algorithms.online.omkl_gf import OmklGf


@dataclass(frozen=True)
class PooledOmklGf(Pooled, OmklGf):
    """Parameters: see `OmklGf`; t in eta_t, and `exploring`, count samples, not rounds."""

    label: ClassVar[str] = "OMKL-GF, pooled"
