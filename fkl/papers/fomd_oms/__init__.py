"""Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data, 2024."""

import pandas as pd
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.papers import script_output as script
from fkl.results.finished_runs import FinishedRun

TITLE = "FOMD-OMS (Li, Wu, Xu and King 2024)"
TABLES = {"4": "errors of methods with kernels, beside what the authors' scripts print"}
NO_CELLS = "the paper's printed tables were not at hand; ours stand beside what the authors' scripts print."
"""Why there is no number to compare."""
FIGURES: dict[str, str] = {}
UNOBTAINABLE = {
    "elevators, bank, slice, Year, ailerons, calhousing": "the authors' files are not at hand, nor how they scaled them"
}


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Every run of the paper's experiments beside the scripts; see `fkl.papers.script_output.table`."""
    return script.table(__file__, number, runs)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """There is none."""
    raise FklError(f"figure {number}: there is none of {TITLE}")
