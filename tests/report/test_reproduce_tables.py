"""`make reproduce-tables`: what it calls, that it goes on, and what it says in the end."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from fkl import conf_folder
from fkl.errors import FklError
from fkl.papers import PAPERS

FILE = Path(__file__).parents[2] / "scripts" / "reproduce_tables.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, where no data file is at hand."""
    monkeypatch.setenv("FKL_DATA", str(tmp_path))
    spec = importlib.util.spec_from_file_location("reproduce_tables", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def called(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[list[str]]]]:
    """Call it with a command in fkl's place that fails where its arguments have one of these words."""

    def call(*arguments: str, failing: tuple[str, ...] = ()) -> tuple[int, list[list[str]]]:
        calls: list[list[str]] = []

        def run(command: list[str], check: bool) -> SimpleNamespace:
            assert command[0].name == "fkl" and not check
            calls.append(command[1:])
            return SimpleNamespace(returncode=2 if any(word in failing for word in command[1:]) else 0)

        monkeypatch.setattr(script.subprocess, "run", run)
        return script.main(*arguments), calls

    return call


def test_every_experiment_is_asked_for_once_and_the_page_last(called: Callable) -> None:
    """The page is what makes the tables and figures."""
    code, calls = called()
    assert (code, calls[-1]) == (0, ["report"])
    sweeps = [
        f"+experiment={paper}/{file.stem}"
        for paper in PAPERS
        for file in sorted((conf_folder() / "experiment" / paper).glob("*.yaml"))
    ]
    assert len(sweeps) > len(PAPERS)
    assert [call[:3] for call in calls[:-1]] == [["run", "-m", sweep] for sweep in sweeps]


def test_it_goes_on_past_a_failure_and_lists_it(called: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code says so; time for each command, for the paper, and in all; progress over the whole."""
    whole = called("coke")[1]
    sweep = "+experiment=coke/censored"
    code, calls = called("coke", failing=(sweep, "report"))
    assert (code, calls) == (1, whole)
    out = capsys.readouterr().out
    [first] = [call for call in calls if sweep in call]
    assert out.splitlines()[-1] == f"failed: {' '.join(first)}; report"
    assert "0  coke/censored: COKE, all tables and figures: COKE, with the switches" in out
    listed = [line.split(maxsplit=1) for line in out.partition("failed: nothing")[2].splitlines() if line.strip()]
    assert [words[1] for words in listed if words[0] == "0"][-3:] == ["coke", "page", "in all"]
    assert f"== 1 of {len(calls)}: fkl {' '.join(calls[0])}" in out
    assert "runs left, about" in out


def test_fail_fast_ends_at_the_first_failure(called: Callable) -> None:
    """And sweeps are told, so that they do too."""
    code, calls = called("--fail-fast", "coke", failing=("+experiment=coke/censored",))
    assert (code, calls[-1][2]) == (1, "+experiment=coke/censored")
    assert all("--fail-fast" in call for call in calls)


def test_missing_data_are_named_with_how_to_get_them(
    called: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Once before and once after."""
    called("pof_mkl", "coke")
    out = capsys.readouterr().out
    assert out.count("missing: coke: twitter_large: its samples are not among the published files") == 2
    assert out.count("missing: pof_mkl: naval: fkl data fetch naval, or put data.txt into ") == 2
    assert str(tmp_path) in out


def test_an_unknown_paper_is_refused_before_anything_is_run(script: ModuleType) -> None:
    """With the ones there are."""
    with pytest.raises(FklError, match="paper=cook: must be one of pof_mkl, graph_omkl, coke"):
        script.main("cook")
