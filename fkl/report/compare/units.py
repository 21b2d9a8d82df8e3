"""Unit of replication in comparisons: a seed that draws new data, or a replicate."""

from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.report.compare.cells import CellPosition

ONE_SPLIT = "One split; intervals are over the random features only"
Values = dict[CellPosition, "pd.Series[float]"]


@dataclass(frozen=True)
class Unit:
    """Unit of replication on a data set.

    Parameters
    ----------
    kind : {"seed", "replicate"}
        Seeds draw new splits and features. With several seeds, the seed is the unit, with the mean of its replicates.
        With only one seed the replicate is the unit.
    shared : Index or None
        Seeds and replicates that all methods share; None if they share none, so nothing can be ranked.
    n : int
        Number of units; if methods share none, the largest number of one method.
    one_split : bool
        Whether all units have the same data and split.
    """

    kind: str
    shared: "pd.Index[Any] | None"
    n: int
    one_split: bool

    @classmethod
    def from_values(cls, values: Values, baselines: Values) -> Self:
        """Find the unit of one data set from the values of its methods and of its baselines.

        Baselines depend only on the data. If they differ between replicates, so do the data.
        """
        # Values that all methods have
        indexes = [series.index for series in values.values()]
        shared = reduce(lambda one, other: one.intersection(other), indexes)
        counted = shared if len(shared) else max(indexes, key=len)
        # Several seeds: a seed is a sample; one seed: a replicate is one, if something was drawn anew
        seeds = counted.get_level_values("seed").nunique()
        if seeds > 1:
            return cls("seed", shared if len(shared) else None, seeds, False)
        drawn = [series[series.index.isin(counted)].nunique() > 1 for series in baselines.values()]
        return cls("replicate", shared if len(shared) else None, len(counted), not any(drawn))

    def values(self, series: "pd.Series[float]") -> NDArray[np.float64]:
        """(n,) A method's values per unit, from its values by seed and replicate."""
        counted = series if self.shared is None else series[series.index.isin(self.shared)]
        if self.kind == "seed":
            counted = counted.groupby(level="seed").mean()
        return np.asarray(counted, np.float64)

    def curves_by_unit(self, whole: pd.DataFrame) -> pd.DataFrame:
        """Rows of each unit from a table of curves: those of shared replicates, averaged within each seed."""
        counted = whole
        if self.shared is not None:
            counted = whole[pd.MultiIndex.from_frame(whole[["seed", "replicate"]]).isin(self.shared)]
        if self.kind == "seed":
            counted = counted.groupby(["seed", "rounds"], as_index=False).mean()
        return counted

    @property
    def words(self) -> str:
        """The number of units, as text."""
        return f"{self.n} {'shared ' * (self.shared is not None)}{self.kind}{'s' * (self.n != 1)}"

    def left_out(self, dataset: str, values: Values) -> list[str]:
        """A sentence about values that do not count; empty if all count."""
        most = max(len(series) for series in values.values())
        if self.shared is None:
            return [f"{dataset}: the methods share no seed and replicate, so they are not ranked or tested."]
        if len(self.shared) == most:
            return []
        few = [cell.method for cell, series in values.items() if len(series) < most]
        least = f"; {few[0]} has no more" if len(few) == 1 else ""
        return [f"{dataset}: only the {len(self.shared)} of {most} replicates that all methods share count{least}."]
