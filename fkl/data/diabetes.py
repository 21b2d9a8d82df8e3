"""The diabetes data of scikit-learn: small, real, and always available."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.store import DataFile, Store, of_scikit_learn

NAMES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


@dataclass(frozen=True)
class Diabetes:
    """Disease progression of 442 patients one year after ten measurements.

    Efron, Hastie, Johnstone and Tibshirani, "Least angle regression", Annals of Statistics 32 (2004), as
    bundled with scikit-learn. Each feature is centred and scaled to a sum of squares of 1.
    """

    name: ClassVar[str] = "diabetes"
    title: ClassVar[str] = "disease progression of 442 diabetes patients (bundled with scikit-learn)"
    data_files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "BSD-3-Clause"
    shape: ClassVar[str] = "442 x 10"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read scikit-learn's copy; neither argument is used.

        Returns
        -------
        Table
            x of shape (442, 10).
        """
        x, y = (np.loadtxt(of_scikit_learn(f"diabetes_{part}.csv.gz")) for part in ("data_raw", "target"))
        x = (x - x.mean(axis=0)) / x.std(axis=0) / len(x) ** 0.5
        return Table.of_one_site(x, y, NAMES)
