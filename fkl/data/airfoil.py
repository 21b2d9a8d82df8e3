"""UCI 291: noise of airfoil sections in a wind tunnel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import read_table
from fkl.data.store import DataFile, Store

FEATURES = ("frequency", "angle", "chord", "velocity", "thickness")


@dataclass(frozen=True)
class Airfoil:
    """Airfoil self-noise (UCI 291, doi:10.24432/C5VW2C): the scaled sound pressure level from five settings."""

    name: ClassVar[str] = "airfoil"
    title: ClassVar[str] = "sound pressure level of airfoil sections in a wind tunnel"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "airfoil",
            "airfoil_self_noise.dat",
            "https://archive.ics.uci.edu/static/public/291/airfoil+self+noise.zip",
            "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3",
            59984,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "1503 x 5"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (1503, 5), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not a table of 6 numbers a row.
        """
        (file,) = self.files
        frame = read_table(store.read(file), file.name, (*FEATURES, "level"), separator=None)
        return Table.of_one_site(
            frame[list(FEATURES)].to_numpy(np.float64), frame["level"].to_numpy(np.float64), FEATURES
        )
