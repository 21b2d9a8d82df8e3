"""Base class of loggers, also of your own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from fkl.basics.errors import FklError
from fkl.config import Run


class Logger(Protocol):
    """Logs a run: a dataclass whose fields are the keys of its node.

    An exception in a logger is reported in one line and does not stop the run; this logger is not called again. A
    `CannotWriteError` of `fkl.basics.files.writing` ends the run, which resumes from its checkpoint when it is started
    again.
    """

    def begin(self, run: Run) -> None:
        """A run begins, or resumes from its checkpoint."""
        ...

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Round t has ended: columns of rounds.csv, as means over the replicates that run together.

        Empty columns are left out. The rounds of a group of replicates come in order; after an interruption they come
        again from the first, with the same numbers.
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
    """Report how to install a logger's library that an import in this block does not find; no extra of fkl has it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise FklError(f"logger={name}: needs {error.name}", help=[f"pip install {name}"]) from None


def group(replicates: Sequence[int], run: Run) -> str:
    """Name of a group of replicates; empty if the group has all of the run's replicates."""
    if len(replicates) == run.settings.replicates:
        return ""
    ends = dict.fromkeys((replicates[0], replicates[-1]))
    return f"replicate{'s' * (len(ends) - 1)} {'-'.join(map(str, ends))}"
