"""UCI 165: compressive strength of concrete."""

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
URL = "https://archive.ics.uci.edu/static/public/165/concrete+compressive+strength.zip"
CONVERTED = DataFile(
    "concrete",
    "Concrete_Data_from_xls.csv",
    URL,
    "d2b2813c2d081d9376a3567913b461ea717df22b41dec60103afaa217f794eb8",
    50281,
)


@dataclass(frozen=True)
class Concrete:
    """Concrete compressive strength (UCI 165, doi:10.24432/C5PK67), from its seven ingredients and its age.

    The source's file is an Excel sheet; a comma-separated conversion of it, `Concrete_Data_from_xls.csv` with all
    digits, is read in its place where it lies in the folder. Excel rewrites a user name in the sheet on opening, so
    copies differ in their hash and none is compared.

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
    files: ClassVar[tuple[DataFile, ...]] = (DataFile("concrete", "Concrete_Data.xls", URL),)
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "1030 x 8"

    decimals: int | None = None

    def __post_init__(self) -> None:
        require(
            self.decimals is None or self.decimals >= 0, "decimals", self.decimals, "a whole number from 0, or null"
        )

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the conversion or the sheet; `rng` is not used.

        Returns
        -------
        Table
            x of shape (1030, 8), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not a table of 9 numbers a row.
        """
        frame = self._converted(store) if store.find(CONVERTED) else self._sheet(store)
        if self.decimals is not None:
            frame = frame.round(self.decimals)
        x = frame[list(COLUMNS[:-1])].to_numpy(np.float64)
        return Table.of_one_site(x, frame[COLUMNS[-1]].to_numpy(np.float64), COLUMNS[:-1])

    def _converted(self, store: Store) -> "DataFrame":
        raw = store.read(CONVERTED)
        return read_table(raw.partition(b"\n")[2], f"{CONVERTED.name} after its header", COLUMNS)

    def _sheet(self, store: Store) -> "DataFrame":
        import pandas

        (file,) = self.files
        raw = store.read(file)
        try:
            frame = pandas.read_excel(io.BytesIO(raw), engine="xlrd")
        except Exception as error:  # xlrd raises whatever a damaged sheet leads it to
            raise FklError(f"{file.name}: not an Excel sheet that can be read ({error})") from error
        if frame.shape[1] != len(COLUMNS):
            raise FklError(f"{file.name}: {frame.shape[1]} columns where {len(COLUMNS)} are expected")
        return require_numbers(frame.set_axis(COLUMNS, axis=1), file.name, first_line=2)
