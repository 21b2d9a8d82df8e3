"""pFedMe: every client has a model of its own, and the server's model is the centre of their Moreau envelopes.

Dinh, Tran and Nguyen, Personalized Federated Learning with Moreau Envelopes (NeurIPS 2020), Algorithm 1.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.federated.descent import MOST_STEPS
from fkl.algorithms.local_training.ditto import Personal
from fkl.algorithms.local_training.fedavg import FullBatches, Loss
from fkl.basics.errors import require
from fkl.contract.world import Array, Common


@dataclass(frozen=True)
class PFedMe(Personal):
    """theta_k <- theta_k - eta lam_k (theta_k - v_k), where v_k nearly minimises F_k(v) + (lam_k / 2) |v - theta_k|^2.

    This is descent on F_k's Moreau envelope. Before each of the E steps v_k takes `own_steps` steps of the rate eta_k.
    In a round theta_k and v_k begin at the server's theta, and eta_server is the paper's beta. Clients predict with v_k
    of their last round.

    Parameters
    ----------
    lam_k : float
        The paper's lambda: the larger, the nearer v_k is to theta_k.
    eta_k : float or None
        Learning rate of v_k; None for 1 / sqrt(T).
    own_steps : int
        The paper's K: steps of v_k before each step of theta_k.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "pFedMe"

    eta_k: float | None = None
    own_steps: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        eta_k = self.eta_k
        require(eta_k is None or 0 < eta_k < np.inf, "eta_k", eta_k, "a number > 0, or null for 1/sqrt(T)")
        require(1 <= self.own_steps <= MOST_STEPS, "own_steps", self.own_steps, f"1 to {MOST_STEPS}")

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The steps of theta_k along its envelope, and v_k after the last of them."""
        shared = own = loss.at_server
        eta_k = common.rounds**-0.5 if self.eta_k is None else self.eta_k
        for _ in range(self.local_steps):
            for _ in range(self.own_steps):
                own = own - eta_k * (loss.gradient(own) + self.lam_k * (own - shared))
            shared = shared - self.rate(common) * self.lam_k * (shared - own)
        return shared - loss.at_server, own


@dataclass(frozen=True)
class PFedMeOnBatches(FullBatches, PFedMe):
    """The equations of algo=pfedme, where each step is on the mean loss of all samples of a client."""

    label: ClassVar[str] = "pFedMe, batches"

    eta_k: float | None = 0.3
