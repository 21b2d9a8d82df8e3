"""The diabetes data that scikit-learn carries: small, real, and always there."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.store import DataFile, Store


@dataclass(frozen=True)
class Diabetes:
    """Disease progression of 442 patients one year after ten measurements.

    Efron, Hastie, Johnstone and Tibshirani, "Least angle regression", Annals of Statistics 32 (2004), as
    bundled with scikit-learn: each feature centred and scaled to a sum of squares of 1.
    """

    name: ClassVar[str] = "diabetes"
    title: ClassVar[str] = "disease progression of 442 diabetes patients (bundled with scikit-learn)"
    files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "BSD-3-Clause"
    shape: ClassVar[str] = "442 x 10"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read scikit-learn's copy; neither argument is used.

        Returns
        -------
        Table
            x of shape (442, 10).
        """
        from sklearn.datasets import load_diabetes

        bunch = load_diabetes()
        x, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.float64)
        return Table.of_one_site(x, y, tuple(bunch.feature_names))
