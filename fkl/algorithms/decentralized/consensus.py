"""Code that decentralized methods share: agents on a graph learn one theta of one kernel."""

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
    """Message of an agent to its neighbours: its theta (R, K, P)."""

    theta: PerClient | Quantised | Sparse | SameForAll


@dataclass(frozen=True)
class Consensus(Batched, Decentralized):
    """min over theta of sum_i R_i(theta), R_i(theta) = mean loss of agent i + lam / N |theta|^2 (COKE, eqs. 15, 16).

    N agents are the K clients, L features the D of the one kernel.

    Parameters
    ----------
    redraw : bool
        Draw a new split, a new graph and new simulated samples in every replicate, as is done for the features. The
        spread over replicates then includes all of these. Otherwise all replicates share one split and one graph.
    """

    label: ClassVar[str]
    on_a_graph: ClassVar[bool] = True

    redraw: bool = False

    @property
    def not_traceable(self) -> str:  # type: ignore[override]
        """Why JAX cannot trace its iterations; empty if it can."""
        return "" if self.loss == "square" else "its agents search for the minimum of a logistic loss"

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel")

    def zeros(self, common: Common, *agents: int) -> Array:
        """Zeros for theta of these agents, (R, K, P), or one for all, (R, P); refuses more than one kernel."""
        self.require_fits(common.dictionary)
        return common.xp.zeros((common.bank.replicates, *agents, common.bank.width))

    def nothing_sent(self, common: Common) -> Message:
        """Agents assume that a neighbour's theta is 0 before it sends one."""
        return Message(SameForAll(self.zeros(common)))

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Theta of every agent."""
        theta = state.own.theta[:, :, None]  # (R, K, 1, P)
        return OnFeatures.of_replicates(world.bank, theta, np.ones(theta.shape[:3]))
