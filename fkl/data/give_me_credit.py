"""Kaggle's Give Me Some Credit: borrowers who come into serious arrears."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import two_classes
from fkl.data.problem import Table
from fkl.data.reading import read_table
from fkl.data.store import DataFile, Store
from fkl.errors import require

FEATURES = (
    "RevolvingUtilizationOfUnsecuredLines", "age", "NumberOfTime30-59DaysPastDueNotWorse", "DebtRatio",
    "MonthlyIncome", "NumberOfOpenCreditLinesAndLoans", "NumberOfTimes90DaysLate", "NumberRealEstateLoansOrLines",
    "NumberOfTime60-89DaysPastDueNotWorse", "NumberOfDependents",
)  # fmt: skip
TARGET = "SeriousDlqin2yrs"
ROW_NUMBER = ""  # the first column has no name


@dataclass(frozen=True)
class GiveMeCredit:
    """Give Me Some Credit (Kaggle 2011): whether a borrower is 90 days late within two years.

    The labelled part, cs-training.csv, without its row numbers; 10026 of its rows are of class 1. MonthlyIncome is
    missing in 29731 rows and NumberOfDependents in 3924.

    Parameters
    ----------
    missing : {"median", "drop"}
        Put the median of a column's measured values, of all rows, into its holes, or leave out the rows that have one.
        What FDSKL does is not said; its 150000 rows are all of them.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "give_me_credit"
    title: ClassVar[str] = "borrowers who come into arrears, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "give_me_credit",
            "cs-training.csv",
            None,
            "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac",
            7564965,
            instead="https://www.kaggle.com/c/GiveMeSomeCredit/data (with an account)",
        ),
    )
    licence: ClassVar[str] = "rules of the Kaggle competition"
    shape: ClassVar[str] = "150000 x 10"

    missing: str = "median"

    def __post_init__(self) -> None:
        require(self.missing in ("median", "drop"), "missing", self.missing, "median or drop")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (150000, 10), or (120269, 10) with drop; y of -1 and 1; in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        (file,) = self.files
        frame = read_table(store.read(file), file.name, (ROW_NUMBER, TARGET, *FEATURES), header=True, missing="NA")
        y = two_classes(frame[TARGET].to_numpy(np.float64), file.name, negative=0.0, first_line=2)
        features = frame[list(FEATURES)]
        if self.missing == "median":
            return Table.of_one_site(features.fillna(features.median()).to_numpy(np.float64), y, FEATURES)
        whole = features.notna().all(axis=1).to_numpy()
        return Table.of_one_site(features[whole].to_numpy(np.float64), y[whole], FEATURES)
