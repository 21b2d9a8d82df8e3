"""The figures of a study: error against the bytes sent, and the difference of each pair of methods."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fkl.report.colours import looks_of
from fkl.report.figures import AT_POINT, Bytes, Plain, baseline, canvas, rendered, share_costs, spread, styled
from fkl.runs.metrics import WORDS
from fkl.statistics.verdicts import Verdict
from fkl.study.answer import Answer
from fkl.study.results import Judged
from fkl.study.tables import BASELINES, SENT

ACROSS = 2
"""Panels per row."""
TALL = 9
"""Number of data sets that, with two lines of text, fill the height of a panel."""
LEAST = 0.42
"""Part of a panel's height that its text and one data set need."""


class MoreError(Plain):
    """A ratio of errors as a difference in percent."""

    def set_locs(self, locs: Any) -> None:
        """Ticks have no common factor."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick."""
        return f"{100 * (x - 1):+.3g} %".replace("-", "\N{MINUS SIGN}").replace("+0 %", "0")


def draw_differences(answer: Answer, style: str = "paper") -> dict[str, bytes]:
    """Percentage by which the first method of each pair has a larger error, with intervals; one panel per pair.

    Returns PNG and PDF, and for a paper the caption, by suffix. Pairs that ranks decide have no point.
    """
    names = [*answer.verdicts]
    pairs = [pair for pair in answer.plan.pairs if any(_of_pair(answer, name, pair) for name in names)]
    if not pairs:
        return {}
    looks = looks_of(dict.fromkeys(method for one in answer.judged for method in one.notes))
    with styled(style):
        figure, panels = canvas(len(pairs), ACROSS)
        figure.set_figheight(figure.get_figheight() * min(1, max(LEAST, (2 + len(names)) / TALL)))
        for axes, (a, b) in zip(panels, pairs, strict=True):
            look = looks[a]
            for place, name in enumerate(names):
                one = _of_pair(answer, name, (a, b))
                if one is None:
                    continue
                ends = np.exp(one.difference.interval(1 - one.level))
                marked: dict[str, Any] = {"color": look.colour, "fillstyle": look.fill}
                axes.plot(ends, [place, place], color=look.colour)
                axes.plot([np.exp(one.difference.m)], [place], look.marker, **marked)
            margin = 1 + answer.plan.margin
            axes.axvspan(1 / margin, margin, color="0.5", alpha=0.25, linewidth=0)
            axes.axvline(1, color="0.5", linestyle="--", linewidth=1)
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(MoreError())
            axes.set_title(f"{a} against {b}")
            axes.set_xlabel(f"error of {a}")
        level = 100 * (1 - answer.verdicts[names[0]][0].level)
        return rendered(
            figure,
            f"difference of errors with its {level:g} % interval, not adjusted for the number of pairs; left of 0:"
            f" the first method is better; band: differences below {100 * answer.plan.margin:g} %",
        )


def _of_pair(answer: Answer, dataset: str, pair: tuple[str, str]) -> Verdict | None:
    """The verdict of a pair on a data set, if it has a mean difference."""
    found = (one for one in answer.verdicts[dataset] if (one.a, one.b) == pair and not one.difference.failed)
    return next(found, None)


def draw(judged: Sequence[Judged], style: str = "paper") -> dict[str, bytes]:
    """PNG and PDF, and for a paper the caption, by suffix.

    A method without messages is at the left end, apart from the others.
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
