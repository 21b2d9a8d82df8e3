"""Rows of which two methods know equally much: one sees two pairs of features as the other sees them exchanged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.store import DataFile, Store


@dataclass(frozen=True)
class Mirrored:
    """y = g(x1, x2) + g(x3, x4) + noise, as of docs/comparing: errors of learners that exchange the pairs are equal.

    Parameters
    ----------
    number : int
        Which data set of the source.
    rows : int
    apart : float
        What one pair of features is multiplied by.
    mirror : bool
        Whether it is the other pair.
    blur : float
        Standard deviation of noise on the features, which makes a learner worse.
    """

    name: ClassVar[str] = "mirrored"
    data_files: ClassVar[tuple[DataFile, ...]] = ()

    number: int = 0
    rows: int = 500
    apart: float = 2.5
    mirror: bool = False
    blur: float = 0.0

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """The same rows for every seed; `rng` is not used."""
        own = np.random.default_rng([1, self.number])
        x = own.standard_normal((self.rows, 4))
        noise = own.standard_normal(self.rows)
        y = _g(x[:, 0], x[:, 1]) + _g(x[:, 2], x[:, 3]) + 0.3 * noise
        x = x + self.blur * np.random.default_rng([2, self.number]).standard_normal(x.shape)
        scales = np.array([1.0, 1.0, self.apart, self.apart])
        return Table.of_one_site(x * (scales[::-1] if self.mirror else scales), y, ("x1", "x2", "x3", "x4"))


def _g(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sin(1.5 * a) * np.exp(-0.5 * b**2) + 0.3 * b
