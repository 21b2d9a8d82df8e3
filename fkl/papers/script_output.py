"""Compare our numbers with the output of a paper's public scripts, if its printed numbers were not available."""

from pathlib import Path

import numpy as np
import pandas as pd

from fkl.config.experiments import paper_experiments
from fkl.papers.our_runs import find_paper_runs, require_found
from fkl.runs.finished_runs import FinishedRun

KEY = ["dataset", "algorithm", "setting", "metric"]
METRICS = ("mse", "client_sd")


def script_table(paper_file: str, number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """All runs of a paper's experiments, with the script's output if the script was run.

    Parameters
    ----------
    paper_file : str
        File of the paper's module, next to script.csv.
    number : str
        Number of the table.
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Errors in units of 1e-3; script_sd and script_n are over repetitions of the script.
    """
    paper = Path(paper_file).parent.name
    found = find_paper_runs(paper, runs)
    require_found(found, "table", next(iter(paper_experiments(paper))))
    text = {"table": str, "setting": str}
    printed = pd.read_csv(Path(paper_file).with_name("script.csv"), dtype=text).fillna({"setting": ""})
    printed = printed[printed["table"] == number].set_index(KEY)
    rows = []
    for one in found:
        for metric in (name for name in METRICS if name in printed.index.get_level_values("metric")):
            if metric == "mse":
                values = one.run.summary["mse"]
                ours, spread = float(values.mean()), float(values.std(ddof=1))
            else:  # standard deviation over clients, of each client's mean MSE over replicates
                ours, spread = float(one.run.clients.groupby("client")["mse"].mean().std(ddof=0)), np.nan
            key = (*one.key, metric)
            row: dict[str, object] = dict(zip(KEY, key, strict=True))
            for name in ("script", "script_sd", "script_n"):
                row[name] = printed.at[key, name] if key in printed.index else np.nan
            rows.append({**row, "ours": 1e3 * ours, "ours_sd": 1e3 * spread, "n": one.run.replicates})
    return pd.DataFrame(rows)
