"""Figures: mean over replicates with a band, for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from fkl.results.records import Records

# Okabe and Ito's palette, told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BAND = "line: mean, band: ± 1 sd over {} replicates"


def draw_run(folder: Path, records: "Records", title: str) -> None:
    """Draw the figures of one run, .png and .pdf: mse and regret of a stream; error, traffic, distance of a batch.

    Parameters
    ----------
    folder : Path
        Where the files go.
    records : Records
    title : str
    """
    rounds = records.rounds
    panels = _batch_panels(rounds) if "distance" in rounds else _stream_panels(rounds)
    for name, (label, curves) in panels.items():
        figure, (axes,) = canvas(1)
        for colour, (column, words) in enumerate(curves.items()):
            if rounds[column].notna().any():
                band(axes, rounds, column, words, colour)
        axes.set_ylabel(label)
        axes.set_title(title)
        if name != "regret":  # which can be below zero
            axes.set_yscale("log")
        save(figure, folder / name, rounds["replicate"].nunique())


def _stream_panels(rounds: pd.DataFrame) -> dict[str, tuple[str, dict[str, str]]]:
    regrets = {
        "regret_best_kernel": "against the client's best kernel as it learned",
        "regret_hindsight": "against the best kernel ridge fit in hindsight",
    }
    return {
        "mse": ("mean squared error so far", {"mse": "mean squared error so far"}),
        "regret": ("regret so far, mean of clients\n(squared error)", regrets),
    }


def _batch_panels(rounds: pd.DataFrame) -> dict[str, tuple[str, dict[str, str]]]:
    measure, words = ("mse", "mean squared error") if "train_mse" in rounds else ("error", "share of errors")
    distances = {
        "distance": "of theta from the optimum",
        "consensus_error": "of theta from the agents' mean",
        "functional_distance": "of f from the optimum, training samples",
        "functional_distance_worst": "the same, worst agent",
    }
    parts = {f"train_{measure}": "training samples", f"test_{measure}": "test samples"}
    return {
        measure: (words, parts),
        "distance": ("root mean square distance", distances),
        "transmissions": ("transmissions so far", {"transmissions": "all agents"}),
    }


def canvas(panels: int) -> tuple[Figure, Sequence[Axes]]:
    """A row of panels with room for a legend below them."""
    figure, axes = plt.subplots(1, panels, figsize=(1.4 + 4.2 * panels, 4.2), squeeze=False, layout="constrained")
    return figure, axes[0]


def band(axes: Axes, rounds: pd.DataFrame, column: str, label: str, colour: int) -> None:
    """Mean over replicates against the round, with one standard deviation on either side."""
    by_round = rounds.groupby("round")[column]
    mean, deviation = by_round.mean(), by_round.std(ddof=1).fillna(0)
    shade = COLOURS[colour % len(COLOURS)]
    axes.plot(mean.index, mean, color=shade, label=label)
    axes.fill_between(mean.index, mean - deviation, mean + deviation, color=shade, alpha=0.2, linewidth=0)
    axes.set_xlabel("round")


def save(figure: Figure, path: Path, replicates: int) -> None:
    """Write PNG and PDF with one legend outside the data, and say what line and band are."""
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=len(handles) if len(figure.axes) > 1 else 1,
        title=BAND.format(replicates) if replicates > 1 else "one replicate",
        frameon=False,
    )
    figure.savefig(path.with_suffix(".png"), dpi=150)
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    plt.close(figure)
