"""Learners of one stream as scikit-learn regressors and classifiers, which continue with `partial_fit`.

`online` has Raker, OMKL-GF and OMKR, `ridge` has ridge regression in random features. `stream` runs a method of
`fkl.algorithms` up to the newest sample. Begin with `online`.
"""

from fkl.estimators.online import (
    OmklGfClassifier,
    OmklGfRegressor,
    OmkrClassifier,
    OmkrRegressor,
    RakerClassifier,
    RakerRegressor,
)
from fkl.estimators.ridge import RffRidgeRegressor

__all__ = [
    "OmklGfClassifier",
    "OmklGfRegressor",
    "OmkrClassifier",
    "OmkrRegressor",
    "RakerClassifier",
    "RakerRegressor",
    "RffRidgeRegressor",
]
