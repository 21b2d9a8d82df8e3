"""Finished runs that nobody ran, with errors that a test chooses."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import made_up
import numpy as np
import pytest

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.online.learners import Raker, Rbf1

METHODS = {method.label: f"{method.__module__}.{method.__name__}" for method in (PofMkl, Raker, Rbf1)}
ROUNDS = 20


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., Path]:
    """Write a run of a method that ends with one of these errors a replicate; `keys` of its configuration.

    `words` are those of the user, `columns` more ones of the tables. A run that diverged leaves no tables.
    """

    def write(
        algorithm: str, dataset: str, errors: Sequence[float], metric: str = "mse", words: Sequence[str] = (),
        columns: dict[str, float | Sequence[float]] | None = None, diverged: bool = False, **keys: Any,
    ) -> Path:  # fmt: skip
        config: dict[str, Any] = {
            "seed": 0, "precision": "float32", "scaling": "unit_ball",
            "algo": {"_target_": METHODS.get(algorithm, f"mine.{algorithm}"), "eta": 0.1},
            "dataset": {"_target_": f"fkl.data.{dataset}.{dataset.title()}"},
            "partition": {"_target_": "fkl.data.partition.Iid", "clients": 4, "rounds": ROUNDS},
            "kernels": {"_target_": "fkl.kernels.Dictionary", "D": 8},
            "network": {"_target_": "fkl.network.Network"},
        }  # fmt: skip
        for key, value in keys.items():
            *nodes, last = key.split("__")
            node = config
            for name in nodes:
                node = node[name]
            node[last] = value
        t, R = np.arange(1.0, ROUNDS + 1), len(errors)
        rounds = {metric: np.outer(errors, ROUNDS / t)}
        rounds |= {"uplink_scalars": np.tile(10 * t, (R, 1)), "uplink_bytes": np.tile(40 * t, (R, 1))}
        rounds |= {name: np.outer(np.broadcast_to(value, R), t**0) for name, value in (columns or {}).items()}
        summary = {name: curve[:, -1] for name, curve in rounds.items()}
        summary |= dict.fromkeys(("runtime_s", "runtime_per_client_s"), np.full(R, 0.5))
        run = made_up.finished(config, dataset, algorithm, summary, rounds, words=[*words])
        folder = made_up.write(run, tmp_path / "outputs" / ("failed" if diverged else "runs"))
        if diverged:
            told = json.loads((folder / "provenance.json").read_text()) | {"state": "failed", "diverged": True}
            for file in folder.glob("*.csv"):
                file.unlink()
            (folder / "error.txt").write_text("diverged\n")
            (folder / "provenance.json").write_text(json.dumps(told))
        return folder

    shutil.rmtree(tmp_path / "outputs", ignore_errors=True)
    return write
