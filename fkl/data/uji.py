"""UCI 310: where in three buildings a phone is, from the strength of 520 wireless access points."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import first_rows, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

URL = "https://archive.ics.uci.edu/static/public/310/ujiindoorloc.zip"
FILE_ROWS = 19937 + 1111
NO_SIGNAL = 100.0  # what the files write for an access point that was not heard; heard ones are -104 to 0 dBm
FEATURES = tuple(f"WAP{number:03d}" for number in range(1, 521))
COLUMNS = (
    *FEATURES,
    *("LONGITUDE", "LATITUDE", "FLOOR", "BUILDINGID", "SPACEID", "RELATIVEPOSITION", "USERID", "PHONEID", "TIMESTAMP"),
)
TARGETS = ("latitude", "longitude")


@dataclass(frozen=True)
class Uji:
    """UJIIndoorLoc (UCI 310, doi:10.24432/C5MS59): training file, then validation file.

    Parameters
    ----------
    rows : int
        First rows of training then validation that are used.
    target : str
        ``latitude``, with which the numbers of the POF-MKL paper come out, or ``longitude``, which its text
        names (see fkl/papers/pof_mkl/differences.md).
    no_signal : float
        Feature value of an access point that was not heard; 100, the files' own code, gives the paper's numbers.
    """

    name: ClassVar[str] = "uji"
    title: ClassVar[str] = "indoor position from the signal strength of 520 wireless access points"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "uji",
            "trainingData.csv",
            URL,
            "45ca0128bd12019c976bb4793e407c979c82995d7a5940ab7288620247905168",
            42725381,
        ),
        DataFile(
            "uji",
            "validationData.csv",
            URL,
            "5f90c536648cd657b2c516d20c4e0968d4003279ea6bd5d5d5322d3f1e8905c0",
            2381949,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "21048 x 520"

    rows: int = 21000
    target: str = "latitude"
    no_signal: float = NO_SIGNAL

    def __post_init__(self) -> None:
        require(2 <= self.rows <= FILE_ROWS, "rows", self.rows, f"an integer from 2 to {FILE_ROWS}")
        require(self.target in TARGETS, "target", self.target, f"one of {', '.join(TARGETS)}")
        require(bool(np.isfinite(self.no_signal)), "no_signal", self.no_signal, "a finite number")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read both files; `rng` is not used.

        Returns
        -------
        Table
            x of shape (rows, 520), in file order.

        Raises
        ------
        FklError
            If a file is missing, damaged, or not a table with the published header.
        """
        import pandas

        frames = [read_table(store.read(file), file.name, COLUMNS, header=True) for file in self.files]
        where = " then ".join(file.name for file in self.files)
        frame = first_rows(pandas.concat(frames, ignore_index=True), self.rows, where)
        x = frame[list(FEATURES)].to_numpy(np.float64)
        return Table(
            x=np.where(x == NO_SIGNAL, self.no_signal, x),
            y=frame[self.target.upper()].to_numpy(np.float64),
            site=np.zeros(self.rows, dtype=np.int64),
            feature_names=FEATURES,
        )
