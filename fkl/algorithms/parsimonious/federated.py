"""The federated learner (PF), Algorithms 2 and 3 of Peifer and Ribeiro.

Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.parsimonious.dual import Dual
from fkl.algorithms.parsimonious.learner import Learned, Parsimonious, targets, training
from fkl.data.problem import Batch


@dataclass(frozen=True)
class Federated(Parsimonious):
    """Agents solve their own problem and send the samples that matter to it, once; the server solves it on these."""

    label: ClassVar[str] = "PF"

    def learn(self, batch: Batch, rng: np.random.Generator) -> Learned:
        """One replicate's model. A sample travels once: its features, its class, and lambda of every function."""
        x, y, agent = training(batch)
        quadrature = self.quadrature(x, rng)
        classes, labels = targets(y)
        local, lam = [], []
        for label in labels:
            problem = Dual.of_agents(quadrature, x, label, agent, self.gamma, self.eps)
            local.append(self.ascend(problem, problem.random_start(rng)))  # Algorithm 2
            # Samples come agent after agent, so that the problems' rows in their order are those of the batch.
            lam.append(local[-1].mu[problem.present])
        critical = np.any([of_function > 0 for of_function in lam], axis=0)
        final, models = [], []
        for label, mu in zip(labels, lam, strict=True):
            union = Dual.single(quadrature, x[critical], label[critical], self.gamma, self.eps)
            # Lemma 2 weighs the agents' problems so that mu = lambda / N stays: lambda_F = mu N_F.
            solution = self.ascend(union, mu[critical][None] * union.N)  # Algorithm 3
            final.append(solution)
            models.append(solution.model())
        sent = np.bincount(agent[critical], minlength=batch.clients)
        scalars = sent * (batch.dimension + 1 + len(labels))
        return Learned(classes, tuple(models), tuple(final), tuple(local), sent, scalars)
