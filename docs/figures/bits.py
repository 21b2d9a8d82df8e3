"""Draws error against bytes, by what `compression` does to four methods, or against the bits of `secure`.

python docs/figures/bits.py docs/findings/bits.png
python docs/figures/bits.py docs/findings/secure_sums.png
"""

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.wire.channel import UNITS

NAVAL = ("dataset=naval", "partition=iid", "partition.clients=6", "partition.rounds=150")
STREAM = (*NAVAL, "kernels.N=11", "kernels.D=25", "replicates=5")
ENERGY = ("dataset=energy", "partition=agents", "partition.rounds=100", "topology=gnm", "topology.edges=20")
BATCH = (*ENERGY, "kernels.D=25", "kernels.smallest=0.5", "algo.iterations=150", "replicates=5")
METHODS = {
    "POF-MKL, naval": ("algo=pof_mkl", "algo.eta=0.5", *STREAM),
    "vM-KOFL, naval": ("algo=vm_kofl", "algo.eta=0.5", *STREAM),
    "DKLA, energy": ("algo=dkla", *BATCH),
    "COKE, energy": ("algo=coke", "algo.v=0.1", *BATCH),
}
FEW = {
    "full precision": ((), "#000000"),
    "8 bits": (("compression=uniform", "compression.bits=8"), "#0072B2"),
    "4 bits": (("compression=uniform", "compression.bits=4"), "#56B4E9"),
    "2 bits": (("compression=uniform", "compression.bits=2"), "#009E73"),
    "top 10 %": (("compression=top_k",), "#E69F00"),
    "sign": (("compression=sign",), "#D55E00"),
}


RESIDUES = (12, 13, 14, 15, 16, 18, 24, 32)
"""Bits of an entry of a secure sum."""
WHOLE = 12
"""Number of these before the point, including the sign: 6 clients' values up to 341 each."""
ON_A_GRAPH = ("compression.rounding=nearest",)
"""Numbers of bits; with 2 bits random rounding adds more than the change itself, so the change never gets smaller."""


def played(words: tuple[str, ...]) -> tuple[Any, Any]:
    """Kilobytes that a client has sent so far, and the error, (T, R) each."""
    experiment = prepare_run(load_run(compose_config(*words)))
    [chunk] = simulate_run(experiment, None, experiment.replicates, lambda rounds: None)
    judge: Any = chunk.judge
    tally = chunk.ledger.tallies["broadcast" if "broadcast" in chunk.ledger.tallies else "uplink"]
    size = tally.by_round[..., UNITS.index("bytes")].cumsum(axis=0)
    error = judge.mse if hasattr(judge, "mse") else judge.by_round["test_mse"]
    return size / experiment.problem.clients / 1000, error


def secure_sums(file: Path) -> None:
    """Play with sums of this many bits, and without; print the final results, and draw."""
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, (method, words) in zip(panels, list(METHODS.items())[:2], strict=True):
        asked: list[tuple[str, ...]] = [
            ("secure=pairwise", f"secure.bits={bits}", f"secure.fraction={bits - WHOLE}") for bits in RESIDUES
        ]
        ends = []
        for few in ((), *asked):
            size, error = played((*words, "algo.eta=0.1", *few))
            ends.append((error[-1].mean(), error[-1].std(ddof=1), size[-1].mean()))
            print(method, *few, "{:.5f} +- {:.5f}, {:.1f} kB".format(*ends[-1]), flush=True)
        (plain, spread, _), *rest = ends
        mean, deviation, _ = zip(*rest, strict=True)
        panel.axhline(plain, color="#000000", lw=1.2, ls="--", label="without secure sums")
        panel.axhspan(plain - spread, plain + spread, color="#000000", alpha=0.1, lw=0)
        panel.errorbar(RESIDUES, mean, deviation, color="#0072B2", marker="o", ms=4, capsize=3, lw=1.4, label="secure")
        panel.set(title=method, xlabel="bits of an entry", ylabel="mse so far (scaled target)", yscale="log")
        panel.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(file, dpi=75)


def main() -> None:
    """Play, print the final results, and draw."""
    if Path(sys.argv[1]).stem == "secure_sums":
        secure_sums(Path(sys.argv[1]))
        return
    figure = Figure(figsize=(7.6, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharey="row")
    for panel, (method, words) in zip(panels.flat, METHODS.items(), strict=True):
        for few, (asked, colour) in FEW.items():
            nearest = ON_A_GRAPH * (words[0] in ("algo=dkla", "algo=coke") and "compression=uniform" in asked)
            size, error = played((*words, *asked, *nearest))
            last = error[-1]
            print(
                f"{method:16} {few:15} {size[-1].mean():9.2f} kB  {last.mean():.5f} +- {last.std(ddof=1):.5f}",
                flush=True,
            )
            mean, spread = error.mean(axis=1), error.std(axis=1, ddof=1)
            panel.plot(size.mean(axis=1), mean, color=colour, label=few, lw=1.4)
            panel.fill_between(size.mean(axis=1), mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
        panel.set(xscale="log", yscale="log", title=method)
        panel.grid(alpha=0.3)
    for panel, what in zip(panels[:, 0], ("mse so far (scaled target)", "test mse (scaled target)"), strict=True):
        panel.set_ylabel(what)
    for panel, who in zip(panels.flat, ("client", "client", "agent", "agent"), strict=True):
        panel.set_xlabel(f"kB sent by a {who}" if who == "client" else "kB broadcast by an agent")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=75)
    # A third of the size; with fewer than 256 colours those of two lines would merge
    Image.open(drawn).convert("RGB").quantize(256).save(sys.argv[1], optimize=True)


if __name__ == "__main__":
    main()
