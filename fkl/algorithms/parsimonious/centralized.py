"""The centralized learner (PC) of Peifer and Ribeiro: the same problem on all samples, which every agent sends."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fkl.algorithms.parsimonious.dual import Dual, Solution
from fkl.algorithms.parsimonious.learner import Client, Parsimonious, signed_labels
from fkl.algorithms.parsimonious.quadrature import Array
from fkl.contract.star import CommonOfClasses, Owned, Turn
from fkl.wire.payloads import Ragged


@dataclass(frozen=True)
class Pool:
    """Samples of a client: features (n, d) and class (n,)."""

    samples: tuple[Ragged, Ragged]


@dataclass(frozen=True)
class Centralized(Parsimonious):
    """Agents send all their samples; the server solves the problem on these (Algorithm 1)."""

    label: ClassVar[str] = "PC"

    def choose(self, common: CommonOfClasses, client: Client, samples: Owned, turn: Turn) -> tuple[Client, Pool]:
        """All samples."""
        count = np.array([[len(one) for one in of_one] for of_one in samples.y.values])
        return replace(client, sent=count), Pool((samples.x, samples.y))

    def solve(self, common: CommonOfClasses, box: Array, up: Pool, r: int) -> tuple[Solution, ...]:
        """One problem per function."""
        x, y = (np.concatenate(payload.values[r]) for payload in up.samples)
        quadrature = self.quadrature(common, box, r)
        problems = [
            Dual.single(quadrature, x, label, self.gamma, self.eps) for label in signed_labels(common.classes[r], y)
        ]
        return tuple(self.solution(problem) for problem in problems)
