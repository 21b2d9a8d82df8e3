"""Run a method of one learner on all samples so far of its stream."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from fkl.algorithms.base import softmax
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.basics.random_streams import Streams
from fkl.contract.world import World
from fkl.engines.base import blame_keys
from fkl.estimators.base import Incremental, chosen_kernels, seed_of_random_state
from fkl.kernels import Dictionary

PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Window:
    """The available samples of one client's stream; a learner gets it instead of a `Problem`.

    Parameters
    ----------
    x : (n, d)
    y : (n,) float64
    first : int
        Round of the first sample.
    rounds : int
        Planned number of samples in the stream.
    """

    x: Array
    y: Array
    first: int
    rounds: int

    clients: ClassVar[int] = 1
    present: ClassVar[NDArray[np.bool_]] = np.ones((1, 1), np.bool_)

    @property
    def dimension(self) -> int:
        """Number d of features of a sample."""
        return self.x.shape[1]

    def block(self, rounds: slice) -> tuple[Array, Array]:
        """Samples and targets of some rounds, as in `Problem.block`."""
        rows = slice(rounds.start - self.first, rounds.stop - self.first)
        return self.x[rows], self.y[rows]


class StreamLearner(Incremental):
    """A learner of one stream; a subclass returns its method in `_make_method`.

    Attributes
    ----------
    n_samples_seen_ : int
    weights_ : (N,)
        Weights of the kernels, whose sum is 1, in the prediction of the next sample.
    """

    kernels: Dictionary | None
    precision: str
    random_state: Any = 0

    _kernels: ClassVar[Dictionary]
    """Default kernels."""
    _keeps: ClassVar[bool] = False
    """Whether the method needs all earlier samples."""

    def _make_method(self) -> Any:
        raise NotImplementedError

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Weights of the kernels, (N,), after the samples seen so far."""
        check_is_fitted(self, "n_samples_seen_")
        weights: NDArray[np.float64] = softmax(self._state.log_w)[0]
        return weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for kind in (tags.regressor_tags, tags.classifier_tags):
            if kind is not None:
                kind.poor_score = True  # learning once from 200 samples with step 0.1 / sqrt(t) is not enough
        return tags

    def _assumed_rounds(self, samples: int) -> int:
        """Number of samples that is assumed for a stream whose first call has this many samples."""
        return samples

    def _begin_learning(self, x: Array) -> None:
        require(self.precision in PRECISIONS, "precision", self.precision, " or ".join(PRECISIONS))
        kernels, seed = chosen_kernels(self.kernels, self._kernels, x), seed_of_random_state(self.random_state)
        # The world has one client and one replicate; `_seen` counts the samples that the method has learned from.
        nothing = Window(np.zeros((0, x.shape[1]), self.precision), np.zeros(0), 0, self._assumed_rounds(len(x)))
        learner = self._make_method()
        world = World(nothing, kernels, None, Streams(seed, (0,)), self.precision)  # type: ignore[arg-type]
        self._state, self._world, self._learner, self._seen = learner.init(world), world, learner, 0

    def _learn_samples(self, x: Array, y: Array) -> int:
        """Predict each sample and learn from its target; return the number of samples so far."""
        # The new world has these samples, and keeps the features that were drawn first.
        before, end, samples = self._world.problem, self._seen + len(y), self._in_precision(x)
        if self._keeps:
            samples, y = np.concatenate([before.x, samples]), np.concatenate([before.y, y])
        foreseen = before.rounds if end <= before.rounds else max(end, 2 * before.rounds)
        world, state = replace(self._world, problem=Window(samples, y, end - len(y), foreseen)), self._state
        vars(world).update({name: value for name, value in vars(self._world).items() if name == "bank"})
        if foreseen > before.rounds:
            state = self._learner.lengthened(world, state)
        for start in range(self._seen, end, self._learner.block):
            rounds = slice(start, min(start + self._learner.block, end))
            with np.errstate(all="ignore"):  # too large numbers are detected below
                state = self._learner.play(world, state, rounds)
            learned = [array for array in vars(state).values() if isinstance(array, np.ndarray)]
            if not all(np.isfinite(array).all() for array in (state.played.y_hat, *learned)):
                mend = blame_keys(self._learner, rounds.stop).replace("algo.", "")
                raise FklError(f"{self._learner.label} diverged by sample {rounds.stop} {mend}")
        self._world, self._state, self._seen = world, state, end
        return end

    def _in_precision(self, x: Array) -> Array:
        """Samples in the precision of the model, which has no too large numbers."""
        with np.errstate(over="ignore"):
            samples = x.astype(self._world.precision)
        wrong = x[~np.isfinite(samples)]
        require(not len(wrong), "X", wrong[:1].sum(), f"numbers of {self._world.precision}: scale X")
        return samples

    def _function_values(self, x: Array) -> NDArray[np.float64]:
        """Predictions for the next sample, computed in float64.

        In float32, the last digits of a prediction would depend on the number of rows before it in `x`.
        """
        [function] = self._learner.functions(self._world, self._state, self._seen)
        values: NDArray[np.float64] = function.in_double().predict(self._in_precision(x))[0]
        return values
