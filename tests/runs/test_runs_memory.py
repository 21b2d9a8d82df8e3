"""Peak memory of runs in a process of their own, what limits do to them, and chunks that change nothing."""

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from broken.refusal import require_refused
from conftest import SMALL, Answer, small

from fkl.basics import memory
from fkl.cli.commands import commands
from fkl.conformance import scenario
from fkl.engines.rounds import FEW_CLIENTS, fitting, rehearse
from fkl.runs.prepare import prepare

GIB = 2**30
SHARED, ALONE = ("pof_mkl", "vm_kofl", "em_kofl", "pooled_raker"), ("raker", "omkl_gf")
ON_A_GRAPH = ("dkla", "coke", "cta")


def peak_memory(folder: Path, *arguments: str) -> int:
    """Bytes that `fkl run` needed at most."""
    report = "import resource, sys; from fkl.cli import main; main(); "
    report += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=open('peak', 'w'))"
    subprocess.run([sys.executable, "-c", report, "run", *arguments], cwd=folder, check=True, capture_output=True)
    peak = folder / "peak"
    kibibytes = int(peak.read_text())
    peak.unlink()
    return kibibytes * 1024


@pytest.mark.slow
def test_the_wec_shape_with_100_features_stays_under_one_and_a_half_gib(tmp_path: Path) -> None:
    """560 clients, d = 48, D = 100, 51 kernels, 20 replicates; rounds add only rows of records."""
    size = ("dataset=wave_farm", "dataset.rows_per_site=2800", "partition.clients_per_site=140", "partition.own=14")
    assert peak_memory(tmp_path, *size, "partition.other=2", "kernels.D=100", "out=here") < 1.5 * GIB
    assert len(pd.read_csv(tmp_path / "here" / "clients.csv")) == 20 * 560


@pytest.mark.slow
def test_20000_clients_stay_under_4_gib_and_chunks_change_nothing(tmp_path: Path) -> None:
    """Chosen chunks and all replicates at once give the same bytes."""
    size = ("dataset=synthetic", "dataset.rows=60000", "partition.clients=20000", "partition.rounds=3", "replicates=3")
    for name, chunk in {"chosen": "null", "all": "3"}.items():
        assert peak_memory(tmp_path, *size, "kernels.D=20", f"chunk={chunk}", f"out={name}") < 4 * GIB
    for table in ("rounds.csv", "clients.csv"):
        chosen = (tmp_path / "chosen" / table).read_bytes()
        assert (tmp_path / "all" / table).read_bytes() == chosen


def limited(folder: Path, limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`fkl run` in a process that may not have more address space than that."""
    start = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); "
    start += "from fkl.cli import main; main()"
    command = [sys.executable, "-c", start, "run", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_limit_on_the_process_is_told_before_it_is_reached(tmp_path: Path) -> None:
    """A refusal is not a crash: one line with both figures and the key."""
    ended = limited(tmp_path, 4 * GIB, *SMALL, "kernels.D=3000000")
    require_refused(
        Answer(ended.returncode, ended.stdout, ended.stderr),
        tmp_path,
        r"out of memory: .* at least [\d.]+ GiB, and [\d.]+ [GM]iB is free; lower kernels\.D=3000000",
    )


@pytest.mark.parametrize("command", sorted({*commands.commands} - {"list", "describe"}))
def test_no_command_begins_without_room_for_its_libraries(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    words = {"data": ["list"], "predict": ["a", "b"], "study": ["a.yaml"], "flower": ["try", "a", "b"]}
    words |= {"bound": ["a"], "replay": ["a"]}
    for kind, name in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        limits = {kind: (2 * 10**8, 2 * 10**8)}
        monkeypatch.setattr(resource, "getrlimit", lambda asked, limits=limits: limits.get(asked, (-1, -1)))
        said = (
            rf"ulimit {name}: allows 190 MiB of memory, and the libraries alone need \d+ MiB: raise it to \d+ at least"
        )
        require_refused(fkl(command, *words.get(command, [])), tmp_path, said)


@pytest.mark.parametrize("limit", [100, 300, 500, 700])
def test_a_sweep_without_room_for_its_libraries_is_refused_before_it_begins(tmp_path: Path, limit: int) -> None:
    """They end the process without a word, or hang, once they find no memory."""
    ended = limited(tmp_path, limit * 10**6, "-m", *SMALL, "seed=1,2")
    require_refused(Answer(ended.returncode, ended.stdout, ended.stderr), tmp_path, "ulimit -v: allows")


def test_what_fits_into_the_limit_runs(tmp_path: Path) -> None:
    ended = limited(tmp_path, 4 * GIB, *SMALL, "kernels.D=2000", "partition.rounds=10", "out=here")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "here" / "summary.csv").is_file()


@pytest.mark.parametrize("algo", [*SHARED, *ALONE, *ON_A_GRAPH])
def test_nothing_is_refused_that_fits(monkeypatch: pytest.MonkeyPatch, algo: str) -> None:
    """What is foreseen of many features is at most a quarter above what they take."""
    experiment = prepare(scenario(f"algo={algo}", "kernels.D=2048"))
    foreseen: list[int] = []
    monkeypatch.setattr(memory, "require_memory", lambda needed, what, keys: foreseen.append(needed))
    _, peak = rehearse(experiment)
    assert foreseen
    assert 0.1 * peak < min(foreseen) <= max(foreseen) < 1.25 * peak


def test_a_graph_of_more_agents_than_the_first_rehearsal_has_clients_is_rehearsed() -> None:
    size = ("dataset=synthetic", "dataset.rows=1200", f"partition.clients={FEW_CLIENTS + 1}", "partition.rounds=2")
    assert rehearse(prepare(scenario("algo=domkl", "topology=ring", *size)))[1] > 0


def test_fewer_replicates_run_together_where_little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is free, and one replicate at least."""
    experiment = prepare(scenario("algo=pof_mkl", "replicates=100"))
    _, peak = rehearse(experiment)
    monkeypatch.setattr(memory, "peak_bytes", lambda work: work() or peak)
    assert fitting(experiment) > 30
    monkeypatch.setattr(memory, "available_bytes", lambda: 6 * peak)
    assert fitting(experiment) == 3
    assert fitting(experiment, 2) == 2
    monkeypatch.setattr(memory, "available_bytes", lambda: peak)
    assert fitting(experiment) == 1


@pytest.mark.slow
def test_a_million_clients_stay_under_4_gib(tmp_path: Path) -> None:
    size = ("dataset=synthetic", "dataset.rows=3000000", "partition.clients=1000000", "partition.rounds=3")
    assert peak_memory(tmp_path, *size, "replicates=1", "kernels.D=20", "out=here") < 4 * GIB
    assert sum(1 for _ in (tmp_path / "here" / "clients.csv").open()) == 1_000_001


@pytest.mark.slow
def test_a_split_for_each_of_too_many_replicates_is_refused(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """Before the second is made: a million take tens of gigabytes."""
    answer = fkl("run", *small("parsimonious_federated"), "replicates=1000000", "dataset.rows=20000")
    assert answer.code == 2 and "a split for each of 1000000 replicates would take at least" in answer.err
    assert list(tmp_path.iterdir()) == []
