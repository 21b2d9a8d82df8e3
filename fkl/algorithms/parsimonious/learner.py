"""What the federated and the centralized learner of Peifer and Ribeiro share: S x W, classes, and what they tell."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Fitted, Split, World
from fkl.algorithms.parsimonious.dual import RULES, Dual, Model, Solution, representation, solve
from fkl.algorithms.parsimonious.quadrature import Array, Quadrature, box_of
from fkl.data.problem import Batch
from fkl.errors import FklError, require
from fkl.kernels.threads import in_parts
from fkl.memory import require_memory
from fkl.streams import Role
from fkl.tasks.repeated import RepeatedTask
from fkl.tasks.task import Task

FALLBACK_WIDTHS = (1 / 28, 1 / 14, 1 / 7)
MOST_CLASSES = 100
NODE_BYTES = 90
"""Of a centre and width: its weight, alpha, and the neighbours by which the peaks of alpha are counted, at least."""


@dataclass(frozen=True)
class Learned:
    """One replicate's global model, a function for each class, and what it took.

    Parameters
    ----------
    classes : (C,)
        Values of the target; of two, the higher one has the only function.
    models : tuple of Model
    final : tuple of Solution
        Of the server or the centralized learner, one a function.
    local : tuple of Solution
        Of the agents; empty for the centralized learner.
    sent, scalars : (K,) int
        Samples, and scalars, that each client sent.
    """

    classes: Array
    models: tuple[Model, ...]
    final: tuple[Solution, ...]
    local: tuple[Solution, ...]
    sent: NDArray[np.int64]
    scalars: NDArray[np.int64]

    @property
    def received(self) -> int:
        """Scalars of the model that goes back to every agent: number and coefficient of its nodes, which all know."""
        return sum(2 * len(model.active) for model in self.models)

    def predict(self, x: Array) -> Array:
        """Class of each sample (n, d): the sign of f for two, NaN where f = 0; else that of the largest f."""
        f = np.stack([model.predict(np.asarray(x, np.float64)) for model in self.models], axis=1)
        if len(self.models) > 1:
            return np.where(f.any(axis=1), self.classes[f.argmax(axis=1)], np.nan)
        return np.select([f[:, 0] > 0, f[:, 0] < 0], [self.classes[1], self.classes[0]], np.nan)


@dataclass(frozen=True)
class Parsimonious(Split):
    """Classification by f(x) = integral of alpha(s, w) k(x, s; w) over centres s and widths w, few alpha not 0.

    More than two classes are learned one against the rest.

    Parameters
    ----------
    gamma : float
        Weight of the support's measure.
    eps : float
        The constraint is y f(x) >= 1 - eps.
    steps : int
        Most steps for each problem.
    rule : {"interior", "accelerated", "ascent", "printed"}
        As in `fkl.algorithms.parsimonious.dual.solve`.
    eta : float
        Step size of the rule ``printed``.
    tolerance : float
        A problem is solved when its duality gap is no larger, in units of the cost.
    centres : int
        Centres a width: of a grid in up to three dimensions, drawn above.
    widths : list of float or None
        Widths; None for a 28th, a 14th and a 7th of the box's longest side, which are 1, 2 and 4 in the box of the
        paper's simulated set.
    box : list of two lists of float, or None
        Lower and upper corner of the centres. None for the smallest box around all clients' training samples: each
        client then sends the corners of its own, and is sent those of all.

    Raises
    ------
    fkl.errors.BadValue
    """

    task: ClassVar[type[Task]] = RepeatedTask

    gamma: float = 25.0
    eps: float = 0.01
    steps: int = 1000
    rule: str = "interior"
    eta: float = 0.1
    tolerance: float = 1e-7
    centres: int = 1296
    widths: list[float] | None = None
    box: list[list[float]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.gamma < np.inf, "gamma", self.gamma, "a number from 0")
        require(-np.inf < self.eps < 1, "eps", self.eps, "a number below 1")
        require(1 <= self.steps <= 10**9, "steps", self.steps, "a whole number from 1")
        require(self.rule in RULES, "rule", self.rule, ", ".join(RULES))
        require(0 < self.eta < np.inf, "eta", self.eta, "a number above 0")
        require(0 <= self.tolerance < np.inf, "tolerance", self.tolerance, "a number from 0")
        require(1 <= self.centres <= 10**6, "centres", self.centres, "a whole number from 1 to 1000000")

    def init(self, world: World) -> None:
        """Nothing is kept between rounds: there is one."""

    def step(self, world: World, state: None, t: int) -> tuple[None, Fitted]:
        """Learn every replicate's model."""
        replicates = world.streams.replicates
        learned: list[Any] = [None] * len(replicates)
        generators = world.streams.generators(Role.SELECTION)

        def work(begin: int, end: int) -> None:
            for r in range(begin, end):
                learned[r] = self.learn(world.problem.batches[replicates[r]], generators[r])

        in_parts(work, len(replicates))
        if self.box is None:
            corners = 2 * world.problem.dimension
            world.channel.uplink("box", None, corners)
            world.channel.broadcast("box", None, corners)
        world.channel.uplink("samples", None, np.stack([one.scalars for one in learned]))
        world.channel.broadcast("model", None, np.array([[one.received] for one in learned]))
        return state, _fitted(learned)

    def learn(self, batch: Batch, rng: np.random.Generator) -> Learned:
        """One replicate's model."""
        raise NotImplementedError

    def quadrature(self, x: Array, rng: np.random.Generator) -> Quadrature:
        """Nodes for training samples x (n, d)."""
        if self.box is not None:
            fits = len(self.box) == 2 and all(len(corner) == x.shape[1] for corner in self.box)
            require(fits, "box", self.box, f"a lower and an upper corner of {x.shape[1]} numbers each, or null")
        box = box_of(x) if self.box is None else np.asarray(self.box, np.float64)
        longest = float((box[1] - box[0]).max())
        widths = [share * longest for share in FALLBACK_WIDTHS] if self.widths is None else self.widths
        nodes = self.centres * len(widths)
        require_memory(nodes * NODE_BYTES, f"{nodes} centres and widths", "algo.centres or the number of algo.widths")
        return Quadrature.over(box, self.centres, widths, rng)

    def ascend(self, problem: Dual, start: Array) -> Solution:
        """Solve a problem with the keys' rule, budget of steps and tolerance."""
        return solve(problem, start, self.steps, rule=self.rule, eta=self.eta, tolerance=self.tolerance)


def training(batch: Batch) -> tuple[Array, Array, NDArray[np.int64]]:
    """Training samples, targets and clients, in float64 whatever the run's precision."""
    x, y, client = batch.part(True)
    return x.astype(np.float64), y, client


def targets(y: Array) -> tuple[Array, list[Array]]:
    """Values of a target (n,), and labels -1 and 1 of each function to be learned.

    Raises
    ------
    fkl.errors.FklError
        If there is one value, or so many that it is no class.
    """
    classes = np.unique(y)
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise FklError(f"the target has {len(classes)} values, where classes are learned: 2 to {MOST_CLASSES}")
    chosen = classes[1:] if len(classes) == 2 else classes
    return classes, [np.where(y == value, 1.0, -1.0) for value in chosen]


def _fitted(learned: list[Learned]) -> Fitted:
    """What the replicates' models tell."""

    def each(figure: Callable[[Learned], float]) -> Array:
        return np.array([figure(one) for one in learned], np.float64)

    costs = [
        np.sum([representation(of.problem.quadrature, of.alpha[0]) for of in one.final], axis=0) for one in learned
    ]
    figures = {
        "active_nodes": np.array([cost[0] for cost in costs], np.float64),
        "regions": np.array([cost[1] for cost in costs], np.float64),
        "peaks": np.array([cost[2] for cost in costs], np.float64),
        "sent_samples": each(lambda one: one.sent.sum()),
        "dual_value": each(lambda one: sum(float(of.value.sum()) for of in one.final)),
        "gap": each(lambda one: max(float(of.gap.max()) for of in one.final)),
        "agents_gap": each(lambda one: max(float(of.gap.max()) for of in one.local or one.final)),
        "violation": each(lambda one: max(float(of.violation.max()) for of in one.final)),
        "slackness": each(lambda one: max(float(of.slackness.max()) for of in one.final)),
        "converged": each(lambda one: np.mean([of.finished.mean() for of in one.final])),
        "agents_converged": each(lambda one: np.mean([of.finished.mean() for of in one.local or one.final])),
    }
    sent = np.stack([one.sent for one in learned])
    return Fitted(tuple(one.predict for one in learned), figures, {"sent_samples": sent})
