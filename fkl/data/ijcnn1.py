"""LIBSVM's ijcnn1: the challenge of a neural networks' conference."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, published, read_sparse
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

FEATURES = 22


@dataclass(frozen=True)
class Ijcnn1:
    """The IJCNN 2001 challenge (Prokhorov 2001), a time series of an engine, in the features of its winner.

    Only LIBSVM's training part, ijcnn1, which FDSKL's size is of; its test part, ijcnn1.t of 91701 rows, is not read.
    One row in ten is of the class 1.
    """

    name: ClassVar[str] = "ijcnn1"
    title: ClassVar[str] = "the IJCNN 2001 challenge, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        published(
            "ijcnn1",
            "ijcnn1",
            "16506cad788cf7c9607454150ed1994788204bac2ff4c9cb3b320036b6950d3f",
            7744897,
            packed=".bz2",
        ),
    )
    licence: ClassVar[str] = "LIBSVM's page states none"
    shape: ClassVar[str] = "49990 x 22"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (49990, 22), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        (file,) = self.files
        x, y = read_sparse(store.read(file), file.name, FEATURES)
        return Table.of_one_site(x.toarray(), y, numbered(FEATURES))
