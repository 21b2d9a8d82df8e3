"""QC-ODKLA: ODKLA whose agents send few bits, and only if they have something new.

Xu, Wang, Chen and Tian, IEEE TNNLS (2023), arXiv 2208.02777. It censors the theta_{t+1} of ODKLA as COKE censors DKLA's
theta (`fkl.algorithms.decentralized.coke`, eqs. 19 and 20). The condition `compression` quantizes the difference to the
neighbours' copy, Q(theta - theta_hat).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.decentralized.consensus import Message
from fkl.algorithms.decentralized.odkla import Odkla, State
from fkl.basics.errors import require
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.inbox import Inbox


@dataclass(frozen=True)
class QcOdkla(Odkla):
    """ODKLA whose agents send theta only after it has changed enough since the last message, theta_hat.

    When a link comes up again, both its ends send: neither knows what the other has sent in the meantime. With
    `compression=null` every scalar is sent with all its bits.

    Parameters
    ----------
    v, mu : float
        Threshold h(t) = v mu^t of |theta_hat - theta|, before it is rounded.
    """

    label: ClassVar[str] = "QC-ODKLA"
    choices_reveal_data: ClassVar[bool] = True

    v: float = 0.1
    mu: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.v < np.inf, "v", self.v, "a number >= 0")
        require(0 < self.mu <= 1, "mu", self.mu, "a number > 0, at most 1")

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Round t, from 1: broadcast theta_{t+1} where |xi| >= h(t), xi = theta_hat - theta_{t+1}."""
        own, message, _ = super().send(common, own, inbox, samples, turn)
        xi = own.theta_hat - own.theta
        sends = common.xp.sqrt(common.xp.einsum("rknp,rknp->rk", xi, xi)) >= self.v * self.mu ** (turn.t + 1)
        return own, message, sends if inbox.awake is None else sends | inbox.awake.returned
