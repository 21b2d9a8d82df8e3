"""Messages about a diverged run: keys to lower, and a check for finite errors that are too large."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.basics.large_arrays import by_block

STEP_SIZES = ("step_size", "eta", "gamma", "rho")
"""Names of the step size in methods."""
OTHER_STEPS = ("step_factor", "alpha", "eta_k")
"""Keys that multiply the step size, or that are the step size of another update."""
LARGEST_STEP = 2.0
"""Larger than in any paper: twice the step size at which descent on a squared error with features of norm 1
overshoots."""
WORSE = 2.0
"""Limit of an error, as a multiple of the error of predicting 0.

Every method starts with the error of 0. Stable descent, with at most half of a too large step, does not reach twice its
possible error, even on pure noise. Published numbers do come close to the error of 0 (POLY-2 on airfoil, RFOMKR on
bias, concrete and naval have 0.96 to 1.00 times it), so a comparison with the best constant would give false alarms.
"""


class NotFiniteError(Exception):
    """The judge refused a round because its numbers are not finite."""


class DivergedError(FklError):
    """A method whose numbers are no longer finite.

    Parameters
    ----------
    algorithm : Algorithm
    failed : Chunk
        Replicates that ran when it happened; its judge and ledger are valid up to round t. Earlier replicates ended
        normally.
    t : int
        Number of rounds before the divergence.
    not_finite : str
        The first array that was not finite, if the divergence was too early for a usual step size to be the cause; else
        empty.

    Attributes
    ----------
    folder : Path or None
        Folder with these rounds.
    """

    def __init__(self, algorithm: Any, failed: Any, t: int, not_finite: str = "") -> None:
        keys, mend = _blamed(algorithm, len(failed.elapsed))
        said = f"{algorithm.label} diverged in round {t + 1} {mend}"
        super().__init__(f"{algorithm.label}: {not_finite}" if not_finite and not keys else said)
        self.failed, self.t = failed, t
        self.folder: Path | None = None

    def __str__(self) -> str:
        kept = "the rounds before it are in" if self.t or self.failed.first else "see"
        return f"{self.args[0]}; {kept} {self.folder}" if self.folder else str(self.args[0])


def blame(algorithm: Any, rounds: int) -> str:
    """Name the keys that made a method diverge, as the end of a sentence: ``with algo.eta=5.0: lower it``.

    Theta <- theta - step (gradient + 2 lam theta) overshoots because of the regulariser if step lam is above 1, and
    because of the loss if the step is above about 1. DSG, FDSKL, FD-SVRG and CTA have the same limits with other
    constants. DKLA, COKE and SecureBoost minimise exactly and work with any lam.

    Parameters
    ----------
    algorithm : Algorithm
    rounds : int
        T, because eta=null is 1/sqrt(T).
    """
    return _blamed(algorithm, rounds)[1]


def _blamed(algorithm: Any, rounds: int) -> tuple[bool, str]:
    """Whether any of the keys is unusually large, and the message of `blame`."""
    algorithm = getattr(algorithm, "innermost", algorithm)  # conditions have no step size
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    size = next((name for name in STEP_SIZES if name in values), None)
    if size is None:
        return False, "see algo"
    step = values[size] if values[size] is not None else 1 / np.sqrt(rounds)
    others = [name for name in OTHER_STEPS if (values.get(name) or 0) > LARGEST_STEP]
    usual = min(step, 1.0) * min(values.get("step_factor", 1.0), LARGEST_STEP)
    if usual * values.get("lam", 0.0) > 1:  # too large even with a smaller step
        others.append("lam")
    keys, beyond = others if others and step <= 1 else [size, *others], bool(others) or step > LARGEST_STEP
    usual_step = "theory's" if size == "step_size" else "1/sqrt(T)"
    told = [f"algo.{key}={f'null, which is {usual_step}' if values[key] is None else values[key]}" for key in keys]
    if keys == ["lam"]:
        return beyond, f"with {told[0]}: lower it, for steps of {usual:.3g} to less than {1 / usual:.3g}"
    return beyond, f"with {' and '.join(told)}: lower {'it' if len(keys) == 1 else 'them'}"


def worse_than_zero(targets: NDArray[Any], mse: NDArray[np.float64]) -> str | None:
    """A message if errors are finite but larger than those of any method that learns; otherwise None.

    Parameters
    ----------
    targets : array
    mse : (R,)
        Mean squared error of each replicate at the end, over these samples or some of them.
    """
    zero = float(by_block(lambda some: np.square(some, dtype=np.float64), targets).mean())
    worse = int((mse > WORSE * zero).sum())
    if not worse:
        return None
    return (
        f"the mean squared error of {worse} of {len(mse)} replicates, {np.max(mse):.3g} at worst, is more than "
        f"{WORSE:g} times the {zero:.3g} of predicting 0 for every sample"
    )
