"""LIBSVM's a9a: incomes above and below 50000 dollars."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_sparse
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

FEATURES = 123


@dataclass(frozen=True)
class A9a:
    """Adult, or census income (LIBSVM's edition of UCI 2, doi:10.24432/C5XW20): whether one earns above 50000 dollars.

    The 14 features of UCI's file are coded as 123 that are 0 or 1 (Platt 1998). LIBSVM's parts a9a and a9a.t follow
    each other: 32561 rows, then 16281.
    """

    name: ClassVar[str] = "a9a"
    title: ClassVar[str] = "incomes above 50000 dollars from a census, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        published("a9a", "a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", 2329875),
        published("a9a", "a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", 1164628),
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI's data)"
    shape: ClassVar[str] = "48842 x 123"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read both parts; `rng` is not used.

        Returns
        -------
        Table
            x of shape (48842, 123), y of -1 and 1, part after part.

        Raises
        ------
        FklError
            If a file is missing, damaged, or not in its published layout.
        """
        parts = [read_sparse(store.read(file), file.name, FEATURES) for file in self.files]
        x = np.concatenate([part.toarray() for part, _ in parts])
        return Table.of_one_site(x, np.concatenate([y for _, y in parts]), numbered(FEATURES))
