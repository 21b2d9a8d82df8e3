"""Keys and types that methods for a vertical partition share, in addition to `fkl.contract.parties`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError
from fkl.basics.keys import key
from fkl.contract import parties
from fkl.contract.parties import Actor, Groups, Integers, PartyData, PartyRows, Wire
from fkl.data.problem import FOLDS
from fkl.tasks.task import Task
from fkl.tasks.vertical import VerticalTask
from fkl.wire.letters import Count, Letter

__all__ = [
    "SCALAR",
    "Actor",
    "Array",
    "Count",
    "Groups",
    "Integers",
    "LearningWithKeys",
    "Letter",
    "PartyData",
    "PartyRows",
    "VerticalMethodWithKeys",
    "Wire",
    "are_signs",
    "require_two_classes",
    "target_deviation",
]

SCALAR = 8
"""Bytes of a float64 or int64 on the wire."""


@dataclass(frozen=True, kw_only=True)
class VerticalMethodWithKeys(parties.VerticalMethod):
    """Keys of all methods whose parties hold different features of the same samples."""

    task: ClassVar[type[Task]] = VerticalTask
    takes_sparse: ClassVar[bool] = False
    """Whether features may be stored sparse."""

    fold: int | None = key(
        None,
        "For cross-validation: do not use the test rows, and test on this fifth of the others.",
        min=0,
        below=FOLDS,
    )


@dataclass(frozen=True)
class LearningWithKeys(parties.Learning, VerticalMethodWithKeys):
    """A method that has a model after each round."""


def are_signs(y: Array) -> bool:
    """Whether training targets are two classes, -1 and 1; other targets are real."""
    return bool(np.isin(y, (-1, 1)).all())


def target_deviation(y: Array) -> float:
    """Standard deviation of real training targets, by which they are standardised; 1 if all are equal."""
    return float(y.std()) or 1.0


def require_two_classes(y: Array) -> None:
    """Raise FklError unless labels are -1 and 1, and both occur."""
    if not np.array_equal(np.unique(y), (-1, 1)):
        raise FklError("the labels of the training samples must be -1 and 1, and both must occur")
