"""The figure of a study: error against the bytes that were sent, a panel for each data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fkl.report.colours import looks_of
from fkl.report.figures import AT_POINT, Bytes, baseline, canvas, rendered, share_costs, spread, styled
from fkl.results.metrics import WORDS
from fkl.study.results import Judged
from fkl.study.tables import BASELINES, SENT

ACROSS = 2
"""Panels beside each other."""


def draw(judged: Sequence[Judged], style: str = "paper") -> dict[str, bytes]:
    """PNG and PDF, and for a paper what stands below the figure, by suffix.

    A method that sends nothing stands at the left end, apart from the others.
    """
    looks = looks_of(dict.fromkeys(method for one in judged for method in one.notes))
    with styled(style):
        figure, panels = canvas(len(judged), ACROSS)
        for axes, one in zip(panels, judged, strict=True):
            sent = {method: _sent(one, method) for method in one.methods}
            least = min((value for value in sent.values() if value > 0), default=1.0)
            for method in one.methods:
                errors = one.errors(method)
                if not np.isfinite(errors).any():
                    continue
                look, (mean, ends) = looks[method], spread(errors[np.isfinite(errors)])
                at = sent[method] or least / 3
                marked: dict[str, Any] = {"color": look.colour, "fillstyle": look.fill, "gid": AT_POINT}
                axes.errorbar([at], [mean], ends, fmt=look.marker, label=method, **marked)
            known = [value for name in BASELINES for method in one.methods if (value := one.mean(method, name)) > 0]
            if known:
                baseline(axes, float(known[0]), "mean target", 0)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(one.dataset.name)
            axes.set_xlabel("sent by all clients" + " (left: nothing)" * (0 in sent.values()))
            axes.xaxis.set_major_formatter(Bytes())
            axes.margins(0.12, 0.2)  # for the methods' names
            if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
                axes.set_ylabel(WORDS.get(one.metric, one.metric))
        share_costs(panels)
        seeds = " or ".join(map(str, sorted({one.seeds for one in judged})))
        return rendered(figure, f"mean, and from 10 % to 90 % of {seeds} seeds, each with its own search")


def _sent(one: Judged, method: str) -> float:
    values = [one.mean(method, column) for column in SENT]
    return next((value for value in values if not np.isnan(value)), 0.0)
