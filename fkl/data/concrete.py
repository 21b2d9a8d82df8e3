"""UCI 165: compressive strength of concrete."""

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import read_table, require_numbers
from fkl.data.store import DataFile, Store
from fkl.errors import FklError, require

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("cement", "slag", "fly_ash", "water", "superplasticizer", "coarse", "fine", "age", "strength")
# An archive of its own name, not the sheet's: finding that one must not look like finding the conversion.
CONVERTED = DataFile(
    "concrete",
    "Concrete_Data_from_xls.csv",
    "Concrete_Data_from_xls.zip",
    "d2b2813c2d081d9376a3567913b461ea717df22b41dec60103afaa217f794eb8",
    50281,
)
MOST_DECIMALS = 15
CELLS = "8b9a7af0366e0f437ad04cfba6bb729ec0c3ea76fa780ff3d3f4d057356b6af6"
"""SHA-256 of the 1030 x 9 cells as little-endian float64, row after row."""


@dataclass(frozen=True)
class Concrete:
    """Concrete compressive strength (UCI 165, doi:10.24432/C5PK67), from its seven ingredients and its age.

    The source's file is an Excel sheet; a comma-separated conversion of it, `Concrete_Data_from_xls.csv` with all
    digits, is read in its place where it lies in the folder. Excel rewrites a user name in the sheet on opening, so
    copies of the file differ in their hash; their cells do not, and are compared instead.

    Parameters
    ----------
    decimals : int or None
        Round all cells to so many; None for the file's own. The published numbers of graph-aided OMKL come from 2, as
        most copies on the web are rounded.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "concrete"
    title: ClassVar[str] = "compressive strength of concrete from its ingredients and age"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "concrete",
            "Concrete_Data.xls",
            "https://archive.ics.uci.edu/static/public/165/concrete+compressive+strength.zip",
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "1030 x 8"

    decimals: int | None = None

    def __post_init__(self) -> None:
        possible = self.decimals is None or 0 <= self.decimals <= MOST_DECIMALS
        require(possible, "decimals", self.decimals, f"an integer from 0 to {MOST_DECIMALS}, or null")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the conversion or the sheet; `rng` is not used.

        Returns
        -------
        Table
            x of shape (1030, 8), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or does not hold the published cells.
        """
        file, frame = self._converted(store) if store.find(CONVERTED) else self._sheet(store)
        found = hashlib.sha256(frame.to_numpy("<f8").tobytes()).hexdigest()
        if found != CELLS:
            raise FklError(
                f"{file.name}: {len(frame)} x {len(COLUMNS)} cells with SHA-256 {found}, expected 1030 x 9 with {CELLS}"
            )
        if self.decimals is not None:
            frame = frame.round(self.decimals)
        x = frame[list(COLUMNS[:-1])].to_numpy(np.float64)
        return Table.of_one_site(x, frame[COLUMNS[-1]].to_numpy(np.float64), COLUMNS[:-1])

    def _converted(self, store: Store) -> tuple[DataFile, "DataFrame"]:
        raw = store.read(CONVERTED)
        return CONVERTED, read_table(raw.partition(b"\n")[2], f"{CONVERTED.name} after its header", COLUMNS)

    def _sheet(self, store: Store) -> tuple[DataFile, "DataFrame"]:
        import pandas
        import xlrd

        (file,) = self.files
        raw = store.read(file)
        try:
            # pandas gives up this engine with version 4; by itself it keeps its remarks off the terminal, too.
            sheet = xlrd.open_workbook(file_contents=raw, logfile=io.StringIO()).sheet_by_index(0)
            rows = [sheet.row_values(row) for row in range(sheet.nrows)][1:]
        except Exception as error:  # xlrd raises whatever a damaged sheet leads it to
            raise FklError(f"{file.name}: not an Excel sheet that can be read ({error})") from error
        if sheet.ncols != len(COLUMNS):
            raise FklError(f"{file.name}: {sheet.ncols} columns where {len(COLUMNS)} are expected")
        return file, require_numbers(pandas.DataFrame(rows, columns=list(COLUMNS)), file.name, first_line=2)
