"""What a data set and a partition hand to the rest of the house."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """One data set as its files hold it, before any partition.

    Parameters
    ----------
    x : (n, d) float64
        Features, one row a sample, in the order of the file.
    y : (n,) float64
        Target.
    site : (n,) int64
        Index into `site_names` of the place each row was measured at; all 0 where there is one.
    feature_names, site_names : tuple of str
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    site: NDArray[np.int64]
    feature_names: tuple[str, ...]
    site_names: tuple[str, ...] = ("all",)

    @classmethod
    def of_one_site(cls, x: NDArray[np.float64], y: NDArray[np.float64], feature_names: tuple[str, ...]) -> "Table":
        """Table whose rows were all measured at one place."""
        return cls(x, y, np.zeros(len(y), np.int64), feature_names)


@dataclass(frozen=True)
class Problem:
    """The streams of all clients: in round t client k sees x[t, k], predicts, then sees y[t, k].

    Parameters
    ----------
    x : (T, K, d)
    y : (T, K) float64
    present : (T, K) bool
        False where client k has no sample in round t (its rows are used up).
    site : (K,) int64
        The site most of the client's rows come from.
    site_names : tuple of str
    rows_left_out : int
        Rows of the table that no client received.
    """

    x: NDArray[np.floating]
    y: NDArray[np.float64]
    present: NDArray[np.bool_]
    site: NDArray[np.int64]
    site_names: tuple[str, ...] = ("all",)
    rows_left_out: int = 0
    rounds: int = field(init=False)
    clients: int = field(init=False)
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        for name, size in zip(("rounds", "clients", "dimension"), self.x.shape, strict=True):
            object.__setattr__(self, name, size)

    def round(self, t: int) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.float64]]:
        """Samples of round t, and each client's share in an average over the clients present.

        Returns
        -------
        x : (K, d)
        y : (K,) float64
        share : (K,) float64
            1 / (clients present) for a client that is present, 0 for one that is not.
        """
        here = self.present[t]
        return self.x[t], self.y[t], here / max(int(here.sum()), 1)
