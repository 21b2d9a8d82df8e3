"""The digits data of scikit-learn: small, real, ten classes, and always available."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.store import DataFile, Store, of_scikit_learn


@dataclass(frozen=True)
class Digits:
    """Handwritten digits, 1797 images of 8 x 8 pixels, ten classes.

    The test part of E. Alpaydin and C. Kaynak, "Optical recognition of handwritten digits" (UCI, 1998), as bundled with
    scikit-learn. Each feature is a number from 0 to 16.
    """

    name: ClassVar[str] = "digits"
    title: ClassVar[str] = "1797 handwritten digits of 8 x 8 pixels, ten classes (bundled with scikit-learn)"
    data_files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "1797 x 64"
    several_classes: ClassVar[bool] = True

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read scikit-learn's copy; neither argument is used."""
        data = np.loadtxt(of_scikit_learn("digits.csv.gz"), delimiter=",")
        names = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
        return Table.of_one_site(data[:, :-1], data[:, -1], names)
