"""COKE: communication-censored DKLA, Algorithm 2 of Xu et al., JMLR 22 (2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.decentralized.consensus import Dkla, DklaState, ThetaMessage
from fkl.basics.keys import key
from fkl.contract.star import Turn
from fkl.contract.world import BatchSamples, Common
from fkl.wire.channel import Inbox

CENSORED = ("norm", "squared_norm", "relative_norm")


@dataclass(frozen=True)
class Coke(Dkla):
    """DKLA whose agents send theta only if it has changed enough since the last message, theta_hat.

    When a link comes up again, both its agents send, because neither knows what the other sent in the meantime.
    """

    label: ClassVar[str] = "COKE"
    choices_reveal_data: ClassVar[bool] = True

    v: float = key(0.5, "Threshold h(k) = v mu^k.", min=0)
    mu: float = key(0.98, "Threshold h(k) = v mu^k.", above=0, max=1)
    censored: str = key(
        "norm",
        "Quantity that has to reach h(k) before an agent sends. |xi| is in the paper's text. |xi|^2 agrees with the "
        "published transmissions. |xi| / |theta_hat| is an event trigger: with mu = 1 it needs the same relative "
        "change at all times.",
        choices=CENSORED,
    )

    def send(
        self, common: Common, own: DklaState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[DklaState, ThetaMessage, NDArray[np.bool_]]:
        """Iteration k = t + 1: minimise given the neighbours' theta_hat; broadcast theta if it has changed enough."""
        # Minimise with the newest theta_hat of the neighbours, whether or not the result is sent
        own, message, _ = super().send(common, own, inbox, samples, turn)  # eq. (21a)
        xp, xi = common.xp, own.theta_hat - own.theta  # eq. (19)
        news = xp.linalg.norm(xi, axis=-1)  # (R, K)
        # How far theta is from what the neighbours know, in the measure that the threshold is for
        if self.censored == "squared_norm":
            news = news**2
        elif self.censored == "relative_norm":
            # An agent that has never sent sends as soon as theta is not 0
            news = news / xp.maximum(xp.linalg.norm(own.theta_hat, axis=-1), np.finfo(np.float64).tiny)
        # The threshold falls, so agents send again near the optimum; those whose links were down send as well
        sends = news >= self.v * self.mu ** (turn.t + 1)  # eq. (20)
        return own, message, sends if inbox.awake is None else sends | inbox.awake.returned
