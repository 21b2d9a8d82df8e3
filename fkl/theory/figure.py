"""The figure of `fkl bound`: both sides of each bound by round."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fkl.report.colours import DASHES, baseline_colour, look_of
from fkl.report.figures import HIGH, LOW, draw_curve, panel_row, save_figure
from fkl.theory.base import FormVerdict

ACROSS = 3
"""Number of panels in a row."""


def draw_bounds(folder: Path, verdicts: Sequence[FormVerdict], method: str) -> None:
    """Write bound.png and bound.pdf: a panel for each form of a theorem, with the claim that is closest to its bound.

    Values <= 0 are not drawn, because the axis is logarithmic.
    """
    # A panel per form: the mean left side with its spread, and the bound
    figure, panels = panel_row(len(verdicts), ACROSS)
    for axes, verdict in zip(panels, verdicts, strict=True):
        rounds, several = np.arange(1, len(verdict.rights) + 1), len(verdict.lefts) > 1
        ends = tuple(np.quantile(verdict.lefts, (LOW, HIGH), axis=0)) if several else None
        draw_curve(axes, rounds, verdict.lefts.mean(axis=0), ends, "left side", look_of(method))
        draw_curve(axes, rounds, verdict.rights, None, "bound", (baseline_colour(0), DASHES[1]))
        axes.set_yscale("log", nonpositive="mask")
        axes.set_xlabel("round")
        axes.set_ylabel(f"both sides so far ({verdict.theorem.claims})")
        axes.set_title(f"{method}: {verdict.name}\n{verdict.answer}, by a factor of {verdict.factor:.3g}")
    save_figure(folder, "bound", figure, len(verdicts[0].lefts))
