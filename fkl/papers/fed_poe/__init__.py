"""Ghari and Shen, Personalized Federated Learning with Mixture of Models for Adaptive Prediction, NeurIPS 2024."""

import pandas as pd
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.papers import script_output as script
from fkl.results.finished_runs import FinishedRun

TITLE = "Fed-POE (Ghari and Shen 2024)"
TABLES = {"1": "errors on air, beside what the authors' script prints"}
NO_CELLS = "the paper's printed tables were not at hand; ours stand beside what the authors' script prints."
"""Why there is no number to compare."""
FIGURES: dict[str, str] = {}
UNOBTAINABLE = {"wec": "the four files of 72000 rows are not at hand; the script wec.py was not run"}


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Every run of the paper's experiments beside the script; see `fkl.papers.script_output.table`."""
    return script.table(__file__, number, runs)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """There is none."""
    raise FklError(f"figure {number}: there is none of {TITLE}")
