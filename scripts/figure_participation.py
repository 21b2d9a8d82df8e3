"""Draw the figures of docs/network/participation.md and docs/network/stragglers.md, and print what is in them.

python scripts/figure_participation.py docs/network [participation] [stragglers]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fkl.composing.loader import compose
from fkl.config import load
from fkl.execution import prepare
from fkl.results.records import make_records
from fkl.simulation import simulate

COMMON = ("dataset=naval", "partition=iid", "partition.clients=10", "partition.rounds=150", "kernels.D=20")
COMMON += ("replicates=5", "algo.lam=0")  # no fit in hindsight, which takes longer than all of this
METHODS = {"pof_mkl": ("POF-MKL", "#0072B2", "o"), "vm_kofl": ("vM-KOFL", "#D55E00", "s")}
SHARES = (0.1, 0.3, 0.6, 1.0)
ABSENCE = 20
"""Rounds that an absence lasts in the mean, of the chain."""
TIMES = ("network.compute_s=1", "network.compute_spread=0.5", "network.compute_jitter=0.5")
DEADLINES = (0.4, 0.7, 1.5, 1000.0)


def summary(*words: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over replicates of each column of a run's summary."""
    experiment = prepare(load(compose(*COMMON, *words)))
    table = make_records(experiment, simulate(experiment, None, None, lambda _: None)).summary
    return {name: (float(table[name].mean()), float(table[name].std(ddof=1))) for name in table}


def panel(axes: object, x: list[float], found: list[tuple[float, float]], method: str, **how: object) -> None:
    """One curve, and a band of a standard deviation over replicates to each side, to a tenth of the mean at most."""
    label, colour, marker = METHODS[method]
    mean, spread = np.array(found).T
    axes.plot(x, mean, color=colour, marker=marker, label=label + how.pop("more", ""), **how)  # type: ignore[attr-defined]
    axes.fill_between(x, np.maximum(mean - spread, mean / 10), mean + spread, color=colour, alpha=0.2, lw=0)  # type: ignore[attr-defined]


def participation(folder: Path) -> None:
    """Error against the share of rounds that a client takes part in: drawn each round, and in long absences."""
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for method in METHODS:
        for kind, line in (("share", "-"), ("markov", "--")):
            at, found = [], []
            for share in SHARES:
                back = 1 / ABSENCE
                chain = (f"participation.leave={back * (1 - share) / share}", f"participation.back={back}")
                words = (f"participation.share={share}",) if kind == "share" else chain
                if kind == "markov" and (share == 1 or back * (1 - share) / share > 1):
                    continue
                found.append(summary(f"algo={method}", f"participation={kind}", *words))
                at.append(share)
                print(method, kind, share, *(f"{n} {found[-1][n][0]:.4g} +- {found[-1][n][1]:.2g}" for n in
                      ("mse", "mse_worst_tenth", "mse_gini", "uplink_bytes")), flush=True)  # fmt: skip
            more = "" if kind == "share" else f", absences of {ABSENCE} rounds"
            for one, name in zip(axes, ("mse", "mse_worst_tenth"), strict=True):
                panel(one, at, [row[name] for row in found], method, ls=line, more=more)
    for one, words in zip(axes, ("all clients", "worst tenth of clients"), strict=True):
        one.set(
            xlabel="share of rounds that a client takes part in",
            ylabel=f"mse, {words}\n(of the scaled target, no unit)",
        )
        one.set(xlim=(0, 1.03), yscale="log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="small")
    figure.savefig(folder / "participation.png", dpi=80)


def stragglers(folder: Path) -> None:
    """Error and simulated seconds against the deadline."""
    figure = Figure(figsize=(7.5, 3.0), layout="constrained")
    axes = figure.subplots(1, 2)
    for method in METHODS:
        found = []
        for deadline in DEADLINES:
            found.append(summary(f"algo={method}", *TIMES, f"network.deadline_s={deadline}"))
            print(method, "deadline", deadline, *(f"{n} {found[-1][n][0]:.4g} +- {found[-1][n][1]:.2g}" for n in
                  ("mse", "mse_worst_tenth", "communication_s", "uplink_bytes")), flush=True)  # fmt: skip
        panel(axes[0], [row["communication_s"][0] for row in found], [row["mse"] for row in found], method)
        at = [*DEADLINES[:-1], 8.0]
        panel(axes[1], at, [row["communication_s"] for row in found], method, alpha=0.7)
    axes[0].set(xlabel="simulated seconds of the run (s)", ylabel="mse (scaled target, no unit)", yscale="log")
    axes[1].set(xlabel="deadline (s)", ylabel="simulated seconds (s)", xscale="log", ylim=(0, None))
    axes[1].set_xticks([*DEADLINES[:-1], 8.0], [*map("{:g}".format, DEADLINES[:-1]), "none"])
    axes[1].minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="small")
    figure.savefig(folder / "stragglers.png", dpi=80)


if __name__ == "__main__":
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    for draw in (participation, stragglers):
        if draw.__name__ in (sys.argv[2:] or ("participation", "stragglers")):
            draw(Path(sys.argv[1]))
