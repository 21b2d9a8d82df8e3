"""Scikit-learn regressors and classifiers that learn from one stream and continue with `partial_fit`.

`online` has Raker, OMKL-GF and OMKR, `ridge` has ridge regression in random features. `stream` runs a method of
`fkl.algorithms` on all samples so far. Begin with `online`.
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
