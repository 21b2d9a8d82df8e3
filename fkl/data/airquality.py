"""UCI 360: hourly air quality at a roadside in an Italian town, 2004 to 2005."""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import between_ends, read_mat, read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

MISSING = -200.0  # what the file writes for a value that is missing; no measured value is so low
TARGET = "CO(GT)"
NMHC = "NMHC(GT)"
SENSORS = (
    "PT08.S1(CO)", NMHC, "C6H6(GT)", "PT08.S2(NMHC)", "NOx(GT)", "PT08.S3(NOx)", "NO2(GT)", "PT08.S4(NO2)",
    "PT08.S5(O3)", "T", "RH", "AH",
)  # fmt: skip
COLUMNS = ("Date", "Time", TARGET, *SENSORS)
PUBLISHED_FEATURES = ("Time", *SENSORS)
OZONE = "PT08.S5(O3)"
INPUTS = ("published", "raw", "dekrr")
RAW_FEATURES = tuple(name for name in SENSORS if name != NMHC)


@dataclass(frozen=True)
class AirQuality:
    """Air quality (UCI 360, doi:10.24432/C59K5F): the concentration of carbon monoxide from the other sensors.

    Parameters
    ----------
    input : {"published", "raw", "dekrr"}
        ``published`` is AirData.mat, which the published numbers of COKE come from. Its 13 features are the time as a
        fraction of the day and the 12 sensors, NMHC(GT) with them, and its rows those of UCI's first 9000 that have a
        target. Holes are in it as the value -200 that UCI's file writes for them; all features are then (value + 200)
        / 2975, the target (value - 0.1) / 11.8. Others made it; it lies in public repositories, such as
        JeongminChae/MKL_Online_Federated_Learning. ``raw`` is UCI's file, nothing scaled: 11 features, without date
        and time, which are text, and without NMHC(GT), which is missing in 8443 of the 9357 rows. ``dekrr`` is UCI's
        file as the published numbers of DeKRR-DDRF have it: all rows, holes as -200, the target PT08.S5(O3), and 13
        features, the hour and all other columns, each taken to [0, 1], and the target to [-1, 1].
    missing : {"drop", "previous"}
        Of the raw file, leave out the rows that miss a value, or put the column's last measured value into the holes of
        features. Rows without a target are left out either way: a target that was never measured is nothing to learn.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "airquality"
    title: ClassVar[str] = "carbon monoxide at an Italian roadside from other sensors"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "airquality",
            "AirData.mat",
            None,
            "b372262a9478e06b8a775f0df4079747751e69b12bbcb986570c2530f2258051",
            561217,
            instead="dataset.input=raw, which UCI serves",
        ),
        DataFile(
            "airquality",
            "AirQualityUCI.csv",
            "https://archive.ics.uci.edu/static/public/360/air+quality.zip",
            "13277ae5d8581e80b7be09d47c7d3d06fe9b8e957078f2cf6e859f955e62f996",
            785065,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI's page: for research only)"
    shape: ClassVar[str] = "7322 x 13"

    input: str = "published"
    missing: str = "drop"

    def __post_init__(self) -> None:
        require(self.input in INPUTS, "input", self.input, ", ".join(INPUTS))
        require(self.missing in ("drop", "previous"), "missing", self.missing, "drop or previous")
        # Or the key would promise to mend what it leaves as it is.
        possible = self.input == "raw" or self.missing == "drop"
        require(possible, "missing", self.missing, "drop unless dataset.input=raw: others are read as they are")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the input's file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (7322, 13) in file order, or of the raw file (6941, 11) with drop, (7674, 11) with previous, and
            (9357, 13) with ``dekrr``.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        published, raw = self.files
        if self.input == "published":
            x, y = read_mat(store.read(published), published.name, PUBLISHED_FEATURES)
            return Table.of_one_site(x, y, PUBLISHED_FEATURES)
        text = _plain(store.read(raw))
        frame = read_table(text, raw.name, COLUMNS, separator=";", header=True, text=("Date", "Time"))
        if self.input == "dekrr":
            names = (TARGET, *(name for name in SENSORS if name != OZONE))
            hour = frame["Time"].str.slice(0, 2).astype(np.float64)
            x = np.column_stack([hour, frame[list(names)].to_numpy(np.float64)])
            return Table.of_one_site(*between_ends(x, frame[OZONE].to_numpy(np.float64)), ("Time", *names))
        numbers = frame[[*RAW_FEATURES, TARGET]]
        numbers = numbers.where(numbers != MISSING)
        if self.missing == "previous":
            numbers[list(RAW_FEATURES)] = numbers[list(RAW_FEATURES)].ffill()
        numbers = numbers.dropna()
        x = numbers[list(RAW_FEATURES)].to_numpy(np.float64)
        return Table.of_one_site(x, numbers[TARGET].to_numpy(np.float64), RAW_FEATURES)


def _plain(raw: bytes) -> bytes:
    """Drop the empty rows at the end and the two empty columns, and write points for decimal commas.

    Lines keep their numbers.
    """
    return re.sub(rb";;\r?$", b"", raw.rstrip(b";\r\n"), flags=re.MULTILINE).replace(b",", b".")
