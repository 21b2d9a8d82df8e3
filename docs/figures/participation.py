"""Draw the figures of docs/findings/participation.md and docs/findings/stragglers.md, and print their numbers.

python docs/figures/participation.py docs/findings [participation] [stragglers] [equal_seconds]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.rounds import simulate_run
from fkl.report.colours import look_of
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import make_records

COMMON = ("dataset=naval", "partition=iid", "partition.clients=10", "partition.rounds=150", "kernels.D=20")
COMMON += ("replicates=5", "algo.lam=0")  # no fit in hindsight, which would take longer than everything else
STAR = {"pof_mkl": "POF-MKL", "vm_kofl": "vM-KOFL"}
ON_A_GRAPH = ("dataset=energy", "partition=agents", "topology=gnm", "topology.edges=20", "kernels.D=20")
ON_A_GRAPH += ("algo.iterations=500", "algo.lam=0.01", "replicates=5", "precision=float64")
GRAPH = {"dkla": "DKLA", "coke": "COKE", "cta": "CTA"}
METHODS = STAR | GRAPH
SHARES = (0.1, 0.3, 0.6, 1.0)
ABSENCE = 20
"""Mean length of an absence in rounds, for the chain."""
TIMES = ("network.compute_s=1", "network.compute_spread=0.5", "network.compute_jitter=0.5")
DEADLINES = (0.4, 0.7, 1.5, 1000.0)


def summary(*words: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over replicates of each column of a run's summary."""
    common = ON_A_GRAPH if words[0].removeprefix("algo=") in GRAPH else COMMON
    experiment = prepare_run(load_run(compose_config(*common, *words)))
    table = make_records(experiment, simulate_run(experiment, None, None, lambda _: None)).summary
    return {name: (float(table[name].mean()), float(table[name].std(ddof=1))) for name in table}


def panel(axes: object, x: list[float], found: list[tuple[float, float]], method: str, **how: object) -> None:
    """One curve, with a band of one standard deviation over replicates on each side, cut at a tenth of the mean."""
    label, look = METHODS[method], look_of(METHODS[method])
    mean, spread = np.array(found).T
    axes.plot(x, mean, color=look.colour, marker=look.marker, label=label + how.pop("more", ""), **how)  # type: ignore[attr-defined]
    axes.fill_between(x, np.maximum(mean - spread, mean / 10), mean + spread, color=look.colour, alpha=0.2, lw=0)  # type: ignore[attr-defined]


COLUMNS = {
    False: ("mse", "mse_worst_tenth", "mse_gini", "uplink_bytes"),
    True: ("test_mse", "distance", "test_mse_worst_tenth", "link_bytes"),
}
"""Printed columns of a method, by whether it is on a graph; the first two are drawn."""


def told(*found: object, row: dict[str, tuple[float, float]], columns: tuple[str, ...]) -> None:
    """Print a run."""
    print(*found, *(f"{name} {row[name][0]:.4g} +- {row[name][1]:.2g}" for name in columns), flush=True)


def both() -> tuple[Figure, np.ndarray]:
    """Two panels for methods of a star, and below these two for those on a graph."""
    figure = Figure(figsize=(7.5, 7.2), layout="constrained")
    return figure, figure.subplots(2, 2)


def finished(figure: Figure, axes: np.ndarray, file: Path) -> None:
    """Save the figure with one legend below both rows of panels."""
    known = [row[0].get_legend_handles_labels() for row in axes]
    handles, labels = ([one for part in both for one in part] for both in zip(*known, strict=True))
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    for one in axes.flat:
        one.grid(alpha=0.3)
    figure.savefig(file, dpi=100)


def participation(folder: Path) -> None:
    """Error against the share of rounds in which a client takes part: drawn in each round, and with long absences."""
    figure, axes = both()
    for method in METHODS:
        columns, row = COLUMNS[method in GRAPH], axes[int(method in GRAPH)]
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
                told(method, kind, share, row=found[-1], columns=columns)
            more = "" if kind == "share" else f", absences of {ABSENCE} rounds"
            for one, name in zip(row, columns, strict=False):
                panel(one, at, [of_share[name] for of_share in found], method, ls=line, more=more)
    words = ("mse, all clients", "mse, worst tenth of clients", "test mse", "distance of theta from the optimum")
    for one, what in zip(axes.flat, words, strict=True):
        who = "client" if one in axes[0] else "agent"
        one.set(xlabel=f"share of rounds that a {who} takes part in".replace("a agent", "an agent"), ylabel=what)
        one.set(xlim=(0, 1.03), yscale="log")
    finished(figure, axes, folder / "participation.png")


def stragglers(folder: Path) -> None:
    """Error and simulated seconds against the deadline."""
    figure, axes = both()
    for method in METHODS:
        columns, row, found = COLUMNS[method in GRAPH][:2], axes[int(method in GRAPH)], []
        for deadline in DEADLINES:
            found.append(summary(f"algo={method}", *TIMES, f"network.deadline_s={deadline}"))
            told(method, "deadline", deadline, row=found[-1], columns=(*columns, "communication_s"))
        seconds = [of_deadline["communication_s"][0] for of_deadline in found]
        panel(row[0], seconds, [of_deadline[columns[0]] for of_deadline in found], method)
        if method in GRAPH:
            panel(row[1], seconds, [of_deadline["distance"] for of_deadline in found], method)
        else:
            at = [*DEADLINES[:-1], 8.0]
            panel(row[1], at, [of_deadline["communication_s"] for of_deadline in found], method, alpha=0.7)
    words = ("mse", None, "test mse", "distance of theta from the optimum")
    for one, what in zip(axes.flat, words, strict=True):
        if what is not None:
            one.set(xlabel="simulated seconds of the run (s)", ylabel=what, yscale="log")
    axes[0, 1].set(xlabel="deadline (s)", ylabel="simulated seconds (s)", xscale="log", ylim=(0, None))
    axes[0, 1].set_xticks([*DEADLINES[:-1], 8.0], [*map("{:g}".format, DEADLINES[:-1]), "none"])
    axes[0, 1].minorticks_off()
    finished(figure, axes, folder / "stragglers.png")


def equal_seconds(folder: Path) -> None:
    """Print the agents' results after 1200 simulated seconds, by deadline; draws nothing."""
    for method in ("dkla", "cta"):
        for deadline, iterations in zip(DEADLINES, (3000, 1714, 811, 500), strict=True):
            words = (f"network.deadline_s={deadline}", f"algo.iterations={iterations}")
            found = summary(f"algo={method}", *TIMES, *words)
            told(method, *words, row=found, columns=("test_mse", "distance", "communication_s"))


if __name__ == "__main__":
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    for draw in (participation, stragglers, equal_seconds):
        if draw.__name__ in (sys.argv[2:] or ("participation", "stragglers", "equal_seconds")):
            draw(Path(sys.argv[1]))
