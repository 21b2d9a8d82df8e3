"""fkl's learners of one stream as scikit-learn regressors, which continue with `partial_fit`."""

from fkl.estimators.online import OmklGfRegressor, OmkrRegressor, RakerRegressor
from fkl.estimators.ridge import RffRidgeRegressor

__all__ = ["OmklGfRegressor", "OmkrRegressor", "RakerRegressor", "RffRidgeRegressor"]
