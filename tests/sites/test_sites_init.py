"""`fkl flower init`: the project that it writes, and what it refuses to write."""

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ALGORITHMS, LOCAL_TRAINING

pytest.importorskip("flwr", reason="needs the extra flower")
from fkl.basics.errors import BadValue, FklError, install_hint
from fkl.sites.configuration import run_of
from fkl.sites.project import write_project

GOOD = ("algo=pof_mkl", "dataset=file", "dataset.target=the target", "kernels=rbf", "replicates=1")
PLAYED = {"em_kofl", "fed_poe", "fomd_oms", "nco_oms", "ofmkl_avg", "ofskl", "perfedavg", "pof_mkl", "rf_gp", "vm_kofl"}
PLAYED |= {"dkrr_ny_cm", "falkon", "one_shot_ridge", *LOCAL_TRAINING}
"""Methods that sites can play."""


def test_a_project_is_written_and_holds_its_run(fkl: Callable, tmp_path: Path) -> None:
    told = fkl("flower", "init", "My wards", "--sites", "3", "--clients-per-site", "5", *GOOD, 'dataset.delimiter="|"')
    assert told.code == 0, told.err
    assert told.out == "My wards: POF-MKL for 3 sites; its README.md says how to start them\n"
    folder = tmp_path / "My wards"
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "sites-my-wards"
    settings = project["tool"]["flwr"]["app"]["config"]
    assert (settings["sites"], settings["clients-per-site"]) == (3, 5)
    run = run_of(project["tool"]["flwr"]["app"]["config"]["configuration"])
    assert (run.algo.label, run.dataset.target, run.dataset.delimiter) == ("POF-MKL", "the target", "|")
    for module in project["tool"]["flwr"]["app"]["components"].values():
        file = folder / f"{module.partition(':')[0].replace('.', '/')}.py"
        assert "app = " in file.read_text()
    assert "fkl flower init My wards --sites 3 --clients-per-site 5" in (folder / "README.md").read_text()


def test_a_folder_with_something_in_it_is_left_alone(fkl: Callable, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.txt").touch()
    told = fkl("flower", "init", "here", "--sites", "3", *GOOD)
    assert (told.code, told.err) == (2, "error: here: is not empty; give a new folder\n")
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("algo", sorted(set(ALGORITHMS) - PLAYED))
def test_what_sites_cannot_play_is_refused(algo: str, tmp_path: Path) -> None:
    """In one line, before anything is written."""
    with pytest.raises(FklError) as refused:
        write_project(tmp_path / "new", 3, (f"algo={algo}", *(word for word in GOOD[1:] if "kernels" not in word)))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("algo=coke", "kernels=coke"), "algo=COKE: must be a method whose clients"),
        (("replicates=20",), "replicates=20: must be 1: real sites learn once"),
        (("kernels=auto",), "kernels=AroundMedian: must be kernels with fixed bandwidths"),
        (("dataset.target=",), "dataset.target=: must be the name of the column"),
        (("dataset.missing=mean",), "dataset.missing=mean: must be refuse or drop"),
        (("dataset.test_path=t.csv",), "dataset.test_path=t.csv: must be null"),
        (("partition=iid",), "partition=Iid: must be sites"),
        (("save_model=true",), "save_model=True: must be false"),
        (("participation=share",), "participation=Share: must be null"),
        (("privacy=local", "privacy.clip=1", "privacy.noise=1"), "scaling=unit_box: must be none with privacy.noise"),
        (("late=updates",), "late=LateUpdates: must be null"),
        (("network.uplink_budget=9",), "network=Network(...): must be unchanged"),
    ],
)
def test_what_follows_from_all_rows_is_refused(words: tuple[str, ...], line: str, tmp_path: Path) -> None:
    groups = {word.partition("=")[0] for word in words}
    kept = [word for word in GOOD if word.partition("=")[0] not in groups]
    kept = [word for word in kept if not (word.startswith("dataset.") and "dataset" in groups)]
    with pytest.raises(BadValue) as refused:
        write_project(tmp_path / "new", 3, (*words, *kept))
    assert line in str(refused.value)
    assert not (tmp_path / "new").exists()


def test_without_flower_one_line_names_the_extra(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flwr", None)
    told = fkl("flower", "init", "new", "--sites", "3", *GOOD)
    assert (told.code, told.err) == (2, f"error: flower: needs flwr, which comes with {install_hint('flower')}\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--rows", "nowhere.csv"), "error: rows=nowhere.csv: must be the file of the site's rows"),
        (("--rows", "rows.csv", "--key", "rows.csv"), "error: key=rows.csv: must be given with --certificates"),
        (
            ("--rows", "rows.csv", "--certificates", "rows.csv", "--key", "rows.csv"),
            "error: rows.csv: not an OpenSSH private",
        ),
    ],
)
def test_a_site_that_cannot_join_says_why_in_a_line(
    words: tuple[str, ...], line: str, fkl: Callable, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    told = fkl("flower", "site", "127.0.0.1:1", "--number", "0", *words)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert told.err.startswith(line)


GOOD_ROWS = "a,b,y\n1,2,3\n4,5,6\n7,8,10\n"
BATCHES = ("algo=one_shot_ridge", "algo.test_on=last", "dataset=file", "dataset.target=y", "replicates=1")
BAD_ROWS = {
    "other columns": (GOOD_ROWS.replace("a", "z"), "its features are z, b, where the first site has a, b"),
    "ids": ("a,b,y\nP1,2,3\nP2,5,6\n", "line 2, column a: 'P1' is not a number"),
    "no file": (None, "must be the file of the site's rows"),
    "too few rows": ("a,b,y\n1,2,3\n4,5,6\n", "clients-per-site=3: must be at most 2, the rows of the site"),
}


@pytest.fixture
def trial(fkl: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """`fkl flower try` of a project for three sites; a process that it starts is a fault."""
    from fkl.sites import trial

    def started(*_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(trial, "Deployment", started)
    assert fkl("flower", "init", "wards", "--sites", "3", "--clients-per-site", "3", *BATCHES).code == 0
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(GOOD_ROWS)
    return lambda *words: fkl("flower", "try", "wards", *words)


@pytest.mark.parametrize("fault", BAD_ROWS)
def test_a_trial_names_the_site_whose_file_cannot_be_used(fault: str, trial: Callable, tmp_path: Path) -> None:
    """In one line, before any process is started."""
    content, said = BAD_ROWS[fault]
    bad = tmp_path / "bad.csv"
    if content is not None:
        bad.write_text(content)
    told = trial("a.csv", "b.csv", "bad.csv")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert told.err.startswith("error: site 2 (bad.csv): ") and said in told.err
    assert not (tmp_path / "tried").exists()


@pytest.mark.parametrize(
    ("files", "project", "said"),
    [
        ("a", {}, "1 file of rows is given, but wards is for 3 sites: give one file per site, in their order\n"),
        ("abca", {}, "4 files of rows are given, but wards is for 3 sites: give one file per site, in their order\n"),
        ("abc", {"sites = 3": ""}, "wards/pyproject.toml: not a file that fkl flower init wrote ("),
        ("abc", {"[": "[["}, "wards/pyproject.toml: not a file that fkl flower init wrote ("),
        ("ddd", {}, "all sites"),
    ],
)
def test_a_trial_that_cannot_begin_says_why(
    files: str, project: dict[str, str], said: str, trial: Callable, tmp_path: Path
) -> None:
    """A file for each site, a project as it was written, and rows of more than one target."""
    file = tmp_path / "wards" / "pyproject.toml"
    for old, new in project.items():
        file.write_text(file.read_text().replace(old, new))
    (tmp_path / "d.csv").write_text("a,b,y\n1,2,3\n4,5,3\n7,8,3\n")
    told = trial(*(f"{name}.csv" for name in files))
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert told.err.startswith(f"error: {said}")
