"""A data set of my own: Friedman's first function, simulated."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.basics.errors import require
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store


@dataclass(frozen=True)
class Friedman:
    """y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise, x uniform on [0, 1]^5 (Friedman 1991).

    Parameters
    ----------
    rows : int
    noise : float
        Standard deviation.
    """

    name: ClassVar[str] = "friedman"
    data_files: ClassVar[tuple[DataFile, ...]] = ()  # what `load` reads through `store`, with checksums

    rows: int = 2000
    noise: float = 1.0

    def __post_init__(self) -> None:
        require(self.rows >= 1, "rows", self.rows, "an integer >= 1")
        require(0 <= self.noise < np.inf, "noise", self.noise, "a number >= 0")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Draw the rows; a data set with files would ask `store` for them."""
        x = rng.uniform(size=(self.rows, 5))
        y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
        return Table.of_one_site(x, y + self.noise * rng.standard_normal(self.rows), ("x1", "x2", "x3", "x4", "x5"))
