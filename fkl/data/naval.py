"""UCI 316: gas turbine of a naval vessel, simulated over its states of decay."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import first_rows, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

FILE_ROWS = 11934
FEATURES = ("v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2", "P48", "P1", "P2", "Pexh", "TIC", "mf")
DECAY = ("kMc", "kMt")
COLUMNS = ("lp", *FEATURES, *DECAY)


@dataclass(frozen=True)
class Naval:
    """Condition based maintenance of naval propulsion plants (UCI 316, doi:10.24432/C5K31K).

    Features are columns 2 to 16 of the file, the target is column 1, the lever position. T1 and P1 are constant and
    Ts and Tp are equal in every row: the file is like that.

    Parameters
    ----------
    rows : int
        First rows of the file that are used.
    decay : bool
        Use the two decay coefficients at the end, too, 17 features in all. Both papers count 15; which the published
        numbers of graph-aided OMKL come from they cannot tell, since beside the others these two are tiny.
    """

    name: ClassVar[str] = "naval"
    title: ClassVar[str] = "lever position of a naval gas turbine from its sensors"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "naval",
            "data.txt",
            "https://archive.ics.uci.edu/static/public/316/condition+based+maintenance+of+naval+propulsion+plants.zip",
            "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
            3448926,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "11934 x 15"

    rows: int = 11500
    decay: bool = False

    def __post_init__(self) -> None:
        require(2 <= self.rows <= FILE_ROWS, "rows", self.rows, f"an integer from 2 to {FILE_ROWS}")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (rows, 15 or 17), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not a table of 18 numbers a row.
        """
        (file,) = self.files
        frame = first_rows(read_table(store.read(file), file.name, COLUMNS, separator=None), self.rows, file.name)
        names = (*FEATURES, *DECAY) if self.decay else FEATURES
        return Table.of_one_site(frame[list(names)].to_numpy(np.float64), frame["lp"].to_numpy(np.float64), names)
