"""Messages about a run that diverged: which keys to lower, and whether finite errors are too large as well."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError

STEP_SIZES = ("step_size", "eta", "gamma", "rho")
"""What methods call the step size."""
OTHER_STEPS = ("step_factor", "alpha", "eta_k")
"""Keys that multiply the step size, or are the step size of another update."""
LARGEST_STEP = 2.0
"""Beyond any paper's: on features of norm 1, twice the step size at which the descent on a squared error overshoots."""
WORSE = 2.0
"""Times the error of predicting 0 throughout.

Every method starts there. Descent that is stable, with steps of up to half of what is too large, does not get to twice
the error that it could have, even on pure noise; and published numbers do come close to that of 0 (POLY-2 on airfoil,
RFOMKR on bias, concrete and naval have 0.96 to 1.00 times it), so comparing with the best constant would cry wolf.
"""


class NotFiniteError(Exception):
    """The judge refused a round, since its numbers are not finite."""


class DivergedError(FklError):
    """A method whose numbers are no longer finite.

    Parameters
    ----------
    algorithm : Algorithm
    failed : Chunk
        Replicates that ran when it happened; its judge and ledger are right up to round t. Those before ended well.
    t : int
        Rounds before the one in which it happened.
    not_finite : str
        Which array was not finite first, where it happened so early that no usual step is to blame; else empty.

    Attributes
    ----------
    folder : Path or None
        Where these rounds were written.
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
    """Name the keys that drove a method away, as the end of a sentence: ``with algo.eta=5.0: lower it``.

    Theta <- theta - step (gradient + 2 lam theta) overshoots by the regulariser alone where step lam is above 1, and by
    the loss alone where the step is above about 1. DSG, FDSKL, FD-SVRG and CTA have the same with other constants;
    DKLA, COKE and SecureBoost, which minimise exactly, go with any lam.

    Parameters
    ----------
    algorithm : Algorithm
    rounds : int
        T, since eta=null is 1/sqrt(T).
    """
    return _blamed(algorithm, rounds)[1]


def _blamed(algorithm: Any, rounds: int) -> tuple[bool, str]:
    """Whether any of the keys is larger than is usual, and the message of `blame`."""
    algorithm = getattr(algorithm, "innermost", algorithm)  # conditions have no step size
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    size = next((name for name in STEP_SIZES if name in values), None)
    if size is None:
        return False, "see algo"
    step = values[size] if values[size] is not None else 1 / np.sqrt(rounds)
    others = [name for name in OTHER_STEPS if (values.get(name) or 0) > LARGEST_STEP]
    usual = min(step, 1.0) * min(values.get("step_factor", 1.0), LARGEST_STEP)
    if usual * values.get("lam", 0.0) > 1:  # too large even if the step were not
        others.append("lam")
    keys, beyond = others if others and step <= 1 else [size, *others], bool(others) or step > LARGEST_STEP
    usual_step = "theory's" if size == "step_size" else "1/sqrt(T)"
    told = [f"algo.{key}={f'null, which is {usual_step}' if values[key] is None else values[key]}" for key in keys]
    if keys == ["lam"]:
        return beyond, f"with {told[0]}: lower it, for steps of {usual:.3g} to less than {1 / usual:.3g}"
    return beyond, f"with {' and '.join(told)}: lower {'it' if len(keys) == 1 else 'them'}"


def worse_than_zero(targets: NDArray[Any], mse: NDArray[np.float64]) -> str | None:
    """Say that errors, although finite, are larger than those of any method that learns; None where they are not.

    Parameters
    ----------
    targets : array
    mse : (R,)
        Mean squared error of each replicate at the end, over these samples or some of them.
    """
    zero = float(np.square(targets, dtype=np.float64).mean())
    worse = int((mse > WORSE * zero).sum())
    if not worse:
        return None
    return (
        f"the mean squared error of {worse} of {len(mse)} replicates, {np.max(mse):.3g} at worst, is more than "
        f"{WORSE:g} times the {zero:.3g} of predicting 0 for every sample"
    )
