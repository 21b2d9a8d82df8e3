"""Tables and figures of the paper, from runs that the tests make themselves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from broken.runs import CONFIG, sign

from fkl.config.compose import compose
from fkl.config.loading import resolved
from fkl.papers.cells import AS_PUBLISHED, AS_STATED, COLUMNS, Answer, Cell, answered, published
from fkl.papers.evidence import Evidence
from fkl.papers.our_runs import find
from fkl.papers.pof_mkl import TABLE, table
from fkl.papers.tables import verdict
from fkl.runs.finished_runs import FinishedRun, collect

BUDGET = "network.uplink_budget=1000"
NAVAL = ("dataset=naval", "replicates=2", BUDGET)


@pytest.fixture(scope="module")
def finished(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of some of the paper's rows on random numbers in naval's layout."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "files").mkdir()
    numbers = np.random.default_rng(0).random((11934, 18))
    with (folder / "files" / "data.txt").open("w") as file:
        file.writelines("   " + "   ".join(f"{value:.7e}" for value in row) + "\n" for row in numbers)
    rows = "ofmkl_avg,vm_kofl,vm_kofl_two_steps,pof_mkl_m1,pof_mkl_m51"
    return sweeping(folder, (*NAVAL, f"+pof_mkl/row_as_published={rows}"))


@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_every_published_cell_appears_and_ours_is_what_the_runs_say(runs: Callable, number: str) -> None:
    """One row a cell and switch; CSV, Markdown and LaTeX; nothing of ours where nothing was run."""
    assert runs("table", f"pof_mkl/{number}").code == 0
    folder = Path("outputs/tables/pof_mkl")
    suffixes = (".csv", ".md", ".tex", "_wide.csv", "_wide.md")
    assert {f"table{number}{suffix}" for suffix in suffixes} == {file.name for file in folder.iterdir()}
    table = pd.read_csv(
        folder / f"table{number}.csv", keep_default_na=False, na_values={c: [""] for c in COLUMNS[5:10]}
    )
    assert list(table)[: len(COLUMNS)] == COLUMNS

    cells = published("pof_mkl", "3" if number == "3" else "1")
    wanted = {cell.key for cell in cells if number != "2" or cell.spread > 0}
    assert set(table[["dataset", "algorithm", "setting", "metric"]].itertuples(index=False, name=None)) == wanted
    assert table[table["dataset"] != "naval"]["switch"].str.startswith("not run: no finished run on").all()
    assert table[table["switch"].str.startswith("not run")]["ours"].isna().all()

    vm = table.query("dataset == 'naval' and algorithm == 'vM-KOFL' and metric != 'runtime_per_client'")
    one, two = (vm[vm["switch"].str.endswith(f"step_factor={step}")] for step in ("1.0", "2.0"))
    assert (two["reading"] == "").all()
    assert one["reading"].tolist() == ["preview, as published"]
    row = one.iloc[0]
    [run] = [
        folder
        for folder in Path("outputs/runs").glob("naval-vm_kofl-*")
        if "step_factor: 1.0" in (folder / "config.yaml").read_text()
    ]
    if number == "3":
        values, scale = pd.read_csv(run / "clients.csv").groupby("client")["regret_hindsight"].mean(), 1
    else:
        values, scale = pd.read_csv(run / "summary.csv")["mse"], 1e-3
    assert row["ours"] == pytest.approx(values.mean() / scale, rel=1e-5)
    assert row["spread"] == pytest.approx(values.std(ddof=1) / scale, rel=1e-5)
    assert row["n"] == len(values) == (23 if number == "3" else 2)
    assert row["difference_percent"] == pytest.approx(100 * (row["ours"] / row["published"] - 1), rel=1e-3)
    assert row["published_n"] == 20
    assert (row["follows_from"] == "Table 1") == (number == "2")
    if number == "2":
        assert float(row["mse_over_root_of_rounds"]) == pytest.approx(row["ours"] / 500**0.5, rel=1e-3)
    if number == "3":
        [linear] = vm[vm["reading"] == "preview, as published, linear comparator"]["ours"]
        against = pd.read_csv(run / "clients.csv").groupby("client")["regret_linear"].mean()
        assert linear == pytest.approx(against.mean(), rel=1e-5)

    markdown = (folder / f"table{number}.md").read_text()
    rows, differences, _ = markdown.partition("## Differences")
    assert rows.count("\n|") == len(table) + 2 and differences
    latex = (folder / f"table{number}.tex").read_text()
    assert "the mean over 2 replicates" in latex and "run time" not in latex and "vM-KOFL, M=51, D=9 & " in latex


def test_the_terminal_shows_the_printed_layout(runs: Callable) -> None:
    """The verdict, a grid a metric with run times last, what was not run in a line; no row but of what was run."""
    answer = runs("table", "pof_mkl/1")
    title, verdict, _, *lines = answer.out.splitlines()
    assert title.startswith("POF-MKL (Ghari and Shen 2022), table 1")
    assert verdict == "No verdict: our runs have fewer replicates than the paper's."
    errors, times = (next(at for at, line in enumerate(lines) if line.startswith(one)) for one in ("MSE", "run time"))
    assert errors < times and lines[errors].split() == ["MSE", "(×", "10⁻³)", "naval"]
    at = next(at for at, line in enumerate(lines) if line.startswith("vM-KOFL"))
    table = pd.read_csv("outputs/tables/pof_mkl/table1.csv")
    [ours] = table.query("algorithm == 'vM-KOFL' and metric == 'mse' and reading == 'preview, as published'")["ours"]
    assert lines[at].split()[-1] == "26.42" and lines[at + 1].split()[::3] == [f"{ours:.2f}", "p"]
    assert not any(line.startswith("PerFedAvg") for line in lines)
    assert sum(line.startswith("not run: ") for line in lines) <= 4
    assert lines[-1].startswith("files: outputs/tables/pof_mkl: table1.csv")
    assert runs("table", "pof_mkl/1", "--format=csv").out == Path("outputs/tables/pof_mkl/table1.csv").read_text()
    assert len(json.loads(runs("table", "pof_mkl/1", "--format=json").out)) == len(table)


def test_the_verdict_counts_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As described, by another reading, by none; the rest undecided."""
    told = {"variants": {AS_PUBLISHED: "it"}, "builds_on": {}, "readings_tried": 2}
    monkeypatch.setattr("fkl.config.experiments.of_paper", lambda _: told)

    def answer(ours: float, reading: str) -> Answer:
        return Answer.from_values("", ours + pd.Series(np.linspace(-0.1, 0.1, 20)), reading, 20)

    values = {"A": (100, 150), "B": (150, 100), "C": (150, 150), "D": (150, 101)}
    cells = [Cell("mine", "1", "x", name, "", "mse", "", 100.0, rounding=0.5) for name in values]

    def answers(cell: Cell) -> list[Answer]:
        stated, changed = values[cell.algorithm]
        return [answer(stated, AS_STATED), answer(changed, AS_PUBLISHED)]

    evidence = Evidence("mine", answered(cells, answers, 2))
    said = "1 of 4 numbers that were run come out as described; 2 by another reading; 1 by none that was run."
    assert verdict(evidence, "1") == said


LABELS = {
    "ofskl": "OFSKL",
    "vm_kofl": "vM-KOFL",
    "em_kofl": "eM-KOFL",
    "pof_mkl_m25": "POF-MKL",
    "perfedavg": "PerFedAvg",
}


@pytest.mark.parametrize("dataset", ["naval", "uji", "air"])
@pytest.mark.parametrize("row", LABELS)
def test_the_configuration_s_readings_are_the_table_s(dataset: str, row: str) -> None:
    """What the experiments call stated and published is what the tables take for these; in between is neither."""

    def read_as(*overrides: str) -> list[str]:
        config: Any = resolved(compose(BUDGET, *overrides))
        run = FinishedRun(Path(), config, {"dataset": dataset, "algorithm": LABELS[row]})
        return [found.variant for found in find("pof_mkl", [run], *TABLE)]

    stated = f"+pof_mkl/words={dataset}", f"+pof_mkl/row={row}"
    as_published = f"dataset={dataset}", f"+pof_mkl/row_as_published={row}"
    assert read_as(*stated) == [AS_STATED]
    assert read_as(*as_published) == [AS_PUBLISHED]
    if row != "perfedavg":
        assert read_as(*as_published, "algo.step_factor=1.5") == []
        assert read_as(*stated, "kernels.bandwidth_convention=variance") in ([], [""]), "a switch, or nothing"
    if row == "em_kofl":
        assert read_as(*as_published, "algo.weight_factor=2.0") == [""]
    if row == "pof_mkl_m25":
        assert read_as(*as_published, "algo.step_factor=1.0") == ["one step"]


@pytest.mark.parametrize(
    ("file", "mine", "other"),
    [
        ("config.yaml", "eta: null", "eta: 0.5"),
        ("config.yaml", "largest: 100.0", "largest: 50.0"),
        ("config.yaml", "partition.Iid", "partition.Dirichlet"),
        ("config.yaml", "rounds: 500", "rounds: 100"),
        ("config.yaml", "clients: 23", "clients: 20"),
    ],
)
def test_a_run_off_the_protocol_is_no_answer(runs: Callable, file: str, mine: str, other: str) -> None:
    """Another step size, dictionary, partition or horizon belongs to no cell of the paper."""
    runs("table", "pof_mkl/1")
    before = Path("outputs/tables/pof_mkl/table1.csv").read_text()
    changed = next(Path("outputs/runs").glob("naval-pof_mkl-*")) / file
    assert mine in changed.read_text()
    changed.write_text(changed.read_text().replace(mine, other, 1))
    sign(changed.parent)
    assert runs("table", "pof_mkl/1").err == ""
    after = Path("outputs/tables/pof_mkl/table1.csv").read_text()
    assert after.count("not run") > before.count("not run")


def test_a_regret_is_judged_by_replicates_and_shown_over_clients(runs: Callable) -> None:
    """The printed spread of Table 3 is over clients, so ours over replicates stands for that of the printed runs."""
    made = table("3", collect(Path("outputs")).runs)
    mine = [(cell, one) for cell in made if cell.algorithm == "OFMKL-Avg" for one in cell.answers]
    [(cell, one)] = [(cell, one) for cell, one in mine if one.named == "preview, as published"]
    assert (one.n, len(one.values)) == (23, 2)
    assert np.mean(one.values) == pytest.approx(one.ours, rel=1e-12)
    assert np.isnan(cell.sd) and cell.spread == 0.39


@pytest.mark.drawn
def test_figure_1_is_drawn_as_png_and_pdf(runs: Callable) -> None:
    """A picture with something on it."""
    assert runs("figure", "pof_mkl/1").code == 0
    picture = matplotlib.image.imread("outputs/figures/pof_mkl/figure1.png")
    assert picture.std() > 0.01
    assert Path("outputs/figures/pof_mkl/figure1.pdf").read_bytes().startswith(b"%PDF")
    curves = pd.read_csv("outputs/figures/pof_mkl/figure1.csv")
    assert set(curves["panel"]) == {"naval, as published"}
    names = {"vM-KOFL, M=51", "POF-MKL, M=1", "POF-MKL, M=51"}
    assert set(curves["curve"]) == names | {f"{name}, published" for name in names}
    assert len(curves) == 3 * 501
    [printed] = curves[curves["curve"].eq("POF-MKL, M=1, published")].to_dict("records")
    assert (printed["x"], printed["y"]) == (500, pytest.approx(8.33 / 500))  # Table 3


def test_provenance_tells_where_a_number_comes_from(runs: Callable) -> None:
    """Versions, processor, threads, commit and what was left out."""
    provenance = json.loads(next(Path("outputs/runs").glob("*/provenance.json")).read_text())
    for key in (
        "digest",
        "dataset",
        "algorithm",
        "rows_left_out",
        "fkl",
        "commit",
        "python",
        "packages",
        "cores",
        "blas",
    ):
        assert key in provenance


def test_each_run_alone_gives_what_it_can(each_alone: Callable) -> None:
    """As after a sweep that was interrupted."""
    each_alone("pof_mkl")


def test_a_run_that_a_figure_cannot_be_made_with_is_named(runs: Callable) -> None:
    """It holds what its checksums promise, and a word where numbers belong: the figure is made of the others."""
    [folder] = [one for one in Path("outputs/runs").glob("naval-pof_mkl-*") if "M: 51" in (one / CONFIG).read_text()]
    lines = (folder / "rounds.csv").read_text().splitlines()
    lines[500] = lines[500].replace(lines[500].split(",")[4], "much")
    (folder / "rounds.csv").write_text("\n".join(lines) + "\n")
    sign(folder)
    answer = runs("figure", "pof_mkl/1")
    assert answer.code == 0
    assert f"{folder}: pof_mkl/1 cannot be made with it (TypeError: " in answer.err
    curves = pd.read_csv("outputs/figures/pof_mkl/figure1.csv")
    assert {name for name in curves["curve"] if "published" not in name} == {"vM-KOFL, M=51", "POF-MKL, M=1"}
    answer = runs("report")
    assert (answer.code, len(answer.err.splitlines())) == (0, 1)
    page = Path("outputs/report.html").read_text()
    assert f"<b>{folder}</b>: pof_mkl/1 cannot be made with it (TypeError: " in page
    assert f'id="run-{folder.name}"' not in page
