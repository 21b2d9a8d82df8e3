"""Compare the predictions of the model that a run saves with those of its method."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.federated.pooled import Pooled, at_the_server
from fkl.basics.errors import BrokenPromiseError
from fkl.contract.world import World, innermost_method
from fkl.engines.base import Experiment, make_world
from fkl.kernels.functions import Gaussian, SavedFunction
from fkl.network import Network
from fkl.tasks.batch import BatchTask, ClassTask
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.stream import NO_ROWS, StreamTask
from fkl.tasks.task import drawn_rounds, other_values
from fkl.tasks.vertical import VerticalTask

NEAR = 1e-9
"""Largest absolute and relative difference of predictions in double precision."""
MORE_OF_VARIANCES = 1000
"""Factor of the allowed difference for a variance, which is itself a difference of numbers, and for a norm."""
MOST_COMPARED = 100
"""Largest number of rounds of a stream in which the model is compared."""


class Compared(NamedTuple):
    """Predictions of a saved model, and the same predictions of the method."""

    what: str
    model: NDArray[Any]
    shown: NDArray[Any]
    times: float = 1.0


def play_rounds(experiment: Experiment, rounds: int, problem: Any = None) -> tuple[World, Any, Any]:
    """World, state and last outcome after this many rounds."""
    given = experiment if problem is None else replace(experiment, problem=problem)
    world, _ = make_world(given, (0,) if given.redraw else (0, 1))
    state, outcome = given.algorithm.init(world), None
    for t in range(rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = given.algorithm.step(world, state, t)
    return world, state, outcome


def all_present_in(problem: Any, rounds: Sequence[int]) -> Any:
    """Make all clients present in these rounds, because an absent client shows no prediction."""
    present = problem.present.copy()
    present[rounds] = True
    return problem.thinned(present)


def compared_on_stream(experiment: Experiment, numbers: np.random.Generator) -> Iterator[Compared]:
    """Predictions and norms of drawn rounds, and of a round that follows the last one, before which a run saves.

    If the server serves clients in turn, only the first one predicts with the model from before the round.
    """
    method: Any = experiment.algorithm
    experiment = replace(experiment, algorithm=getattr(method, "round_by_round", lambda: method)())
    T = experiment.problem.rounds
    everywhere = experiment.problem.present.all()
    asked = drawn_rounds(T, min(T if everywhere else T // 2, MOST_COMPARED), numbers)  # absence is part of the others
    problem = all_present_in(experiment.problem, asked)
    world, state, _ = play_rounds(experiment, 0, problem)
    for t in range(T):
        functions = functions_of(experiment, world, state, t) if t in asked else ()
        yield from (step := _Step(experiment, world, state, t, functions)).predictions_of_method()
        state = step.state
    functions = functions_of(experiment, world, state, T)
    more = {
        name: np.concatenate([part, part[-1:]]) for name in ("x", "y", "present") for part in (getattr(problem, name),)
    }
    more["x"][T], more["present"][T] = other_values(problem.x[-1], numbers), True
    longer, _, _ = play_rounds(experiment, 0, replace(problem, **more, **NO_ROWS))
    if hasattr(method, "lengthened"):
        state = method.lengthened(at_the_server(longer) if isinstance(method, Pooled) else longer, state)
    yield from _Step(experiment, longer, state, T, functions).predictions_of_method()


class _Step:
    """A round, and what the functions from before it say of its samples."""

    def __init__(
        self, experiment: Experiment, world: World, state: Any, t: int, functions: Sequence[SavedFunction]
    ) -> None:
        present, self._x, self._y, self._t = world.problem.present[t], world.problem.x[t], world.problem.y[t], t
        in_turn = getattr(experiment.algorithm, "in_turn", False)
        self._here = np.flatnonzero(present)[: 1 if in_turn else None]
        self._told = [
            self._predictions_of(function) for function in functions
        ]  # before the step, which may overwrite the state
        world.channel.open_round(t, present)
        self.state, self._outcome = experiment.algorithm.step(world, state, t)

    def _predictions_of(self, function: SavedFunction) -> dict[str, NDArray[Any]]:
        norm = function.squared_norm()
        values = {"predictions": function.predict(self._x)}
        if isinstance(function, Gaussian):
            values["variances"] = function.variance(self._x)
            values["log densities"] = function.log_density(self._x, self._y)
        arrays = {name: one[self._here if len(one) > 1 else 0, self._here] for name, one in values.items()}
        return arrays | ({} if norm is None else {"squared norms": norm[self._here if len(norm) > 1 else 0]})

    def predictions_of_method(self) -> Iterator[Compared]:
        """Compare the independent values with what the method shows: predictions, norms and variances."""
        for r, expected in enumerate(self._told):
            shown = {"predictions": self._outcome.y_hat, "squared norms": self._outcome.squared_norm()}
            shown |= {"variances": self._outcome.variance, "log densities": self._outcome.log_density}
            for name, values in expected.items():
                more = 1.0 if name == "predictions" else MORE_OF_VARIANCES
                if shown[name] is not None:
                    yield Compared(f"{name} of round {self._t + 1}", values, shown[name][r, self._here], more)


def compared_on_batch(experiment: Experiment, numbers: np.random.Generator) -> Iterator[Compared]:
    """Errors of the clients after the last round."""
    method: Any = experiment.algorithm
    T = experiment.problem.rounds
    world, state, _ = play_rounds(experiment, 0, all_present_in(experiment.problem, [T - 1]))
    judge: Any = experiment.task.judge(world, method)
    for t in range(T):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        judge.enter(t, outcome)
    judge.close()
    x, y, client = world.problem.part(False)
    for r, function in enumerate(functions_of(experiment, world, state, T)):
        f = function.predict(x)[client if function.clients > 1 else 0, np.arange(len(x))]
        squared = world.problem.loss == "square"
        wrong, name = ((f - y) ** 2, "test_mse") if squared else (np.sign(f) != y, "test_error")
        errors = np.bincount(client, wrong) / np.bincount(client)
        yield Compared(f"{name} of round {T}", errors, judge.by_client[name][r], 10)


def compared_on_features(experiment: Experiment, numbers: np.random.Generator) -> Iterator[Compared]:
    """Values f of the test rows."""
    T = experiment.problem.rounds
    world, state, outcome = play_rounds(experiment, T)
    functions = functions_of(experiment, world, state, T)
    for function, f, rows in zip(functions, outcome.f, outcome.rows, strict=True):
        yield Compared(f"f of round {T}", function.predict(world.problem.x[rows])[0], f())


def compared_per_replicate(experiment: Experiment, numbers: np.random.Generator) -> Iterator[Compared]:
    """Classes of all samples, and of points between samples."""
    world, state, outcome = play_rounds(experiment, 1)
    functions = functions_of(experiment, world, state, 1)
    for r, (function, predict) in enumerate(zip(functions, outcome.predict, strict=True)):
        x = world.problem.batches[r].x
        points = np.concatenate([x, x[::-1] + 0.1 * x])
        yield Compared("the classes", function.predict(points)[0], predict(points))


COMPARISONS: dict[type, Callable[[Experiment, np.random.Generator], Iterator[Compared]]] = {
    StreamTask: compared_on_stream,
    BatchTask: compared_on_batch,
    VerticalTask: compared_on_features,
    PerReplicateTask: compared_per_replicate,
}
"""The comparison for each kind of data."""


def functions_of(experiment: Experiment, world: World, state: Any, t: int) -> tuple[SavedFunction, ...]:
    """The functions that a run would save after t rounds."""
    functions: tuple[SavedFunction, ...] = experiment.algorithm.functions(world, state, t)  # type: ignore[attr-defined]
    for function in functions:
        if not function.is_function_of(world.problem.dimension):
            raise BrokenPromiseError(f"its model is not a function of {world.problem.dimension} features")
    return functions


def compare_models(experiment: Experiment, numbers: np.random.Generator) -> Iterator[Compared]:
    """Compare the model of a method with the method, both without conditions; nothing for a custom kind of data."""
    method = innermost_method(experiment.algorithm)
    kinds = (COMPARISONS[kind] for kind in type(experiment.task).__mro__ if kind in COMPARISONS)
    for compared in kinds:
        yield from compared(replace(experiment, algorithm=method, network=Network()), numbers)


def require_model(experiment: Experiment, numbers: np.random.Generator) -> str:
    """Compare the model of a method with the method itself; return the reason if this is impossible.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If predictions differ; the message names them.
    """
    method = innermost_method(experiment.algorithm)
    of_classes = getattr(experiment.problem, "classes", 1) > 1  # of a batch
    if not hasattr(method, "functions") or isinstance(experiment.task, ClassTask) or of_classes:
        return "it saves no model"
    every = list(compare_models(experiment, numbers))
    for model in every:
        near = NEAR * model.times
        if not np.allclose(model.model, model.shown, rtol=near, atol=near, equal_nan=True):
            apart = float(np.nanmax(np.abs(model.model - model.shown)))
            what = "its norm is not that of its model" if "norms" in model.what else "its model predicts differently"
            raise BrokenPromiseError(f"{what}: {model.what} differ by up to {apart:.3g}")
    return "" if every else f"fkl cannot compare models of {type(experiment.task).__name__}"
