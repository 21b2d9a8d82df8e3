"""D-RF-GP: agents on a graph learn random-feature Gaussian processes from their neighbours' sums.

Llorente, Waxman and Djuric, Decentralized Online Ensembles of Gaussian Processes for Multi-Agent Systems, ICASSP 2025,
arXiv 2502.05301. The equations are those of the authors' code (github.com/FLlorente/DecentralizedOnlineGPs), with one
exchange a round; of the paper only the abstract was available. In the authors' code an agent adds K times an average of
the newest terms of itself and its neighbours to its sums, and the newest terms of others never travel further. Here an
agent sends its sums so far, and its neighbours average these. The sums are the same, and a lost message then costs
only the newest terms.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array
from fkl.algorithms.decentralized import consensus_rf_gp
from fkl.algorithms.decentralized.consensus_rf_gp import ConsensusRfGp, State
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message(consensus_rf_gp.Message):
    """The sums of an agent's own samples, and the sum of their log densities, log_w (R, K, N)."""

    log_w: PerClient | Quantised | Sparse | SameForAll


@dataclass(frozen=True)
class DRfGp(ConsensusRfGp):
    """Agents predict with the posterior of K times the average of their own and their neighbours' sums.

    With sums M_j of the samples of agent j, and d_k neighbours of agent k, its sums of all samples are
    K / (1 + d_k) (M_k + sum over neighbours of M_j). These weights sum to 1 at each agent, but not over agents, so the
    samples of some agents count more than those of others. Kernels are weighed by the same average of log densities.
    An agent computes each with its own posterior before it sees the target.

    Parameters
    ----------
    flush, noise, forget, personal, lam : see `GaussianProcesses`
        The authors have flush=1, noise=0.01, forget=1 and personal=False.
    """

    label: ClassVar[str] = "D-RF-GP"

    noise: float | None = 0.01

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Start from the prior theta ~ N(0, I)."""
        own, known = super().start(common, agents)
        return own, Message(known.moments, known.totals, SameForAll(own.log_w[:, 0]))

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Broadcast the sums of the agent's own samples in rounds with an exchange."""
        own, message, tells = super().send(common, own, inbox, samples, turn)
        return own, Message(message.moments, message.totals, PerClient(own.log_w)), tells

    def hear(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> State:
        """Learn from the agent's and its neighbours' sums, and weigh kernels by their log densities."""
        log_w = common.clients * _average("log_w", own.log_w, inbox)
        return replace(super().hear(common, own, inbox, samples, turn), evidence=log_w)

    def agreed(self, own: State, inbox: Inbox, told: bool) -> tuple[State, Array, Array]:
        """The averages of the agent's and its neighbours' moments and totals; the state keeps the agent's."""
        return own, _average("moments", own.moments, inbox), _average("totals", own.totals, inbox)


def _average(kind: str, own: Array, inbox: Inbox) -> Array:
    """The average of an agent's own values and its neighbours', (R, K, ...)."""
    return (own + inbox.sum(kind)) / (1 + inbox.degree).reshape(-1, *[1] * (own.ndim - 2))
