"""UCI 494: layouts of 16 wave energy converters and the power they give at four Australian sites."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import first_rows, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import FklError, require

URL = "https://archive.ics.uci.edu/static/public/494/wave+energy+converters.zip"
SITES = ("Adelaide", "Perth", "Sydney", "Tasmania")
CONVERTERS = 16
FILE_ROWS = 72000
FEATURES = tuple(f"{kind}{number}" for kind in "XYP" for number in range(1, CONVERTERS + 1))
COLUMNS = (*FEATURES, "Powerall")


@dataclass(frozen=True)
class Wec:
    """Wave energy converters (UCI 494): 16 x and 16 y coordinates, 16 powers; target the total power.

    No SHA-256 of these files was at hand when this was written, so they are accepted unchecked except for their
    shape, 72000 x 49 without header. Their zip's own checksums still catch a damaged archive.

    Parameters
    ----------
    rows_per_site : int
        First rows of each of the four files that are used, site after site.
    """

    name: ClassVar[str] = "wec"
    title: ClassVar[str] = "total power of 16 wave energy converters at 4 Australian sites"
    files: ClassVar[tuple[DataFile, ...]] = tuple(DataFile("wec", f"{site}_Data.csv", URL) for site in SITES)
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "4 sites x 72000 x 48"

    rows_per_site: int = 70000

    def __post_init__(self) -> None:
        allowed = f"an integer from 2 to {FILE_ROWS}"
        require(2 <= self.rows_per_site <= FILE_ROWS, "rows_per_site", self.rows_per_site, allowed)

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the four files; `rng` is not used.

        Returns
        -------
        Table
            x of shape (4 rows_per_site, 48), in file order.

        Raises
        ------
        FklError
            If a file is missing, damaged, or not 72000 rows of 49 numbers.
        """
        sites = []
        for file in self.files:
            frame = read_table(store.read(file), file.name, COLUMNS)
            if len(frame) != FILE_ROWS:
                raise FklError(f"{file.name}: {len(frame)} rows where {FILE_ROWS} are expected")
            sites.append(first_rows(frame, self.rows_per_site, file.name).to_numpy(np.float64))
        values = np.concatenate(sites)
        return Table(
            x=values[:, :-1],
            y=values[:, -1],
            site=np.repeat(np.arange(len(SITES)), self.rows_per_site),
            feature_names=FEATURES,
            site_names=SITES,
        )
