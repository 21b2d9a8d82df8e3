"""Draws late.png, drift.png and local_steps.png of docs/findings, and prints the numbers in them.

python docs/figures/late.py docs/findings [drift] [late] [local_steps]
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fkl.conditions import wrap_method
from fkl.conditions.late import LateLabels, LateUpdates
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.base import Experiment
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run

NAVAL = ("dataset=naval", "partition=iid", "partition.clients=6", "partition.rounds=300")
FEW = ("kernels.N=11", "kernels.D=25", "replicates=5")
METHODS = {"POF-MKL": "algo=pof_mkl", "vM-KOFL": "algo=vm_kofl"}
DELAYS = (0, 1, 2, 4, 8, 16)
LATE = {
    "updates, all d rounds late": (lambda d: LateUpdates(d), "#0072B2", "o-"),
    "updates, each 0 to d rounds late": (lambda d: LateUpdates(d, "message"), "#D55E00", "s-"),
    "the same, weights (1 + age)^-1/2": (lambda d: LateUpdates(d, "message", 0.5), "#E69F00", "^--"),
    "labels, d rounds late": (lambda d: LateLabels(d), "#009E73", "v-"),
}
STEPS = (1, 2, 4, 8, 16)
ENERGY = ("algo=cta", "dataset=energy", "partition=agents", "topology=gnm", "topology.edges=20", "kernels.D=20")
ENERGY += ("algo.lam=0.01", "algo.iterations=200", "replicates=5", "precision=float64")
AS_CTA = (0.99, "#000000", "^-")
"""Its default step."""
KINDS = {"sudden": ("#0072B2", "-"), "gradual": ("#D55E00", "--"), "recurring": ("#009E73", "-.")}


def experiments(*words: str) -> Iterator[tuple[int, str, Experiment]]:
    """Defaults of both methods."""
    for number, (label, algo) in enumerate(METHODS.items()):
        yield number, label, prepare_run(load_run(compose_config(algo, *words)))


def judge_of(experiment: Experiment, method: Any) -> Any:
    """Results of all rounds and replicates."""
    [chunk] = simulate_run(replace(experiment, algorithm=method), 1, experiment.replicates, lambda rounds: None)
    return chunk.judge


def error(experiment: Experiment, method: Any, what: str) -> tuple[float, float]:
    """Mean squared error of a run, and its standard deviation over replicates."""
    last = judge_of(experiment, method).mse[-1]
    print(f"{what:55} {last.mean():.5f} +- {last.std(ddof=1):.5f}", flush=True)
    return last.mean(), last.std(ddof=1)


def distance(experiment: Experiment, method: Any) -> tuple[float, float]:
    """Root mean square distance of the agents' theta from the optimum, and its deviation over replicates."""
    told = judge_of(experiment, method).by_round
    last, test = told["distance"][-1], told["test_mse"][-1]
    what = f"CTA, eta = {method.eta}, local_steps = {method.local_steps}"
    print(f"{what:55} {last.mean():.4f} +- {last.std(ddof=1):.4f}, test mse {test.mean():.5f}", flush=True)
    return last.mean(), last.std(ddof=1)


def band(panel: Any, x: Any, mean: Any, spread: Any, colour: str, style: str, label: str) -> None:
    """A line, and one standard deviation about it."""
    panel.plot(x, mean, style, color=colour, label=label, lw=1.4, ms=4)
    panel.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)


def panels(count: int = 2, sharey: bool = True) -> tuple[Figure, Any]:
    """Panels side by side."""
    figure = Figure(figsize=(3.8 * count, 3.5), layout="constrained")
    return figure, figure.subplots(1, count, sharey=sharey)


def save(figure: Figure, axes: Any, file: Path) -> None:
    """With the legend below."""
    for panel in axes:
        panel.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(file, dpi=75)


def draw_late(file: Path) -> None:
    """Error by delay."""
    figure, axes = panels()
    for number, label, experiment in experiments(*NAVAL, *FEW):
        for what, (condition, colour, style) in LATE.items():
            told = [
                error(
                    experiment, wrap_method(experiment.algorithm, {"late": condition(d)}), f"{label}, {what}, d = {d}"
                )
                for d in DELAYS
            ]
            band(axes[number], DELAYS, *np.array(told).T, colour, style, what)
        axes[number].set(title=f"{label}, naval", xlabel="d (rounds)", xscale="symlog", yscale="log")
        axes[number].set_xticks(DELAYS, DELAYS)
    axes[0].set_ylabel("mse (scaled target)")
    save(figure, axes, file)


def draw_local_steps(file: Path) -> None:
    """Error by local steps, by the size of a step."""
    figure, axes = panels(3, sharey=False)
    axes[1].sharey(axes[0])
    agents = prepare_run(load_run(compose_config(*ENERGY)))
    for eta, colour, style in ((0.01, "#0072B2", "o-"), (0.05, "#D55E00", "s-"), (0.2, "#009E73", "v-"), AS_CTA):
        shown = [distance(agents, replace(agents.algorithm, eta=eta, local_steps=steps)) for steps in STEPS]  # type: ignore[type-var]
        band(axes[2], STEPS, *np.array(shown).T, colour, style, f"eta = {eta}")
    for number, label, experiment in experiments(*NAVAL, *FEW):
        for eta, colour, style in ((0.01, "#0072B2", "o-"), (0.05, "#D55E00", "s-"), (0.2, "#009E73", "v-")):
            methods = [replace(experiment.algorithm, eta=eta, local_steps=steps) for steps in STEPS]  # type: ignore[type-var]
            told = [
                error(experiment, method, f"{label}, eta = {eta}, local_steps = {steps}")
                for method, steps in zip(methods, STEPS, strict=True)
            ]
            band(axes[number], STEPS, *np.array(told).T, colour, style, f"eta = {eta}")
    for panel, title in zip(axes, ("POF-MKL, naval", "vM-KOFL, naval", "CTA, energy"), strict=True):
        panel.set(title=title, xlabel="local steps a round", xscale="log", yscale="log", ylabel="mse (scaled target)")
        panel.set_xticks(STEPS, STEPS)
        panel.minorticks_off()
    axes[2].set_ylabel("distance from the optimum")
    save(figure, axes[[2, 0, 1]], file)


def draw_drift(file: Path) -> None:
    """Dynamic regret by round."""
    figure, axes = panels()
    for kind, (colour, style) in KINDS.items():
        for number, label, experiment in experiments("dataset=drift", f"dataset.kind={kind}", "algo.eta=0.3", *FEW):
            judge = judge_of(experiment, experiment.algorithm)
            regret = judge.columns(np.zeros((1, 1))).rounds["regret_dynamic"]
            last = regret[-1]
            print(f"{label}, {kind:40} {last.mean():.3f} +- {last.std(ddof=1):.3f}", flush=True)
            rounds = np.arange(1, len(regret) + 1)
            band(axes[number], rounds, regret.mean(axis=1), regret.std(axis=1, ddof=1), colour, style, kind)
            axes[number].set(title=f"{label}, drift", xlabel="round")
    axes[0].set_ylabel("dynamic regret so far, mean of clients\n(squared error, scaled target)")
    save(figure, axes, file)


def main() -> None:
    """All three figures, or the named ones."""
    folder, *names = map(Path, sys.argv[1:])
    for draw in (draw_drift, draw_late, draw_local_steps):
        name = draw.__name__.removeprefix("draw_")
        if not names or Path(name) in names:
            draw(folder / f"{name}.png")


if __name__ == "__main__":
    main()
