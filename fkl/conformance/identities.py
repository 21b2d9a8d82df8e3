"""Identities from a method's proofs: equations that its rounds fulfil up to rounding, on every stream.

A bound with a large constant also holds for wrong code, but an identity does not. A method claims an identity by
defining these functions or attributes in its class:

- ``log_weights(state)``, the logarithms of its exponential weights (R, ..., N), and ``weight_falls(world, outcome,
  t)``, the declared rate times the loss by which round t lowers each of them.
- ``unbiased = True`` and ``declared_step(world, theta, t)``, the step of theta (R, N, P) in round t.
- ``exact_evidence``, a mapping of keys, and ``log_evidence(state)`` (R,).

Conformance checks the identities of every method, and `fkl bound` shows those of a run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError
from fkl.basics.random_streams import Role, Streams
from fkl.contract.world import World, innermost_method
from fkl.engines.base import Experiment, make_world
from fkl.network import Network

WEIGHTS = "with weights p_t of sum 1 and falls c_t: sum_t -ln sum_i p_ti exp(-c_ti) = -ln sum_i p_1i exp(-sum_t c_ti)"
STEP = "the mean step of theta over all draws, along the declared step, is the declared step"
EVIDENCE = "with one client: the log densities of its targets, round after round, add up to the log evidence"
ROUNDING = 1e-10
"""Largest residual of an identity, relative to the size of its sides."""
STEP_TOLERANCE = 0.02
"""Largest difference from 1 of the effective over the declared step, which differ because a grid is finite."""
GRID = 1000
"""Smallest size of the grid, which is rounded up to a multiple of the number of kernels."""
DRAWN_ROUNDS = 10
"""Number of rounds with clients in which all numbers of the grid are used."""
DRAWN_CLIENTS = 4
"""Largest number of clients that use them."""
LEARNED = ("theta", "log_w", "log_u")
"""Parts of a state that depend on the draws."""


class Identity(NamedTuple):
    """Both sides of an identity, for the replicate and client with the largest difference.

    Parameters
    ----------
    name, statement : str
    left, right : float
    allowed : float
        Largest difference that rounding, or the grid of draws, can explain.
    """

    name: str
    statement: str
    left: float
    right: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether both sides are equal."""
        return bool(abs(self.left - self.right) <= self.allowed)


@dataclass(frozen=True)
class OnGrid(Streams):
    """Copies of one replicate; each selects by its own number of a grid on [0, 1), the same for all clients."""

    def uniform(self, role: Role, t: int, size: int, first: int = 0) -> NDArray[np.float64]:
        """The grid (R, size) for selections, and the replicate's own numbers for other roles."""
        if role != Role.SELECTION:
            return super().uniform(role, t, size, first)
        return np.repeat(self._grid()[:, None], size, axis=1)

    def generators(self, role: Role) -> list[Any]:
        """For selections, a generator of one number of the grid for each copy; the replicate's own for other roles."""
        return list(map(Constant, self._grid())) if role == Role.SELECTION else super().generators(role)

    def _grid(self) -> NDArray[np.float64]:
        copies = len(self.replicates)
        return (np.arange(copies) + 0.5) / copies


@dataclass(frozen=True)
class Constant:
    """A generator that always returns the same number."""

    number: float

    def random(self, size: int) -> NDArray[np.float64]:
        """The number, repeated to shape (size,)."""
        return np.full(size, self.number)


def weights_telescope(method: Any, world: World) -> tuple[Array, Array]:
    """Both sides of the identity of exponential weights, (R, ...), after all rounds."""
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
    """Mean step of theta over all draws, projected on the declared step and divided by its length.

    Parameters
    ----------
    method : Algorithm
        Each client draws by one `turn.uniform(Role.SELECTION)`. One number for all clients gives the same mean as
        separate draws, because the step is a sum over clients. theta is in `state.server`, or in the state itself if
        the method has no server.
    world : World
        World of copies of one replicate, with streams `OnGrid`.
    one : World
        World of this replicate alone.
    """
    state, present = method.init(world), world.problem.present
    taken, declared = 0.0, 0.0
    for t in range(world.problem.rounds):
        theta = getattr(state, "server", state).theta[:1].copy()
        due = method.declared_step(one, theta, t)
        world.channel.open_round(t, present[t])
        state, _ = method.step(world, state, t)
        after = getattr(state, "server", state)
        for values in (getattr(after, name) for name in LEARNED if hasattr(after, name)):
            values[:] = values.mean(axis=0, keepdims=True)  # all copies continue from the mean
        taken = taken + float(((after.theta[:1] - theta) * due).sum())
        declared = declared + float((due**2).sum())
        if present[: t + 1].any(axis=1).sum() == DRAWN_ROUNDS:
            break
    return taken / declared


def log_evidence(method: Any, world: World) -> tuple[Array, Array]:
    """Sum of the log densities of the only client's targets, and the log evidence, (R,)."""
    state = method.init(world)
    total: Array = np.zeros(len(world.streams.replicates))
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        total = total + np.where(world.present(t), outcome.log_density, 0.0)[:, 0]
    return total, method.log_evidence(state)


def evaluate_identities(experiment: Experiment, replicates: Sequence[int]) -> Iterator[Identity]:
    """Evaluate the identities that a method claims, without conditions and in double precision."""
    method: Any = innermost_method(experiment.algorithm)
    method = method.round_by_round() if hasattr(method, "round_by_round") else method
    problem = experiment.task.in_doubles()
    plain = replace(experiment, algorithm=method, problem=problem, precision="float64", network=Network())
    if hasattr(method, "weight_falls"):
        sides = weights_telescope(method, make_world(plain, tuple(replicates))[0])
        yield _farthest_identity("exponential weights", WEIGHTS, *sides)
    if getattr(method, "unbiased", False):
        N = experiment.dictionary.N
        copies = (0,) * (N * -(-GRID // N))
        few = replace(plain, problem=problem.of_clients(slice(DRAWN_CLIENTS)))
        world = replace(make_world(few, copies)[0], streams=OnGrid(experiment.seed, copies))
        step = effective_step(method, world, make_world(few, (0,))[0])
        yield Identity("unbiased step", STEP, step, 1.0, STEP_TOLERANCE)
    if hasattr(method, "log_evidence"):
        exact = replace(method, **method.exact_evidence)
        alone = replace(plain, algorithm=exact, problem=problem.of_client(0))
        yield _farthest_identity("evidence", EVIDENCE, *log_evidence(exact, make_world(alone, tuple(replicates))[0]))


def require_identities(experiment: Experiment) -> str:
    """Check the identities that a method claims; return the reason if there is nothing to check.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If an identity does not hold; the message has both of its sides.
    """
    claimed = list(evaluate_identities(experiment, range(experiment.replicates)))
    for identity in claimed:
        if not identity.holds:
            sides = f"one side of the identity is {identity.left:.10g}, the other {identity.right:.10g}"
            raise BrokenPromiseError(f"{identity.name}: {sides}: {identity.statement}")
    return "" if claimed else "it claims no identity"


def _farthest_identity(name: str, statement: str, left: Array, right: Array) -> Identity:
    residual = np.abs(left - right)
    at = np.unravel_index(np.argmax(residual), residual.shape)
    return Identity(name, statement, float(left[at]), float(right[at]), ROUNDING * max(1.0, abs(float(right[at]))))
