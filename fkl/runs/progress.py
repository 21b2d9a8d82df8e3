"""The progress bar of a run's rounds, with a message during compilation."""

import sys
from types import TracebackType
from typing import Any, NoReturn, Self

from numba.core import event
from tqdm import tqdm


class Progress(event.Listener):  # type: ignore[misc]
    """A bar of rounds, on stderr, that erases itself.

    Compiled code is stored for later runs, and its time does not belong to the rounds: the bar's clock restarts after
    it.

    Parameters
    ----------
    title : str
    rounds : int
        Total over all replicates.
    shown : bool
        Whether there is a bar at all.
    """

    def __init__(self, title: str, rounds: int, shown: bool = True) -> None:
        pause = 0.2 if sys.stderr.isatty() else 10.0  # a log needs fewer lines than a terminal
        self.title = title
        self.compiling = False
        self.bar: tqdm[NoReturn] = tqdm(
            total=rounds, desc=title, unit="round", leave=False, file=sys.stderr, mininterval=pause, disable=not shown
        )

    def __enter__(self) -> Self:
        event.register("numba:compile", self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        event.unregister("numba:compile", self)
        self.bar.close()

    def on_start(self, _: Any) -> None:
        """Report compilation, which happens once per machine."""
        if not self.compiling:
            self.compiling = True
            self.bar.set_description(f"{self.title}, compiling (once)")

    def on_end(self, _: Any) -> None:
        """Print nothing: more may be compiled before the next round ends."""

    def advance(self, rounds: int) -> None:
        """Advance the bar by this number of rounds."""
        if self.compiling:
            self.compiling = False
            self.bar.set_description(self.title, refresh=False)
            self.bar.unpause()
        self.bar.update(rounds)
