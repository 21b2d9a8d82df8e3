"""LIBSVM's real-sim: postings on real and on simulated cars and planes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_sparse
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.errors import FklError

ROWS = 72309
FEATURES = 20958


@dataclass(frozen=True)
class RealSim:
    """Real against simulated (McCallum's SRAA postings, LIBSVM's real-sim): what a posting is on, from its words.

    A posting has few of the words, so the table stays a sparse array; the dense one would have 12 GB. No SHA-256 of the
    file was at hand when this was written: it is accepted unchecked except for its shape.
    """

    name: ClassVar[str] = "real_sim"
    title: ClassVar[str] = "postings on real and on simulated vehicles, two classes, sparse"
    files: ClassVar[tuple[DataFile, ...]] = (published("real_sim", "real-sim", packed=".bz2"),)
    licence: ClassVar[str] = "LIBSVM's page states none"
    shape: ClassVar[str] = "72309 x 20958"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x a csr_array of shape (72309, 20958), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not 72309 rows of 20958 features.
        """
        (file,) = self.files
        x, y = read_sparse(store.read(file), file.name, FEATURES)
        if len(y) != ROWS:
            raise FklError(f"{file.name}: {len(y)} rows where {ROWS} are expected")
        return Table.of_one_site(x, y, numbered(FEATURES))  # type: ignore[arg-type] # the one table that is sparse
