"""Samples whose features are divided among different parties."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BadValue, require
from fkl.basics.keys import Keys, key
from fkl.data.encoder import Encoder, require_learned_classes
from fkl.data.problem import COMPLETE, FOLDS, Incomplete, Scale, Table

FEW_PARTIES = 8
"""Default number of parties; with fewer features, each party has one feature."""
HOWS = ("contiguous", "random", "given")
SPARSE = 1 / 6
"""Maximum share of nonzero entries for which sparse products of rows are faster."""


class RowSplit(NamedTuple):
    """Training rows and test rows."""

    training: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True)
class Vertical:
    """A problem whose parties share all samples; each party has its own features of them.

    Parameters
    ----------
    x : (n, d) float64
        All features; real_sim's are a csr_array.
    y : (n,) float64
        Target, known to the active parties; -1 and 1 where it has two values.
    groups : tuple of (d_j,) int64
        Features of each party.
    active : tuple of int
        Parties that hold the target.
    test_share : float
        Share of test rows in a replicate.
    rounds : int
        Iterations of the loop.
    scale, encoder
        As in `fkl.data.problem.Problem`.
    tested : (n,) bool or None
        Test rows of the data set itself, the same in every replicate; None if `test_share` gives their number.
    row, incomplete
        As in `fkl.data.problem.Table`.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: tuple[NDArray[np.int64], ...]
    active: tuple[int, ...]
    test_share: float
    rounds: int = 1
    scale: Scale = field(default_factory=Scale)
    encoder: Encoder | None = None
    tested: NDArray[np.bool_] | None = None
    row: NDArray[np.int64] | None = None
    incomplete: Incomplete = COMPLETE

    site_names: ClassVar[tuple[str, ...]] = ("all",)
    rows_left_out: ClassVar[int] = 0

    @property
    def clients(self) -> int:
        """Parties are the clients of the records."""
        return self.parties

    @property
    def site(self) -> NDArray[np.int64]:
        """All parties have the same samples, (q,)."""
        return np.zeros(self.parties, np.int64)

    @property
    def present(self) -> NDArray[np.bool_]:
        """All parties take part in all rounds, (T, q)."""
        return np.broadcast_to(np.True_, (self.rounds, self.parties))

    @property
    def parties(self) -> int:
        """Number q of parties."""
        return len(self.groups)

    @property
    def dimension(self) -> int:
        """Length d of a sample."""
        return int(self.x.shape[1])

    @property
    def test_rows(self) -> int:
        """Number of test rows in a replicate."""
        return round(self.test_share * len(self.y)) if self.tested is None else int(self.tested.sum())

    @property
    def two_classes(self) -> bool:
        """Whether the target is -1 and 1."""
        return np.unique(self.y).tolist() == [-1.0, 1.0]

    @cached_property
    def quick_x(self) -> Any:
        """The features x (n, d), as a csr_array if few entries are nonzero, which makes products of rows faster."""
        if not isinstance(self.x, np.ndarray) or np.count_nonzero(self.x) > SPARSE * self.x.size:
            return self.x
        from scipy.sparse import csr_array

        return csr_array(self.x)

    @cached_property
    def used(self) -> NDArray[np.int64] | None:
        """Features that are not 0 in every row, if `quick_x` is a csr_array that has other features, too; else None."""
        if isinstance(self.quick_x, np.ndarray):
            return None
        used = np.unique(self.quick_x.indices)
        return None if len(used) == self.dimension else used

    @cached_property
    def used_x(self) -> Any:
        """`quick_x` without the features that are 0 in every row."""
        return self.quick_x if self.used is None else self.quick_x[:, self.used]

    @cached_property
    def alike(self) -> NDArray[np.int64]:
        """For each row, the first row with the same features, (n,); rows of a csr_array are not compared."""
        if not isinstance(self.x, np.ndarray):
            return np.arange(len(self.y))
        first: dict[bytes, int] = {}
        return np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(self.x)])

    def require_classes(self, loss: str) -> None:
        """Refuse a loss of classification for a target that is not two classes."""
        if not self.two_classes:
            if self.tested is not None and len(np.unique(self.y[~self.tested])) == 2:
                self.require_learned_classes(~self.tested)
            values = len(np.unique(self.y))
            raise BadValue("loss", loss, f"square: the target has {values} values, not two classes")

    def require_learned_classes(self, training: NDArray[Any]) -> None:
        """Refuse a class that none of these training rows has."""
        require_learned_classes(self.y, training, self.scale.label)

    def rows(self, rng: np.random.Generator, fold: int | None = None) -> RowSplit:
        """One replicate's rows: a random split, or the data set's own split in random order.

        Parameters
        ----------
        rng : Generator
        fold : int or None
            Fold of a cross-validation: leave out the test rows, and test on this fifth of the others.
        """
        # The data set's own test rows come first in a random order
        order = rng.permutation(len(self.y))
        if self.tested is not None:
            order = order[np.argsort(~self.tested[order], kind="stable")]
        test, training = order[: self.test_rows], order[self.test_rows :]
        # With a fold, validation rows come from the training rows
        if fold is not None:
            left_out = np.arange(len(training)) % FOLDS == fold
            test, training = training[left_out], training[~left_out]
        return RowSplit(training, test)


@dataclass(frozen=True)
class FeatureGroups(Keys):
    """Disjoint groups of features, one per party."""

    of_features: ClassVar[bool] = True
    """Whether this partition divides features; other partitions divide rows."""

    parties: int | None = key(
        None,
        "Number q of parties; None for 8, or for the number of features if that is smaller.",
        min=2,
        must="an integer >= 2: features of one party are not partitioned; or null",
    )
    how: str = key(
        "contiguous",
        "Groups of neighbouring features, or of shuffled features, with sizes as equal as possible; or `groups`.",
        choices=HOWS,
    )
    groups: list[list[int]] | None = key(
        None,
        "For ``given``: the numbers, from 0, of each party's features.",
        must="lists of features with how=given, else null",
    )
    active: int | None = key(
        None,
        "Number of parties that hold the target, the first ones; None for half of the parties.",
        must="an integer from 1 to the parties, or null",
    )
    test_share: float = key(0.25, "Share of test rows in each replicate; the paper splits 3 : 1.", above=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        q, given = self.parties, self.how == "given"
        self.require(given == (self.groups is not None), "groups")
        if self.groups is not None and q is not None:
            require(len(self.groups) == q, "groups", f"{len(self.groups)} lists", f"{q} lists, one per party")
        most = FEW_PARTIES if q is None else q
        allowed = f"an integer from 1 to {most}, the parties, or null"
        require(self.active is None or 1 <= self.active <= most, "active", self.active, allowed)

    def split(self, table: Table, rng: np.random.Generator) -> Vertical:
        """Divide the columns of a table among parties; `rng` is used only for ``random``.

        Raises
        ------
        fkl.basics.errors.BadValue
            If there are fewer features than parties, or `groups` is not a partition of them.
        """
        # Two values of the target become -1 and 1
        values = np.unique(table.y)
        y, scale = table.y, table.scale
        if len(values) == 2:
            y, scale = np.where(y == values[0], -1.0, 1.0), scale.to_signs(*values.tolist())
        # Groups of features: given, or equal parts in the file's order or a random one
        features = table.x.shape[1]
        if self.groups is not None:
            groups = _given_groups(self.groups, features)
        else:
            require(features >= 2, "parties", self.parties, f"omitted: no two parties can share {features} feature")
            parties = min(FEW_PARTIES, features) if self.parties is None else self.parties
            require(parties <= features, "parties", parties, f"at most {features}, the features of the data set")
            order = rng.permutation(features) if self.how == "random" else np.arange(features)
            groups = tuple(np.sort(group) for group in np.array_split(order, parties))
        # Half of the parties have the target, unless a key says how many
        active = max(len(groups) // 2, 1) if self.active is None else self.active
        require(active <= len(groups), "active", active, f"at most {len(groups)}, the parties")
        parts = (groups, tuple(range(active)), self.test_share)
        as_they_are = {name: getattr(table, name) for name in ("encoder", "tested", "row", "incomplete")}
        vertical = Vertical(table.x, y, *parts, scale=scale, **as_they_are)
        allowed = f"a share that divides the {len(y)} rows into two parts"
        require(0 < vertical.test_rows < len(y), "test_share", self.test_share, allowed)
        return vertical


def _given_groups(groups: list[list[int]], features: int) -> tuple[NDArray[np.int64], ...]:
    """The given groups as arrays, checked to contain every feature exactly once."""
    # Each feature at exactly one party
    owner: dict[int, int] = {}
    for party, group in enumerate(groups):
        require(len(group) > 0, "groups", f"party {party}: []", "at least one feature per party")
        for feature in group:
            allowed = f"integers from 0 to {features - 1}, the features of the data set"
            require(0 <= feature < features, "groups", f"party {party}: {feature}", allowed)
            claimed = f"a feature of one party; party {owner.get(feature)} has it, too"
            require(feature not in owner, "groups", f"party {party}: {feature}", claimed)
            owner[feature] = party
    missing = [feature for feature in range(features) if feature not in owner]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadValue("groups", f"no party: {missing[0]}{more}", "a party for every feature")
    return tuple(np.array(group, np.int64) for group in groups)
