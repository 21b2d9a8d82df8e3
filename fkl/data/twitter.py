"""UCI 248, its Twitter half: how much topics are discussed on Twitter."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.problem import Table
from fkl.data.reading import read_mat
from fkl.data.store import DataFile, Store

WEEKS = 7
FEATURES = tuple(
    f"{name}_{week}"
    for name in ("NCD", "AI", "AS(NA)", "BL", "NAC", "AS(NAC)", "CS", "AT", "NA", "ADL", "NAD")
    for week in range(WEEKS)
)


@dataclass(frozen=True)
class Twitter:
    """Buzz in social media, Twitter (UCI 248, doi:10.24432/C56G6V): discussions of a topic from its last 7 weeks.

    The features are 11 counts and measures of the topic's discussions, each in 7 weeks; the target is the mean number
    of active discussions after. TwitterData.mat, the input of published experiments with online multiple kernel
    learning, is a part of UCI's 583250 rows that others scaled into [0, 1]; it lies in public repositories, such as
    JeongminChae/MKL_Online_Federated_Learning.
    """

    name: ClassVar[str] = "twitter"
    title: ClassVar[str] = "active discussions of topics on Twitter"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "twitter",
            "TwitterData.mat",
            None,
            "667066c5b8e2e16153d25082a4da77884293432abd1f744b991f4e55047b9dea",
            1564675,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI's data)"
    shape: ClassVar[str] = "13813 x 77"

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (13813, 77), in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or does not hold 77 features and a target.
        """
        (file,) = self.files
        x, y = read_mat(store.read(file), file.name, FEATURES)
        return Table.of_one_site(x, y, FEATURES)
