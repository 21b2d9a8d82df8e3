"""Baselines of parsimonious functions: an SVM on all samples, and an SVM on the agents' support vectors.

The latter is a two-layer cascade (Graf, Cosatto, Bottou, Dourdanovic and Vapnik, Parallel Support Vector Machines: The
Cascade SVM, NIPS 2004): as in the federated learner, agents send the relevant samples of their own classifiers once.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.contract.star import CommonOfClasses, OneShot, Owned, Predictors, Turn, by_replicate
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.functions import Classes
from fkl.tasks.batch import HoldOut
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.task import Task
from fkl.wire.payloads import Ragged

Integers = NDArray[np.int64]
SAMPLES, MODEL = range(2)
"""Numbers of the exchanges."""
BLOCK = 1 << 22
"""Number of kernel values in memory at a time, for predictions."""


@dataclass(frozen=True)
class SentSamples:
    """Message of a client: samples, as features (n, d) and classes (n,)."""

    samples: tuple[Ragged, Ragged]


@dataclass(frozen=True)
class MachineModel:
    """Message to all clients: `Decision`'s arrays without the classes; the scale only if no width is given."""

    model: tuple[Ragged, ...]


@dataclass(frozen=True)
class MachinesServer:
    """State of the server: trained machines of all replicates."""

    trained: "tuple[TrainedMachine, ...]" = ()


class TrainedMachine(NamedTuple):
    """A replicate's scikit-learn machine, and the scale of its kernel exp(-scale |x - x'|^2)."""

    machine: Any
    scale: float


@dataclass(frozen=True)
class MachinesClient:
    """State of a client: numbers of samples (R, K) that it sent."""

    sent: Integers


@dataclass(frozen=True)
class Decision:
    """A machine as arrays, with a vote between every two classes.

    Parameters
    ----------
    classes : (C,)
    support : (m, d)
        Support vectors, class after class.
    weight : (m, C - 1)
        Weights of each support vector in the votes between its class and the others.
    bias : (C (C - 1) / 2,)
    count : (C,)
        Number of support vectors of each class; empty for two classes, whose weights have opposite signs.
    scale : (1,)
        The kernel is exp(-scale |x - x'|^2).
    """

    classes: Array
    support: Array
    weight: Array
    bias: Array
    count: Array
    scale: Array

    @staticmethod
    def machine_arrays(machine: Any) -> tuple[Array, ...]:
        """Support, weight, bias and count of scikit-learn's machine, whose signs are reversed for two classes."""
        two = len(machine.classes_) == 2
        sign, count = (-1.0, np.zeros(0)) if two else (1.0, machine.n_support_)
        return machine.support_vectors_, sign * machine.dual_coef_.T, sign * machine.intercept_, count

    def __call__(self, x: NDArray[Any]) -> Array:
        """Class of each sample (n, d): the class with the most votes, in ties the first."""
        from sklearn.metrics.pairwise import rbf_kernel

        x = np.asarray(x, np.float64)
        # Every pair of classes votes, in parts of rows whose kernel values fit in memory
        votes = np.zeros((len(x), len(self.classes)), np.int64)
        for rows in row_blocks(len(x), len(self.support), BLOCK):
            kernel, here = rbf_kernel(x[rows], self.support, gamma=float(self.scale[0])), votes[rows]
            # libsvm stores a vector's weight for the pair (i, j) in column j - 1 if it is of class i, else in column i
            for pair, (i, j, mine, theirs) in enumerate(self._class_pairs()):
                f = kernel[:, mine] @ self.weight[mine, j - 1] + kernel[:, theirs] @ self.weight[theirs, i]
                for_i = f + self.bias[pair] > 0
                here[:, i] += for_i
                here[:, j] += ~for_i
        return self.classes[votes.argmax(axis=1)] if len(x) else np.zeros(0)

    @property
    def function(self) -> Classes:
        """The machine as arrays of a stored model."""
        coefficients = np.zeros((len(self.bias), 1, len(self.support)))
        for pair, (i, j, mine, theirs) in enumerate(self._class_pairs()):
            coefficients[pair, 0, mine] = self.weight[mine, j - 1]
            coefficients[pair, 0, theirs] = self.weight[theirs, i]
        first_two = self.classes, np.array(True)
        return Classes.gaussian(self.support, np.sqrt(2 * self.scale), coefficients, self.bias, *first_two)

    def _class_pairs(self) -> list[tuple[int, int, slice, slice]]:
        """Every pair of classes, with the positions of their support vectors."""
        first = np.count_nonzero(self.weight[:, 0] > 0)
        ends = np.cumsum([0, *(self.count if len(self.count) else (first, len(self.weight) - first))]).astype(np.int64)
        rows_of_class = [slice(begin, end) for begin, end in pairwise(ends)]
        return [(i, j, rows_of_class[i], rows_of_class[j]) for i, j in combinations(range(len(self.classes)), 2)]


@dataclass(frozen=True)
class MachineBaseline(OneShot, HoldOut):
    """Keys of both baselines: scikit-learn's SVC with the Gaussian kernel exp(-|x - x'|^2 / (2 width^2))."""

    exchanges: ClassVar[int] = 2
    task: ClassVar[type[Task]] = PerReplicateTask

    C: float = key(1.0, "Weight of the hinge losses.", above=0)
    width: float | None = key(
        None,
        'None for SVC\'s gamma="scale": width^2 is half the number of features times the variance of all values.',
        above=0,
    )

    def start(self, common: CommonOfClasses, clients: int) -> tuple[MachinesServer, MachinesClient]:  # type: ignore[override]
        """Start without a machine."""
        return MachinesServer(), MachinesClient(np.zeros((len(common.streams.replicates), clients), np.int64))

    def broadcast(self, common: CommonOfClasses, server: MachinesServer, turn: Turn) -> MachineModel | None:  # type: ignore[override]
        """Send the machine in the last exchange."""
        if turn.exchange < MODEL:
            return None
        scales = [() if self.width else (np.array([of.scale]),) for of in server.trained]
        models = [
            (*Decision.machine_arrays(of.machine), *scale) for of, scale in zip(server.trained, scales, strict=True)
        ]
        return MachineModel(tuple(Ragged(tuple((one,) for one in column)) for column in zip(*models, strict=True)))

    def client(  # type: ignore[override]
        self, common: CommonOfClasses, client: MachinesClient, down: MachineModel | None, samples: Owned, turn: Turn
    ) -> tuple[MachinesClient, SentSamples | None, Predictors | None]:
        """Send samples, and later predict with the server's machine."""
        # The last exchange: machines of the server
        if down is not None:
            scales = [np.array([self.scale()])] if self.width else []
            models = zip(*(payload.values for payload in down.model), strict=True)
            machines = [[*(array for [array] in of), *scales] for of in models]
            both = zip(common.classes, machines, strict=True)
            return client, None, tuple(Decision(classes, *arrays) for classes, arrays in both)

        def sent_of(r: int) -> list[tuple[Array, Array]]:
            pairs = list(zip(samples.x.values[r], samples.y.values[r], strict=True))
            chosen = [self.samples_to_send(x, y) for x, y in pairs]
            return [(x[here], y[here]) for (x, y), here in zip(pairs, chosen, strict=True)]

        # Otherwise send the samples that the method chooses, by replicate and client
        chosen = by_replicate(sent_of, len(samples.y.values))
        x, y = (Ragged(tuple(tuple(one[part] for one in of_one) for of_one in chosen)) for part in range(2))
        return (
            MachinesClient(np.array([[len(one) for one in of_one] for of_one in y.values])),
            SentSamples((x, y)),
            None,
        )

    def server(  # type: ignore[override]
        self, common: CommonOfClasses, server: MachinesServer, up: SentSamples | None, share: Array, turn: Turn
    ) -> MachinesServer:
        """Train every replicate's machine on the samples that were sent."""
        if up is None:
            return server
        x, y = up.samples
        pools = [tuple(map(np.concatenate, both)) for both in zip(x.values, y.values, strict=True)]
        return MachinesServer(tuple(by_replicate(lambda r: self.train_machine(*pools[r]), len(pools))))

    def told(
        self, server: MachinesServer, client: MachinesClient
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Numbers of support vectors and of sent samples."""
        kept = np.array([len(of.machine.support_) for of in server.trained], np.float64)
        figures = {"support_vectors": kept, "sent_samples": client.sent.sum(axis=1).astype(np.float64)}
        return figures, {"sent_samples": client.sent}

    def functions(self, world: World, state: Any, t: int) -> tuple[Classes, ...]:
        """Every replicate's machine."""
        return tuple(decision.function for decision in state)

    def samples_to_send(self, x: Array, y: Array) -> Integers:
        """Indices of the samples, among (n, d) and (n,), that a client sends."""
        raise NotImplementedError

    def train_machine(self, x: Array, y: Array) -> TrainedMachine:
        """A machine trained on these samples of two or more classes."""
        from sklearn.svm import SVC

        variance = x.shape[1] * float(x.var())
        scale = self.scale() if self.width else 1 / variance if variance else 1.0
        _, number = np.unique(y, return_inverse=True)  # numbers, because SVC would reject fractions as classes
        return TrainedMachine(SVC(C=self.C, gamma="scale" if self.width is None else scale).fit(x, number), scale)

    def scale(self) -> float:
        """Scale of the kernel with the given width."""
        assert self.width is not None
        return 1 / (2 * self.width**2)


@dataclass(frozen=True)
class PooledMachine(MachineBaseline):
    """Agents send all their samples."""

    label: ClassVar[str] = "SVM"

    def samples_to_send(self, x: Array, y: Array) -> Integers:
        """All samples."""
        return np.arange(len(y))


@dataclass(frozen=True)
class CascadeMachine(MachineBaseline):
    """Agents send the support vectors of their own machines; an agent with only one class sends all samples."""

    label: ClassVar[str] = "Cascade SVM"

    def samples_to_send(self, x: Array, y: Array) -> Integers:
        """Support vectors of the client's own machine."""
        one_class = len(np.unique(y)) == 1
        return np.arange(len(y)) if one_class else np.sort(self.train_machine(x, y).machine.support_)
