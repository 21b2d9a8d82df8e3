"""The federated learner (PF), Algorithms 2 and 3 of Peifer and Ribeiro.

Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fkl.algorithms.parsimonious.dual import Dual, Solution
from fkl.algorithms.parsimonious.learner import Client, Parsimonious, signed_labels
from fkl.algorithms.parsimonious.quadrature import Array
from fkl.contract.star import CommonOfClasses, Owned, Turn, by_replicate
from fkl.wire.payloads import Ragged


@dataclass(frozen=True)
class Critical:
    """Relevant samples in a client's own problems: features (n, d), class (n,) and mu of every function (n, F)."""

    samples: tuple[Ragged, Ragged, Ragged]


@dataclass(frozen=True)
class Federated(Parsimonious):
    """Agents solve their own problem and send its relevant samples, once; the server solves the problem on these."""

    label: ClassVar[str] = "PF"

    def choose(self, common: CommonOfClasses, client: Client, samples: Owned, turn: Turn) -> tuple[Client, Critical]:
        """Algorithm 2. The problems of all agents are solved together; none changes a bit of another's solution."""

        def of_one(r: int) -> tuple[tuple[Solution, ...], Array]:
            x, y, agent = samples.replicate(r)
            quadrature = self.quadrature(common, client.box, r)
            local, mu = [], []
            for label in signed_labels(common.classes[r], y):
                problem = Dual.of_agents(quadrature, x, label, agent, self.gamma, self.eps)
                local.append(self.solution(problem))
                # Samples are ordered by agent, so the problems' rows in their order are those of the samples.
                mu.append(local[-1].mu[problem.present])
            return tuple(local), np.stack(mu, axis=1)

        local, mus = zip(*by_replicate(of_one, len(samples.x.values)), strict=True)
        sent: list[list[list[Array]]] = [[], [], []]
        for r, mu in enumerate(mus):
            ends = np.cumsum([len(one) for one in samples.y.values[r]])[:-1]
            own = list(zip(samples.x.values[r], samples.y.values[r], np.split(mu, ends), strict=True))
            for number, column in enumerate(sent):
                column.append([parts[number][(parts[2] > 0).any(axis=1)] for parts in own])
        count = np.array([[len(one) for one in of_one] for of_one in sent[1]])
        payloads = [Ragged(tuple(map(tuple, column))) for column in sent]
        return replace(client, local=local, sent=count), Critical((payloads[0], payloads[1], payloads[2]))

    def solve(self, common: CommonOfClasses, box: Array, up: Critical, r: int) -> tuple[Solution, ...]:
        """Algorithm 3. It would start from the agents' mu; Newton's method needs no start."""
        x, y, _ = (np.concatenate(payload.values[r]) for payload in up.samples)
        quadrature = self.quadrature(common, box, r)
        return tuple(
            self.solution(Dual.single(quadrature, x, label, self.gamma, self.eps))
            for label in signed_labels(common.classes[r], y)
        )
