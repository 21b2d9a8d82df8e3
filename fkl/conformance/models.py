"""Compare the predictions of the model that a run saves with those of its method."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.contract.world import World
from fkl.engines.base import Experiment, make_world
from fkl.kernels.functions import Function, Gaussian
from fkl.network import Network
from fkl.tasks.batch import BatchTask, ClassTask
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.vertical import VerticalTask

NEAR = 1e-9
"""Largest absolute and relative difference of predictions in double precision."""
MORE_OF_VARIANCES = 1000
"""Factor of the allowed difference for a variance, which is itself a difference of numbers."""


class Compared(NamedTuple):
    """Predictions of a saved model, and the same predictions of the method."""

    what: str
    model: NDArray[Any]
    shown: NDArray[Any]
    times: float = 1.0


def played(experiment: Experiment, rounds: int, problem: Any = None) -> tuple[World, Any, Any]:
    """World, state and last outcome after this many rounds."""
    given = experiment if problem is None else replace(experiment, problem=problem)
    world, _ = make_world(given, (0,) if given.redraw else (0, 1))
    state, outcome = given.algorithm.init(world), None
    for t in range(rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = given.algorithm.step(world, state, t)
    return world, state, outcome


def all_present_in(problem: Any, t: int) -> Any:
    """The same data with all clients in round t, because an absent client shows no prediction."""
    present = problem.present.copy()
    present[t] = True
    return problem.thinned(present)


def compared_on_stream(experiment: Experiment) -> Iterator[Compared]:
    """Predictions of the last round, or of the last block's first round if a learner takes rounds in blocks.

    If the server serves clients in turn, only the first one predicts with the model from before the round.
    """
    method: Any = experiment.algorithm
    block = getattr(method, "block", 1)
    last = (experiment.problem.rounds - 1) // block * block
    world, state, _ = played(experiment, last, all_present_in(experiment.problem, last))
    present = world.problem.present[last]
    here = np.flatnonzero(present)[: 1 if getattr(method, "in_turn", False) else None]

    def of_clients(values: NDArray[Any]) -> NDArray[Any]:
        return values[here if len(values) > 1 else 0, here]

    x, told = world.problem.x[last], []
    for function in functions_of(experiment, world, state, last):  # before the step, because it may overwrite the state
        variance = of_clients(function.variance(x)) if isinstance(function, Gaussian) else None
        told.append((of_clients(function.predict(x)), variance))
    world.channel.open_round(last, present)
    outcome = method.step(world, state, last)[1]
    for r, (predicted, variance) in enumerate(told):
        yield Compared(f"predictions of round {last + 1}", predicted, outcome.y_hat[r, here])
        if variance is not None:
            yield Compared(f"variances of round {last + 1}", variance, outcome.variance[r, here], MORE_OF_VARIANCES)


def compared_on_batch(experiment: Experiment) -> Iterator[Compared]:
    """Errors of the clients after the last round."""
    method: Any = experiment.algorithm
    T = experiment.problem.rounds
    world, state, _ = played(experiment, 0, all_present_in(experiment.problem, T - 1))
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


def compared_on_features(experiment: Experiment) -> Iterator[Compared]:
    """Values f of the test rows."""
    T = experiment.problem.rounds
    world, state, outcome = played(experiment, T)
    functions = functions_of(experiment, world, state, T)
    for function, f, rows in zip(functions, outcome.f, outcome.rows, strict=True):
        yield Compared(f"f of round {T}", function.predict(world.problem.x[rows])[0], f())


def compared_per_replicate(experiment: Experiment) -> Iterator[Compared]:
    """Classes of all samples, and of points between samples."""
    world, state, outcome = played(experiment, 1)
    functions = functions_of(experiment, world, state, 1)
    for r, (function, predict) in enumerate(zip(functions, outcome.predict, strict=True)):
        x = world.problem.batches[r].x
        points = np.concatenate([x, x[::-1] + 0.1 * x])
        yield Compared("the classes", function.predict(points)[0], predict(points))


COMPARISONS: dict[type, Callable[[Experiment], Iterator[Compared]]] = {
    StreamTask: compared_on_stream,
    BatchTask: compared_on_batch,
    VerticalTask: compared_on_features,
    PerReplicateTask: compared_per_replicate,
}
"""The comparison for each kind of data."""


def functions_of(experiment: Experiment, world: World, state: Any, t: int) -> tuple[Function, ...]:
    """The functions that a run would save after t rounds."""
    functions: tuple[Function, ...] = experiment.algorithm.functions(world, state, t)  # type: ignore[attr-defined]
    for function in functions:
        if not function.is_function_of(world.problem.dimension):
            raise BrokenPromiseError(f"its model is not a function of {world.problem.dimension} features")
    return functions


def comparisons(experiment: Experiment) -> Iterator[Compared]:
    """Compare the model of a method with the method, both without conditions; nothing for a custom kind of data."""
    method = getattr(experiment.algorithm, "innermost", experiment.algorithm)
    kinds = (COMPARISONS[kind] for kind in type(experiment.task).__mro__ if kind in COMPARISONS)
    for compared in kinds:
        yield from compared(replace(experiment, algorithm=method, network=Network()))


def require_model(experiment: Experiment) -> str:
    """Compare the model of a method with the method itself; return the reason if this is impossible.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If predictions differ; the message names them.
    """
    method = getattr(experiment.algorithm, "innermost", experiment.algorithm)
    of_classes = getattr(experiment.problem, "classes", 1) > 1  # of a batch
    if not hasattr(method, "functions") or isinstance(experiment.task, ClassTask) or of_classes:
        return "it saves no model"
    every = list(comparisons(experiment))
    for one in every:
        near = NEAR * one.times
        if not np.allclose(one.model, one.shown, rtol=near, atol=near, equal_nan=True):
            apart = float(np.nanmax(np.abs(one.model - one.shown)))
            raise BrokenPromiseError(f"its model predicts differently: {one.what} differ by up to {apart:.3g}")
    return "" if every else f"fkl cannot compare models of {type(experiment.task).__name__}"
