"""Weights & Biases, by wandb: on this disk unless online=true."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fkl.config import Run, decisive
from fkl.loggers.logger import group, requires_library

FILES = "fkl"
"""Folder for the run's files within Weights & Biases' run."""


@dataclass
class WandB:
    """A Weights & Biases run: the configuration, curves over rounds, the means of the summary, and all files.

    A resumed run is a second run there, in the same group, with the rounds from that point.

    Parameters
    ----------
    project : str
        Name of the project that the run belongs to.
    online : bool
        Whether the run is sent to the server of `wandb login` while it runs. Otherwise it is stored in ``wandb`` in the
        outputs, and nothing leaves this machine: `wandb sync outputs/wandb/offline-run-*` sends it.
    """

    project: str = "fkl"
    online: bool = False

    def __post_init__(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        with requires_library("wandb"):
            import wandb  # noqa: F401

    def begin(self, run: Run) -> None:
        """Make a run."""
        import wandb

        outputs = Path(run.paths.outputs).absolute()
        outputs.mkdir(parents=True, exist_ok=True)
        self._run = run
        self._theirs: Any = wandb.init(
            project=self.project,
            name=run.folder.name,
            group=run.folder.name,
            config=decisive(run.resolved),
            dir=outputs,
            mode="online" if self.online else "offline",
            reinit="create_new",  # independent of other runs of the calling program
            settings=wandb.Settings(silent=True, init_timeout=20, console="off", disable_git=True, disable_code=True),
        )
        self._theirs.define_metric("*", step_metric="round")  # the rounds start again for other replicates

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """One point of every curve."""
        of = group(replicates, self._run)
        self._theirs.log({"round": t, **{f"{name}/{of}" if of else name: value for name, value in metrics.items()}})

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The summary, and all files."""
        self._theirs.summary.update({f"summary/{name}": value for name, value in summary.items()})
        place = Path(self._theirs.dir)  # wandb has its own config.yaml
        shutil.copytree(folder, place / FILES)
        self._theirs.save(str(place / FILES / "*"), base_path=str(place), policy="now")
        self._theirs.finish(exit_code=0)

    def fail(self, why: str) -> None:
        """Send the reason why the run ended."""
        self._theirs.summary["fkl.error"] = why
        self._theirs.finish(exit_code=1)
