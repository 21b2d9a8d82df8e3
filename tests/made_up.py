"""Finished runs that nobody played: a configuration with numbers that a test chooses, in memory or as a folder."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from hydra.utils import get_class

from fkl.config.loading import make_object
from fkl.papers.jobs import PaperJob, experiment_jobs
from fkl.runs.finished_runs import FinishedRun

Columns = Mapping[str, Any]
"""Numbers of each replicate, (R,), or of each replicate and round or client, (R, n)."""


def table(columns: Columns, index: str = "") -> pd.DataFrame:
    """A run's table; with `index` a row for each replicate and round, from 1, or client, from 0."""
    values = {name: np.asarray(column, float) for name, column in columns.items()}
    shape = next(iter(values.values())).shape
    frame = pd.DataFrame({"replicate": np.repeat(np.arange(shape[0]), int(np.prod(shape[1:])))})
    if index:
        frame[index] = np.tile(np.arange(shape[1]) + (index == "round"), shape[0])
    return frame.assign(**{name: column.ravel() for name, column in values.items()})


def finished(
    config: dict[str, Any], dataset: str, algorithm: str, summary: Columns, rounds: Columns | None = None,
    clients: Columns | None = None, **told: Any,
) -> FinishedRun:  # fmt: skip
    """A run of as many replicates as the summary has; its rounds and clients are the summary's, if none are given."""
    made = {"summary": table(summary)}
    for name, given in {"rounds": rounds, "clients": clients}.items():
        made[name] = table(
            given or {column: [[one] for one in made["summary"][column]] for column in summary}, name[:-1]
        )
    config = {**config, "replicates": len(made["summary"])}
    sizes = {"rounds": int(made["rounds"]["round"].max()), "clients": int(made["clients"]["client"].max()) + 1}
    digest = hashlib.sha256(json.dumps(config).encode()).hexdigest()[:12]
    facts = {
        "state": "finished", "digest": digest, "dataset": dataset, "algorithm": algorithm, **sizes, "features": 3,
        "rows_left_out": 0, "scalars_by_kind": {}, "fkl": "0", "python": "3", "packages": {}, "machine": "",
        "processor": "", "blas": [], "words": [], "files": {},
    }  # fmt: skip
    run = FinishedRun(Path("nowhere"), config, facts | told)
    run.__dict__.update(made)
    return run


def name_of(job: PaperJob) -> tuple[str, str, str]:
    """Data set, label and setting of a job, as a paper's tables name them."""
    config = job.config
    dataset = str(make_object(dict(config["dataset"]), "dataset").name)
    return dataset, get_class(config["algo"]["_target_"]).label, str(job.cell.get("setting", ""))


def of_job(
    experiment: str, *names: str, summary: Columns, keys: Mapping[str, Any] | None = None, **more: Any
) -> FinishedRun:
    """A run of the first job of an experiment whose data set, label and setting begin with these names.

    `keys` are values that its configuration has, by words as ``algo.M``.
    """
    for job in experiment_jobs(experiment):
        dataset, label, _ = found = name_of(job)
        if found[: len(names)] == names and all(value == _at(job.config, key) for key, value in (keys or {}).items()):
            words = [*job.words, f"replicates={len(next(iter(summary.values())))}"]
            return finished(job.config, dataset, label, summary, words=words, **more)
    raise AssertionError(f"no job of {experiment} is {names} with {keys}")


def _at(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = config[part]
    return config


def write(run: FinishedRun, runs: Path, **files: bytes) -> Path:
    """The run as a folder, as fkl writes it, with more files, whose names end in _png and so on."""
    config, told = run.config, dict(run.provenance)
    method = config["algo"]["_target_"].rpartition(".")[2].lower()
    folder = runs / f"{run.dataset}-{method}-{run.digest}"
    folder.mkdir(parents=True)
    texts = {f"{name}.csv": getattr(run, name).to_csv(index=False) for name in ("summary", "rounds", "clients")}
    contents = {name: text.encode() for name, text in (texts | {"config.yaml": yaml.safe_dump(config)}).items()}
    contents |= {name.replace("_", "."): content for name, content in files.items()}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    told["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    (folder / "provenance.json").write_text(json.dumps(told))
    return folder
