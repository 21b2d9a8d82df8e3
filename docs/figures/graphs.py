"""The figures of docs/findings/graphs.md, printed and drawn: python docs/figures/graphs.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t as student

from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Cta, Dkla, LinkDkla, PushCta
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.topology import Failing, Gossip, Mobility
from fkl.runs.prepare import prepare_run

HERE = Path(__file__).parent.parent / "findings"
REPLICATES, LAM = 5, 0.01
WORDS = (
    *("algo=dkla", "dataset=energy", "partition=agents", "topology=gnm", "topology.edges=20", "kernels.D=20"),
    *("algo.iterations=1000", f"algo.lam={LAM}", f"replicates={REPLICATES}", "precision=float64"),
)
CTA, DKLA, COKE, LINKS = Cta(lam=LAM), Dkla(lam=LAM), Coke(lam=LAM), LinkDkla(lam=LAM)
LOSSES: dict[str, dict[str, Any]] = {
    f"{loss:g} of messages lost": {"network": Network(loss=loss)} for loss in (0, 0.1, 0.3)
}
CHANGES: dict[str, dict[str, Any]] = {
    "all links up": {},
    "failing, p = 0.1": {"links": Failing(p=0.1)},
    "gossip, a matching": {"links": Gossip()},
    "mobility, radius 0.5": {"links": Mobility()},
}
LAM_ONE_WAY, ITERATIONS = 0.5, 6000
ONE_WAY = (
    *("algo=cta", "dataset=energy", "partition=dirichlet", "partition.clients=10", "partition.alpha=0.1"),
    *("partition.rounds=500", "topology=directed", "kernels.D=20", f"algo.iterations={ITERATIONS}"),
    *(f"algo.lam={LAM_ONE_WAY}", f"replicates={REPLICATES}", "precision=float64"),
)
STEPS: dict[str, dict[str, Any]] = {f"step {eta:g}": {"algorithm": {"eta": eta}} for eta in (0.1, 0.03, 0.01)}
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73")  # Okabe and Ito
STYLES = ("-", "--", "-.", ":")


def distances(experiment: Experiment) -> np.ndarray:
    """Root mean square over agents of the distance of theta from the optimum of all, (T, R)."""
    world, _ = make_world(experiment, tuple(range(REPLICATES)))
    optimum = world.loss.optimum(world.training, experiment.algorithm.lam)[:, None]
    state, history = experiment.algorithm.init(world), []
    for t in range(experiment.problem.rounds):
        world.channel.open_round(t, experiment.problem.present[t])
        state, theta = experiment.algorithm.step(world, state, t)
        history.append(np.sqrt(np.square(theta - optimum).sum(axis=-1).mean(axis=-1)))
    return np.stack(history)


def draw(base: Experiment, methods: tuple[Any, ...], cases: dict[str, dict[str, Any]], name: str) -> None:
    """One panel per method, side by side; prints the middle and the end of each line.

    The entry `algorithm` of a case has arguments of its method.
    """
    figure, panels = plt.subplots(1, len(methods), figsize=(2.6 * len(methods), 3), sharey=True, layout="constrained")
    for panel, method in zip(panels, methods, strict=True):
        for (label, case), colour, style in zip(cases.items(), COLOURS, STYLES, strict=False):
            keys = case.get("algorithm", {})
            distance = distances(replace(base, **case | {"algorithm": replace(method, **keys)}))
            mean, sd = distance.mean(axis=1), distance.std(axis=1, ddof=1)
            half = student.ppf(0.975, REPLICATES - 1) * sd / REPLICATES**0.5
            half_way = mean[len(mean) // 2 - 1]
            print(f"| {method.label} | {label} | {half_way:.1e} | {mean[-1]:.1e} ± {half[-1]:.1e} |", flush=True)
            iteration = np.arange(1, len(mean) + 1)
            panel.semilogy(iteration, mean, style, color=colour, label=label, linewidth=1.3)
            band = np.maximum(mean - half, mean / 100), mean + half
            panel.fill_between(iteration, *band, color=colour, alpha=0.2, linewidth=0)
        panel.set(title=method.label, xlabel="iteration")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(r"distance of $\theta$ from the optimum")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(HERE / name, dpi=90)


if __name__ == "__main__":
    prepared = prepare_run(load_run(compose_config(*WORDS)))
    draw(prepared, (DKLA, COKE, LINKS), LOSSES, "graphs_loss.png")
    draw(prepared, (CTA, DKLA, COKE, LINKS), CHANGES, "graphs_links.png")
    keys = {"lam": LAM_ONE_WAY, "iterations": ITERATIONS}
    draw(prepare_run(load_run(compose_config(*ONE_WAY))), (Cta(**keys), PushCta(**keys)), STEPS, "graphs_one_way.png")
