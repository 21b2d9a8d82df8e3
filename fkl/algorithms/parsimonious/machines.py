"""What parsimonious functions stand beside: one SVM on all samples, and one on the agents' support vectors.

The latter is a cascade of two layers (Graf, Cosatto, Bottou, Dourdanovic and Vapnik, Parallel Support Vector Machines:
The Cascade SVM, NIPS 2004): like the federated learner, agents send once the samples that matter to their own
classifier.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Fitted, Split, World
from fkl.algorithms.parsimonious.learner import targets, training
from fkl.algorithms.parsimonious.quadrature import Array
from fkl.data.problem import Batch
from fkl.errors import require
from fkl.kernels.threads import in_parts
from fkl.tasks.repeated import RepeatedTask
from fkl.tasks.task import Task


@dataclass(frozen=True)
class Trained:
    """One replicate's machine.

    Parameters
    ----------
    machine : sklearn.svm.SVC
    sent : (K,) int
        Samples that each client sent.
    """

    machine: Any
    sent: NDArray[np.int64]

    def predict(self, x: Array) -> Array:
        """Class of each sample (n, d)."""
        classes: Array = self.machine.predict(np.asarray(x, np.float64))
        return classes


@dataclass(frozen=True)
class Machine(Split):
    """Keys of both: those of scikit-learn's SVC with a Gaussian kernel exp(-|x - x'|^2 / (2 width^2)).

    Parameters
    ----------
    C : float
        Weight of the hinge losses.
    width : float or None
        None for what SVC calls gamma="scale": width^2 is half the number of features times the variance of all values.

    Raises
    ------
    fkl.errors.BadValue
    """

    task: ClassVar[type[Task]] = RepeatedTask

    C: float = 1.0
    width: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.C < np.inf, "C", self.C, "a number above 0")
        require(self.width is None or 0 < self.width < np.inf, "width", self.width, "a number above 0, or null")

    def init(self, world: World) -> None:
        """Nothing is kept between rounds: there is one."""

    def step(self, world: World, state: None, t: int) -> tuple[None, Fitted]:
        """Train every replicate's machine. A sample travels with its features and its class, in both directions."""
        replicates = world.streams.replicates
        trained: list[Any] = [None] * len(replicates)

        def work(begin: int, end: int) -> None:
            for r in range(begin, end):
                trained[r] = self.learn(world.problem.batches[replicates[r]])

        in_parts(work, len(replicates))
        sent = np.stack([one.sent for one in trained])
        kept = np.array([len(one.machine.support_) for one in trained])
        scalars = world.problem.dimension + 1
        world.channel.uplink("samples", None, sent * scalars)
        world.channel.broadcast("model", None, kept[:, None] * scalars)
        figures = {"support_vectors": kept.astype(np.float64), "sent_samples": sent.sum(axis=1).astype(np.float64)}
        return state, Fitted(tuple(one.predict for one in trained), figures, {"sent_samples": sent})

    def learn(self, batch: Batch) -> Trained:
        """One replicate's machine."""
        x, y, agent = training(batch)
        targets(y)
        sends = self.sends(x, y, agent)
        return Trained(self.trained(x[sends], y[sends]), np.bincount(agent[sends], minlength=batch.clients))

    def sends(self, x: Array, y: Array, agent: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the samples that agents send."""
        raise NotImplementedError

    def trained(self, x: Array, y: Array) -> Any:
        """A machine of these samples, of two classes or more."""
        from sklearn.svm import SVC

        gamma = "scale" if self.width is None else 1 / (2 * self.width**2)
        return SVC(C=self.C, gamma=gamma).fit(x, y)


@dataclass(frozen=True)
class PooledMachine(Machine):
    """Agents send all their samples."""

    label: ClassVar[str] = "SVM"

    def sends(self, x: Array, y: Array, agent: NDArray[np.int64]) -> NDArray[np.int64]:
        """All."""
        return np.arange(len(y))


@dataclass(frozen=True)
class CascadeMachine(Machine):
    """Agents send the support vectors of their own machines; one whose samples are all of one class sends them all."""

    label: ClassVar[str] = "Cascade SVM"

    def sends(self, x: Array, y: Array, agent: NDArray[np.int64]) -> NDArray[np.int64]:
        """Support vectors of each agent."""
        chosen = []
        for number in np.unique(agent):
            mine = np.flatnonzero(agent == number)
            one_class = len(np.unique(y[mine])) == 1
            chosen.append(mine if one_class else mine[self.trained(x[mine], y[mine]).support_])
        return np.sort(np.concatenate(chosen))
