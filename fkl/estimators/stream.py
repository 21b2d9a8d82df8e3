"""A method of one learner, played on as far as the samples of its stream have come."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, require
from fkl.basics.random_streams import Streams
from fkl.contract.world import World
from fkl.engines.divergence import blame
from fkl.estimators.base import IncrementalRegressor, chosen_kernels, seed_of_random_state
from fkl.kernels import Dictionary

Array = NDArray[np.floating]
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Window:
    """A stream of one client of which only some samples are at hand: what a learner gets in place of a `Problem`.

    Parameters
    ----------
    x : (n, d)
    y : (n,) float64
    first : int
        Round of the first of them.
    rounds : int
        How many the stream is foreseen to have.
    """

    x: Array
    y: NDArray[np.float64]
    first: int
    rounds: int

    clients: ClassVar[int] = 1
    present: ClassVar[NDArray[np.bool_]] = np.ones((1, 1), np.bool_)

    @property
    def dimension(self) -> int:
        """Length d of a sample."""
        return self.x.shape[1]

    def block(self, rounds: slice) -> tuple[Array, NDArray[np.float64]]:
        """Samples of some rounds, as `Problem.block`."""
        rows = slice(rounds.start - self.first, rounds.stop - self.first)
        return self.x[rows], self.y[rows]


class Stream:
    """A method in a world of one client and one replicate, after the samples that it has seen.

    Parameters
    ----------
    method : fkl.algorithms.online.learner.Learner
    dictionary : Dictionary
    dimension : int
        Features d of a sample.
    seed : int
    precision : {"float32", "float64"}
    rounds : int
        How many there will be, as far as can be foreseen.
    keeps : bool
        Whether the method needs the samples that it has seen.
    """

    def __init__(
        self,
        method: Any,
        dictionary: Dictionary,
        dimension: int,
        seed: int,
        precision: str,
        rounds: int,
        keeps: bool,
    ) -> None:
        self.method, self.keeps, self.t = method, keeps, 0
        nothing = Window(np.zeros((0, dimension), precision), np.zeros(0), 0, rounds)
        self.world = World(nothing, dictionary, None, Streams(seed, (0,)), precision)  # type: ignore[arg-type]
        self.state = method.init(self.world)

    def learn(self, x: Array, y: NDArray[np.float64]) -> None:
        """Predict each sample, see its target, and learn.

        Raises
        ------
        fkl.basics.errors.FklError
            If the method diverges, which leaves nothing to go on from.
        """
        # The world when these samples have come, too; the features are those that were drawn at first.
        before, end, x = self.world.problem, self.t + len(y), x.astype(self.world.precision)
        if self.keeps:
            x, y = np.concatenate([before.x, x]), np.concatenate([before.y, y])
        foreseen = before.rounds if end <= before.rounds else max(end, 2 * before.rounds)
        world, state = replace(self.world, problem=Window(x, y, end - len(y), foreseen)), self.state
        vars(world).update({name: value for name, value in vars(self.world).items() if name == "bank"})
        if world.problem.rounds > self.world.problem.rounds:
            state = self.method.lengthened(world, state)
        for start in range(self.t, end, self.method.block):
            rounds = slice(start, min(start + self.method.block, end))
            with np.errstate(all="ignore"):  # whatever grows too large is seen below
                state = self.method.play(world, state, rounds)
            if not np.isfinite(state.played.y_hat).all():
                mend = blame(self.method, rounds.stop).replace("algo.", "")
                raise FklError(f"{self.method.label} diverged by sample {rounds.stop} {mend}")
        self.world, self.state, self.t = world, state, end

    def predict(self, x: Array) -> NDArray[np.float64]:
        """Values of samples (n, d), by the function that the next one would be predicted with, in float64.

        In float32 a sample's last digits would depend on how many others stand before it.
        """
        [function] = self.method.functions(self.world, self.state, self.t)
        arrays = {
            name: getattr(function, name) for name, (numbers, _) in function.arrays.items() if numbers == "floats"
        }
        function = replace(function, **{name: array.astype(np.float64) for name, array in arrays.items()})
        values: NDArray[np.float64] = function.predict(x.astype(self.world.precision))[0]
        return values


class StreamRegressor(IncrementalRegressor):
    """A learner of one stream; a subclass says in `_method` which.

    Attributes
    ----------
    n_samples_seen_ : int
    """

    kernels: Dictionary | None
    precision: str
    random_state: Any = 0

    _kernels: ClassVar[Dictionary]
    """Where none are given."""
    _keeps: ClassVar[bool] = False

    _stream: Stream

    def _method(self) -> Any:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # 200 samples, once, with a step of 0.1 / sqrt(t), are not enough
        return tags

    def _rounds(self, samples: int, whole: bool) -> int:
        """How many to foresee for a stream that begins with so many samples, or has no others."""
        return samples

    def _begin(self, x: NDArray[np.float64], whole: bool) -> None:
        require(self.precision in PRECISIONS, "precision", self.precision, " or ".join(PRECISIONS))
        kernels, seed = chosen_kernels(self.kernels, self._kernels, x), seed_of_random_state(self.random_state)
        rounds = self._rounds(len(x), whole)
        self._stream = Stream(self._method(), kernels, x.shape[1], seed, self.precision, rounds, self._keeps)

    def _learn(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> int:
        self._stream.learn(x, y)
        return self._stream.t

    def _predict(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._stream.predict(x)
