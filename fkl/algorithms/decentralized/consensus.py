"""What decentralized methods share: agents on a graph that learn one theta of one kernel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Batched, World
from fkl.basics.errors import require
from fkl.contract.graph import Agents, Decentralized
from fkl.contract.world import Common
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message:
    """What an agent tells its neighbours of its theta (R, K, P)."""

    theta: PerClient | Quantised | Sparse | SameForAll


@dataclass(frozen=True)
class Consensus(Batched, Decentralized):
    """min over theta of sum_i R_i(theta), R_i(theta) = mean loss of agent i + lam / N |theta|^2 (COKE, eqs. 15, 16).

    N agents are the K clients, L features the D of the one kernel.

    Parameters
    ----------
    redraw : bool
        Draw the split and the graph anew in every replicate, and simulated samples too, as the features are: the
        spread over replicates is then that of everything drawn. Otherwise all replicates share one split and one graph.
    """

    label: ClassVar[str]
    on_a_graph: ClassVar[bool] = True

    redraw: bool = False

    @property
    def not_traceable(self) -> str:  # type: ignore[override]
        """Why JAX cannot trace its iterations; empty where it can."""
        return "" if self.loss == "square" else "its agents search for the minimum of a logistic loss"

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel")

    def zeros(self, common: Common, *agents: int) -> Array:
        """Theta of so many agents, (R, K, P), or one for all, (R, P), once it is clear that there is one kernel."""
        self.require_fits(common.dictionary)
        return common.xp.zeros((common.bank.replicates, *agents, common.bank.width))

    def nothing_sent(self, common: Common) -> Message:
        """What agents take to be the theta of a neighbour before it sends one: 0."""
        return Message(SameForAll(self.zeros(common)))

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Theta of every agent."""
        theta = state.own.theta[:, :, None]  # (R, K, 1, P)
        return OnFeatures.of_replicates(world.bank, theta, np.ones(theta.shape[:3]))
