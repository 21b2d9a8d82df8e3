"""Error against epsilon for runs that differ in privacy.noise: `python docs/figures/privacy.py RUNS PICTURE`.

RUNS is the folder `runs` of `fkl run -m`. There is one panel for epsilon of a sample and one for a client.
"""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from matplotlib.figure import Figure
from scipy.stats import t

from fkl.report.colours import look_of

METHODS = ("POF-MKL", "vM-KOFL", "DKLA")


def points(runs: Path) -> pd.DataFrame:
    """One row per run: label, clip, noise, epsilons, and mean and half of the 95 % interval of the error."""
    rows: list[dict[str, Any]] = []
    for folder in sorted(path.parent for path in runs.glob("*/summary.csv")):
        config, summary = yaml.safe_load((folder / "config.yaml").read_text()), pd.read_csv(folder / "summary.csv")
        name = "mse" if "mse" in summary else "test_mse"
        error, noise = summary[name], config.get("privacy") or {"clip": None, "noise": None}
        half = t.ppf(0.975, len(error) - 1) * error.std(ddof=1) / len(error) ** 0.5
        label = next(key for key in METHODS if key.lower().replace("-", "_") in folder.name)
        told = {key: summary[key][0] for key in ("epsilon_sample", "epsilon_client") if key in summary}
        zero = summary["mse_running_mean"][0] if "mse_running_mean" in summary else None
        rows.append(
            {"label": label, "clip": noise["clip"], "noise": noise["noise"], "mean": error.mean(), "half": half}
            | {"running_mean": zero}
            | told
        )
    return pd.DataFrame(rows).sort_values(["label", "clip", "noise"])


def draw(table: pd.DataFrame, picture: Path) -> None:
    """Both panels, with a line for the same method without clipping and noise."""
    figure = Figure(figsize=(7.4, 3.3), dpi=100, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, who in zip(panels, ("sample", "client"), strict=True):
        for (label, clip), rows in table.dropna(subset=["epsilon_sample"]).groupby(["label", "clip"]):
            look = look_of(label)
            panel.errorbar(
                rows[f"epsilon_{who}"], rows["mean"], rows["half"], color=look.colour, marker=look.marker, capsize=3,
                fillstyle="none" if clip == table["clip"].min() else "full",
                label=f"{label}, C = {clip:g}",
            )  # fmt: skip
        for label, rows in table[table["noise"].isna()].groupby("label"):
            panel.axhline(
                rows["mean"].iloc[0], color=look_of(label).colour, linestyle="--", label=f"{label}, no privacy"
            )
        if table["running_mean"].notna().any():
            panel.axhline(
                table["running_mean"].dropna().iloc[0], color="0.5", linestyle=":", label="mean target so far"
            )
        panel.set(xscale="log", yscale="log", xlabel=f"epsilon of a {who}, delta = 1e-5")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean squared error")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(picture)


if __name__ == "__main__":
    found = points(Path(sys.argv[1]))
    print(found.to_string(index=False))
    draw(found, Path(sys.argv[2]))
