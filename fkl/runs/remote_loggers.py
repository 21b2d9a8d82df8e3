"""Loggers that send a run to a service: MLflow, Weights & Biases."""

import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from filelock import FileLock

from fkl.basics.errors import requires_extra
from fkl.basics.keys import Keys, key
from fkl.config.choices import flat_items
from fkl.config.digest import decisive_part
from fkl.config.loading import Run
from fkl.runs.folder import create_folder
from fkl.runs.loggers import group_name, requires_library

MOST_METRICS, MOST_PARAMETERS = 1000, 100
"""Limit of one call to MLflow."""
TAG = "fkl.run"
IMPATIENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
"""Settings of MLflow for the first request of a run, and for the first request at its end."""


@dataclass
class MLflow(Keys):
    """An MLflow run: the configuration, curves of the rounds, the means of the summary, and all files."""

    uri: str | None = key(
        None,
        "Address of the store. None for the address in the variable ``MLFLOW_TRACKING_URI``; without it, for "
        "``mlflow.db`` in the outputs, with the files in ``mlflow`` next to it. `mlflow ui --backend-store-uri "
        "sqlite:///outputs/mlflow.db` shows it.",
    )
    experiment: str = key("fkl", "Name of the experiment that the run belongs to.")

    def __post_init__(self) -> None:
        super().__post_init__()
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        with requires_extra("mlflow", "logger=mlflow"):
            import mlflow  # noqa: F401
            import sqlalchemy  # noqa: F401
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # MLflow sets it, too, when it is imported

    def begin(self, run: Run) -> None:
        """Create an MLflow run, or continue the one of this run's first part."""
        from mlflow import MlflowClient
        from mlflow.entities import Param
        from mlflow.exceptions import MlflowException
        from sqlalchemy import create_engine

        # Where the user's server is, or a database next to the runs
        outputs = Path(run.paths.outputs).absolute()
        given = self.uri or os.environ.get("MLFLOW_TRACKING_URI")
        uri, place = given or sqlite_url(outputs / "mlflow.db"), None if given else (outputs / "mlflow").as_uri()
        database = re.match(r"(sqlite|mysql|postgresql|mssql)(\+\w+)?://", uri) is not None
        with ExitStack() as opened:
            opened.enter_context(limit_mlflow_retries())
            if given is None:
                opened.enter_context(create_folder(outputs))
                opened.enter_context(
                    create_folder(Path(uri.removeprefix("sqlite:///")).parent)
                )  # MLflow does not decode it
            if database:
                create_engine(uri).connect().close()  # MLflow would try again for minutes
                outputs.mkdir(parents=True, exist_ok=True)
                opened.enter_context(FileLock(outputs / ".mlflow.lock"))  # only one job of a sweep makes the tables
            # Another job may create the experiment at the same time
            self._client = MlflowClient(uri)
            known = self._client.get_experiment_by_name(self.experiment)
            try:
                number = known.experiment_id if known else self._client.create_experiment(self.experiment, place)
            except MlflowException:
                known = self._client.get_experiment_by_name(self.experiment)
                if known is None:
                    raise
                number = known.experiment_id  # made by another job just now
        self._run = run
        self._pending: list[Any] = []
        # Continue the run of an earlier process, if it has not finished
        unfinished = f"tags.`{TAG}` = '{run.digest}' and attributes.status != 'FINISHED'"
        unfinished_runs = self._client.search_runs([number], unfinished, max_results=1)
        if unfinished_runs:
            self._id = unfinished_runs[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
        else:
            self._id = self._client.create_run(number, run_name=run.folder.name, tags={TAG: run.digest}).info.run_id
        # Steps that are already there are not sent again
        history = self._client.get_metric_history
        names = unfinished_runs[0].data.metrics if unfinished_runs else ()
        self._known = {name: max(point.step for point in history(self._id, name)) for name in names}
        parameters = [Param(name, str(value)) for name, value in flat_items(decisive_part(run.resolved))]
        for start in range(0, len(parameters), MOST_PARAMETERS):
            self._client.log_batch(self._id, params=parameters[start : start + MOST_PARAMETERS])

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Add one point to every curve; points are sent in batches."""
        of = group_name(replicates, self._run)
        self._add_batch({f"{name}/{of}" if of else name: value for name, value in metrics.items()}, t)
        if len(self._pending) >= MOST_METRICS:
            self._send_batch()

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The summary, and all files."""
        self._add_batch({f"summary/{name}": value for name, value in summary.items()}, 0)
        with limit_mlflow_retries():
            self._send_batch()
        self._client.log_artifacts(self._id, str(folder))
        self._client.set_terminated(self._id, "FINISHED")

    def fail(self, why: str) -> None:
        """Send MLflow the reason why the run ended."""
        with limit_mlflow_retries():
            self._send_batch()
            self._client.set_tag(self._id, "fkl.error", why)
        self._client.set_terminated(self._id, "FAILED")

    def _add_batch(self, metrics: dict[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time())
        new = {name: value for name, value in metrics.items() if step > self._known.get(name, -1)}
        self._pending += [Metric(name, value, now, step) for name, value in new.items()]

    def _send_batch(self) -> None:
        while self._pending:
            self._client.log_batch(self._id, metrics=self._pending[:MOST_METRICS])
            del self._pending[:MOST_METRICS]


@contextmanager
def limit_mlflow_retries() -> Iterator[None]:
    """Let MLflow give up after seconds instead of minutes if a server does not answer."""
    before = {name: os.environ.get(name) for name in IMPATIENT}
    os.environ.update({name: value for name, value in IMPATIENT.items() if before[name] is None})
    try:
        yield
    finally:
        for name in IMPATIENT:
            if before[name] is None:
                del os.environ[name]


def sqlite_url(file: Path) -> str:
    """URL of a database in a file; the file's name may have characters with a special meaning in URLs."""
    from sqlalchemy import make_url

    plain, quoted = (f"sqlite:///{name}" for name in (file, str(file).replace("%", "%25").replace("?", "%3F")))
    return plain if make_url(plain).database == str(file) else quoted


FILES = "fkl"
"""Folder for the run's files within Weights & Biases' run."""


@dataclass
class WandB(Keys):
    """A Weights & Biases run: the configuration, curves over rounds, the means of the summary, and all files.

    A resumed run is a second run there, in the same group, with the rounds from that point.
    """

    project: str = key("fkl", "Name of the project that the run belongs to.")
    online: bool = key(
        False,
        "Whether the run is sent to the server of `wandb login` while it runs. Otherwise it is stored in "
        "``wandb`` in the outputs, and nothing leaves this machine: `wandb sync outputs/wandb/offline-run-*` "
        "sends it.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
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
            config=decisive_part(run.resolved),
            dir=outputs,
            mode="online" if self.online else "offline",
            reinit="create_new",  # independent of other runs of the calling program
            settings=wandb.Settings(silent=True, init_timeout=20, console="off", disable_git=True, disable_code=True),
        )
        self._theirs.define_metric("*", step_metric="round")  # the rounds start again for other replicates

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """One point of every curve."""
        of = group_name(replicates, self._run)
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
