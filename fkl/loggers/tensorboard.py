"""TensorBoard's event files, by tensorboardX."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fkl.basics.errors import requires_extra
from fkl.config import Run, decisive
from fkl.loggers.logger import group


@dataclass
class TensorBoard:
    """Curves of the rounds, the run's figures, and the means of its summary: ``tensorboard --logdir FOLDER``.

    If not all replicates run together, each group of them has its own curve, in its own folder.

    Parameters
    ----------
    folder : str or None
        Parent of the run's folder; None for ``tensorboard`` in the outputs.
    """

    folder: str | None = None

    def __post_init__(self) -> None:
        with requires_extra("tensorboard", "logger=tensorboard"):
            import tensorboardX  # noqa: F401

    def begin(self, run: Run) -> None:
        """Write the configuration."""
        parent = Path(run.paths.outputs) / "tensorboard" if self.folder is None else Path(self.folder)
        self._run, self._place = run, parent / run.folder.name
        self._writers: dict[str, Any] = {}
        self._writer("").add_text("config", f"```\n{yaml.safe_dump(decisive(run.resolved), sort_keys=False)}```")

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """One point of every curve."""
        writer = self._writer(group(replicates, self._run))
        for name, value in metrics.items():
            writer.add_scalar(name, value, t)

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The summary and the figures."""
        from matplotlib.image import imread

        for name, value in summary.items():
            self._writer("").add_scalar(f"summary/{name}", value, 0)
        for file in sorted(folder.glob("*.png")):
            self._writer("").add_image(file.stem, imread(file), 0, dataformats="HWC")
        self._close()

    def fail(self, why: str) -> None:
        """Write the reason."""
        self._writer("").add_text("error", why)
        self._close()

    def _writer(self, name: str) -> Any:
        """The writer of a folder.

        TensorBoard hides the rounds of an interrupted run, because they are written again.
        """
        from tensorboardX import SummaryWriter

        if name not in self._writers:
            self._writers[name] = SummaryWriter(str(self._place / name), purge_step=0)
        return self._writers[name]

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
