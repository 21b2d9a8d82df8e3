"""Fixtures of the papers' tests."""

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from made_up import of_job, write

EXACT = {"OMKR": (0.05, 0.06), "RBF-1": (0.07, 0.08)}
"""Errors of methods of graph-aided OMKL on airfoil, in two replicates."""


def drawn() -> bytes:
    """A picture with a line on it."""
    figure, axes = plt.subplots(figsize=(2, 1.5))
    axes.plot([0, 1])
    figure.savefig(stream := io.BytesIO(), format="png")
    plt.close(figure)
    return stream.getvalue()


@pytest.fixture(scope="session")
def of_airfoil() -> Callable:
    """Write two runs that answer cells of graph-aided OMKL, and one that belongs to no table."""

    def of_airfoil(outputs: Path, pictures: bool = False) -> list[Path]:
        made = []
        for label, errors in EXACT.items():
            summary = {"mse": errors, "runtime_s": (1.0, 3.0), "mse_running_mean": (0.04, 0.09), "link_bytes": (10, 30)}
            rounds = {"mse": [[error] * 12 for error in errors]}
            made.append(of_job("graph_omkl/exact", "airfoil", label, summary=summary, rounds=rounds))
        other = {"test_mse": (0.2, 0.3), "runtime_s": (1.0, 1.0)}
        made.append(of_job("coke/uncensored", "synthetic", "DKLA", summary=other))
        made[-1].config["algo"] = {**made[-1].config["algo"], "iterations": 5}
        return [write(run, outputs / "runs", **({"mse_png": drawn()} if pictures else {})) for run in made]

    return of_airfoil
