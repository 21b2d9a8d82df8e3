"""Compare what a method states of its predictions on a stream with the predictions: norm, density, and their origin."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.models import play_rounds
from fkl.conformance.played import method_outcomes
from fkl.contract.world import World, innermost_method
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.tasks.batch import BatchTask, ClassTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import drawn_rounds
from fkl.tasks.vertical import VerticalTask

SLACK = 1e-6
"""Share of a number that rounding may change."""
MOST_INTEGRATED = 1
"""Number of rounds in which densities are integrated, if a saved model gives those of all rounds."""
SPREAD, POINTS = 8.0, 65
"""A density is integrated over so many deviations on both sides of the prediction, at this number of points."""
INTEGRAL_SLACK = 0.02
"""Largest difference of a density's integral from 1, and of its moments from those stated, because a grid is finite."""
ALIKE, DEVIATIONS = 0.5, 4.0
"""A method knows unseen targets if the correlation is above the first number, and above that of chance
by so many deviations of Fisher's transformation. Ours have 0, or at most 0.2 if a network starts from drawn numbers."""
FEWEST = 8
"""Smallest number of predictions for a comparison."""
HIDDEN_DRAWS = 2
"""Number of draws of other targets; each must show the correlation."""


def require_true_statements(experiment: Experiment, numbers: np.random.Generator) -> str:
    """Check norms, variances and densities of a method on a stream; return the reason if nothing is checked.

    A norm is at least 0 and, by Cauchy and Schwarz, |f(x)|^2 <= |f|^2 kappa(x, x); a method without a regulariser may
    state any. Of a saved model, `require_model` compares the norm itself. A log density is integrated over targets.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If one of them is false; the message names it, the client and the round.
    """
    if type(experiment.task).values_to_show is not StreamTask.values_to_show:
        return "it states no norm"
    plain = _without_conditions(experiment)
    world = make_world(plain, (0, 1))[0]
    kernels = plain.dictionary
    bounded = plain.algorithm.lam > 0 and kernels.family != "polynomial" and kernels.map == "pairs"
    stated = False
    for t, outcome in enumerate(method_outcomes(plain.algorithm, world)):
        here, y_hat, norm = world.problem.present[t], outcome.y_hat, outcome.squared_norm()
        of_kernels = bounded and outcome.loss is not None
        smallest = y_hat**2 * (1 - SLACK) - SLACK if of_kernels else np.full(y_hat.shape, -SLACK)
        for r, k in np.argwhere(~(norm >= smallest) & here):
            few = f"it predicts {y_hat[r, k]:.6g} with squared norm {norm[r, k]:.6g}, which no such function has"
            raise BrokenPromiseError(f"the norm of client {k} in round {t + 1} is not that of a function: {few}")
        if outcome.variance is not None and not (outcome.variance[:, here] > 0).all():
            raise BrokenPromiseError(f"a variance of round {t + 1} is not above 0")
        stated |= outcome.log_density is not None
    most = MOST_INTEGRATED if hasattr(plain.algorithm, "functions") else plain.problem.rounds
    for t in drawn_rounds(plain.problem.rounds, most, numbers) if stated else ():
        _require_density(plain, t)
    return ""


def _require_density(experiment: Experiment, t: int) -> None:
    """Show each client many targets in round t, and integrate the density that its method states for them."""
    world, state, _ = play_rounds(experiment, t)
    first = _step_with_targets(experiment, world, state, t, world.problem.y[t])
    deviation = np.sqrt(first.variance)
    grid = np.linspace(-SPREAD, SPREAD, POINTS)
    here = np.flatnonzero(world.problem.present[t])
    y = first.y_hat[0] + grid[:, None] * deviation[0]  # (points, K), for the first replicate
    log_density = np.stack([_step_with_targets(experiment, world, state, t, each).log_density[0] for each in y])
    mass = np.exp(log_density) * deviation[0] * (grid[1] - grid[0])
    moments = np.stack([(mass * grid[:, None] ** power).sum(axis=0) for power in range(3)])
    for k in here:
        if not np.allclose(moments[:, k], [1, 0, 1], rtol=0, atol=INTEGRAL_SLACK * np.array([1, 5, 5])):
            said = (
                f"its integral is {moments[0, k]:.4g}, and in units of what is stated the mean {moments[1, k]:.4g} and"
            )
            raise BrokenPromiseError(
                f"the density of client {k} in round {t + 1} is not one: {said} the variance {moments[2, k]:.4g}"
            )


def _step_with_targets(experiment: Experiment, world: World, state: Any, t: int, y: NDArray[np.float64]) -> Any:
    """Outcome of round t with other targets y (K,)."""
    targets = world.problem.y.copy()
    targets[t] = y
    other = replace(world, problem=replace(world.problem, y=targets))
    vars(other).update({name: known for name, known in vars(world).items() if name in ("common", "bank")})
    other.channel.open_round(t, other.problem.present[t])
    return experiment.algorithm.step(other, deepcopy(state), t)[1]


def require_unknown_targets(experiment: Experiment, numbers: np.random.Generator) -> None:
    """Give the parties false targets, and the opposite ones, and compare predictions with true targets.

    The mean of both predictions is 0 for a method that answers opposite targets with opposite predictions. If the mean
    follows the true targets, the method has them from elsewhere.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If the mean follows the targets in each of several draws.
    """
    problem, task = experiment.problem, experiment.task
    on_stream = type(task).values_to_show is StreamTask.values_to_show and not task.class_by_class
    saved = isinstance(task, BatchTask | VerticalTask) and hasattr(experiment.algorithm, "functions")
    several = isinstance(task, ClassTask) or getattr(problem, "classes", 1) > 1
    if not (on_stream or saved) or several:
        return
    of_two = np.array_equal(np.unique(problem.y), [-1, 1])
    plain = replace(_without_conditions(experiment), problem=experiment.task.in_doubles(), precision="float64")
    largest, kernels_found = float(abs(problem.y).max()), []
    for _ in range(HIDDEN_DRAWS):
        drawn = numbers.uniform(-largest, largest, problem.y.shape)
        given = np.sign(drawn) if of_two else drawn
        mean = (_predict_with_targets(plain, given) + _predict_with_targets(plain, -given)) / 2
        is_known = (abs(mean) > SLACK**1.5 * largest) & (problem.present if on_stream else True)
        if is_known.sum() < FEWEST:
            return
        with np.errstate(all="ignore"):  # a constant has no correlation
            alike = float(np.corrcoef(mean[is_known], problem.y[is_known])[0, 1])
        if not alike > max(ALIKE, np.tanh(DEVIATIONS / np.sqrt(is_known.sum() - 3))):
            return
        kernels_found.append(alike)
    said = f"predictions follow targets that no party has seen, with correlation {min(kernels_found):.3f}"
    raise BrokenPromiseError(f"{said}: a party has the data from elsewhere")


def _predict_with_targets(experiment: Experiment, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predictions of the first replicate with targets y; off streams, those of the saved model for all samples."""
    problem = replace(experiment.problem, y=y)
    if y.ndim == 1:
        world, state, _ = play_rounds(experiment, problem.rounds, problem)
        function: Any = experiment.algorithm.functions(world, state, problem.rounds)[0]  # type: ignore[attr-defined]
        f = function.predict(problem.x)
        return f[problem.client if len(f) > 1 else 0, np.arange(len(y))]
    world = make_world(replace(experiment, problem=problem), (0,))[0]
    return np.stack([outcome.y_hat[0].copy() for outcome in method_outcomes(experiment.algorithm, world)])


def _without_conditions(experiment: Experiment) -> Experiment:
    """The method itself, with every learner's rounds one by one."""
    method: Any = innermost_method(experiment.algorithm)
    return replace(experiment, algorithm=getattr(method, "round_by_round", lambda: method)(), network=Network())
