"""Identities inside a method's proofs: equations that its own rounds fulfil, on every stream, up to rounding.

A bound with a large constant also holds for wrong code. An identity does not. A method claims an identity by these
functions or attributes of its class:

- ``log_weights(state)``, the logarithms of its exponential weights (R, ..., N), and ``weight_falls(world, outcome,
  t)``, the declared rate times the loss by which round t lowers each of them. With weights p_t of sum 1 and falls c_t,
  sum_t -ln sum_i p_{t,i} exp(-c_{t,i}) = -ln sum_i p_{1,i} exp(-sum_t c_{t,i}): the telescope of regret bounds.
- ``unbiased = True`` and ``declared_step(world, theta, t)``, the step of the server's theta (R, N, P) in round t. The
  mean step over the draws is the declared one: the estimated gradient has no bias.
- ``exact_evidence``, a mapping of keys, and ``log_evidence(state)`` (R,). With these keys and a single client, the log
  densities of its targets (`Outcome.log_density`), round after round, add up to the log evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.basics.random_streams import Role, Streams
from fkl.contract.world import Array, World
from fkl.engines.experiment import Experiment, make_world
from fkl.network import Network

ROUNDING = 1e-10
"""Largest residual of an identity, relative to the size of its sides."""
STEP_TOLERANCE = 0.02
"""Largest difference from 1 of the effective over the declared step: a grid is not all numbers in [0, 1)."""
GRID = 500
"""Fewest numbers on the grid; with more kernels, one for each. It has a multiple of as many numbers as kernels."""
DRAWN_ROUNDS = 10
"""Rounds in which all numbers of the grid are played."""


@dataclass(frozen=True)
class OnGrid(Streams):
    """One replicate many times; each copy selects by another number of a grid on [0, 1), the same for all clients."""

    def uniform(self, role: Role, t: int, size: int, first: int = 0) -> NDArray[np.float64]:
        """The grid (R, size) for selections, and the replicate's own numbers for other roles."""
        if role != Role.SELECTION:
            return super().uniform(role, t, size, first)
        copies = len(self.replicates)
        return np.repeat((np.arange(copies) + 0.5)[:, None] / copies, size, axis=1)


def telescope(method: Any, world: World) -> tuple[Array, Array]:
    """Both sides of the identity of exponential weights, (R, ...), after all rounds."""
    method = method.round_by_round() if hasattr(method, "round_by_round") else method
    state, mixed, fallen = method.init(world), 0.0, 0.0
    first = scipy.special.log_softmax(method.log_weights(state), axis=-1)
    for t in range(world.problem.rounds):
        log_p = scipy.special.log_softmax(method.log_weights(state), axis=-1)
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        falls = method.weight_falls(world, outcome, t)
        mixed = mixed - scipy.special.logsumexp(log_p - falls, axis=-1)
        fallen = fallen + falls
    return np.asarray(mixed), np.asarray(-scipy.special.logsumexp(first - fallen, axis=-1))


def effective_step(method: Any, world: World, one: World) -> float:
    """Mean step of the server's theta over all draws, along the declared step, over the latter.

    Parameters
    ----------
    method : Federated
        Each client draws by one `turn.uniform(Role.SELECTION)`. The mean over all clients' draws is then that over one
        number for all of them, because the step is a sum over clients.
    world : World
        Of copies of one replicate, with streams `OnGrid`.
    one : World
        Of this replicate alone.
    """
    state = method.init(world)
    taken, declared = 0.0, 0.0
    for t in range(min(DRAWN_ROUNDS, world.problem.rounds)):
        theta = state.server.theta[:1].copy()
        due = method.declared_step(one, theta, t)
        world.channel.open_round(t, world.problem.present[t])
        state, _ = method.step(world, state, t)
        mean = state.server.theta.mean(axis=0, keepdims=True)
        taken, declared = taken + float(((mean - theta) * due).sum()), declared + float((due**2).sum())
        state.server.theta[:] = mean  # all copies go on from the mean
    return taken / declared


def evidence(method: Any, world: World) -> tuple[Array, Array]:
    """Sum of the log densities of the only client's targets, and the log evidence, (R,)."""
    state = method.init(world)
    total: Array = np.zeros(len(world.streams.replicates))
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        total = total + np.where(world.present(t), outcome.log_density, 0.0)[:, 0]
    return total, method.log_evidence(state)


def require_identities(experiment: Experiment) -> None:
    """Check the identities that a method claims, without conditions, in doubles.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the identity, and both of its sides.
    """
    method: Any = getattr(experiment.algorithm, "innermost", experiment.algorithm)
    problem, everyone = experiment.task.in_doubles(), range(experiment.replicates)
    plain = replace(experiment, algorithm=method, problem=problem, precision="float64", network=Network())
    if hasattr(method, "weight_falls"):
        _require_equal("exponential weights", telescope, plain, everyone)
    if getattr(method, "unbiased", False):
        N = experiment.dictionary.N
        copies = (0,) * (N * -(-GRID // N))
        world = replace(make_world(plain, copies)[0], streams=OnGrid(experiment.seed, copies))
        step = effective_step(method, world, make_world(plain, (0,))[0])
        if not abs(step - 1) <= STEP_TOLERANCE:
            raise BrokenPromiseError(f"unbiased step: the mean over the draws is {step:.3f} times the declared step")
    if hasattr(method, "log_evidence"):
        exact = replace(method, **method.exact_evidence)
        alone = replace(plain, algorithm=exact, problem=problem.of_client(0))
        _require_equal("evidence", evidence, alone, everyone)


def _require_equal(
    name: str, sides: Callable[[Any, World], tuple[Array, Array]], experiment: Experiment, replicates: range
) -> None:
    left, right = sides(experiment.algorithm, make_world(experiment, tuple(replicates))[0])
    residual = np.abs(left - right)
    worst = np.unravel_index(np.argmax(residual), residual.shape)
    if not residual[worst] <= ROUNDING * max(1.0, float(np.abs(right[worst]))):
        raise BrokenPromiseError(
            f"{name}: one side of the identity is {left[worst]:.10g}, the other {right[worst]:.10g}"
        )
