"""Hyper-parameters that every federated kernel method shares."""

from dataclasses import dataclass

import numpy as np

from fkl.contract.star import Federated
from fkl.errors import require


@dataclass(frozen=True)
class Descent(Federated):
    """Step size and regularisation of online gradient descent on (theta'z - y)^2 + lam |theta|^2.

    Parameters
    ----------
    eta : float or None
        Learning rate; None for 1 / sqrt(T).
    step_factor : float
        Multiplies eta where parameters (not weights) are updated. The gradient is written out, 2 (f - y) z; a factor
        of 1 / 2 makes the step that of a loss (f - y)^2 / 2. POF-MKL's published numbers come from 2, its baselines'
        from 1.
    lam : float
        Regularisation lambda; the paper does not state it.

    Raises
    ------
    fkl.errors.BadValue
    """

    eta: float | None = None
    step_factor: float = 1.0
    lam: float = 1e-3

    def __post_init__(self) -> None:
        require(self.eta is None or 0 < self.eta < np.inf, "eta", self.eta, "a number above 0, or null for 1/sqrt(T)")
        require(0 < self.step_factor < np.inf, "step_factor", self.step_factor, "a number above 0")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number from 0")

    def rate(self, rounds: int) -> float:
        """Eta over a horizon of T rounds."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(rounds))
