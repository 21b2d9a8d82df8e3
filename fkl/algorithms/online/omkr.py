"""OMKR: online multi-kernel regression with exact kernels, a coefficient for every sample seen.

Sahoo, Hoi and Li, Online Multiple Kernel Regression, KDD 2014.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.online.learner import Learner, Played, falling_weights, samples
from fkl.basics.errors import require
from fkl.contract.world import FEATURE_KEYS
from fkl.kernels import Dictionary, exact
from fkl.kernels.functions import OnPoints


@dataclass
class State:
    """Coefficients a (N, T) of all samples, 0 where not seen yet, and log w (1, N)."""

    a: Array
    log_w: Array
    played: Played | None = None


@dataclass(frozen=True)
class Omkr(Learner):
    """f_i(x_t) = sum_{s<t} a_is k_i(x_t, x_s), a_it = -eta_t (f_i(x_t) - y_t), w_i <- w_i 0.5^((f_i - y)^2).

    Round by round this takes T^2 N / 2 kernel values and one long sum after another. For a block of rounds f is a
    triangular system. The contribution of earlier samples is one product with a kernel matrix, computed in tiles that
    are not stored. Only the contribution of the block itself needs forward substitution. Nothing is random: replicates
    are identical, so one is enough.

    Parameters
    ----------
    eta : float
        As in `Learner`.
    """

    label: ClassVar[str] = "OMKR"
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    lam: ClassVar[float] = 0.0
    block: ClassVar[int] = 256
    compiled_only: ClassVar[bool] = True

    only: ClassVar[tuple[str, float, str] | None] = None
    """For a method named after one kernel: its family, its entry in `Dictionary.scales`, and its description."""

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse kernels other than the one in the method's name, if it has one."""
        if self.only is None:
            return
        family, scale, words = self.only
        named = f"{self.label} has the one kernel {words}"
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {named}")
        found = kernels.families[0]
        require(found == family, "kernels.family", found, f"{family}: {named}")
        alike = bool(np.isclose(kernels.scales[0], scale, rtol=1e-9))
        require(alike, "kernels.smallest", kernels.smallest, f"such that {named}")

    def init(self, world: World) -> State:
        """No sample seen, w_i = 1."""
        self.require_fits(world.dictionary)
        self.require_one(world)
        N = world.dictionary.N
        return State(np.zeros((N, world.problem.rounds)), np.zeros((1, N)))

    def lengthened(self, world: World, state: State) -> State:
        """More samples that are not seen yet."""
        N, T = state.a.shape
        return replace(state, a=np.concatenate([state.a, np.zeros((N, world.problem.rounds - T))], axis=1))

    def play(self, world: World, state: State, rounds: slice) -> State:
        """Forward substitution of a block of the triangular system, then the mixture."""
        x, _ = samples(world, slice(0, rounds.stop))
        _, y = samples(world, rounds)
        f = exact.substitute(world.dictionary, x, y, self.rates(rounds), state.a)[None]
        loss = (f - y[:, None]) ** 2
        log_w, after = falling_weights(state.log_w, np.log(2) * loss)  # w_i 0.5^loss, in logarithms
        replicates = (len(world.streams.replicates), len(y))
        y_hat = np.broadcast_to((softmax(log_w) * f).sum(axis=-1), replicates)
        loss = np.broadcast_to(loss, (*replicates, loss.shape[-1]))
        return State(state.a, after, Played(y_hat, np.zeros(replicates), loss))

    def log_weights(self, state: State) -> Array:
        """Of the kernels, (R or 1, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The weights are multiplied by 0.5^L_i."""
        assert outcome.loss is not None
        return np.log(2) * outcome.loss[:, 0]

    def functions(self, world: World, state: State, t: int) -> tuple[OnPoints, ...]:
        """The mixture of all kernels on the t samples seen; replicates are copies."""
        points = np.asarray(samples(world, slice(0, t))[0], np.float64)
        families, scales = np.array(world.dictionary.families), np.asarray(world.dictionary.scales, np.float64)
        mixture = softmax(state.log_w).T * state.a[:, :t]
        learned = OnPoints(points, families, scales, mixture[None], np.zeros(1))
        return (learned,) * len(world.streams.replicates)
