"""Draws the effect of `kernels.draw`: error of the kernel, and of five methods, against D.

python docs/figures/draws.py docs/findings/draws.png
"""

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from fkl.basics.random_streams import Streams
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.rounds import simulate_run
from fkl.kernels.dictionary import DRAWS
from fkl.runs.prepare import prepare_run

SIZES = (10, 30, 100, 300, 1000)
REPLICATES = 5
KERNELS = "replicates=20"
NAVAL = ("dataset=naval", "partition=iid", "partition.clients=6", "partition.rounds=150")
STREAM = (*NAVAL, "kernels=rbf", "kernels.N=11")
ENERGY = ("dataset=energy", "partition=agents", "partition.rounds=100", "topology=gnm", "topology.edges=20")
BATCH = (*ENERGY, "kernels.smallest=0.5", "algo.iterations=150")
ALONE = ("dataset=naval", "partition=stream", "partition.rounds=900", "kernels=rbf", "kernels.N=11")
METHODS = {
    "POF-MKL, naval": ("algo=pof_mkl", "algo.eta=0.5", *STREAM),
    "vM-KOFL, naval": ("algo=vm_kofl", "algo.eta=0.5", *STREAM),
    "Raker, naval": ("algo=raker", "algo.eta=0.5", *ALONE),
    "DKLA, energy": ("algo=dkla", *BATCH),
    "COKE, energy": ("algo=coke", "algo.v=0.1", *BATCH),
}
DRIFT = ("algo=vm_kofl", "dataset=drift", "kernels.N=1", "kernels.smallest=0.1", "kernels.largest=0.1", KERNELS)
GRAMS = {
    "kernel, drift (3 features)": DRIFT,
    "kernel, energy (25 features)": ("algo=dkla", *BATCH, KERNELS),
}
COLOURS = dict(zip(DRAWS, ("#000000", "#0072B2", "#56B4E9", "#E69F00", "#D55E00"), strict=True))


def of_kernel(words: tuple[str, ...]) -> np.ndarray:
    """Root mean square of z'z - kappa over pairs of 60 samples, (R,)."""
    experiment = prepare_run(load_run(compose_config(*words)))
    x = experiment.task.sample_rows(60)[:60].astype(np.float64)
    dictionary = experiment.dictionary
    z = dictionary.bank(x.shape[1], Streams(0, tuple(range(experiment.replicates))), "float64").features(x)[:, 0]
    apart = np.matmul(z, z.swapaxes(-1, -2)) - dictionary.gram(0, x, x)
    return np.sqrt((apart[:, *np.triu_indices(len(x), 1)] ** 2).mean(axis=1))


def of_method(words: tuple[str, ...]) -> np.ndarray:
    """Mean squared error at the end, (R,)."""
    experiment = prepare_run(load_run(compose_config(*words, f"replicates={REPLICATES}")))
    judges: list[Any] = [chunk.judge for chunk in simulate_run(experiment, None, 1, lambda rounds: None)]
    return np.concatenate([(one.mse if hasattr(one, "mse") else one.by_round["test_mse"])[-1] for one in judges])


def main() -> None:
    """Play, print means and deviations over replicates, and draw."""
    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    panels = figure.subplots(2, 4)
    panels.flat[-1].axis("off")
    asked = [(title, words, of_kernel) for title, words in GRAMS.items()]
    asked += [(title, words, of_method) for title, words in METHODS.items()]
    for panel, (title, words, measure) in zip(panels.flat, asked, strict=False):
        for draw in DRAWS:
            found = [measure((*words, f"kernels.draw={draw}", f"kernels.D={D}")) for D in SIZES]
            mean, spread = (np.array([function(one) for one in found]) for function in (np.mean, np.std))
            told = "  ".join(f"{a:.5f} +- {b:.5f}" for a, b in zip(mean, spread, strict=True))
            print(f"{title:30} {draw:11} {told}", flush=True)
            panel.errorbar(SIZES, mean, spread, color=COLOURS[draw], label=draw, lw=1.3, capsize=2)
        panel.set(xscale="log", yscale="log", title=title, xlabel="D")
        panel.grid(alpha=0.3)
    panels[0, 0].set_ylabel("root mean square error of the kernel")
    panels[0, 2].set_ylabel("mse (scaled target)")
    panels[1, 0].set_ylabel("mse (scaled target)")
    panels.flat[-1].legend(*panels[0, 0].get_legend_handles_labels(), loc="center", frameon=False, title="kernels.draw")
    drawn = BytesIO()
    figure.savefig(drawn, dpi=75)
    Image.open(drawn).convert("RGB").quantize(48).save(Path(sys.argv[1]), optimize=True)


if __name__ == "__main__":
    main()
