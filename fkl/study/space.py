"""Search spaces: ranges of keys, as in conf/tune.yaml or in a study's `space`.

``log 1e-3..3`` is a range on a logarithmic scale, ``0.95..1.0`` is one on a linear scale, ``2..6`` is one of integers,
and a list has all values.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fkl.basics.errors import BadValue

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"(log )?\s*({NUMBER})\s*\.\.\s*({NUMBER})")
ALLOWED = "log 1e-3..3 (logarithmic), 0.9..1.0 (linear), 2..6 (whole numbers) or a list of values"
DIGITS = 3
"""Significant digits of the values to try, so files contain exactly these values."""
OUTER = 0.1
"""A value within this share of a range from either end counts as being at that end."""
DECADE = 10.0
CHOICES = 2
"""A list of this many numbers is a choice; a longer one is a range, which has ends."""
LEAST_STEP = 1 / 256
"""Smallest share of a range's widening that is tried, if its key does not allow all of it."""


@dataclass(frozen=True)
class Range:
    """The values of one key.

    Parameters
    ----------
    low, high : float or int
        If both are integers, only integers are tried.
    log : bool
        Whether values are drawn on a logarithmic scale.
    values : tuple
        All values, instead of a range.
    """

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    values: tuple[Any, ...] = ()

    @classmethod
    def read(cls, key: str, text: object) -> "Range":
        """Read a range from text, or refuse it with a `BadValue`."""
        # A list of values, or two ends and perhaps a scale
        if isinstance(text, list) and text:
            return cls(values=tuple(text))
        match = RANGE.fullmatch(str(text).strip())
        if match is None:
            raise BadValue(key, text, ALLOWED)
        # Integers if both ends are integers
        whole = all(re.fullmatch(r"-?\d+", end) for end in match.groups()[1:]) and not match[1]
        low, high = (int(end) if whole else float(end) for end in match.groups()[1:])
        # The smaller end first, and above 0 on a logarithmic scale
        if low >= high or (match[1] and low <= 0):
            raise BadValue(key, text, f"{ALLOWED}; the smaller end first, above 0 on a logarithmic scale")
        return cls(low, high, bool(match[1]))

    def __str__(self) -> str:
        if self.values:
            return f"[{', '.join(map(str, self.values))}]"
        return f"{'log ' * self.log}{self.low:g}..{self.high:g}"

    @property
    def distribution(self) -> "BaseDistribution":
        """Optuna's distribution of values."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.values:
            return CategoricalDistribution(self.values)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high)
        return FloatDistribution(self.low, self.high, log=self.log)

    @property
    def middle(self) -> Any:
        """A value in the middle, rounded as in a trial."""
        if self.values:
            return self.values[len(self.values) // 2]
        if isinstance(self.low, int) and isinstance(self.high, int):
            return (self.low + self.high) // 2
        return self.round_value(math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2)

    def round_value(self, value: Any) -> Any:
        """The value to try, rounded from a drawn value."""
        return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value

    def end_of(self, value: Any) -> str:
        """The end of the range at which a value lies: "low", "high", or "" for neither."""
        if self.values:
            numbers = [one for one in self.values if isinstance(one, int | float) and not isinstance(one, bool)]
            ordered = len(numbers) == len(self.values) > CHOICES
            return {min(numbers): "low", max(numbers): "high"}.get(value, "") if ordered else ""
        if self.log:
            place = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return "low" if place < OUTER else "high" if place > 1 - OUTER else ""

    def widen_ends(self, end: str, allows: Callable[[Any], bool] = lambda value: True) -> "Range | None":
        """The range with one more decade at one end, or twice as wide if it is linear.

        Parameters
        ----------
        end : {"low", "high"}
        allows : callable
            Whether the key allows a value. If not, the range grows by half as much, and so on.

        Returns
        -------
        Range or None
            None for a list, and for an end that is the key's own limit.
        """
        # A whole step, and if the key does not allow it, halves of it
        share = 0.0 if self.values else 1.0
        while share >= LEAST_STEP:
            moved = self._moved_end(end, share)
            if moved == getattr(self, end):
                return None
            if allows(moved):
                return replace(self, low=moved) if end == "low" else replace(self, high=moved)
            share /= 2
        return None

    def _moved_end(self, end: str, share: float) -> float:
        """One end after a share of the widening, rounded as in a trial, so no value is beyond it."""
        side, now = (-1 if end == "low" else 1), getattr(self, end)
        if self.log:
            factor = DECADE**share
            moved = now * factor if side > 0 else now / factor
            return moved if share == 1 else self.round_value(moved)
        step = share * (self.high - self.low)
        return now + side * int(step) if isinstance(now, int) else self.round_value(now + side * step)
