"""One line of `fkl bench`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A run and its floor.

    Parameters
    ----------
    name : str
        The method.
    shape : str
        What is run.
    floor_is : str
        What the floor is.
    ours, floor : callable
        Do it once and return the seconds that it took.
    goal : float or None
        What the ratio of both should not exceed.
    repeats : int
    """

    name: str
    shape: str
    floor_is: str
    ours: Callable[[], float]
    floor: Callable[[], float]
    goal: float | None = None
    repeats: int = 5

    def turns(self) -> Iterator[tuple[float, float]]:
        """Seconds of the run and of its floor, one after the other, several times; the first run compiles."""
        self.ours()
        for _ in range(self.repeats):
            floor = self.floor()
            yield self.ours(), floor
