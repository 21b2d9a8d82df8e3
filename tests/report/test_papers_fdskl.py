"""Tables and figures of FDSKL, from runs that the tests make on numbers in phishing's layout."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from broken.runs import sign

from fkl.algorithms.vertical.sums import STRUCTURES
from fkl.papers import our_runs as found
from fkl.papers.cells import COLUMNS, published
from fkl.papers.fdskl import COMPUTE, WITH_LINKS, claims
from fkl.papers.fdskl.chosen import answering
from fkl.papers.fdskl.errors import refusal, statement
from fkl.runs.finished_runs import collect
from fkl.statistics.intervals import student_interval

ROWS, FEATURES = 1400, 68
"""Enough for the recorded batches."""
SWEEPS = (
    ("algo=fdskl,dsg", "+fdskl/kernel=phishing"),
    ("algo=libsvm,pp_svmv", "+fdskl/svm=phishing"),
    ("algo=fd_svrg", "+fdskl/linear=phishing"),
    ("algo=secureboost", "+fdskl/trees=phishing"),
    ("algo=fdskl", "+fdskl/described=phishing"),
    ("algo=fdskl", "+fdskl/bank=phishing"),
    ("algo=vertical_nystroem", "+fdskl/nystroem=phishing"),
    ("algo=libsvm,pp_svmv", "+fdskl/svm=phishing", "++partition.test_share=0.5"),
    ("algo=pp_svmv", "+fdskl/svm=phishing", "++partition.test_share=0.8"),
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines may have other numbers of samples than the experiments have on phishing."""
    monkeypatch.setattr(found, "FREE", (*found.FREE, "partition.test_share"))


@pytest.fixture(scope="module")
def finished(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All systems, on random rows."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "files").mkdir()
    random = np.random.default_rng(0)
    x = random.random((ROWS, FEATURES)) < 0.4
    y = x[:, :5].sum(axis=1) + 0.5 * random.standard_normal(ROWS) > 2
    lines = [
        f"{int(label)} " + " ".join(f"{feature + 1}:1" for feature in np.flatnonzero(row))
        for label, row in zip(y, x, strict=True)
    ]
    (folder / "files" / "phishing").write_text("\n".join(lines) + "\n")
    return sweeping(folder, *(("replicates=2", *sweep) for sweep in SWEEPS))


def read(number: str) -> pd.DataFrame:
    """A table as it was written."""
    return pd.read_csv(f"outputs/tables/fdskl/table{number}.csv", keep_default_na=False, na_values={"ours": [""]})


def of(module: str, *words: str) -> list[Path]:
    """Folders of the runs of a system whose configuration has these words."""
    folders = sorted(Path("outputs/runs").glob(f"phishing-{module}-*"))
    return [folder for folder in folders if all(word in (folder / "config.yaml").read_text() for word in words)]


def summary(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "summary.csv")


def test_every_published_cell_appears(runs: Callable) -> None:
    """Nothing of ours where nothing was run; a bound stays a bound, without a difference."""
    assert runs("table", "fdskl/4").code == 0
    table = read("4")
    assert list(table) == COLUMNS
    cells = [(cell.dataset, cell.algorithm) for cell in published("fdskl", "4")]
    assert list(dict.fromkeys(table[["dataset", "algorithm"]].itertuples(index=False, name=None))) == cells
    elsewhere = table[table["dataset"] != "phishing"]
    assert elsewhere["ours"].isna().all()
    assert elsewhere["switch"].str.startswith("not run: no finished run on").all()
    [epsilon] = table.query("dataset == 'epsilon' and algorithm == 'SecureBoost'").to_dict("records")
    assert (epsilon["published"], epsilon["difference_percent"]) == (">900", "")


def test_training_time_is_in_minutes_without_and_with_links(runs: Callable) -> None:
    runs("table", "fdskl/4")
    table = read("4").query("dataset == 'phishing'")
    for name, module in {"FDSKL": "fdskl", "SecureBoost": "secureboost"}.items():
        [folder] = of(module, "fold: null", *["bank: null", "rows: shuffled"] * (module == "fdskl"))
        seconds = summary(folder)
        mine = table[(table["algorithm"] == name) & ~table["switch"].str.contains("iid")]
        for words, expected in {
            COMPUTE + ";": seconds["runtime_s"],
            WITH_LINKS + ";": seconds["runtime_s"] + seconds["communication_s"],
        }.items():
            [cell] = mine[mine["switch"].str.startswith(words)].to_dict("records")
            assert float(cell["ours"]) == pytest.approx(expected.mean() / 60, rel=1e-4)
            assert int(cell["n"]) == 2
    readings = table.query("algorithm == 'FDSKL'")["reading"].tolist()
    assert readings == 2 * ["preview, as stated"] + 2 * ["preview, as published"]


def test_errors_stand_beside_those_of_libsvm_on_the_same_splits(runs: Callable) -> None:
    assert runs("table", "fdskl/errors").code == 0
    table = read("errors")
    twice = ["LIBSVM", "LIBSVM", "PP-SVMV", "PP-SVMV"]
    once = ["FD-SVRG", "SecureBoost", "FDSKL, as stated", "FDSKL, bank", "Nystroem"]
    assert list(table["system"]) == ["FDSKL", "DSG", *twice, *once]
    assert set(table["training_samples"]) == {1050, 700}, "280 are for Figure 5 alone"
    errors = {
        name: 100 * summary(of(name, "fold: null", "0.25", *more)[0])["test_error"]
        for name, more in {"fdskl": ("bank: null", "rows: shuffled"), "libsvm": ()}.items()
    }
    mine = table.iloc[0]
    assert float(mine["test_error_percent"]) == pytest.approx(errors["fdskl"].mean(), rel=1e-4)
    assert float(mine["sd_points"]) == pytest.approx(errors["fdskl"].std(ddof=1), rel=1e-4)
    apart = (errors["fdskl"] - errors["libsvm"]).mean()
    assert float(mine["above_libsvm_points"]) == pytest.approx(apart, abs=1e-4)
    percent = 100 * apart / errors["libsvm"].mean()
    assert float(mine["above_libsvm_percent"]) == pytest.approx(percent, abs=0.01)
    low, high = (float(end) for end in mine["interval_95_percent"].split(" to "))
    assert low <= percent <= high
    assert mine["statement"] == statement(percent, low, high)
    assert (table.loc[table["system"] == "LIBSVM", "statement"] == "").all()
    merged = table[table["system"] == "PP-SVMV"]
    assert (merged["libsvm_samples"].str.replace(",", "").astype(int) == merged["training_samples"]).all()
    assert merged["above_libsvm_points"].astype(float).abs().max() < 0.3, "the same machine"


def test_scalars_are_those_of_the_ledger_and_stand_beside_fdskl_s(runs: Callable) -> None:
    runs("table", "fdskl/errors")
    table = read("errors").query("training_samples == 1050").set_index("system")
    sent = {
        name: summary(of(name, "fold: null", "0.25", *more)[0])["link_scalars"].mean()
        for name, more in {"fdskl": ("bank: null", "rows: shuffled"), "nystroem": ()}.items()
    }
    for system, name in {"FDSKL": "fdskl", "Nystroem": "nystroem"}.items():
        assert float(table.loc[system, "scalars_sent"]) == pytest.approx(sent[name], rel=1e-4)
        ratio = float(table.loc[system, "scalars_to_fdskl"])
        assert ratio == pytest.approx(sent[name] / sent["fdskl"], rel=1e-3)
    assert float(table.loc["FDSKL, bank", "scalars_to_fdskl"]) < 1


def test_intervals_are_student_s() -> None:
    """Of 3 values 4.30 standard errors, of 10 2.26; none of one."""
    values = np.array([1.0, 2.0, 6.0])
    low, high = student_interval(values)
    assert (low + high) / 2 == pytest.approx(3)
    assert (high - low) / 2 == pytest.approx(4.3027 * values.std(ddof=1) / np.sqrt(3), rel=1e-4)
    low, high = student_interval(np.arange(10.0))
    assert (high - low) / 2 == pytest.approx(2.2622 * np.arange(10).std(ddof=1) / np.sqrt(10), rel=1e-4)
    assert np.isnan(student_interval(np.ones(1))).all()


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-9.0, 9.9, "level with LIBSVM, within 10 %"),
        (2.0, 9.9, "level with LIBSVM, within 10 %"),
        (10.1, 40.0, "more than 10 % above LIBSVM"),
        (-40.0, -10.1, "more than 10 % below LIBSVM"),
        (1.0, 40.0, "above LIBSVM, and whether within 10 % is open"),
        (-40.0, -1.0, "below LIBSVM, and whether within 10 % is open"),
        (-1.0, 40.0, "not significantly different from LIBSVM, and whether within 10 % is open"),
        (np.nan, np.nan, "+5 % of LIBSVM's error, no interval"),
    ],
)
def test_verdicts_need_the_whole_interval(low: float, high: float, words: str) -> None:
    assert statement(5.0, low, high) == words


def test_fdskl_errs_as_dsg_does(runs: Callable) -> None:
    [one], [other] = of("fdskl", "bank: null", "rows: shuffled"), of("dsg")
    assert (summary(one)["test_error"] - summary(other)["test_error"]).abs().max() < 2 / 350


@pytest.mark.parametrize(
    ("mine", "other"),
    [("fold: null", "fold: 0"), ("unit_box", "none"), ("batch: ", "batch: 1"), ("smallest: ", "smallest: 1")],
)
def test_a_run_off_the_protocol_is_no_answer(runs: Callable, mine: str, other: str) -> None:
    [folder] = of("fdskl", "bank: null", "rows: shuffled")
    text = (folder / "config.yaml").read_text()
    assert mine in text
    (folder / "config.yaml").write_text(text.replace(mine, other, 1))
    sign(folder)
    assert runs("table", "fdskl/errors").err == ""
    assert "FDSKL" not in set(read("errors")["system"])


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("number", "curves"),
    [
        ("3", {"FDSKL", "DSG"}),
        ("4", set(STRUCTURES)),
        ("5", {"PP-SVMV, compute", "FDSKL, compute and links"}),
        ("6", {"FDSKL", "SecureBoost", "FD-SVRG"}),
    ],
)
def test_figures_are_drawn(runs: Callable, number: str, curves: set[str]) -> None:
    assert runs("figure", f"fdskl/{number}").code == 0
    assert matplotlib.image.imread(f"outputs/figures/fdskl/figure{number}.png").std() > 0.01
    drawn = pd.read_csv(f"outputs/figures/fdskl/figure{number}.csv")
    assert curves <= set(drawn["curve"])


def test_a_figure_says_which_data_set_and_which_samples_it_lacks(runs: Callable) -> None:
    """In the caption: LIBSVM and PP-SVMV learned from fewer samples if their run on all is gone."""
    by_key = {key: one.run for key, one in answering(collect(Path("outputs")).runs).items()}
    assert "part of the training samples" not in claims.fastest(by_key)
    fewer = {key: run for key, run in by_key.items() if key[1] not in ("LIBSVM", "PP-SVMV") or key[2] != 0.25}
    assert (
        "LIBSVM and PP-SVMV learned from a part of the training samples of phishing (700 of 1,050)"
        in claims.fastest(fewer)
    )
    as_cod_rna = {("cod_rna", *key[1:]): run for key, run in by_key.items()}
    assert "cod_rna is here instead of the paper's gisette" in claims.lowest_sum(as_cod_rna)


def test_pp_svmv_refuses_with_the_size() -> None:
    assert refusal(20_000) is None
    assert "45000 x 45000 samples takes 15.1 GiB" in str(refusal(45_000))


def test_nothing_was_run(fkl: Callable) -> None:
    for kind, number in (("table", "errors"), ("table", "4"), ("figure", "3")):
        answer = fkl(kind, f"fdskl/{number}")
        assert answer.code == 2
        assert "no finished run belongs to it; first fkl run -m +experiment=fdskl" in answer.err


def test_each_run_alone_gives_what_it_can(each_alone: Callable) -> None:
    """As after a sweep that was interrupted."""
    each_alone("fdskl")
