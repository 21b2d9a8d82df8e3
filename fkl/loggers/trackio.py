"""Trackio, by trackio: a dashboard on this machine."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from fkl.config import Run, decisive
from fkl.loggers.logger import group, requires_library


@dataclass
class Trackio:
    """A Trackio run: the configuration, curves over rounds, and the means of the summary.

    It is stored with Trackio's other runs (`TRACKIO_DIR`), and `trackio show` shows it. A resumed run is a second run
    there, in the same group, with the rounds from that point.

    Parameters
    ----------
    project : str
        Name of the project that the run belongs to.
    """

    project: str = "fkl"

    def __post_init__(self) -> None:
        with requires_library("trackio"), redirect_stdout(StringIO()):
            import trackio  # noqa: F401

    def begin(self, run: Run) -> None:
        """Make a run."""
        import trackio

        self._run = run
        with redirect_stdout(StringIO()):  # Trackio's hint how to view the run
            self._theirs: Any = trackio.init(
                project=self.project,
                name=run.folder.name,
                group=run.folder.name,
                config=decisive(run.resolved),
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """One point of every curve."""
        of = group(replicates, self._run)
        self._theirs.log({f"{name}/{of}" if of else name: value for name, value in metrics.items()}, step=t)

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The summary."""
        self._theirs.log({f"summary/{name}": value for name, value in summary.items()}, step=0)
        self._finish()

    def fail(self, why: str) -> None:
        """Send the reason why the run ended."""
        self._theirs.log({"fkl.error": why})
        self._finish()

    def _finish(self) -> None:
        import trackio

        with redirect_stdout(StringIO()):
            trackio.finish()  # also forgets the run; otherwise the end of the process would end it a second time
