"""Samples that agents or clients have from the start, and values that each derives from its own."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.kernels import FeatureBank
from fkl.kernels.feature_rows import Rows, Space
from fkl.kernels.losses import LOSSES, ClassBank, Loss, Minimiser, OfNumbers, rows_in


@dataclass(frozen=True)
class BatchSamples:
    """The training samples of the agents that play, each agent's its own.

    Parameters
    ----------
    rows : Rows
        Features in the space of the only kernel.
    loss : OfNumbers
    agents : int
        N, for the whole graph: each agent has a share of 1/N of terms about all agents together.

    Attributes
    ----------
    factored : dict
        Values that `minimise` derived from the samples, kept for later calls; it is large, and not part of a state.
    """

    rows: Rows
    loss: OfNumbers
    agents: int
    factored: dict[bytes, Minimiser] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_samples(cls, bank: FeatureBank, x: Array, y: Array, loss: OfNumbers, agents: int) -> "BatchSamples":
        """Samples of one agent, x (n, d) and y (n,)."""
        return cls(Rows.from_samples(bank, x, y, np.array([len(y)]), loss.compressed), loss, agents)

    def gradient(self, theta: Array) -> Array:
        """Gradient of each agent's mean loss at theta (R, K, P)."""
        return self.loss.gradient(self.rows, theta)

    @property
    def gone_over(self) -> Any:
        """Arrays that every iteration reads: values derived from the samples, or the samples themselves."""
        return self.factored or vars(self.rows).get("normal") or self.rows

    def minimise(self, c: NDArray[np.float64], v: Array, start: Array) -> Array:
        """Theta (R, K, P) that minimises each agent's (mean loss) + c_i |theta|^2 - v_i'theta.

        Parameters
        ----------
        c : (K,)
            Above 0. The samples are factored once for all calls with the same c.
        v : (R, K, P)
        start : (R, K, P)
            Start of a search, if the minimiser has to search.
        """
        key: Any = c.tobytes()
        if key not in self.factored:
            self.factored.clear()
            self.factored[key] = self.loss.minimiser(self.rows, c)
        return self.factored[key](v, start)


@dataclass(frozen=True)
class OwnSamples:
    """The training samples of the agents that play, for a method that makes its own features from them.

    Parameters
    ----------
    x : (K, n, d)
        Zero in rows beyond an agent's number of samples.
    y : (K, n)
        Also zero there.
    count : (K,) int64
    mean : float
        Mean number of samples of an agent, over the whole graph.

    Attributes
    ----------
    kept : dict
        Values that a method derived from the samples, kept for later iterations; it is large, and not part of a state.
    """

    x: Array
    y: NDArray[np.float64]
    count: NDArray[np.int64]
    mean: float
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_samples(cls, x: Array, y: NDArray[np.float64], count: NDArray[np.int64], mean: float) -> "OwnSamples":
        """Samples from x (n, d) and y (n,), agent after agent."""
        padded, targets = np.zeros((len(count), int(count.max()), x.shape[1])), np.zeros((len(count), int(count.max())))
        ends = np.cumsum(count)
        for k, (start, end) in enumerate(zip(ends - count, ends, strict=True)):
            padded[k, : end - start], targets[k, : end - start] = x[start:end], y[start:end]
        return cls(padded, targets, count, mean)

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether an entry is a sample, (K, n)."""
        return np.arange(self.y.shape[1]) < self.count[:, None]


class Made:
    """Values derived from samples, by name, kept for later rounds; it is large, and not part of a state."""

    def __init__(self, named: dict[str, Any] | None = None) -> None:
        self.named = {} if named is None else named


@dataclass(frozen=True)
class Held:
    """The training samples of the clients that play; each client has its own.

    Parameters
    ----------
    x : (n, d)
        Client after client.
    y : (n,) float64
    count : (K,) int
        Number of samples of each client.
    present : (K,) bool
        Whether a client takes part in this round.
    loss : Loss
    each : bool
        Whether the loss of each sample is needed; `Rows` must then not be compressed.
    made : Made
    """

    x: Array
    y: NDArray[np.float64]
    count: NDArray[np.int64]
    present: NDArray[np.bool_]
    loss: Loss
    each: bool = False
    made: Made = field(default_factory=Made, repr=False, compare=False)

    @classmethod
    def of_client(cls, x: Array, y: NDArray[np.float64], loss: str) -> "Held":
        """All samples of a client that is present."""
        return cls(x, y, np.array([len(y)]), np.ones(1, np.bool_), LOSSES[loss])

    def rows(self, space: str, bank: Callable[[], Space | ClassBank]) -> Rows:
        """All samples in a feature space, mapped once."""
        made = self.made.named
        if space not in made:
            compressed = self.loss.compressed and not self.each
            made[space] = rows_in(bank(), self.x, self.y, self.count, compressed)
        return made[space]

    def flipped(self) -> "Held":
        """The same samples with targets -y."""
        made = self.made.named
        if "flipped" not in made:
            made["flipped"] = replace(self, y=-self.y, made=Made())
        return replace(made["flipped"], present=self.present)
