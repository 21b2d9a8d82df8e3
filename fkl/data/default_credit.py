"""UCI 350: clients of a bank in Taiwan who default on their credit cards."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.libsvm import two_classes
from fkl.data.problem import Table
from fkl.data.reading import read_table
from fkl.data.store import DataFile, Store

FEATURES = (
    "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6",
    "BILL_AMT1", "BILL_AMT2", "BILL_AMT3", "BILL_AMT4", "BILL_AMT5", "BILL_AMT6", "PAY_AMT1", "PAY_AMT2", "PAY_AMT3",
    "PAY_AMT4", "PAY_AMT5", "PAY_AMT6",
)  # fmt: skip
TARGET = "default.payment.next.month"


@dataclass(frozen=True)
class DefaultCredit:
    """Default of credit card clients (UCI 350, doi:10.24432/C55S3H): whether a client pays next month.

    The 23 features are the limit, four of the person and three times six months of payments and bills; codes are taken
    as numbers, as they are. The clients' numbers are left out. Class 1, a default, has 6636 rows. The file is Kaggle's
    edition of UCI's Excel sheet.
    """

    name: ClassVar[str] = "default_credit"
    title: ClassVar[str] = "defaults of credit card clients in Taiwan, two classes"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "default_credit",
            "UCI_Credit_Card.csv",
            None,
            "a0f0ab49d6326671d6cd83be5c88dcf18007025fe9a53ecd699119c871176ca1",
            2862995,
            instead="https://www.kaggle.com/datasets/uciml/default-of-credit-card-clients-dataset (with an account)",
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "30000 x 23"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (30000, 23), y of -1 and 1, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or not in its published layout.
        """
        (file,) = self.files
        frame = read_table(store.read(file), file.name, ("ID", *FEATURES, TARGET), header=True)
        y = two_classes(frame[TARGET].to_numpy(np.float64), file.name, negative=0.0, first_line=2)
        return Table.of_one_site(frame[list(FEATURES)].to_numpy(np.float64), y, FEATURES)
