"""LIBSVM's epsilon: an artificial problem of the Pascal challenge."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_dense
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.errors import require

FILE_ROWS = 400000
FEATURES = 2000


@dataclass(frozen=True)
class Epsilon:
    """Epsilon of the Pascal large scale learning challenge 2008, LIBSVM's training part: an artificial problem.

    Each feature has mean 0 and variance 1, then each row norm 1. All 400000 rows are an array of 6.4 GB; the 12 GB of
    text are never held at once. No SHA-256 of the file was at hand when this was written: it is accepted unchecked
    except for its shape.

    Parameters
    ----------
    rows : int
        First rows of the file that are used.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "epsilon"
    title: ClassVar[str] = "artificial problem of the Pascal challenge 2008, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (published("epsilon", "epsilon_normalized", packed=".xz"),)
    licence: ClassVar[str] = "LIBSVM's page states none"
    shape: ClassVar[str] = "400000 x 2000"

    rows: int = FILE_ROWS

    def __post_init__(self) -> None:
        require(2 <= self.rows <= FILE_ROWS, "rows", self.rows, f"an integer from 2 to {FILE_ROWS}")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (rows, 2000), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or has fewer rows or features beyond the 2000.
        """
        (file,) = self.files
        x, y = read_dense(store.stream(file), file.name, FEATURES, self.rows)
        return Table.of_one_site(x, y, numbered(FEATURES))
