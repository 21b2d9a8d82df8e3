"""`fkl reproduce`: what it calls, that it goes on, and what it says in the end."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fkl.config.experiments import paper_experiments
from fkl.papers import PAPERS, reproduce


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data file is at hand."""
    monkeypatch.setenv("FKL_DATA", str(tmp_path))


def _names(paper: str) -> set[str]:
    """Experiments of a paper; those of its searches have another name."""
    return {name for name in paper_experiments(paper) if name.startswith(f"{paper}/")}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[str], list[list[str]]]]:
    """Call it with a command in fkl's place that fails where its arguments have one of these words."""

    def call(*papers: str, failing: tuple[str, ...] = (), **options: bool) -> tuple[list[str], list[list[str]]]:
        calls: list[list[str]] = []

        def begin(command: list[str]) -> SimpleNamespace:
            assert command[0].name == "fkl"
            calls.append(command[1:])
            return SimpleNamespace(pid=2 if any(word in failing for word in command[1:]) else 0)

        def wait(code: int, options: int) -> tuple[int, int, SimpleNamespace]:
            assert options == 0
            return code, code << 8, SimpleNamespace(ru_utime=1.5, ru_stime=0.5)

        monkeypatch.setattr(reproduce.subprocess, "Popen", begin)
        monkeypatch.setattr(reproduce.os, "wait4", wait)
        return reproduce.reproduce_papers(papers, **options), calls

    return call


def test_every_experiment_is_asked_for_once_and_the_page_last(called: Callable) -> None:
    """The page is what makes the tables and figures."""
    failed, calls = called(readings=True)
    assert (failed, calls[-1]) == ([], ["report"])
    sweeps = {f"+experiment={name}" for paper in PAPERS for name in _names(paper)}
    assert len(sweeps) > len(PAPERS)
    assert sorted(call[:3] for call in calls[:-1]) == sorted(["run", "-m", sweep] for sweep in sweeps)


def test_it_goes_on_past_a_failure_and_lists_it(called: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code says so; time for each sweep with its tables, for the paper, in all; progress over the whole."""
    sweep = "+experiment=coke/censored"
    failed, calls = called("coke", failing=(sweep, "report"))
    assert calls[-1] == ["report"]
    out = capsys.readouterr().out
    [first] = [call for call in calls if sweep in call]
    assert failed == [" ".join(first), "report"]
    assert out.splitlines()[-1] == f"failed: {'; '.join(failed)}"
    assert len(calls) == 14
    assert "2  coke/censored: COKE, tables 2 and 3 and all figures: COKE as stated" in out
    papers = [line.split(maxsplit=1) for line in out.partition("CPU s    paper\n")[2].splitlines()[:4]]
    assert papers[:3] == [["26", "coke"], ["2", "page"], ["28", "in total"]]
    assert papers[3][1].startswith("seconds from beginning to end, ")
    assert "== 1 of 13: fkl run -m +experiment=coke/" in out and "runs left after 0 min" in out


def test_readings_and_missing_data_are_named(
    called: Callable, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Readings are omitted unless they are asked for; data are named once before and once after."""
    sweeps = [call[2] for call in called("coke", "pof_mkl")[1][:-1]]
    out = capsys.readouterr().out
    left_out = out.partition("omitted: ")[2].splitlines()[0].partition("to run them: ")[2].split(", ")
    assert left_out == ["coke/bandwidth", "coke/bandwidth_rows", "pof_mkl/switches"]
    all_of_them = _names("coke") | _names("pof_mkl")
    assert sorted(sweeps) == sorted(f"+experiment={name}" for name in all_of_them - {*left_out})
    assert out.count("missing: coke: twitter_large: its samples are not among the published files") == 2
    assert out.count("missing: pof_mkl: naval: fkl data fetch naval, or put data.txt into ") == 2
    assert str(tmp_path) in out
