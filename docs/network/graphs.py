"""Draw the figures of graphs.md: python docs/network/graphs.py OUTPUTS, the folder that the runs went to."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import yaml
from scipy.stats import t as student

HERE = Path(__file__).parent
METHODS = {"Cta": "CTA", "Dkla": "DKLA", "Coke": "COKE", "LinkDkla": "DKLA on links"}
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73")  # Okabe and Ito
STYLES = ("-", "--", "-.", ":")
Curves = dict[str, tuple[pd.Series, pd.Series]]


def curves(runs: Path) -> dict[str, dict[str, Curves]]:
    """Mean distance from the optimum and half of its 95 % interval over replicates, by what the network does, method."""
    found: dict[str, dict[str, Curves]] = {"loss": {}, "links": {}}
    for folder in sorted((runs / "runs").glob("energy-*")):
        config = yaml.safe_load((folder / "config.yaml").read_text())
        method, loss, links = (
            METHODS[config["algo"]["_target_"].rpartition(".")[-1]],
            config["network"]["loss"],
            config.get("links"),
        )
        table = pd.read_csv(folder / "rounds.csv").pivot(index="round", columns="replicate", values="distance")
        half = student.ppf(0.975, table.shape[1] - 1) * table.std(axis=1, ddof=1) / table.shape[1] ** 0.5
        curve = table.mean(axis=1), half
        end = f"{curve[0].iloc[-1]:.2e} ± {half.iloc[-1]:.1e}"
        words = "all up" if links is None else links["_target_"].rpartition(".")[-1].lower()
        print(f"{method:14} loss {loss:<4} links {words:9} {end}")
        if links is None:
            found["loss"].setdefault(method, {})[f"{loss:g} lost"] = curve
        if loss == 0:
            found["links"].setdefault(method, {})[words] = curve
    return found


def draw(by_method: dict[str, Curves], name: str) -> None:
    """A panel a method, side by side."""
    methods = [method for method in METHODS.values() if method in by_method and len(by_method[method]) > 1]
    figure, panels = plt.subplots(1, len(methods), figsize=(2.5 * len(methods), 2.8), sharey=True, layout="constrained")
    for panel, method in zip(panels, methods, strict=True):
        for n, (label, (mean, half)) in enumerate(sorted(by_method[method].items())):
            panel.semilogy(mean.index, mean, STYLES[n], color=COLOURS[n], label=label, linewidth=1.3)
            panel.fill_between(
                mean.index, (mean - half).clip(lower=1e-12), mean + half, color=COLOURS[n], alpha=0.2, linewidth=0
            )
        panel.set(title=method, xlabel="iteration")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(r"distance of $\theta$ from the optimum")
    panels[0].set_ylim(bottom=1e-7)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(HERE / name, dpi=90)


if __name__ == "__main__":
    every = curves(Path(sys.argv[1]))
    draw(every["loss"], "graphs_loss.png")
    draw(every["links"], "graphs_links.png")
