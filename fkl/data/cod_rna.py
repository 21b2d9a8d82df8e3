"""LIBSVM's cod-rna: pairs of sequences that are non-coding RNA or not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.data.libsvm import published, read_sparse, two_classes
from fkl.data.problem import Table
from fkl.data.reading import read_table
from fkl.data.store import DataFile, Store

FEATURES = ("energy", "length", "A1", "U1", "C1", "A2", "U2", "C2")


@dataclass(frozen=True)
class CodRna:
    """Non-coding RNA (Uzilov, Keegan and Mathews 2006, doi:10.1186/1471-2105-7-173), from two aligned sequences.

    The features are ten times the free energy that Dynalign finds, the length of the shorter sequence and the share of
    A, U and C in each; they are not scaled, and the rows of one label follow each other. Only the training part, which
    FDSKL's size is of. A public copy of it without indices (JunfLi-TJU/ACML2021-Journal-Track), cod-rna.train, is read
    where LIBSVM's file is not in the folder: written with indices it has the hash of LIBSVM's file.
    """

    name: ClassVar[str] = "cod_rna"
    title: ClassVar[str] = "non-coding RNA from two aligned sequences, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        published("cod_rna", "cod-rna", "65b7cc0689fc29bba5db8b50fab0b6446d985f4bf8f6f5dd474f7df8b2f1ab6c", 4667176),
        DataFile(
            "cod_rna",
            "cod-rna.train",
            None,
            "ad2c9b107749cf5f277ab623c429c6fa69fed5522461554aa32c1c897512698c",
            3774151,
            instead="LIBSVM's cod-rna in its place",
        ),
    )
    licence: ClassVar[str] = "LIBSVM's page states none"
    shape: ClassVar[str] = "59535 x 8"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read one of the two files; `rng` is not used.

        Returns
        -------
        Table
            x of shape (59535, 8), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If both files are missing, or the one read is damaged or not in its published layout.
        """
        published_file, copy = self.files
        use_copy = store.find(published_file) is None and store.find(copy) is not None
        x, y = _without_indices(store, copy) if use_copy else _with_indices(store, published_file)
        return Table.of_one_site(x, y, FEATURES)


def _with_indices(store: Store, file: DataFile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = read_sparse(store.read(file), file.name, len(FEATURES))
    return x.toarray(), y


def _without_indices(store: Store, file: DataFile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = read_table(store.read(file), file.name, ("label", *FEATURES), separator=None).to_numpy(np.float64)
    return values[:, 1:].copy(), two_classes(values[:, 0], file.name, negative=-1.0)
