"""Fed3R: every client sends the sums for a ridge classifier once, and the server solves for all classes exactly.

Fani, Camoriano, Caputo and Ciccone, Accelerating Heterogeneous Federated Learning with Closed-form Classifiers (ICML
2024), with random features instead of those of a pretrained network, and without fine-tuning. Of the paper only the
abstract was available. The authors' code (github.com/Erosinho13/Fed3R) solves the same equations with one more feature,
which is 1, and divides the vector of each class by its length before it predicts. Neither is done here.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fkl.algorithms.federated.one_shot_ridge import OneShotRidge
from fkl.data.problem import Batch, Problem
from fkl.tasks.batch import ClassTask


@dataclass(frozen=True)
class Fed3R(OneShotRidge):
    """min over W of sum_k |Y_k - Z_k W|^2 + lam |W|^2, exactly, after one message of each client.

    Y_k has a row for each sample, with 1 for its class and 0 for the others. Client k sends A_k = Z_k'Z_k and
    B_k = Z_k'Y_k, and W = (sum_k A_k + lam I)^-1 sum_k B_k: ridge regression on pooled samples, however they are
    divided among clients. The column `distance` compares W with the optimum in which clients count equally.

    Parameters
    ----------
    lam : float
        Regularisation lambda of the sum over all samples.
    """

    task: ClassVar[Any] = ClassTask
    label: ClassVar[str] = "Fed3R"
    loss: ClassVar[str] = "one_vs_rest"
    means: ClassVar[bool] = False

    lam: float = 0.01

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, with numbers of classes."""
        return super().batch(problem, rng).of_classes(self.loss, 2)
