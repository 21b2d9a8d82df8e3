"""The federated (PF) and the centralized learner (PC) of Peifer and Ribeiro.

Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces. PF is Algorithms 2 and 3. PC
is Algorithm 1, which solves the same problem on all samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.algorithms.parsimonious.dual import Dual, NodesModel, Solution, maximise_dual, model_size
from fkl.algorithms.parsimonious.solver import Quadrature, smallest_box
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.basics.random_streams import Role
from fkl.contract.star import CommonOfClasses, OneShot, Owned, Predictors, Turn, by_replicate
from fkl.kernels.functions import Classes
from fkl.tasks.batch import HoldOut
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.task import Task
from fkl.wire.payloads import PerClient, Ragged, SameForAll

FALLBACK_WIDTHS = (1 / 28, 1 / 14, 1 / 7)
NODE_BYTES = 90
"""Least memory of a centre and width: weight, alpha, and neighbours, which are used to count peaks of alpha."""
BOX, SAMPLES, MODEL = range(3)
"""Numbers of the exchanges."""


@dataclass(frozen=True)
class Corners:
    """Message of a client: lower and upper corner (2, d) of its samples."""

    box: PerClient


@dataclass(frozen=True)
class Box:
    """Message to all clients: lower and upper corner of all centres."""

    box: SameForAll


@dataclass(frozen=True)
class NodesMessage:
    """Message to all clients: the model, as numbers and coefficients of nodes, function after function.

    All parties know the centre and width of each node.
    """

    model: tuple[Ragged, Ragged]


@dataclass(frozen=True)
class ModelServer:
    """The server's state.

    Parameters
    ----------
    box : (R, 2, d)
    final : tuple of tuple of Solution
        Solutions, by replicate and function.
    """

    box: Array
    final: tuple[tuple[Solution, ...], ...] = ()


@dataclass(frozen=True)
class SamplesClient:
    """The clients' state.

    Parameters
    ----------
    box : (R, 2, d)
    sent : (R, K) int
        Number of samples that each client sent.
    local : tuple of tuple of Solution
        Solutions, by replicate and function; empty if clients solve no problem.
    """

    box: Array
    sent: NDArray[np.int64]
    local: tuple[tuple[Solution, ...], ...] = ()


@dataclass(frozen=True)
class Parsimonious(OneShot, HoldOut):
    """Classification by f(x), the integral of alpha(s, w) k(x, s; w) over centres s and widths w, with few alpha != 0.

    With more than two classes, each class is learned against the rest.
    """

    exchanges: ClassVar[int] = 3
    task: ClassVar[type[Task]] = PerReplicateTask
    compiled_only: ClassVar[bool] = True

    gamma: float = key(25.0, "Weight of the support's measure.", min=0)
    eps: float = key(0.01, "The constraint is y f(x) >= 1 - eps.", below=1)
    steps: int = key(1000, "Maximum number of Newton steps for each problem.", min=1, max=1_000_000_000)
    tolerance: float = key(
        1e-7,
        "A problem is solved when its duality gap is at most this, in units of the cost. The gap is that of a point "
        "that meets all constraints. The alpha of eq. (8), which is sent, may violate them: see the column "
        "`violation`.",
        min=0,
    )
    centres: int = key(
        1296, "Number of centres per width: on a grid in up to three dimensions, else drawn.", min=1, max=1_000_000
    )
    widths: list[float] | None = key(
        None,
        "Widths; None for a 28th, a 14th and a 7th of the box's longest side, which are 1, 2 and 4 in the box of the "
        "paper's simulated data set.",
    )
    box: list[list[float]] | None = key(
        None,
        "Lower and upper corner of the box of centres. None for the smallest box around all clients' training samples: "
        "each client then sends the corners of its own box, and receives those of the common box.",
    )

    def start(self, common: CommonOfClasses, clients: int) -> tuple[ModelServer, SamplesClient]:  # type: ignore[override]
        """Start with the box if it is given."""
        R, d = len(common.streams.replicates), common.dimension
        if self.box is not None:
            fits = len(self.box) == 2 and all(len(corner) == d for corner in self.box)
            require(fits, "box", self.box, f"a lower and an upper corner of {d} numbers each, or null")
        box = np.broadcast_to(np.zeros((2, d)) if self.box is None else np.asarray(self.box, np.float64), (R, 2, d))
        return ModelServer(box), SamplesClient(box, np.zeros((R, clients), np.int64))

    def broadcast(self, common: CommonOfClasses, server: ModelServer, turn: Turn) -> Box | NodesMessage | None:  # type: ignore[override]
        """Send the box, and in the last exchange the model."""
        # The box that the server made of all corners, unless a key gives it
        if turn.exchange == SAMPLES and self.box is None:
            return Box(SameForAll(server.box))
        if turn.exchange < MODEL:
            return None
        # Node numbers continue from one function of a replicate to the next, so one array holds all
        nodes, coefficients = [], []
        for solutions in server.final:
            models = [solution.model() for solution in solutions]
            numbers = [model.active + number * model.quadrature.size for number, model in enumerate(models)]
            nodes.append((np.concatenate(numbers),))
            coefficients.append((np.concatenate([model.coefficients for model in models]),))
        return NodesMessage((Ragged(tuple(nodes)), Ragged(tuple(coefficients))))

    def client(  # type: ignore[override]
        self, common: CommonOfClasses, client: SamplesClient, down: Any, samples: Owned, turn: Turn
    ) -> tuple[SamplesClient, Any, Predictors | None]:
        """Send the corners, then samples, and finally predict with the server's model."""
        # 1. Corners of the client's samples
        if turn.exchange == BOX:
            corners = np.array([[[one.min(axis=0), one.max(axis=0)] for one in of_one] for of_one in samples.x.values])
            return client, Corners(PerClient(corners)) if self.box is None else None, None
        # 2. Samples; all clients need the same box, because nodes are numbered in it
        if turn.exchange == SAMPLES:
            client = client if down is None else replace(client, box=down.box.values)
            client, up = self.choose_samples(common, client, samples, turn)
            return client, up, None
        # Each replicate's classifier, from the server's model
        nodes, coefficients = down.model
        made = []
        for r, classes in enumerate(common.classes):
            quadrature = self.quadrature(common, client.box, r)
            function, node = np.divmod(nodes.values[r][0], quadrature.size)
            of = [function == number for number in range(len(signed_labels(classes, classes)))]
            models = [NodesModel(quadrature, node[here], coefficients.values[r][0][here]) for here in of]
            made.append(Classifier(classes, tuple(models)))
        return client, None, tuple(made)

    def server(  # type: ignore[override]
        self, common: CommonOfClasses, server: ModelServer, up: Any, share: Array, turn: Turn
    ) -> ModelServer:
        """Compute the box around all corners, then the solution on the samples that were sent."""
        # The box around all corners, by replicate
        if turn.exchange == BOX and up is not None:
            return replace(
                server, box=np.stack([smallest_box(one.reshape(-1, common.dimension)) for one in up.box.values])
            )
        # Solve on the samples that were sent; replicates in threads
        if turn.exchange == SAMPLES:
            final = by_replicate(lambda r: self.solve(common, server.box, up, r), len(server.box))
            return replace(server, final=tuple(final))
        return server

    def choose_samples(
        self, common: CommonOfClasses, client: SamplesClient, samples: Owned, turn: Turn
    ) -> tuple[SamplesClient, Any]:
        """The clients' states, with the samples that they send."""
        raise NotImplementedError

    def solve(self, common: CommonOfClasses, box: Array, up: Any, r: int) -> tuple[Solution, ...]:
        """One replicate's solutions on the samples that were sent, function by function."""
        raise NotImplementedError

    def quadrature(self, common: CommonOfClasses, box: Array, r: int) -> Quadrature:
        """The nodes in a replicate's box, which are the same for all parties."""
        [rng] = common.streams.replicate(r).generators(Role.SELECTION)
        longest = float((box[r][1] - box[r][0]).max())
        widths = [share * longest for share in FALLBACK_WIDTHS] if self.widths is None else self.widths
        nodes = self.centres * len(widths)
        require_memory(nodes * NODE_BYTES, f"{nodes} centres and widths", "algo.centres or the number of algo.widths")
        return Quadrature.over_box(box[r], self.centres, widths, rng)

    def solution(self, problem: Dual) -> Solution:
        """Solve a problem with `steps` and `tolerance`."""
        return maximise_dual(problem, self.steps, self.tolerance)

    def told(
        self, server: ModelServer, client: SamplesClient
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Sizes of the model, numbers of sent samples, and accuracy of the solutions."""
        # Clients' own solutions, which some methods do not have
        local = client.local or server.final

        def each(figure: Callable[[tuple[Solution, ...]], Any], of: Sequence[tuple[Solution, ...]]) -> Array:
            return np.array([figure(one) for one in of], np.float64)

        # Sizes of the models: nodes, regions and peaks, summed over the classes
        costs = [np.sum([model_size(of.problem.quadrature, of.alpha[0]) for of in one], axis=0) for one in server.final]
        # Gaps and violations show whether the solver has found the optimum
        figures = {
            "active_nodes": np.array([cost[0] for cost in costs], np.float64),
            "regions": np.array([cost[1] for cost in costs], np.float64),
            "peaks": np.array([cost[2] for cost in costs], np.float64),
            "sent_samples": client.sent.sum(axis=1).astype(np.float64),
            "dual_value": each(lambda one: sum(float(of.value.sum()) for of in one), server.final),
            "gap": each(lambda one: max(float(of.gap.max()) for of in one), server.final),
            "agents_gap": each(lambda one: max(float(of.gap.max()) for of in one), local),
            "violation": each(lambda one: max(float(of.violation.max()) for of in one), server.final),
            "slackness": each(lambda one: max(float(of.slackness.max()) for of in one), server.final),
            "converged": each(lambda one: np.mean([of.finished.mean() for of in one]), server.final),
            "agents_converged": each(lambda one: np.mean([of.finished.mean() for of in one]), local),
        }
        return figures, {"sent_samples": client.sent}

    def functions(self, world: World, state: Any, t: int) -> tuple[Classes, ...]:
        """Every replicate's model."""
        return tuple(classifier.function for classifier in state)


@dataclass(frozen=True)
class Classifier:
    """One replicate's model.

    Parameters
    ----------
    classes : (C,)
        Values of the target. With two classes, the only function is that of the higher one.
    models : tuple of Model
        A function for each class.
    """

    classes: Array
    models: tuple[NodesModel, ...]

    def __call__(self, x: NDArray[Any]) -> Array:
        """Class of each sample (n, d): by the sign of f for two classes, else by the largest f; NaN if f = 0."""
        f = np.stack([model.predict(np.asarray(x, np.float64)) for model in self.models], axis=1)
        if len(self.models) > 1:
            return np.where(f.any(axis=1), self.classes[f.argmax(axis=1)], np.nan)
        return np.select([f[:, 0] > 0, f[:, 0] < 0], [self.classes[1], self.classes[0]], np.nan)

    @property
    def function(self) -> Classes:
        """The model as arrays of a stored model: all active nodes, and one kernel per width."""
        width, active = self.models[0].quadrature.width, [model.active for model in self.models]
        kept = np.unique(np.concatenate(active))
        nodes, of_width = self.models[0].quadrature, kept // (self.models[0].quadrature.size // len(width))
        coefficients = np.zeros((len(self.models), len(width), len(kept)))
        for k, model in enumerate(self.models):
            here = np.searchsorted(kept, model.active)
            coefficients[k, of_width[here], here] = model.coefficients
        known = self.classes, np.array(False)
        return Classes.gaussian(nodes.nodes[kept], 1 / width, coefficients, np.zeros(len(self.models)), *known)


def signed_labels(classes: Array, y: Array) -> list[Array]:
    """Labels -1 and 1 for a target (n,), for each function to be learned."""
    chosen = classes[1:] if len(classes) == 2 else classes
    return [np.where(y == value, 1.0, -1.0) for value in chosen]


@dataclass(frozen=True)
class Critical:
    """Message of a client: relevant samples of its own problems, as features (n, d), class (n,) and mu (n, F)."""

    samples: tuple[Ragged, Ragged, Ragged]


@dataclass(frozen=True)
class FederatedParsimonious(Parsimonious):
    """Agents solve their own problems and send the relevant samples once; the server solves the problem on these."""

    label: ClassVar[str] = "PF"

    def choose_samples(
        self, common: CommonOfClasses, client: SamplesClient, samples: Owned, turn: Turn
    ) -> tuple[SamplesClient, Critical]:
        """Run Algorithm 2. The agents' problems are solved in one call, but do not affect each other by a bit."""

        def of_one(r: int) -> tuple[tuple[Solution, ...], Array]:
            # A problem for each class, in which the class has the label 1 and all others -1
            x, y, agent = samples.samples_of_replicate(r)
            quadrature = self.quadrature(common, client.box, r)
            local, mu = [], []
            for label in signed_labels(common.classes[r], y):
                problem = Dual.of_agents(quadrature, x, label, agent, self.gamma, self.eps)
                local.append(self.solution(problem))
                # Samples are ordered by agent, so the order of the problems' rows is that of the samples
                mu.append(local[-1].mu[problem.present])
            return tuple(local), np.stack(mu, axis=1)

        # Send samples with mu > 0 for some class: the others do not affect the solution
        local, mus = zip(*by_replicate(of_one, len(samples.x.values)), strict=True)
        sent: list[list[list[Array]]] = [[], [], []]
        # Cut the multipliers by client, as the samples are
        for r, mu in enumerate(mus):
            ends = np.cumsum([len(one) for one in samples.y.values[r]])[:-1]
            samples_of_agents = list(zip(samples.x.values[r], samples.y.values[r], np.split(mu, ends), strict=True))
            for number, column in enumerate(sent):
                column.append([parts[number][(parts[2] > 0).any(axis=1)] for parts in samples_of_agents])
        count = np.array([[len(one) for one in of_one] for of_one in sent[1]])
        payloads = [Ragged(tuple(map(tuple, column))) for column in sent]
        return replace(client, local=local, sent=count), Critical((payloads[0], payloads[1], payloads[2]))

    def solve(self, common: CommonOfClasses, box: Array, up: Critical, r: int) -> tuple[Solution, ...]:
        """Run Algorithm 3. The paper starts from the agents' mu, but Newton's method needs no starting point."""
        x, y, _ = (np.concatenate(payload.values[r]) for payload in up.samples)
        quadrature = self.quadrature(common, box, r)
        return tuple(
            self.solution(Dual.single_problem(quadrature, x, label, self.gamma, self.eps))
            for label in signed_labels(common.classes[r], y)
        )


@dataclass(frozen=True)
class Pool:
    """Message of a client: all its samples, as features (n, d) and classes (n,)."""

    samples: tuple[Ragged, Ragged]


@dataclass(frozen=True)
class Centralized(Parsimonious):
    """Agents send all their samples, and the server solves the problem on these (Algorithm 1)."""

    label: ClassVar[str] = "PC"

    def choose_samples(
        self, common: CommonOfClasses, client: SamplesClient, samples: Owned, turn: Turn
    ) -> tuple[SamplesClient, Pool]:
        """All samples."""
        count = np.array([[len(one) for one in of_one] for of_one in samples.y.values])
        return replace(client, sent=count), Pool((samples.x, samples.y))

    def solve(self, common: CommonOfClasses, box: Array, up: Pool, r: int) -> tuple[Solution, ...]:
        """Solve one problem per function."""
        x, y = (np.concatenate(payload.values[r]) for payload in up.samples)
        quadrature = self.quadrature(common, box, r)
        problems = [
            Dual.single_problem(quadrature, x, label, self.gamma, self.eps)
            for label in signed_labels(common.classes[r], y)
        ]
        return tuple(self.solution(problem) for problem in problems)
