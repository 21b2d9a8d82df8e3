"""LIBSVM's w8a: web pages of one category and others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_sparse
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

FEATURES = 300


@dataclass(frozen=True)
class W8a:
    """Web pages (Platt 1998, LIBSVM's w8a): whether a page is of one category, from 300 keywords that are there or not.

    LIBSVM's parts w8a and w8a.t follow each other: 49749 rows, then 14951. 5455 rows have no keyword at all, and 1933,
    that is 3 %, are of the category.
    """

    name: ClassVar[str] = "w8a"
    title: ClassVar[str] = "web pages of one category by their keywords, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        published("w8a", "w8a", "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2", 3478238),
        published("w8a", "w8a.t", "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde", 1045870),
    )
    licence: ClassVar[str] = "LIBSVM's page states none"
    shape: ClassVar[str] = "64700 x 300"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read both parts; `rng` is not used.

        Returns
        -------
        Table
            x of shape (64700, 300), y of -1 and 1, part after part.

        Raises
        ------
        FklError
            If a file is missing, damaged, or not in its published layout.
        """
        parts = [read_sparse(store.read(file), file.name, FEATURES) for file in self.files]
        x = np.concatenate([part.toarray() for part, _ in parts])
        return Table.of_one_site(x, np.concatenate([y for _, y in parts]), numbered(FEATURES))
