"""Small estimators that tests fit, by the name of their method."""

from dataclasses import replace
from typing import Any

from fkl.estimators import (
    OmklGfClassifier,
    OmklGfRegressor,
    OmkrClassifier,
    OmkrRegressor,
    RakerClassifier,
    RakerRegressor,
    RffRidgeRegressor,
)
from fkl.kernels import Dictionary

FEW = Dictionary(N=7, laplacians=2, bandwidth_convention="variance", D=6)
EXACT = replace(FEW, bandwidth_convention="divisor")
RIDGE = RffRidgeRegressor(Dictionary(N=2, smallest=1, largest=5, D=15, bandwidth_convention="deviation"))
REGRESSORS: dict[str, Any] = {
    "raker": RakerRegressor(FEW, eta=0.5),
    "omkl_gf": OmklGfRegressor(FEW, eta=0.5, M=2, exploring=40),
    "omkr": OmkrRegressor(EXACT, eta=0.5),
    "ridge": RIDGE,
}
CLASSIFIERS: dict[str, Any] = {
    "raker": RakerClassifier(FEW, eta=0.5),
    "omkl_gf": OmklGfClassifier(FEW, eta=0.5, M=2, exploring=40, loss="hinge"),
    "omkr": OmkrClassifier(EXACT, eta=0.5),
}
EVERY = [*REGRESSORS.values(), *CLASSIFIERS.values()]
