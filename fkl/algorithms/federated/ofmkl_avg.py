"""OFMKL-Avg: the plain mean of all kernels, each learned by Fed-OMD.

Baseline of Ghari and Shen (NeurIPS 2022, section 4).
Fed-OMD: Mitra, Hassani and Pappas, Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import mixture_norm, squared_norms
from fkl.algorithms.federated.descent import Descent, Gradients, Parameters
from fkl.contract.star import Samples, Star, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.kernels.functions import OnFeatures


@dataclass(frozen=True)
class OfmklAvg(Descent):
    """Every client sends the gradients of all kernels; predictions weigh them equally. Parameters: see `Descent`."""

    label: ClassVar[str] = "OFMKL-Avg"
    choices_reveal_data: ClassVar[bool] = False
    unbiased: ClassVar[bool] = True
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def client(
        self, common: Common, client: None, down: Parameters, samples: Samples, turn: Turn
    ) -> tuple[None, Gradients, Outcome]:
        """Predict with the mean of all kernels, and send grad L_ik of each."""
        bank, theta = common.bank, down.theta.values
        f = bank.predict(samples.x, theta)
        residual = f - samples.y[:, None]
        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        even = common.xp.full_like(f, 1 / bank.kernels)
        outcome = Outcome(f.mean(axis=-1), loss, lambda: mixture_norm(even, theta))
        return None, Gradients(self.gradients(common, samples, theta, residual)), outcome

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The mean of the server's kernels."""
        theta = state.server.theta[:, None]
        return OnFeatures.of_replicates(world.bank, theta, np.full(theta.shape[:3], 1 / world.bank.kernels))
