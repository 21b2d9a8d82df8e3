"""The centralized learner (PC) of Peifer and Ribeiro: the same problem on all samples, which every agent sends."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.parsimonious.dual import Dual
from fkl.algorithms.parsimonious.learner import Learned, Parsimonious, targets, training
from fkl.data.problem import Batch


@dataclass(frozen=True)
class Centralized(Parsimonious):
    """Agents send all their samples; the server solves the problem on these (Algorithm 1)."""

    label: ClassVar[str] = "PC"

    def learn(self, batch: Batch, rng: np.random.Generator) -> Learned:
        """One replicate's model. A sample travels with its features and its class."""
        x, y, agent = training(batch)
        quadrature = self.quadrature(x, rng)
        classes, labels = targets(y)
        problems = [Dual.single(quadrature, x, label, self.gamma, self.eps) for label in labels]
        final = tuple(self.ascend(problem, problem.random_start(rng)) for problem in problems)
        sent = np.bincount(agent, minlength=batch.clients)
        models = tuple(solution.model() for solution in final)
        return Learned(classes, models, final, (), sent, sent * (batch.dimension + 1))
