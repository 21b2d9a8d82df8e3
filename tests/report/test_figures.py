"""How figures look: one look a method, names at ends of lines, ticks, bands, and what a paper's figure must have."""

import io
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fkl.config.choices import files
from fkl.config.compose import keys_of
from fkl.papers import PAPERS, declared, paper_module
from fkl.report.colours import DARK_BACKGROUND, FAMILIES, ON_DARK, SHADES, look_of, looks_of
from fkl.report.figures import (
    COLUMN_WIDTH,
    MOST_DIRECT,
    PAGE_WIDTH,
    Bytes,
    Plain,
    band,
    canvas,
    curve,
    plain_ticks,
    rendered,
    styled,
)


def methods() -> Iterator[tuple[str, str]]:
    """Package and label of each method."""
    for name in files("algo"):
        module, _, kind = str(keys_of("algo", name)["_target_"]).rpartition(".")
        yield module.split(".")[2], getattr(import_module(module), kind).label


def test_every_method_has_a_look_of_its_own_in_the_hue_of_its_package() -> None:
    every = [*methods()]
    for package, label in every:
        assert label in FAMILIES[package], f"fkl/report/colours.py: add {label} at the end of {package}"
        assert look_of(label).colour in SHADES[package]
    looks = {label: look_of(label)[:3] for _, label in every}
    assert len({*looks.values()}) == len(looks)


def test_a_method_looks_the_same_whatever_is_beside_it_and_whatever_keys_it_has() -> None:
    alone, beside = looks_of(["POF-MKL"]), looks_of(["Raker", "POF-MKL", "Ours"])
    assert alone["POF-MKL"] == beside["POF-MKL"] == look_of("POF-MKL")
    several = looks_of(["POF-MKL, M=25", "POF-MKL, M=1", "POF-MKL"])
    assert {(look.colour, look.marker) for look in several.values()} == {look_of("POF-MKL")[:2]}
    assert len({*several.values()}) == 3
    assert look_of("POF-MKL, M=25 (air: 1 of 2 diverged)") == look_of("POF-MKL")
    assert look_of("CTA, push-sum") != look_of("CTA")


def test_a_users_method_has_a_stable_look() -> None:
    assert look_of("Ours") == look_of("Ours, eta=0.1")
    assert look_of("Ours").colour in SHADES["others"]
    with styled(dark=True):
        assert matplotlib.rcParams["figure.facecolor"] == DARK_BACKGROUND
        assert look_of("Ours").colour in ON_DARK["others"]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_figure_shows_published_values_or_says_what_came_out(paper: str) -> None:
    claimed, figures = getattr(paper_module(paper), "CLAIMS", {}), declared(paper)["figures"]
    marked = {number for number, told in figures.items() if told.get("marked")}
    assert marked | {*claimed} == {*figures} and not marked & {*claimed}


def drawn(count: int) -> Axes:
    figure, (axes,) = canvas(1)
    for number in range(count):
        curve(axes, np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0]) + number, None, f"line {number}", look_of("CTA"))
    rendered(figure, 3)
    return axes


@pytest.mark.drawn
def test_few_lines_are_named_at_their_end_and_many_in_a_legend() -> None:
    few, many = drawn(MOST_DIRECT), drawn(MOST_DIRECT + 1)
    assert [text.get_text() for text in few.texts] == [f"line {number}" for number in range(MOST_DIRECT)]
    boxes = sorted((text.get_window_extent() for text in few.texts), key=lambda box: box.y0)
    assert all(lower.y1 <= upper.y0 + 1 for lower, upper in pairwise(boxes))
    assert not many.texts and len(many.figure.legends[0].get_texts()) == MOST_DIRECT + 1


def test_a_band_goes_from_quantile_to_quantile() -> None:
    """One replicate far below pulls it nowhere near zero, where a standard deviation would have it."""
    values = np.r_[np.linspace(0.5, 1.0, 19), 1e-3]
    rounds = pd.DataFrame({"round": np.repeat([1, 2], 20), "mse": np.tile(values, 2)})
    _, (axes,) = canvas(1)
    band(axes, rounds, "mse", "CTA", look_of("CTA"))
    heights = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
    assert {round(height, 9) for height in heights} == {round(end, 9) for end in np.quantile(values, [0.1, 0.9])}


@pytest.mark.parametrize("ends", [(0.035, 0.3), (0.02, 0.9), (5e6, 8e6), (1.0, 500.0), (0.39, 0.41)])
def test_a_logarithmic_axis_has_enough_ticks(ends: tuple[float, float]) -> None:
    _, (axes,) = canvas(1)
    axes.set_yscale("log")
    axes.set_ylim(*ends)
    plain_ticks(axes)
    ticks = axes.yaxis.get_majorticklocs()
    assert 3 <= ((ends[0] <= ticks) & (ticks <= ends[1])).sum() <= 10
    assert isinstance(axes.yaxis.get_major_formatter(), Plain)


def test_bytes_have_their_unit() -> None:
    assert [Bytes()(value) for value in (0, 100, 1e3, 2e6, 1e9)] == ["0 B", "100 B", "1 kB", "2 MB", "1 GB"]


@pytest.mark.drawn
@pytest.mark.parametrize(("panels", "width"), [(1, COLUMN_WIDTH), (2, PAGE_WIDTH)])
def test_a_papers_style_has_its_width_its_letters_and_a_caption_beside(panels: int, width: float) -> None:
    with styled("paper"):
        figure, every = canvas(panels)
        for axes in every:
            curve(axes, np.array([1, 2]), np.array([1.0, 2.0]), None, "CTA", look_of("CTA"))
            axes.set(title="wave_farm", xlabel="round", ylabel="error")
        made = rendered(figure, 3)
    assert figure.get_figwidth() == width
    assert {text.get_fontsize() for axes in every for text in (axes.xaxis.label, *axes.get_xticklabels())} == {8}
    assert made[".txt"].decode() == "Error over round: wave_farm. Mean, and from 10 % to 90 % of 3 replicates.\n"
    assert [axes.get_title() for axes in every] == ([""] if panels == 1 else ["wave farm"] * panels)
    assert not figure.legends
    assert matplotlib.image.imread(io.BytesIO(made[".png"])).std() > 0.01
    kinds = re.findall(rb"/Subtype /(\w+)", made[".pdf"])
    assert b"Type3" not in kinds and b"CIDFontType2" in kinds


def test_a_run_draws_for_a_paper_and_keeps_its_name(fkl: pytest.FixtureRequest) -> None:
    """The key changes no number, so it is in no digest."""
    words = "algo=pof_mkl", "dataset=diabetes", "kernels.D=8", "partition.rounds=5", "replicates=2"
    assert fkl("run", *words, "figures=paper").code == 0  # type: ignore[operator]
    (folder,) = Path("outputs/runs").iterdir()
    assert {"mse.png", "mse.pdf", "mse.txt"} <= {file.name for file in folder.iterdir()}
    assert "POF-MKL on diabetes" in (folder / "mse.txt").read_text()
    assert fkl("run", *words).code == 0  # type: ignore[operator]
    assert [*Path("outputs/runs").iterdir()] == [folder]
