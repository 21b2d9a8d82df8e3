"""`python docs/figures/findings.py`: a small picture of each finding of the front page, from docs/studies."""

from pathlib import Path

import numpy as np
import pandas as pd

from fkl.report.colours import looks_of
from fkl.report.figures import panel_row, render_figure, style_figures
from fkl.study.figure import MoreError

STUDIES = Path(__file__).parents[1] / "studies"
FINDINGS = {
    "sums": ("streams", "RF-GP", "POF-MKL, all kernels"),
    "one_message": ("batches", "One-shot ridge", "DKLA, k=300"),
    "graph": ("streams", "ODKLA", "OFSKL"),
    "together": ("streams", "FOMD-OMS", "NCO-OMS"),
}
"""Names of pictures, and the study and pair that each shows."""


def draw(study: str, a: str, b: str) -> bytes:
    """Relative difference of the errors of methods a and b on each data set of a study, as PNG."""
    found = pd.read_csv(STUDIES / study / "differences.csv")
    rows = found[(found["a"] == a) & (found["b"] == b)].reset_index()
    look = looks_of([a])[a]
    with style_figures("screen"):
        figure, [axes] = panel_row(1)
        figure.set_size_inches(4.2, 0.9 + 0.3 * len(rows))
        for place, row in rows.iterrows():
            ends, middle = (1 + np.array(row[names].to_list()) / 100 for names in (["low", "high"], ["percent"]))
            axes.plot(ends, [place, place], color=look.colour)
            axes.plot(middle, [place], look.marker, color=look.colour)
        axes.axvline(1, color="0.5", linestyle="--", linewidth=1)
        axes.set_yticks(range(len(rows)), rows["data set"])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(MoreError())
        axes.set_xlabel(f"error of {a}")
        return render_figure(figure, "")[".png"]


if __name__ == "__main__":
    for name, finding in FINDINGS.items():
        (STUDIES.parent / "findings").mkdir(exist_ok=True)
        (STUDIES.parent / "findings" / f"{name}.png").write_bytes(draw(*finding))
