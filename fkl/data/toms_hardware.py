"""UCI 248, its forum half: how often topics are shown on Tom's Hardware."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.data.normalise import normalise
from fkl.data.problem import Table
from fkl.data.reading import read_mat
from fkl.data.store import DataFile, Store
from fkl.errors import require

WEEKS = 8
PUBLISHED_ROWS = 11000
FEATURES = tuple(
    f"{name}_{week}"
    for name in ("NCD", "BL", "NAD", "AI", "NAC", "ND", "CS", "AT", "NA", "ADL", "AS(NA)", "AS(NAC)")
    for week in range(WEEKS)
)


@dataclass(frozen=True)
class TomsHardware:
    """Buzz in social media, Tom's Hardware (UCI 248, doi:10.24432/C56G6V): displays of a topic from its last 8 weeks.

    The features are 12 counts and measures of the topic's discussions, each in 8 weeks; the target is the mean number
    of displays in the two weeks after.

    Parameters
    ----------
    input : {"published", "omkl", "raw"}
        ``published`` is what the published numbers of COKE come from, which none of its words say: the first 11000 rows
        of TomsHardware.mat, each feature and the target less its least value of these rows and over its range; a
        constant feature becomes 0. ``omkl`` is TomData.mat, the input of published experiments with online multiple
        kernel learning: UCI's first 9995 rows less 270, most of them far out, features over 125393 and target over
        27611. ``raw`` is all 28179 rows of TomsHardware.mat, nothing scaled; its target is very heavy-tailed, up to
        265916.5. Neither file is UCI's own but what others made of it; they lie in public repositories, such as
        Yruikk/DeKRR-DDRF and JeongminChae/MKL_Online_Federated_Learning.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "toms_hardware"
    title: ClassVar[str] = "displays of topics in the forum Tom's Hardware"
    files: ClassVar[tuple[DataFile, ...]] = (
        DataFile(
            "toms_hardware",
            "TomsHardware.mat",
            None,
            "89d12947cf450fd8c262b92500bd371f114bd5989cbc97c94d655a9bf200bd15",
            3946618,
        ),
        DataFile(
            "toms_hardware",
            "TomData.mat",
            None,
            "56fd07284723b98a40f1e50b31ba24c1fef85588e90451ddea903f16c6dbf1b3",
            1108032,
        ),
    )
    licence: ClassVar[str] = "CC BY 4.0 (UCI's data)"
    shape: ClassVar[str] = "11000 x 96"

    input: str = "published"

    def __post_init__(self) -> None:
        require(self.input in ("published", "omkl", "raw"), "input", self.input, "published, omkl or raw")

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the input's file; `rng` is not used.

        Returns
        -------
        Table
            x of shape (11000, 96), (9725, 96) of ``omkl``, or (28179, 96) of the raw file, in file order.

        Raises
        ------
        FklError
            If the file is missing, damaged, or does not hold 96 features and a target.
        """
        raw, omkl = self.files
        if self.input == "omkl":
            x, y = read_mat(store.read(omkl), omkl.name, FEATURES)
            return Table.of_one_site(x, y, FEATURES)
        x, y = read_mat(store.read(raw), raw.name, FEATURES, y="Y", samples_in_rows=True)
        table = Table.of_one_site(x, y, FEATURES)
        if self.input == "raw":
            return table
        first = Table.of_one_site(x[:PUBLISHED_ROWS], y[:PUBLISHED_ROWS], FEATURES, where=raw.name)
        return normalise(first, "unit_box")
