"""UCI 501: hourly air quality and weather at four stations in Beijing, 2013 to 2017."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import first_rows, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

if TYPE_CHECKING:
    from pandas import DataFrame

URL = "https://archive.ics.uci.edu/static/public/501/beijing+multi+site+air+quality+data.zip"
COMPLETE_ROWS = 30338  # at Dongsi, which has the fewest rows without a missing value
POLLUTANTS = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3")
INPUTS = ("month", "day", "hour", *POLLUTANTS, "TEMP", "PRES", "DEWP", "RAIN", "wd", "WSPM")
COLUMNS = ("No", "year", *INPUTS, "station")
HASHES = {
    "Aotizhongxin": (2835916, "a94fbcfc71708b6ffdc033360163d91efb7f675e496f6b5860929aa96b96351b"),
    "Changping": (2722295, "a2e21402a6d95fb7043f87959e6e3dcbecb957aac356a6f8028a85b047c772e7"),
    "Dingling": (2675856, "3d8dff81f18a80d9f455876a785642bffe1e9b9924ec1e6b7ce8cca790432eeb"),
    "Dongsi": (2636684, "9c0020214425e5ee2a64d42f97a1f632e1d8f6b53ad50edd85a686cc7999f27e"),
}


@dataclass(frozen=True)
class Air:
    """Beijing multi-site air quality (UCI 501, doi:10.24432/C5RK5G), four of its twelve stations.

    Rows with a missing value in any column are dropped; the first `rows_per_site` of each station are used,
    station after station. The 14 features are month, day, hour, the five pollutants that are not the target,
    temperature, pressure, dew point, rain, wind direction and wind speed. The wind direction, 16 words, is
    coded 0, 1, ... in the order in which the words first appear in the rows used.

    Parameters
    ----------
    rows_per_site : int
        First rows without a missing value that are used of each station.
    target : str
        The pollutant to predict. ``NO2`` gives the numbers of the POF-MKL paper, ``CO`` is what its text
        names (see fkl/papers/pof_mkl/differences.md).
    """

    name: ClassVar[str] = "air"
    title: ClassVar[str] = "a pollutant at 4 stations in Beijing from the others and the weather"
    files: ClassVar[tuple[DataFile, ...]] = tuple(
        DataFile("air", f"PRSA_Data_{site}_20130301-20170228.csv", URL, sha256, size)
        for site, (size, sha256) in HASHES.items()
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "4 sites x 35064 x 14"

    rows_per_site: int = 30000
    target: str = "NO2"

    def __post_init__(self) -> None:
        allowed = f"an integer from 2 to {COMPLETE_ROWS}"
        require(2 <= self.rows_per_site <= COMPLETE_ROWS, "rows_per_site", self.rows_per_site, allowed)
        require(self.target in POLLUTANTS, "target", self.target, f"one of {', '.join(POLLUTANTS)}")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the four files; `rng` is not used.

        Returns
        -------
        Table
            x of shape (4 rows_per_site, 14), in file order.

        Raises
        ------
        FklError
            If a file is missing, damaged, not a table with the published header, or has too few complete rows.
        """
        import pandas

        frame = pandas.concat([self._station(store, file) for file in self.files], ignore_index=True)
        frame["wd"] = pandas.factorize(frame["wd"])[0]
        features = tuple(column for column in INPUTS if column != self.target)
        return Table(
            x=frame[list(features)].to_numpy(np.float64),
            y=frame[self.target].to_numpy(np.float64),
            site=np.repeat(np.arange(len(self.files)), self.rows_per_site),
            feature_names=features,
            site_names=tuple(HASHES),
        )

    def _station(self, store: Store, file: DataFile) -> "DataFrame":
        frame = read_table(store.read(file), file.name, COLUMNS, header=True, text=("wd", "station"), missing="NA")
        return first_rows(frame.dropna(), self.rows_per_site, file.name)
