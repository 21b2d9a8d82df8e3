"""LIBSVM's phishing: websites that pretend to be others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import numbered, read_sparse
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

FEATURES = 68


@dataclass(frozen=True)
class Phishing:
    """Phishing websites (LIBSVM's edition of UCI 327, doi:10.24432/C51W2X), from what their addresses and pages show.

    The 30 categorical features of UCI's file are coded as 68 that are 0 or 1, and each row is divided by its norm: 30
    features of every row are 0.18257. Labels are 0 and 1 in the file, -1 and 1 here. The SHA-256 is that of a public
    copy (aquemy/HCBR), not compared with LIBSVM's own file.
    """

    name: ClassVar[str] = "phishing"
    title: ClassVar[str] = "phishing websites, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "phishing",
            "phishing",
            None,
            "0b0ca40e17bc95e909bfa587c408bf69904571ace01dea26e34cafc464f2da93",
            3620167,
            instead="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/phishing",
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI's data)"
    shape: ClassVar[str] = "11055 x 68"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (11055, 68), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        (file,) = self.files
        x, y = read_sparse(store.read(file), file.name, FEATURES, negative=0.0)
        return Table.of_one_site(x.toarray(), y, numbered(FEATURES))
