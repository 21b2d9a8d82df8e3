"""What a logger is, one of your own too."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from fkl.basics.errors import FklError
from fkl.config import Run


class Logger(Protocol):
    """Is told of a run: a dataclass whose fields are the keys of its node.

    What it raises is said in one line and costs the run nothing; such a logger is told no more. A `CannotWriteError`
    of `fkl.basics.files.writing` ends the run, which goes on from its checkpoint when it is called again.
    """

    def begin(self, run: Run) -> None:
        """A run begins, or goes on from its checkpoint."""
        ...

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Round t is over: columns of rounds.csv, their means over the replicates that run together.

        Those that are empty there are left out. The rounds of some replicates come in order; after an interruption they
        come again from the first, with the same numbers.
        """
        ...

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The run is finished: its folder, and the means over all replicates of the columns of summary.csv."""
        ...

    def fail(self, why: str) -> None:
        """The run ended with an error, or was interrupted."""
        ...


@contextmanager
def requires_library(name: str) -> Iterator[None]:
    """Say how to install what an import in this block misses: the library of a logger, which no extra of fkl has."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise FklError(f"logger={name}: needs {error.name}", help=[f"pip install {name}"]) from None


def group(replicates: Sequence[int], run: Run) -> str:
    """Name of a group of replicates; empty where the group is all of the run's."""
    if len(replicates) == run.settings.replicates:
        return ""
    ends = dict.fromkeys((replicates[0], replicates[-1]))
    return f"replicate{'s' * (len(ends) - 1)} {'-'.join(map(str, ends))}"
