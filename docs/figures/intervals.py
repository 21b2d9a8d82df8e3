"""Draw the figure of docs/intervals.md, and print its tables.

python docs/figures/intervals.py docs
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fkl
from fkl.report.colours import look_of

STREAMS = {
    "energy": ("dataset=energy", "partition=agents", "partition.clients=20", "partition.rounds=400"),
    "naval": ("dataset=naval", "partition=agents", "partition.clients=20", "partition.rounds=400"),
    "wave_farm": ("dataset=wave_farm", "partition.clients_per_site=5"),
    "drift": ("dataset=drift",),
}
OF_STREAMS = {"ofmkl_avg": "OFMKL-Avg", "pof_mkl": "POF-MKL", "rf_gp": "RF-GP"}
ALIKE = ("partition=agents", "partition.clients=20", "partition.rounds=400")
HALF = ("algo.test_share=0.5",)  # of four rows, two: one calibrates and one judges
BATCHES = {
    "energy": ("dataset=energy", *ALIKE),
    "naval": ("dataset=naval", *ALIKE),
    "airquality": ("dataset=airquality", *ALIKE[:2], "partition.rounds=360"),
    "mathpnl": ("dataset=mathpnl", *HALF),
    "airfare": ("dataset=airfare", *HALF),
    "wagepan": ("dataset=wagepan", *HALF),
    "restaurants": ("dataset=restaurants", *HALF),
    "munnell": ("dataset=munnell", *HALF),
}
OF_BATCHES = {"one_shot_ridge": "One-shot ridge", "falkon": "FALKON"}
LEVELS = (80, 90, 95)
SMALL = ("kernels.D=20", "kernels.N=11", "kernels.smallest=0.1", "kernels.largest=10")


def clients_and_summary(*words: str) -> tuple[pd.DataFrame, pd.Series]:
    """The clients' table, and the mean of the summary over replicates."""
    result = fkl.run(*words, "figures=none", f"paths.outputs={mkdtemp()}", quiet=True)
    return result.clients, result.summary.mean()


def coverages(table: pd.DataFrame) -> list[float]:
    """Coverage of 90 % intervals over all targets is in the summary; here of the tenth of clients with the least."""
    each = table.groupby("client")["conformal_coverage_90"].mean().dropna().sort_values()
    return [float(each.head(max(1, len(each) // 10)).mean()), float(each.median())]


def main() -> None:
    """Both tables, and the figure."""
    folder, drawn = Path(sys.argv[1]), []
    for title, data, methods, kind in (
        ("streams", STREAMS, OF_STREAMS, "intervals=adaptive"),
        ("batches", BATCHES, OF_BATCHES, "intervals=split"),
    ):
        print(f"\n{title}: data, method, coverage at 80, 90, 95, length of 90, unbounded at 90, worst tenth of clients")
        for name, partition in data.items():
            for algo, label in methods.items():
                if algo == "falkon" and HALF[0] in partition:
                    continue  # a round of hundreds of clients takes it minutes
                own = (
                    ("replicates=5", *SMALL, "algo.lam=0") if title == "streams" else ("replicates=20", "kernels.D=50")
                )
                clients, mean = clients_and_summary(f"algo={algo}", *partition, kind, *own)
                found = [mean[f"conformal_coverage_{level}"] for level in LEVELS]
                length, unbounded = mean["conformal_length_90"], mean["conformal_unbounded_90"]
                worst, _ = coverages(clients)
                numbers = " | ".join(f"{100 * value:.1f}" for value in found)
                print(
                    f"| {name} | {label} | {numbers} | {length:.3g} | {100 * unbounded:.1f} | {100 * worst:.1f} |",
                    flush=True,
                )
                drawn.append((title, name, label, found[1], worst))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, title in zip(figure.subplots(1, 2, sharey=True), ("streams", "batches"), strict=True):
        rows = [row for row in drawn if row[0] == title]
        names, labels = (list(dict.fromkeys(row[place] for row in rows)) for place in (1, 2))
        for i, label in enumerate(labels):
            some, look = [row for row in rows if row[2] == label], look_of(label)
            x = np.array([names.index(row[1]) for row in some]) + 0.18 * (i - (len(labels) - 1) / 2)
            axes.plot(x, [100 * row[3] for row in some], look.marker, color=look.colour, label=label)
            axes.plot(x, [100 * row[4] for row in some], look.marker, color=look.colour, mfc="none")
        axes.axhline(90, color="0.4", lw=0.8)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_title({"streams": "Streams, intervals=adaptive", "batches": "Batches, intervals=split"}[title])
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("targets in 90 % intervals (%)\nopen: worst tenth of clients")
    figure.savefig(folder / "intervals.png", dpi=150)


if __name__ == "__main__":
    main()
