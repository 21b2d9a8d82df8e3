"""Draw the figure of docs/findings/intervals.md, and print its tables.

python docs/figures/intervals.py docs/findings
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


def worst_tenth(coverage: np.ndarray) -> float:
    """Mean coverage of the tenth of clients with the least, in percent."""
    ordered = np.sort(coverage[np.isfinite(coverage)])
    return 100 * float(ordered[: max(1, len(ordered) // 10)].mean())


def worst_by_chance(rows: np.ndarray, share: float) -> float:
    """The same if each of a client's rows is covered with the same probability, by 200 draws."""
    rng = np.random.default_rng(0)
    return float(np.mean([worst_tenth(rng.binomial(rows, share) / rows) for _ in range(200)]))


def main() -> None:
    """Both tables, and the figure."""
    folder, drawn = Path(sys.argv[1]), []
    for title, data, methods, kind in (
        ("streams", STREAMS, OF_STREAMS, "intervals=adaptive"),
        ("batches", BATCHES, OF_BATCHES, "intervals=split"),
    ):
        print(f"\n{title}: data, method, coverage at 80, 90, 95, length of 90, unbounded at 90, worst tenth, by chance")
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
                each = clients.groupby("client").mean(numeric_only=True)
                rows = each["rounds" if title == "streams" else "test_samples"].to_numpy().astype(int)
                worst = worst_tenth(each["conformal_coverage_90"].to_numpy())
                chance = worst_by_chance(rows[rows > 0], found[1])
                numbers = [f"{100 * value:.1f}" for value in found]
                numbers += [f"{length:.3g}", f"{100 * unbounded:.1f}", f"{worst:.1f}", f"{chance:.1f}"]
                print("|", " | ".join([name, label, *numbers]), "|", flush=True)
                drawn.append((title, name, label, found[1], worst))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, title in zip(figure.subplots(1, 2, sharey=True), ("streams", "batches"), strict=True):
        rows = [row for row in drawn if row[0] == title]
        names, labels = (list(dict.fromkeys(row[place] for row in rows)) for place in (1, 2))
        for i, label in enumerate(labels):
            some, look = [row for row in rows if row[2] == label], look_of(label)
            x = np.array([names.index(row[1]) for row in some]) + 0.18 * (i - (len(labels) - 1) / 2)
            axes.plot(x, [100 * row[3] for row in some], look.marker, color=look.colour, label=label)
            axes.plot(x, [row[4] for row in some], look.marker, color=look.colour, mfc="none")
        axes.axhline(90, color="0.4", lw=0.8)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_title({"streams": "Streams, intervals=adaptive", "batches": "Batches, intervals=split"}[title])
        axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("targets in 90 % intervals (%)\nopen: worst tenth of clients")
    figure.savefig(folder / "intervals.png", dpi=150)


if __name__ == "__main__":
    main()
