"""LIBSVM's gisette: the handwritten digits 4 and 9."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_dense
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

ROWS = 6000
FEATURES = 5000


@dataclass(frozen=True)
class Gisette:
    """Gisette (UCI 170, doi:10.24432/C5HP5B; the NIPS 2003 feature selection challenge): the digits 4 and 9.

    Half of the features are probes that say nothing. LIBSVM's training part, each feature scaled to [-1, 1]; hardly one
    of the scaled values is 0, so the table is dense, of 240 MB. No SHA-256 of the file was at hand when this was
    written: it is accepted unchecked except for its shape.
    """

    name: ClassVar[str] = "gisette"
    title: ClassVar[str] = "handwritten 4 and 9 with probes, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (published("gisette", "gisette_scale", packed=".bz2"),)
    licence: ClassVar[str] = "CC BY 4.0 (UCI's data)"
    shape: ClassVar[str] = "6000 x 5000"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (6000, 5000), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not 6000 rows of 5000 features.
        """
        (file,) = self.files
        x, y = read_dense(store.stream(file), file.name, FEATURES, ROWS)
        return Table.of_one_site(x, y, numbered(FEATURES))
