"""Finished runs that nobody ran: folders as fkl writes them, with numbers that a test chooses."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.online.learners import Raker, Rbf1

METHODS = {method.label: f"{method.__module__}.{method.__name__}" for method in (PofMkl, Raker, Rbf1)}
ROUNDS = 20


def made_up(
    folder: Path,
    algorithm: str,
    dataset: str,
    errors: Sequence[float],
    metric: str = "mse",
    words: Sequence[str] = (),
    columns: dict[str, float | Sequence[float]] | None = None,
    diverged: bool = False,
    **keys: Any,
) -> Path:
    """Write a run of the method that ends with one of these errors a replicate; `keys` of its configuration.

    `words` are those of the user, `columns` more ones of the tables. A run that diverged leaves no tables.
    """
    config: dict[str, Any] = {
        "seed": 0,
        "replicates": len(errors),
        "precision": "float32",
        "scaling": "unit_ball",
        "algo": {"_target_": METHODS.get(algorithm, f"mine.{algorithm}"), "eta": 0.1},
        "dataset": {"_target_": f"fkl.data.{dataset}.{dataset.title()}"},
        "partition": {"_target_": "fkl.data.partition.Iid", "clients": 4, "rounds": ROUNDS},
        "kernels": {"_target_": "fkl.kernels.Dictionary", "D": 8},
        "network": {"_target_": "fkl.network.Network"},
    }
    for key, value in keys.items():
        *nodes, last = key.split("__")
        node = config
        for name in nodes:
            node = node[name]
        node[last] = value
    rounds = np.arange(1, ROUNDS + 1)
    tables = {
        "rounds": pd.DataFrame({
            "replicate": np.repeat(np.arange(len(errors)), ROUNDS),
            "round": np.tile(rounds, len(errors)),
            metric: np.outer(errors, ROUNDS / rounds).ravel(),
            "uplink_scalars": np.tile(10 * rounds, len(errors)),
            "uplink_bytes": np.tile(40 * rounds, len(errors)),
        })
    }  # fmt: skip
    for name, values in (columns or {}).items():
        tables["rounds"][name] = np.repeat(np.broadcast_to(values, len(errors)), ROUNDS)
    last = tables["rounds"][tables["rounds"]["round"] == ROUNDS].drop(columns="round")
    tables["summary"] = last.assign(runtime_s=0.5, runtime_per_client_s=0.125)
    tables["clients"] = pd.DataFrame({"replicate": [0], "client": [0]})
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    files["config.yaml"] = yaml.safe_dump(config)
    if diverged:
        files, folder = {"config.yaml": files["config.yaml"], "error.txt": "diverged\n"}, folder.with_name("failed")
    folder = folder / f"{dataset}-{hashlib.sha256(files['config.yaml'].encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    told: dict[str, Any] = {
        "state": "finished", "digest": folder.name, "dataset": dataset, "algorithm": algorithm, "rounds": ROUNDS,
        "clients": 4, "features": 3, "rows_left_out": 0, "scalars_by_kind": {}, "fkl": "0", "python": "3",
        "packages": {}, "machine": "", "processor": "", "blas": [], "words": [*words],
    }  # fmt: skip
    if diverged:
        told |= {"state": "failed", "diverged": True}
    told["files"] = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    (folder / "provenance.json").write_text(json.dumps(told))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., Path]:
    """Write runs into outputs/runs below the test's own folder."""

    def write(*arguments: Any, **keys: Any) -> Path:
        return made_up(tmp_path / "outputs" / "runs", *arguments, **keys)

    return write
