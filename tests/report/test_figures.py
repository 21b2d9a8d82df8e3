"""How figures look: one look a method, ticks, bands, legends, and what a paper's figure must have."""

import io
import os
import re
import signal
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hydra.utils import get_class
from matplotlib.axes import Axes

from fkl.basics.errors import FklError
from fkl.config.choices import choice_files
from fkl.config.compose import keys_of
from fkl.papers import PAPERS, declared_paper, paper_module
from fkl.report.colours import COLOURS, METHODS, look_of, looks_of
from fkl.report.compare.figures import in_forks
from fkl.report.figures import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    Bytes,
    draw_band,
    draw_curve,
    mean_and_spread,
    panel_row,
    render_figure,
    share_costs,
    spread_over,
    style_figures,
)


def test_every_method_has_a_look_of_its_own_and_neighbours_differ_in_colour_and_marker() -> None:
    for name in choice_files("algo"):
        label = get_class(str(keys_of("algo", name)["_target_"])).label
        assert label in METHODS, f"fkl/report/colours.py: add {label} at the end of its kind"
    looks = [look_of(method) for method in METHODS]
    assert len({*looks}) == len(looks)
    assert all(a.colour != b.colour and a.marker != b.marker for a, b in pairwise(looks))


def test_a_method_looks_the_same_whatever_is_beside_it_and_whatever_keys_it_has() -> None:
    alone, beside = looks_of(["POF-MKL"]), looks_of(["Raker", "POF-MKL", "Ours"])
    assert alone["POF-MKL"] == beside["POF-MKL"] == look_of("POF-MKL")
    several = looks_of(["POF-MKL, M=25", "POF-MKL, M=1", "POF-MKL"])
    assert {(look.colour, look.marker) for look in several.values()} == {look_of("POF-MKL")[:2]}
    assert len({*several.values()}) == 3
    assert look_of("POF-MKL, M=25 (air: 1 of 2 diverged)") == look_of("POF-MKL")
    assert look_of("Ours") == look_of("Ours (eta=0.1)") and look_of("Ours").colour in COLOURS


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_figure_shows_published_values_or_says_what_came_out(paper: str) -> None:
    claimed, figures = getattr(paper_module(paper), "CLAIMS", {}), declared_paper(paper)["figures"]
    marked = {number for number, told in figures.items() if told.get("marked")}
    assert marked | {*claimed} == {*figures} and not marked & {*claimed}


@pytest.mark.drawn
def test_a_legend_is_below_the_panels_and_names_each_method_once() -> None:
    with style_figures("paper"):
        figure, panels = panel_row(4, 3)
        for axes in panels:
            for number, method in enumerate(METHODS[:12]):
                draw_curve(axes, np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0]) + number, None, method, look_of(method))
            axes.set_xlabel("round")
        render_figure(figure, 3)
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == [*METHODS[:12]]
        bottom = min(axes.get_tightbbox().y0 for axes in panels)
        assert legend.get_window_extent().y1 <= bottom + 1 and legend.get_window_extent().y0 >= -1


def ticks_apart(axes: Axes) -> bool:
    """Whether no tick's label touches the next."""
    low, high = axes.get_xlim()
    boxes = [text.get_window_extent() for text in axes.get_xticklabels() if low <= text.get_position()[0] <= high]
    return all(left.x1 <= right.x0 for left, right in pairwise(sorted(boxes, key=lambda box: box.x0)))


@pytest.mark.drawn
@pytest.mark.parametrize(("style", "panels"), [("screen", 3), ("column", 1)])
@pytest.mark.parametrize("costs", [(0, 900, 4.5e9), (3e3, 8e6)])
def test_who_sends_nothing_is_at_0_bytes_of_a_broken_axis(style: str, panels: int, costs: tuple[float, ...]) -> None:
    with style_figures(style):
        figure, every = panel_row(panels, 3)
        for axes in every:
            axes.plot(costs, [1.0] * len(costs), "o")
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(Bytes())
        share_costs(every, costs)
        render_figure(figure, 3)
        figure.canvas.draw()
    for axes in every:
        labels = [text.get_text() for text in axes.get_xticklabels()]
        assert ("0 B" in labels) == (0 in costs) and len(labels) >= 2
        assert ticks_apart(axes), labels


def test_a_band_goes_from_quantile_to_quantile_and_says_over_what() -> None:
    """One replicate far below pulls it nowhere near zero, where a standard deviation would have it."""
    values = np.r_[np.linspace(0.5, 1.0, 19), 1e-3]
    rounds = pd.DataFrame({"round": np.repeat([1, 2], 20), "mse": np.tile(values, 2)})
    _, (axes,) = panel_row(1)
    draw_band(axes, rounds, "mse", "CTA", look_of("CTA"))
    heights = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
    assert {round(height, 9) for height in heights} == {round(end, 9) for end in np.quantile(values, [0.1, 0.9])}
    assert axes.lines[0].get_ydata() == pytest.approx([values.mean()] * 2)
    mean, ends = mean_and_spread(values)
    assert mean + np.array([-1, 1]) * ends.ravel() == pytest.approx(np.quantile(values, [0.1, 0.9]))
    assert spread_over([20, 20]) == 20
    assert spread_over([3, 10, 5]) == "mean, and from 10 % to 90 % of 3 to 10 replicates"


@pytest.mark.drawn
@pytest.mark.parametrize(("panels", "width"), [(1, COLUMN_WIDTH), (2, PAGE_WIDTH)])
def test_a_papers_style_has_its_width_its_letters_and_a_caption_beside(panels: int, width: float) -> None:
    with style_figures("paper"):
        figure, every = panel_row(panels)
        for axes in every:
            draw_curve(axes, np.array([1, 2]), np.array([1.0, 2.0]), None, "CTA", look_of("CTA"))
            axes.set(title="wave_farm", xlabel="round", ylabel="error")
        made = render_figure(figure, 3)
    assert figure.get_figwidth() == width
    assert {text.get_fontsize() for axes in every for text in (axes.xaxis.label, *axes.get_xticklabels())} == {8}
    assert made[".txt"].decode() == "Error over round: wave_farm. Mean, and from 10 % to 90 % of 3 replicates.\n"
    assert [axes.get_title() for axes in every] == ([""] if panels == 1 else ["wave farm"] * panels)
    assert matplotlib.image.imread(io.BytesIO(made[".png"])).std() > 0.01
    kinds = re.findall(rb"/Subtype /(\w+)", made[".pdf"])
    assert b"Type3" not in kinds and b"CIDFontType2" in kinds


def test_figures_are_drawn_in_copies_that_may_be_killed_and_may_ignore_signals() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert in_forks({name: name.upper for name in "abc"}) == {"a": "A", "b": "B", "c": "C"}
    signal.signal(signal.SIGTERM, before)
    with pytest.raises(FklError, match="killed"):
        in_forks({"a": lambda: os.kill(os.getpid(), signal.SIGKILL), "b": str})


def test_no_two_methods_of_a_figure_share_a_marker() -> None:
    """vM-KOFL and RF-GP would both be squares; variants of a method share theirs."""
    for methods in (["vM-KOFL", "RF-GP"], [*METHODS[:15]], [*METHODS[20:34]]):
        looks = looks_of([*methods, *(f"{name} (alone)" for name in methods)])
        markers = [looks[name].marker for name in methods]
        assert len({*markers}) == len(methods)
        assert [looks[f"{name} (alone)"].marker for name in methods] == markers
        assert len({*looks.values()}) == 2 * len(methods)
    assert looks_of(["RF-GP"])["RF-GP"] == look_of("RF-GP")
