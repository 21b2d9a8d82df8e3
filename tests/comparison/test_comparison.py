"""`fkl compare`: which runs, how they are named, what is written, and what is refused."""

import io
import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from conftest import SMALL
from matplotlib.colors import to_rgb
from scipy import stats

import fkl as package
from fkl.report.colours import look_of
from fkl.report.compare import Comparison, compare
from fkl.report.compare.cells import CellPosition
from fkl.report.compare.pivot import Pivot
from fkl.report.figures import style_figures


def shown(what: Pivot | Comparison, *most: int, terminal: bool = False) -> str:
    """What it prints in a pipe, or in a terminal."""
    out = io.StringIO()
    out.isatty = lambda: terminal  # type: ignore[method-assign]
    with redirect_stdout(out):
        (what.show if isinstance(what, Comparison) else what.print_table)(*most)
    return out.getvalue()


def test_rows_are_methods_and_columns_data(runs: Callable, fkl: Callable) -> None:
    """What differs on the same data is a row's; what is set otherwise on other data is said; seeds are one cell."""
    for seed in (0, 1):
        runs("POF-MKL", "air", [0.5, 0.7], seed=seed)
        runs("POF-MKL", "air", [0.9, 0.9], seed=seed, algo__M=25)
    runs("POF-MKL", "naval", [0.2, 0.4])
    runs("Raker", "air", [0.8, 0.8], algo__eta=0.1)
    runs("Raker", "naval", [0.1, 0.2], algo__eta=0.5)
    made = compare()
    assert made.pivot.methods == ["POF-MKL", "POF-MKL (M=25)", "Raker"] and made.pivot.datasets == ["air", "naval"]
    assert made.pivot.means[0] == pytest.approx([0.6, 0.3])
    assert made.cells.notes == ["Raker has different settings on different data: eta=0.1 on air; eta=0.5 on naval."]
    first = made.frame[(made.frame["metric"] == "mse") & (made.frame["method"] == "POF-MKL (M=25)")]
    assert first[["algo.M", "algo.eta", "seed", "replicate", "value"]].to_numpy().tolist()[0] == [25, 0.1, 0, 0, 0.9]
    by = compare(by=["algo.M"]).pivot
    assert by.methods == ["POF-MKL", "Raker"] and "air (M=25)" in by.datasets
    runs("Raker", "sea", [0.5])
    runs("Raker", "sea", [0.6, 0.7], partition__clients=9)
    runs("Raker", "sea", [0.6], partition__clients=9)  # of equal runs that with more replicates counts
    made = compare("dataset=sea")
    assert made.pivot.datasets == ["sea (clients=4)", "sea (clients=9)"] and made.ranks.empty and made.tests.empty
    assert made.pivot.means[0].tolist() == pytest.approx([0.5, 0.65])


def test_runs_are_chosen_by_folder_glob_sweep_and_keys(runs: Callable, fkl: Callable) -> None:
    air, naval = runs("POF-MKL", "air", [0.5, 0.6]), runs("RBF-1", "naval", [0.1, 0.2], seed=3)
    runs("Raker", "air", [0.3, 0.3], kernels__D=20)
    sweep = Path("outputs/sweeps/now")
    sweep.mkdir(parents=True)
    rows = [(0, "finished", 1, "", air), (1, "failed", 1, "", "nowhere"), (2, "finished already", 1, "", naval)]
    pd.DataFrame(rows, columns=["job", "state", "seconds", "overrides", "folder"]).to_csv(sweep / "jobs.csv")

    def chosen(*where: str | Path) -> list[str]:
        return sorted({run.algorithm for several in compare(where).cells.runs.values() for run in several})

    assert chosen() == chosen("outputs") == chosen("outputs/runs") == ["POF-MKL", "RBF-1", "Raker"]
    assert chosen(air) == ["POF-MKL"]
    assert chosen(sweep) == chosen(sweep / "jobs.csv") == ["POF-MKL", "RBF-1"]
    assert chosen("outputs/runs/air-*") == chosen("algo=pof_mkl,raker") == chosen("dataset=air") == ["POF-MKL", "Raker"]
    assert chosen("algo=rbf_1") == chosen("seed=3") == ["RBF-1"]
    assert chosen("dataset=air", "outputs/runs", "algo=raker") == chosen("kernels.D=20.0") == ["Raker"]
    frame = package.rounds(["outputs", "algo=raker"])
    own = pd.read_csv(next(Path("outputs/runs").glob("air-raker-*")) / "rounds.csv")
    pd.testing.assert_frame_equal(frame[[*own]], own, check_dtype=False)
    assert {*frame["method"]} == {"Raker"} and {*frame["dataset"]} == {"air"}
    assert fkl("compare", "algo=raker", "--rounds", "all.csv").code == 0
    pd.testing.assert_frame_equal(pd.read_csv("all.csv")[[*own]], own, rtol=1e-14, check_dtype=False)


def test_what_cannot_be_compared_is_refused_in_one_line(runs: Callable, fkl: Callable) -> None:
    runs("POF-MKL", "air", [0.5])
    Path("broken").mkdir()
    for words, said in {
        "nowhere": "where=nowhere: must be a folder, a glob, or KEY=VALUE",
        "--metric test_mse": "metric=test_mse: must be one of mse, runtime_per_client_s",
        "broken": "broken: no finished run there; fkl run makes one",
    }.items():
        answer = fkl("compare", *words.split())
        assert answer.code == 2 and answer.err.splitlines()[-1].startswith(f"error: {said}")
    assert not Path("outputs/comparison").exists()


def test_runs_that_have_changed_or_are_of_other_code_are_left_out_and_named(runs: Callable, fkl: Callable) -> None:
    """Of each cell the newest run's code and data count."""
    changed = runs("RBF-1", "air", [0.5])
    for seed, code, error in ((0, "old", 0.1), (1, "old", 0.1), (2, "old", 0.1), (0, "new", 0.5), (1, "new", 0.7)):
        folder = runs("Raker", "air", [error], seed=seed, out=f"{code}{seed}")
        ended = {**json.loads((folder / "provenance.json").read_text()), "code": code, "data": "same"}
        (folder / "provenance.json").write_text(json.dumps(ended))
        os.utime(folder / "provenance.json", (when := 1000 + 10 * (code == "new") + seed, when))
    runs("POF-MKL", "air", [0.5])
    with (changed / "rounds.csv").open("a") as file:
        file.write("\n")
    with pytest.warns(UserWarning) as told:
        found = compare(metric="mse")
    said = [str(one.message) for one in told]
    assert len(said) == 2 and any(f"{changed}: rounds.csv has changed since the run ended" in one for one in said)
    assert any(re.search("have other code or data: [^,]+; ", one) for one in said)
    assert sorted(found.pivot.values[CellPosition("Raker", "air")]) == [0.5, 0.7]
    assert found.pivot.methods == ["POF-MKL", "Raker"]


def test_the_best_stands_out_in_every_language() -> None:
    """In LaTeX every row has as many cells."""
    index = pd.MultiIndex.from_product([[0], range(2)], names=["seed", "replicate"])
    means = {("A (eta_x=1)", "air"): 0.01542, ("B", "air"): 0.03, ("C", "air"): 0.2, ("B", "sea"): 5e6}
    values = {CellPosition(*names): pd.Series([mean * 0.999, mean * 1.001], index) for names, mean in means.items()}
    baselines = {CellPosition("the mean", "air"): pd.Series([0.03, 0.03], index)}
    pivot = Pivot("mse", values, ["A (eta_x=1)", "B", "C"], ["air", "sea"], baselines=baselines)
    lines = shown(pivot).splitlines()
    assert lines[0].split() == ["mse", "air", "×10⁻³", "sea", "×10⁶"]
    assert "*15.42* ± 0.20" in lines[2] and "_30.00_ ± 0.38 ▲" in lines[3] and "200.00 ± 2.54 ▲" in lines[4]
    assert lines[5].split() == ["the", "mean", "30.00"]
    assert "\x1b[1m15.42\x1b[0m" in shown(pivot, terminal=True)
    assert "**15.42** ± 0.20" in pivot.table_sheet().markdown and "<ins>30.00</ins>" in pivot.table_sheet().markdown
    assert shown(pivot, 1).splitlines()[4] == "... and 2 methods more"
    frame = pivot.frame().set_index(["method", "dataset"])
    assert frame.loc[("A (eta_x=1)", "air"), ["place", "n"]].tolist() == [1, 2]
    assert len(frame) == 5 and frame.loc[("the mean", "air"), "kind"] == "baseline"
    rows = [line for line in pivot.table_sheet().latex_floats().splitlines() if line.endswith(r"\\")]
    assert {row.count("&") for row in rows} == {2} and rows[-1].startswith("the mean & 30.00")


def test_everything_is_written_and_says_what_it_is_over(runs: Callable, fkl: Callable) -> None:
    """Tables, ranks and figures of three methods on five data sets, of one split."""
    random = np.random.default_rng(0)
    for number, dataset in enumerate(("air", "bias", "naval", "energy", "concrete")):
        for shift, algorithm in enumerate(("POF-MKL", "Raker", "RBF-1")):
            runs(algorithm, dataset, list(np.round(0.1 + shift + number + random.random(3), 6)))
    first = fkl("compare", "--out", "one")
    assert first.code == 0, first.err
    assert "15 runs compared" in first.out and "Average ranks over 5 data sets: POF-MKL 1.00" in first.out
    tables = {f"{name}.{kind}" for name in ("pivot", "tests", "ranks") for kind in ("csv", "md", "tex")}
    figures = {f"curves_over_{cost}" for cost in ("rounds", "scalars", "bytes", "seconds")}
    figures |= {"error_against_bytes", "critical_difference"}
    pictures = {f"{name}.{kind}" for name in figures for kind in ("png", "pdf")}
    assert {file.name for file in Path("one").iterdir()} == tables | pictures | {"runs.csv", "runs.parquet"}
    written, read = pd.read_csv("one/runs.csv"), pd.read_parquet("one/runs.parquet")
    assert written["value"].tolist() == pytest.approx(read["value"].tolist()) and list(written) == list(read)
    for name in (table for table in tables if not table.endswith("csv")):
        assert "the random features only" in Path("one", name).read_text(), name


def test_a_sweep_ends_with_its_runs_compared(fkl: Callable) -> None:
    """FOMD-OMS has other rates in its authors' script: the comparison names them."""
    answer = fkl("run", "-m", *SMALL, "algo=fomd_oms,ofmkl_avg", "kernels.N=3", "partition.rounds=20")
    assert answer.code == 0, answer.err
    assert "OFMKL-Avg" in answer.out and "mse: mean" in answer.out
    [jobs] = Path("outputs/sweeps").glob("*/jobs.csv")
    table = pd.read_csv(jobs)
    summaries = [pd.read_csv(Path(folder) / "summary.csv") for folder in table["folder"]]
    assert table["mean"].tolist() == pytest.approx([summary["mse"].mean() for summary in summaries], rel=1e-5)
    assert f"fkl compare {jobs.parent}" in answer.out
    [line] = [line for line in compare().conclusions if "as_published" in line]
    assert line.startswith("FOMD-OMS ran with the rates of theory") and "+as_published=fomd_oms" in line


def test_only_replicates_that_all_methods_share_count(runs: Callable, fkl: Callable) -> None:
    """The mean of M=25 over its own 5 replicates is the least, and on these 5 M=1 errs less."""
    runs("POF-MKL", "air", [0.1, 0.2, 0.3, 0.4, 0.5], algo__M=25)
    runs("POF-MKL", "air", [0.09, 0.19, 0.29, 0.39, 0.49, 0.9, 0.9, 0.9, 0.9, 0.9], algo__M=1)
    runs("POF-MKL", "sea", [0.1, 0.2], seed=0)
    runs("Raker", "sea", [0.3, 0.4], seed=1)
    made = compare("dataset=air")
    assert made.pivot.methods[made.pivot.best_first[0]] == "POF-MKL (M=1)"
    assert made.pivot.means[:, 0].tolist() == pytest.approx([0.29, 0.3])
    text = shown(made)
    assert "over 5 shared replicates" in text
    assert "air: only the 5 of 10 replicates that all methods share count; POF-MKL (M=25) has no more." in text
    assert made.verdicts == ["On air, POF-MKL (M=1) is best; better than POF-MKL (M=25) by 4.8 % [0.4, 9.4]."]
    assert made.frame.groupby("method")["shared"].mean().to_dict() == {"POF-MKL (M=1)": 0.5, "POF-MKL (M=25)": 1.0}
    made = compare("dataset=sea")
    assert np.isnan(made.pivot.places).all() and made.tests.empty
    assert "sea: the methods share no seed and replicate, so they are not ranked or tested." in made.remarks


def test_diverged_runs_stay_in_the_table(runs: Callable, fkl: Callable) -> None:
    """A method of whose seeds some diverged has no mean, is never best, and a finite 1e29 is no result either."""
    simple = {"mse_running_mean": 0.5, "mse_last_value": 0.7}
    for seed in range(6):
        runs("Raker", "air", [0.3 + seed / 100], seed=seed, columns=simple)
        runs("POF-MKL", "air", [1e29 if seed == 3 else 0.1], seed=seed, columns=simple, diverged=seed == 2)
        runs("RBF-1", "air", [0.1], seed=seed, columns=simple, diverged=True, algo__eta=9.0, words=["algo.eta=9"])
    made = compare()
    text = shown(made.pivot).splitlines()
    assert text[2].startswith("Raker") and "*0.3250*" in text[2]
    assert text[3].split("  ")[-1].strip() == "2 of 6 diverged" and text[3].startswith("POF-MKL")
    assert text[4].split() == ["RBF-1", "(eta=9)", "6", "of", "6", "diverged"]
    assert "8 of 18 runs diverged." in made.conclusions
    frame = made.pivot.frame().set_index("method")
    assert frame.loc["POF-MKL", "diverged"] == 2 and np.isnan(frame.loc["POF-MKL", "mean"])
    [verdict] = made.verdicts
    assert verdict.startswith("On air, Raker is best; no verdict against POF-MKL, which failed in 2 of 6 seeds; ")
    only = fkl("compare", "algo=rbf_1")
    assert only.code == 2
    assert only.err.endswith("error: compare: none of these runs is finished; 6 diverged; lower the step size\n")


def test_baselines_stand_below_the_methods(runs: Callable, fkl: Callable) -> None:
    """Unless they are of other samples: where clients are absent in the runs of one method alone."""
    for algorithm, error in (("POF-MKL", 0.6), ("Raker", 0.8)):
        simple = {"mse_running_mean": 0.5, "mse_last_value": 0.7}
        runs(algorithm, "air", [error, error + 0.01], columns=simple)
        runs(algorithm, "sea", [error, error], columns={"mse_running_mean": error})
    made = compare("dataset=air")
    lines = shown(made.pivot).splitlines()
    assert "*0.6050* ± 0.0635 ▲" in lines[2] and "_0.8050_ ± 0.0635 ▲" in lines[3]
    assert lines[4].startswith("each client's mean target so far") and lines[4].endswith("0.5000")
    assert "No method beats each client's mean target so far on air." in made.conclusions
    assert not any("last target on air" in line for line in made.conclusions)
    made = compare("dataset=sea")
    assert not made.pivot.baselines
    assert "sea: baselines differ between the runs, so no baseline holds for all of them." in made.conclusions
    runs("Raker", "sea", [0.8, 0.8], columns={"mse_running_mean": 0.8}, participation={"share": 0.5})
    found = [line for line in compare("dataset=sea").conclusions if line.startswith("sea: ")]
    assert found == ["sea: the methods saw different samples, so no baseline holds for all of them."]


@pytest.mark.parametrize(
    ("metric", "keys", "other", "instead"),
    [
        ("pinball", {"algo__loss": "quantile", "algo__level": 0.5}, {"algo__level": 0.9}, "algo.level=0.9"),
        ("loss", {"algo__loss": "logistic"}, {"algo__loss": "hinge"}, "algo.loss=hinge"),
        ("loss", {"algo__loss": "huber", "algo__delta": 0.1}, {"algo__delta": 0.2}, "algo.delta=0.2"),
        ("test_loss", {"algo__loss": "softmax"}, {"algo__loss": "one_vs_rest"}, "algo.loss=one_vs_rest"),
        ("test_mse", {"algo__test_share": 0.3}, {"algo__test_share": 0.5}, "algo.test_share=0.5"),
        ("regret_hindsight", {"algo__loss": "square"}, {"algo__loss": "huber", "algo__delta": 1}, "algo.delta=1"),
        ("epsilon_client", {"privacy": {"delta": 1e-5}}, {"privacy": {"delta": 0.01}}, "privacy.delta=0.01"),
        ("mine", {"metrics": {"mine": "a.f"}}, {"metrics": {"mine": "a.g"}}, "metrics.mine=a.g"),
    ],
)
def test_a_metric_that_is_two_functions_is_compared_within_each(
    metric: str, keys: dict, other: dict, instead: str, runs: Callable, fkl: Callable
) -> None:
    """Neither in a data set, nor over several; where their values form columns, there are no ranks over these."""
    for number, dataset in enumerate(("air", "sea")):
        for algorithm, error in (("POF-MKL", 0.3), ("Raker", 0.4)):
            runs(algorithm, dataset, [error, error + 0.01], metric, columns={"error": 0.2}, **keys)
            if number:
                smaller = [error / 9, error / 8]
                runs(algorithm, dataset, smaller, metric, columns={"error": 0.2}, **keys | other)
    made = compare((), metric)
    assert made.pivot.methods == ["POF-MKL", "Raker"] and made.pivot.datasets == ["air", "sea"]
    assert made.pivot.means.min() > 0.3
    [note] = [line for line in made.conclusions if "another function" in line]
    assert note.startswith(f"2 runs of POF-MKL and Raker omitted: {metric} is another function with ")
    assert instead in note.partition("compare these with ")[2]
    assert note.endswith(", or all with --metric=error.")
    key = instead.partition("=")[0]
    if not key.startswith(("privacy", "metrics")) and metric != "regret_hindsight":
        beside = compare((), metric, by=[key])
        assert len(beside.pivot.datasets) == 3 and beside.ranks.empty
        assert f"No ranks over columns, in which {metric} is not one function." in beside.remarks


def test_errors_that_are_one_function_are_compared_whatever_is_learned(runs: Callable, fkl: Callable) -> None:
    for loss in ("logistic", "hinge", "least_squares"):
        runs("Raker", "air", [0.3, 0.31], "error", algo__loss=loss)
    assert len(compare((), "error").pivot.methods) == 3


def test_a_key_that_was_set_by_hand_stays_in_the_name(runs: Callable, fkl: Callable) -> None:
    """Of three steps one survived: its row says which; what was set for all runs stands below the table."""
    for algorithm in ("POF-MKL", "Raker"):
        words = ["algo=x", "algo.eta=1.2", "kernels.D=8", "seed=0", *["algo.M=5"] * (algorithm == "POF-MKL")]
        keys = {"algo__M": 5} if algorithm == "POF-MKL" else {}
        runs(algorithm, "air", [0.1, 0.2], words=words, algo__eta=1.2, **keys)
    made = compare()
    assert made.pivot.methods == ["POF-MKL (M=5)", "Raker"]
    assert "Set in all runs: algo.eta=1.2, kernels.D=8." in made.pivot.caption
    runs("RBF-1", "air", [0.3, 0.4], words=["kernels.D=8"])
    assert compare().pivot.methods == ["POF-MKL (eta=1.2 M=5)", "RBF-1", "Raker (eta=1.2)"]


@pytest.mark.parametrize("key", ["network__uplink_budget", "algo__flush", "network__deadline_s"])
def test_a_key_of_none_is_in_no_label(key: str, runs: Callable, fkl: Callable, tmp_path: Path) -> None:
    """A run with a value shows it; those without are named as if nobody had heard of the key, in every table."""
    last = key.rpartition("__")[2]
    for value in (None, 1000):
        runs("POF-MKL", "air", [0.1, 0.2], **{key: value})
    runs("Raker", "air", [0.1, 0.2], words=[f"{key.replace('__', '.')}=null"], **{key: None})
    runs("RBF-1", "air", [0.1, 0.2], **{key: None})
    runs("RBF-1", "sea", [0.1, 0.2], **{key: 1000})
    made = compare()
    assert sorted(made.pivot.methods) == ["POF-MKL", f"POF-MKL ({last}=1000)", "RBF-1", "Raker"]
    assert f"RBF-1 has different settings on different data: none of these on air; {last}=1000 on sea." in made.remarks
    fkl("report")
    assert "=None" not in (tmp_path / "outputs" / "report.html").read_text()


def test_seeds_are_the_unit_where_there_are_several(runs: Callable, fkl: Callable) -> None:
    """40 replicates of 8 seeds are 8 values: their interval is that of the means of the seeds."""
    random = np.random.default_rng(0)
    for algorithm, shift in (("POF-MKL", 0.0), ("Raker", 1.0)):
        for seed in range(8):
            runs(algorithm, "air", [*(1 + shift + seed / 10 + random.random(5) / 100)], seed=seed)
        runs(algorithm, "sea", [0.1, 0.2], metric="test_error", columns={"test_error_majority": [0.4, 0.5]})
    made = compare("dataset=air")
    means = made.pivot.values[CellPosition("POF-MKL", "air")].groupby("seed").mean()
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert made.pivot.halves[0, 0] == pytest.approx((expected.high - expected.low) / 2)
    [test] = made.tests.to_dict("records")
    assert (test["verdict"], test["better"]) == ("better by more than the margin", "POF-MKL")
    assert "over 8 shared seeds" in made.pivot.caption and "One split" not in shown(made)
    # Baselines depend on the data alone: where they differ between replicates, so do the splits
    assert "One split" not in compare("dataset=sea").pivot.caption


@pytest.mark.drawn
def test_figures_are_drawn_on_light_and_dark(runs: Callable, fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The corner has the background's colour, and a method its own."""
    runs("POF-MKL", "air", [0.5, 0.6])
    monkeypatch.setattr("fkl.report.compare.figures.AXES", {"rounds": "round"})
    for dark in (False, True):
        picture = matplotlib.image.imread(io.BytesIO(compare().figures(dark)["curves_over_rounds"][".png"]))
        assert (picture[0, 0, :3].max() < 0.2) == dark and (picture[0, 0, :3].min() > 0.9) != dark
        with style_figures(dark=dark):
            shade = np.array(to_rgb(look_of("POF-MKL").colour))
        assert np.abs(picture[..., :3] - shade).max(axis=-1).min() < 0.02


def test_the_page_begins_with_the_runs_where_no_papers_are(
    runs: Callable, fkl: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pivot with its best in bold, and the pictures; their files lie beside those of `fkl compare`."""
    for shift, algorithm in enumerate(("POF-MKL", "Raker")):
        for dataset in ("air", "<naval>"):
            runs(algorithm, dataset, [1.5 + shift, 1.6 + shift])
    monkeypatch.setattr("fkl.papers.PAPERS", ("fomd_oms",))  # the jobs of all take half a minute to compose
    assert fkl("report").code == 0
    page = Path("outputs/report.html").read_text()
    assert "<h1>Runs, compared</h1>" in page and "FOMD-OMS" not in page
    section = page[page.index('id="compared"') : page.index('id="runs"')]
    assert section.index("<b>1.550</b>") < section.index("<u>2.550</u>")
    assert "&lt;naval&gt;" in section and "<naval>" not in section and section.count("<img ") == 5
    assert Path("outputs/comparison/mse/pivot.tex").exists()


@pytest.mark.parametrize("key", ["partition__clients", "partition__rounds", "scaling", "dataset__noise"])
@pytest.mark.parametrize("sets", [("air",), ("air", "sea")])
def test_a_data_set_is_counted_once_however_many_columns_it_has(
    runs: Callable, fkl: Callable, key: str, sets: tuple[str, ...]
) -> None:
    """Five values of a key of the data are five columns, but no five data sets for ranks and Nemenyi's test."""
    for dataset in sets:
        for at, value in enumerate(("1", "2", "3", "4", "5")):
            for order, name in enumerate(("POF-MKL", "Raker", "RBF-1")):
                error = [3.0, 1.0, 2.0][order] if at == 0 else order + 1.0
                runs(name, dataset, [error, error + 0.1], **{key: value})
    made = compare()
    assert len(made.pivot.datasets) == 5 * len(sets)
    said = shown(made)
    if len(sets) == 1:
        assert made.ranks.empty and "all columns are of one data set, air" in said
    else:
        assert [*made.ranks.index] == [*sets] and "Average ranks over 2 data sets: POF-MKL 1.00" in said
        assert made.ranks.mean().to_dict() == {"POF-MKL": 1.0, "Raker": 2.0, "RBF-1": 3.0}
    assert "No critical-difference diagram" in said
