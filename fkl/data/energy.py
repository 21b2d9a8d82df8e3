"""UCI 374: energy use of the appliances in a house."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import between_ends, read_mat, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

FEATURES = (
    "lights", "T1", "RH_1", "T2", "RH_2", "T3", "RH_3", "T4", "RH_4", "T5", "RH_5", "T6", "RH_6", "T7", "RH_7", "T8",
    "RH_8", "T9", "RH_9", "T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint",
)  # fmt: skip
COLUMNS = ("date", "Appliances", *FEATURES, "rv1", "rv2")
INPUTS = ("published", "raw", "dekrr")


@dataclass(frozen=True)
class Energy:
    """Appliances energy prediction (UCI 374, doi:10.24432/C5VC8G): 10 minutes' energy use from the house's sensors.

    The 25 features are the light's energy use, temperature and humidity of nine rooms and the weather. The date, which
    is text, and rv1 and rv2, which are random numbers, are left out.

    Parameters
    ----------
    input : {"published", "raw", "dekrr"}
        ``published`` is EnergyData.mat, which the published numbers of COKE come from: the rows of at most 300 Wh,
        the features less the least of all their values and over the range of all, the target as (Wh - 10) / 290.
        Others made it from UCI's file; it lies in public repositories, such as
        JeongminChae/MKL_Online_Federated_Learning. ``raw`` is UCI's file, all rows and nothing scaled. ``dekrr`` is the
        same as the published numbers of DeKRR-DDRF have it: with rv1 and rv2, so 27 features, each taken to [0, 1], and
        the target to [-1, 1].

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "energy"
    title: ClassVar[str] = "energy use of a house's appliances from its sensors and the weather"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "energy",
            "EnergyData.mat",
            None,
            "7ee099ae8ed25820607dff789cf80e2bfbf908d3c7caade34197032553da5096",
            2046381,
            instead="dataset.input=raw, which UCI serves",
        ),
        DataFile(
            "energy",
            "energydata_complete.csv",
            "https://archive.ics.uci.edu/static/public/374/appliances+energy+prediction.zip",
            "2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d",
            11979363,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "18604 x 25"

    input: str = "published"

    def __post_init__(self) -> None:
        require(self.input in INPUTS, "input", self.input, ", ".join(INPUTS))

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the input's file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (18604, 25), or of the raw file (19735, 25), with ``dekrr`` (19735, 27), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        published, raw = self.files
        if self.input == "published":
            x, y = read_mat(store.read(published), published.name, FEATURES)
            return Table.of_one_site(x, y, FEATURES)
        frame = read_table(store.read(raw), raw.name, COLUMNS, header=True, text=("date",))
        names = FEATURES if self.input == "raw" else (*FEATURES, "rv1", "rv2")
        x, y = frame[list(names)].to_numpy(np.float64), frame["Appliances"].to_numpy(np.float64)
        return Table.of_one_site(*((x, y) if self.input == "raw" else between_ends(x, y)), names)
