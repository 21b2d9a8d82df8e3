"""Draws docs/findings/robust.png: error against the share of attackers. Prints the tables of docs/findings/robust.md.

OPENBLAS_NUM_THREADS=1 python docs/figures/robust.py docs/findings/robust.png
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t

from fkl.basics.errors import FklError
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run

REPLICATES = 20
NAVAL = (
    "dataset=naval",
    "partition=iid",
    "partition.clients=20",
    f"replicates={REPLICATES}",
    "kernels.D=20",
)
SEVERAL = (*NAVAL, "partition.rounds=300", "kernels.N=5", "algo.eta=0.2")
METHODS = {
    "POF-MKL": (*SEVERAL, "algo=pof_mkl"),
    "OFMKL-Avg": (*SEVERAL, "algo=ofmkl_avg"),
    "RF-GP": (*NAVAL, "partition.rounds=300", "algo=rf_gp", "kernels=rbf_single"),
    "one-shot ridge": (*NAVAL, "algo=one_shot_ridge", "kernels=rbf_single"),
}
ATTACKS = {
    "sign flip, scale 5": ("attack=sign_flip", "attack.scale=5"),
    "label flip": ("attack=label_flip",),
    "a little is enough, z = 1.5": ("attack=alie", "attack.z=1.5"),
}
RULES = {
    "mean": ((), "#000000", "o-"),
    "median": (("aggregate=median",), "#0072B2", "s-"),
    "trimmed mean, 0.4": (("aggregate=trimmed_mean", "aggregate.byzantine=0.4"), "#56B4E9", "^--"),
    "Krum, 0.4": (("aggregate=krum", "aggregate.byzantine=0.4"), "#D55E00", "v-."),
    "geometric median": (("aggregate=geometric_median",), "#009E73", "D:"),
}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
DIVERGED = 1.0
"""Ten times the error of the mean target."""


def errors(*words: str) -> Any:
    """Mean squared error of each replicate, on the stream so far or on test rows; infinite if a number overflows."""
    with suppress(FklError), np.errstate(all="ignore"):
        [chunk] = simulate_run(prepare_run(load_run(compose_config(*words))), 1, REPLICATES, lambda rounds: None)
        judge = chunk.judge
        return judge.mse[-1] if hasattr(judge, "mse") else judge.by_round["test_mse"][-1]
    return np.full(REPLICATES, np.inf)


def cell(found: Any, of_mean: Any, plain: bool) -> str:
    """The mean error x 1e-3, and half of the 95 % interval of paired differences to the mean's, of this attack."""
    if not found.mean() < DIVERGED:
        return "diverges"
    shown = f"{1e3 * found.mean():.3g}"
    if plain or not of_mean.mean() < DIVERGED:
        return shown
    difference = found - of_mean
    half = t.ppf(0.975, REPLICATES - 1) * difference.std(ddof=1) / REPLICATES**0.5
    return f"{shown} ({1e3 * difference.mean():+.3g} ± {float(f'{1e3 * half:.2g}'):g})"


def main() -> None:
    """Play all runs, print a table for each attack and method, and draw all."""
    begin = time.perf_counter()
    found: dict[tuple[str, ...], list[Any]] = {}
    for method, words in METHODS.items():
        for rule, (more, *_) in RULES.items():
            honest = errors(*words, *more)
            for attack, keys in ATTACKS.items():
                told = [errors(*words, *more, *keys, f"attack.share={share}") for share in SHARES[1:]]
                found[method, attack, rule] = [honest, *told]
                print(
                    method,
                    attack,
                    rule,
                    *(f"{1e3 * one.mean():.4g}" for one in found[method, attack, rule]),
                    flush=True,
                )
    print(f"{(time.perf_counter() - begin) / 60:.1f} minutes")
    for attack in ATTACKS:
        print(
            f"\n{attack}\n\n| method | aggregate |",
            " | ".join(map(str, SHARES)),
            "|\n|---|---|" + "---:|" * len(SHARES),
        )
        for method in METHODS:
            for rule in RULES:
                pairs = zip(found[method, attack, rule], found[method, attack, "mean"], strict=True)
                print(f"| {method} | {rule} |", " | ".join(cell(*pair, rule == "mean") for pair in pairs), "|")
    figure = Figure(figsize=(11.4, 8.0), layout="constrained")
    axes = figure.subplots(len(ATTACKS), len(METHODS), sharex=True, sharey="col")
    for row, attack in zip(axes, ATTACKS, strict=True):
        for panel, method in zip(row, METHODS, strict=True):
            for rule, (_, colour, style) in RULES.items():
                of_all = 1e3 * np.minimum(found[method, attack, rule], 10 * DIVERGED)
                half = t.ppf(0.975, REPLICATES - 1) * of_all.std(axis=1, ddof=1) / REPLICATES**0.5
                panel.plot(SHARES, of_all.mean(axis=1), style, color=colour, label=rule, lw=1.3, ms=3.5)
                panel.fill_between(
                    SHARES, of_all.mean(axis=1) - half, of_all.mean(axis=1) + half, color=colour, alpha=0.15
                )
            panel.set(title=f"{method}\n{attack}", yscale="log", xlabel="share of attackers")
            panel.set_ylim(top=1e3 * DIVERGED)
            panel.title.set_fontsize(9)
            panel.grid(alpha=0.3)
        row[0].set_ylabel("mean squared error x 1e-3")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(Path(sys.argv[1]), dpi=75)


if __name__ == "__main__":
    main()
