"""One line of `python -m benchmarks`."""

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
        Description of the run.
    floor_is : str
        Description of the floor.
    ours, floor : callable
        Run once and return the seconds.
    goal : float or None
        Upper bound for the ratio of both.
    repeats : int
    memory : callable or None
        Bytes that a replicate takes; None if it is not measured.
    """

    name: str
    shape: str
    floor_is: str
    ours: Callable[[], float]
    floor: Callable[[], float]
    goal: float | None = None
    repeats: int = 5
    memory: Callable[[], int] | None = None

    def turns(self) -> Iterator[tuple[float, float]]:
        """Seconds of the run and of its floor, one after the other, several times; the first run compiles."""
        self.ours()
        for _ in range(self.repeats):
            floor = self.floor()
            yield self.ours(), floor
