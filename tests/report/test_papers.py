"""Tables and figures of papers, of runs that a test makes up: POF-MKL's, and what holds of each paper."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from broken.runs import sign
from made_up import of_job, write

from fkl.config.compose import compose_config
from fkl.config.loading import resolve_config
from fkl.papers.cells import AS_PUBLISHED, AS_STATED, cells_frame, published_cells
from fkl.papers.our_runs import find_paper_runs
from fkl.papers.pof_mkl import TABLE, figure, table
from fkl.runs.finished_runs import FinishedRun

ERRORS = np.array([0.02, 0.03])
CLIENTS = np.array([[1.0, 2.0, 6.0], [3.0, 4.0, 8.0]])
"""Regret of two replicates and three clients."""


def run(label: str = "vM-KOFL", experiment: str = "table1_as_published", **keys: Any) -> FinishedRun:
    """One of POF-MKL's rows on naval, in two replicates instead of twenty."""
    summary = {"mse": ERRORS, "runtime_per_client_s": (1.0, 2.0), "regret_hindsight": (1.0, 3.0)}
    clients = {"regret_hindsight": CLIENTS, "regret_linear": 2 * CLIENTS}
    rounds = {"regret_hindsight": np.array([[1.0, 4.0, 9.0]] * 2), "mse": np.ones((2, 3))}
    return of_job(f"pof_mkl/{experiment}", "naval", label, summary=summary, rounds=rounds, clients=clients, keys=keys)


@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_every_published_cell_appears_and_ours_is_what_the_runs_say(number: str) -> None:
    """Nothing of ours where nothing was run; fewer replicates than the paper's are a preview."""
    made = cells_frame(table(number, [run()]))
    cells = published_cells("pof_mkl", "3" if number == "3" else "1")
    wanted = {cell.key for cell in cells if number != "2" or cell.spread > 0}
    assert {*made[["dataset", "algorithm", "setting", "metric"]].itertuples(index=False, name=None)} == wanted
    elsewhere = made[(made["dataset"] != "naval") | (made["algorithm"] != "vM-KOFL")]
    assert elsewhere["ours"].isna().all() and elsewhere["switch"].str.startswith("not run: no finished run on").all()
    ours = made.dropna(subset="ours").query("metric != 'runtime_per_client'")
    row = ours.iloc[0]
    values = CLIENTS.mean(axis=0) if number == "3" else ERRORS / 1e-3
    assert (row["reading"], row["n"], row["published_n"]) == ("preview, as published", len(values), 20)
    assert (row["ours"], row["spread"]) == (pytest.approx(values.mean()), pytest.approx(values.std(ddof=1)))
    assert row["difference_percent"] == pytest.approx(100 * (row["ours"] / row["published"] - 1))
    assert (row["follows_from"] == "Table 1") == (number == "2")
    if number == "2":
        assert row["mse_over_root_of_rounds"] == pytest.approx(row["ours"] / 500**0.5)
    if number == "3":  # judged by replicates, shown over clients; the printed spread is over clients, too
        [linear] = ours[ours["reading"] == "preview, as published, linear comparator"]["ours"]
        assert linear == pytest.approx(2 * row["ours"])
        [one] = [cell for cell in table("3", [run()]) if cell.answers and cell.metric == row["metric"]]
        assert one.answers[0].values == pytest.approx((3.0, 5.0)) and np.isnan(one.sd)


@pytest.mark.parametrize("row", ["em_kofl", "pof_mkl_m25", "perfedavg"])
def test_the_configuration_s_readings_are_the_table_s(row: str) -> None:
    """What the experiments call stated and published is what the tables take for these; in between is neither."""
    labels = {"em_kofl": "eM-KOFL", "pof_mkl_m25": "POF-MKL", "perfedavg": "PerFedAvg"}

    def read_as(*words: str) -> list[str]:
        config: Any = resolve_config(compose_config("network.uplink_budget=1000", *words))
        one = FinishedRun(Path(), config, {"dataset": "naval", "algorithm": labels[row]})
        return [found.variant for found in find_paper_runs("pof_mkl", [one], *TABLE)]

    stated, as_published = (
        ("+pof_mkl/words=naval", f"+pof_mkl/row={row}"),
        ("dataset=naval", f"+pof_mkl/row_as_published={row}"),
    )
    assert (read_as(*stated), read_as(*as_published)) == ([AS_STATED], [AS_PUBLISHED])
    if row != "perfedavg":
        assert read_as(*as_published, "algo.step_factor=1.5") == []
    if row == "pof_mkl_m25":
        assert read_as(*as_published, "algo.step_factor=1.0") == ["one step"]


def test_figure_1_has_ours_beside_what_is_printed() -> None:
    drawn, replicates = figure("1", [run(), run("POF-MKL", **{"algo.M": 1})])
    [axes] = drawn.axes
    assert (axes.get_title(), replicates) == ("naval, as published", 2)
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert {*lines} == {f"{name}{end}" for name in ("vM-KOFL, M=51", "POF-MKL, M=1") for end in ("", ", published")}
    np.testing.assert_allclose(lines["POF-MKL, M=1"], [[1, 1], [2, 2], [3, 3]])  # regret / round
    np.testing.assert_allclose(lines["POF-MKL, M=1, published"], [[3, 8.33 / 3]])  # Table 3
    drawn, _ = figure(
        "2", [run("POF-MKL", "figure2_as_published", **{"algo.M": 1, "algo.xi": xi}) for xi in (0.1, 1.0)]
    )
    lines = {line.get_label(): line.get_xydata() for line in drawn.axes[0].lines}
    np.testing.assert_allclose(lines["POF-MKL, M=1"], [[0.1, 2], [1, 2]])


def test_commands_write_files_in_all_languages_and_show_the_printed_layout(fkl: Callable, tmp_path: Path) -> None:
    """A run that holds what its checksums promise, and a word where numbers belong, is named and left out."""
    folders = [write(one, tmp_path / "outputs" / "runs") for one in (run(), run("POF-MKL", **{"algo.M": 51}))]
    answer = fkl("table", "pof_mkl/1")
    title, told, _, *lines = answer.out.splitlines()
    assert title.startswith("POF-MKL (Ghari and Shen 2022), table 1")
    assert told == "No verdict: our runs have fewer replicates than the paper's."
    errors, times = (next(at for at, line in enumerate(lines) if line.startswith(one)) for one in ("MSE", "run time"))
    assert errors < times and lines[errors].split() == ["MSE", "(×", "10⁻³)", "naval"]
    at = next(at for at, line in enumerate(lines) if line.startswith("vM-KOFL"))
    assert lines[at].split()[-1] == "26.42" and lines[at + 1].split()[::3] == ["*25.00*", "p"]
    assert not any(line.startswith("PerFedAvg") for line in lines)
    tables = Path("outputs/tables/pof_mkl")
    assert lines[-1].startswith(f"files: {tables}: table1.csv")
    endings = (".csv", ".md", ".tex", "_wide.csv", "_wide.md")
    assert {f"table1{ending}" for ending in endings} == {file.name for file in tables.iterdir()}
    written = (tables / "table1.csv").read_text()
    assert fkl("table", "pof_mkl/1", "--format=csv").out == written
    rows = len(json.loads(fkl("table", "pof_mkl/1", "--format=json").out))
    markdown, differences, _ = (tables / "table1.md").read_text().partition("## Differences")
    assert written.count("\n") == rows + 1 and markdown.count("\n|") == rows + 2 and differences
    assert "vM-KOFL, M=51, D=9 & " in (tables / "table1.tex").read_text()
    lines = (folders[1] / "rounds.csv").read_text().splitlines()
    (folders[1] / "rounds.csv").write_text("\n".join([*lines[:-1], lines[-1].replace("9.0", "much")]) + "\n")
    sign(folders[1])
    answer = fkl("figure", "pof_mkl/1")
    broken = folders[1].relative_to(tmp_path)
    assert answer.code == 0 and f"{broken}: pof_mkl/1 cannot be made with it (TypeErr" in answer.err
    curves = pd.read_csv("outputs/figures/pof_mkl/figure1.csv")
    assert {name for name in curves["curve"] if "published" not in name} == {"vM-KOFL, M=51"}
    for suffix in ("png", "pdf"):
        assert Path(f"outputs/figures/pof_mkl/figure1.{suffix}").stat().st_size
