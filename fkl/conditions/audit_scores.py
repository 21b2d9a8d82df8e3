"""Scores of one replicate's canaries, and the bounds that follow from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fkl.conditions import accountant, audit_bounds

OBJECTION = 0.001
"""p-value of the checks below which the bound is that of guesses."""


@dataclass(frozen=True)
class Scores:
    """Scores of one replicate.

    Parameters
    ----------
    scores : (G, K)
        Score of each client in each round, or of the whole run (G = 1), in clipping norms; NaN for none.
    inside : (G, K) bool
        Coins.
    once : bool
        Whether a coin is for one round.
    mu : float
        What is stated: how far a canary moves its score, in standard deviations.
    delta : float
    """

    scores: NDArray[np.float64]
    inside: NDArray[np.bool_]
    once: bool
    mu: float
    delta: float

    @cached_property
    def known(self) -> NDArray[np.float64]:
        """The scores, one after another."""
        return self.scores[~np.isnan(self.scores)]

    @cached_property
    def coins(self) -> NDArray[np.bool_]:
        """Their coins."""
        return self.inside[~np.isnan(self.scores)]

    @cached_property
    def enough(self) -> bool:
        """Whether enough canaries are in, and out, for a bound."""
        return bool(min(self.coins.sum(), (~self.coins).sum()) >= audit_bounds.FEWEST)

    @cached_property
    def p(self) -> float:
        """p-value of the checks that scores are normal."""
        one_group = (-1, self.scores.shape[1] if self.once else 1)  # a client with one score has no mean of its own
        return audit_bounds.checked(self.scores.reshape(one_group), self.inside.reshape(one_group))

    def at_least(self, alpha: float) -> float:
        """Epsilon is at least this, with probability 1 - alpha."""
        if self.p < OBJECTION:
            return self.guessed(alpha)
        return accountant.epsilon_of(float(audit_bounds.gaussian(self.known, self.coins, alpha)), self.delta)

    def guessed(self, alpha: float) -> float:
        """The same by guesses which canaries are in."""
        if not self.enough:
            return 0.0
        count, made = len(self.known), audit_bounds.guesses_to_make(len(self.known), self.mu, alpha)
        right = audit_bounds.right_of(self.known, self.coins, made)
        return accountant.epsilon_of(audit_bounds.guesses(count, made, right, alpha), self.delta)

    def moments(self, noise: float) -> tuple[float, ...]:
        """Canaries, those in, mean scores in and out, and deviation of the scores, in units of the stated noise."""
        count, sides = len(self.known), [self.known[self.coins], self.known[~self.coins]]
        means = [float(side.mean()) if len(side) else np.nan for side in sides]
        squares = sum(float(((side - mean) ** 2).sum()) for side, mean in zip(sides, means, strict=True))
        deviation = np.sqrt(squares / (count - 2)) / noise if self.enough else np.nan
        return count, int(self.coins.sum()), means[0] / noise, means[1] / noise, float(deviation)
