"""UCI 514: next-day temperatures of Seoul, for correcting the bias of a forecast model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

FEATURES = (
    "Present_Tmax", "Present_Tmin", "LDAPS_RHmin", "LDAPS_RHmax", "LDAPS_Tmax_lapse", "LDAPS_Tmin_lapse", "LDAPS_WS",
    "LDAPS_LH", "LDAPS_CC1", "LDAPS_CC2", "LDAPS_CC3", "LDAPS_CC4", "LDAPS_PPT1", "LDAPS_PPT2", "LDAPS_PPT3",
    "LDAPS_PPT4", "lat", "lon", "DEM", "Slope", "Solar radiation",
)  # fmt: skip
COLUMNS = ("station", "Date", *FEATURES, "Next_Tmax", "Next_Tmin")
SUMMARY_ROWS = 2


@dataclass(frozen=True)
class Bias:
    """Bias correction of numerical prediction model temperature forecast (UCI 514, doi:10.24432/C59K76).

    Features are columns 3 to 23, the target is the last one, the next day's minimum temperature.

    Parameters
    ----------
    summary_rows : bool
        Keep the last two rows, which are no observations but the columns' minima and maxima. The published numbers of
        graph-aided OMKL come from a file that keeps them.
    missing : {"mean", "drop"}
        Put the mean of the column over the whole file into the holes of 162 rows, as the published numbers have it, or
        leave those rows out.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "bias"
    title: ClassVar[str] = "next-day minimum temperature in Seoul from a forecast model"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "bias",
            "Bias_correction_ucl.csv",
            "https://archive.ics.uci.edu/static/public/514/"
            "bias+correction+of+numerical+prediction+model+temperature+forecast.zip",
            "f1e630ba9a637e9dae3e2c75c9ec46c50c7f3a54377fc177dce6557f08676552",
            1650766,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "7752 x 21"

    summary_rows: bool = True
    missing: str = "mean"

    def __post_init__(self) -> None:
        require(self.missing in ("mean", "drop"), "missing", self.missing, "mean or drop")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (n, 21), in file order: 7752 rows with both switches as published, 7588 with neither.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        (file,) = self.files
        raw = store.read(file)
        frame = read_table(raw, file.name, COLUMNS, header=True, text=("station", "Date"), missing="NaN")
        numbers = frame[[*FEATURES, "Next_Tmin"]]
        if not self.summary_rows:
            numbers = numbers.iloc[:-SUMMARY_ROWS]
        numbers = numbers.fillna(numbers.mean()) if self.missing == "mean" else numbers.dropna()
        x = numbers[list(FEATURES)].to_numpy(np.float64)
        return Table.of_one_site(x, numbers["Next_Tmin"].to_numpy(np.float64), FEATURES)
