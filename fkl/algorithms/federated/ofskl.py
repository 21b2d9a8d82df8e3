"""OFSKL: online federated single-kernel learning, Fed-OMD on the random features of one kernel.

Baseline of Ghari and Shen (NeurIPS 2022, section 4).
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.federated.descent import Server
from fkl.algorithms.federated.ofmkl_avg import OfmklAvg
from fkl.basics.errors import require
from fkl.contract.world import Common
from fkl.kernels.dictionary import Dictionary


@dataclass(frozen=True)
class Ofskl(OfmklAvg):
    """OFMKL-Avg with a dictionary of one kernel: theta <- theta - eta (1/K) sum_k grad L_k."""

    label: ClassVar[str] = "OFSKL"

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1 for {self.label}, for example kernels=rbf_single")

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """Theta = 0."""
        self.require_fits(common.dictionary)
        return super().start(common, clients)
