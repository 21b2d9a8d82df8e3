"""`fkl replay` plays a run again from what it left behind, and finds a cell that is not what the run wrote."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import SMALL

from fkl.basics.files import sha256_of

RUN = ("run", *SMALL, "partition.rounds=20", "figures=none", "-q")


@pytest.fixture
def run(fkl):
    assert fkl(*RUN).code == 0
    [folder] = Path("outputs/runs").iterdir()
    return folder


def falsify(folder, name, row, column, value):
    """Change one cell of a table, and the checksum that would tell of it."""
    file = folder / name
    lines = [line.split(",") for line in file.read_text().splitlines()]
    lines[row][lines[0].index(column)] = value
    file.write_text("".join(f"{','.join(line)}\n" for line in lines))
    told = json.loads((folder / "provenance.json").read_text())
    told["files"][name] = sha256_of(file)
    (folder / "provenance.json").write_text(json.dumps(told))


def test_a_run_comes_out_again_by_digest_and_by_folder(fkl, run) -> None:
    """Nothing but the line is left behind."""
    for which in (run.name.rpartition("-")[2], str(run)):
        answer = fkl("replay", which)
        assert answer.code == 0
        assert answer.out.startswith(f"✓ same digits in {run.name}: all of rounds.csv, clients.csv, summary.csv ")
        assert answer.out.endswith("code, data and versions are those of the run\n")
        assert answer.out.count("\n") == 1
    assert [path.name for path in Path("outputs").iterdir()] == ["runs"]
    assert [path.name for path in Path("outputs/runs").iterdir()] == [run.name]


def test_a_falsified_cell_is_found(fkl, run) -> None:
    """Also where the checksum was made to fit, or was not."""
    before = (run / "provenance.json").read_text()
    for name, row, column in (("rounds.csv", 7, "mse"), ("clients.csv", 2, "rounds"), ("summary.csv", 1, "r2")):
        table = (run / name).read_text()
        falsify(run, name, row, column, "0.125")
        for _ in range(2):
            answer = fkl("replay", str(run))
            assert answer.code == 1
            assert answer.out.startswith(f"✗ other digits in {run.name}: {column} of {name} (replicate 0")
            assert ") is 0.125, " in answer.out
            (run / "provenance.json").write_text(before)
        (run / name).write_text(table)


def test_what_differs_around_a_run_is_named(fkl, run) -> None:
    file = run / "provenance.json"
    told = json.loads(file.read_text())
    told["packages"]["numpy"], told["code"], told["commit"], told["digest"] = "0.1", "other", "c0ffee", "other"
    file.write_text(json.dumps(told))
    out = fkl("replay", str(run)).out
    assert "what differs: code (c0ffee then, " in out
    assert "numpy (0.1 then, " in out
    assert "data" not in out.partition("what differs")[2]
    del told["code"], told["data"]
    file.write_text(json.dumps(told))
    assert fkl("replay", str(run)).out.endswith("; the run did not record code, data\n")


def test_what_cannot_be_played_is_refused(fkl, run) -> None:
    assert "no run in outputs/runs has this digest" in fkl("replay", "0" * 12).err
    assert fkl("replay", "nowhere").err == "error: nowhere: not a folder\n"
    shutil.copytree(run, "copy")
    with Path("copy/config.yaml").open("a") as stream:
        stream.write("seed: 7\n")
    answer = fkl("replay", "copy")
    assert (answer.code, answer.err) == (2, "error: copy: config.yaml has changed since the run ended\n")


def test_an_engine_that_has_gone_is_one_line(fkl, run) -> None:
    """In a run that an earlier version saved, and on a command line; so is a logger, without which a run replays."""
    config, file = run / "config.yaml", run / "provenance.json"
    config.write_text(config.read_text().replace("engine: numba", "engine: disk"))
    told = json.loads(file.read_text())
    told["files"]["config.yaml"] = sha256_of(config)
    file.write_text(json.dumps(told))
    for *words, gone in (("replay", str(run), "engine=disk"), (*RUN, "engine=disk"), (*RUN, "logger=trackio")):
        answer = fkl(*words, *((gone,) if words[0] == "run" else ()))
        assert (answer.code, answer.err.count("\n")) == (2, 1)
        assert f"{gone}: has gone; " in answer.err
