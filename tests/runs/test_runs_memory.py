"""Peak memory of runs in a process of their own, what does not fit, what limits do, and chunks that change nothing."""

import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import require_refused
from conftest import SMALL, Answer, small

from fkl.basics import memory
from fkl.conformance import quick_run
from fkl.engines.rounds import fitting_chunk, rehearse_round
from fkl.runs.prepare import prepare_run

GIB, MOST = 2**30, 10**9
FREE = r"at least [\d.e+]+ (MiB|GiB|TiB), and [\d.]+ (MiB|GiB) is free; lower "
SKEWED = ("dataset=synthetic", "dataset.rows=200000", "dataset.dimension=1", "dataset.centres=1")
SKEWED += ("partition=quantity_skew", "partition.alpha=0.001", "partition.clients=100", "partition.rounds=180000")
MANY = ("algo=coke", "partition=agents", "dataset=synthetic", "dataset.rows=20000", "partition.clients=20000")
MORE = "dataset.rows=12000"
TOO_LARGE: list[tuple[int, tuple[str, ...], str]] = [
    # Bytes that there are said to be, words, and the keys to lower
    (GIB // 2, (*small("pof_mkl"), "kernels.D=4000000"), "kernels.D=4000000"),
    (GIB // 2, (*small("coke"), "kernels.D=4000000"), "kernels.D=4000000"),
    (GIB, (*small("pof_mkl"), "kernels.D=5000000", "kernels.draw=orthogonal", "kernels.N=5"), "kernels.D=5000000"),
    (GIB // 2, (*small("pof_mkl"), "kernels.N=10000", "kernels.D=1000"), "kernels.N=10000"),
    (GIB, (*small("pof_mkl"), "replicates=1000000", "chunk=1000000"), "chunk=1000000"),
    (GIB, (*small("coke"), f"algo.iterations={MOST}"), "algo.iterations"),
    (4 * GIB, ("dataset=wave_farm", "dataset.rows_per_site=10000000"), "dataset.rows_per_site"),
    (GIB // 8, ("dataset=synthetic", "dataset.rows=2000", "dataset.centres=10000"), "dataset.centres"),
    (6 * GIB, ("dataset=synthetic", "dataset.rows=50000000", "dataset.sites=50000000"), "dataset.sites"),
    (GIB // 4, SKEWED, "clients"),
    (4 * GIB, (*MANY, "partition.rounds=1", "topology=complete"), "partition.clients"),
    (4 * GIB, (*MANY, "partition.rounds=1", "topology=erdos_renyi", "topology.p=0.5"), "topology.p"),
    (GIB, (*small("omkl_gf"), "algo.J=10000", "algo.M=10000"), "algo.M=10000 or algo.J=10000"),
    (GIB, (*small("fdskl"), "algo.features=100000000"), "algo.features"),
    (4 * GIB, (*small("fd_svrg"), f"algo.inner={MOST}", "algo.batch=50"), "algo.inner or algo.batch"),
    (GIB // 8, (*small("libsvm"), MORE, "algo.cache_mib=1000000"), "algo.cache_mib=1e+06"),
    (GIB // 4, (*small("pp_svmv"), MORE), "the number of samples"),
    (GIB, (*small("vertical_nystroem"), MORE, "algo.landmarks=9000"), "algo.landmarks"),
    (GIB // 32, (*small("perfedavg"), "algo.neurons=3000", "algo.parameters=10000000"), "algo.parameters=10000000"),
]


@pytest.mark.parametrize("case", TOO_LARGE, ids=[f"{case[1][0]} {case[2]}" for case in TOO_LARGE])
def test_what_does_not_fit_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[int, tuple[str, ...], str]
) -> None:
    free, words, keys = case
    monkeypatch.setattr(memory, "available_bytes", lambda: free)
    require_refused(fkl("run", *words), tmp_path, rf"out of memory: .* is free.*; lower .*{re.escape(keys)}", words)


def limited(folder: Path, limit: int, *arguments: str) -> Answer:
    """`fkl run` in a process that may not have more address space than that."""
    start = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); "
    start += "from fkl.cli import main; main()"
    command = [sys.executable, "-c", start, "run", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return Answer(ended.returncode, ended.stdout, ended.stderr)


def test_a_limit_on_the_process_is_told_before_it_is_reached(tmp_path: Path) -> None:
    """A refusal is not a crash: one line with both figures and the key; what fits runs."""
    answer = limited(tmp_path, 4 * GIB, *SMALL, "kernels.D=3000000")
    require_refused(answer, tmp_path, r"out of memory: .*" + FREE + r"kernels\.D=3000000")
    assert limited(tmp_path, 4 * GIB, *SMALL, "kernels.D=2000", "partition.rounds=10").code == 0


def test_no_sweep_begins_without_room_for_its_libraries(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end the process without a word, or hang, once they find no memory."""
    require_refused(limited(tmp_path, 5 * 10**8, "-m", *SMALL, "seed=1,2"), tmp_path, "ulimit -v: allows")
    for kind, name in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        limits = {kind: (2 * 10**8, 2 * 10**8)}
        monkeypatch.setattr(resource, "getrlimit", lambda asked, limits=limits: limits.get(asked, (-1, -1)))
        said = (
            rf"ulimit {name}: allows 190 MiB of memory, and the libraries alone need \d+ MiB: raise it to at least \d+"
        )
        for words in (("run",), ("data", "list"), ("study", "a.yaml"), ("predict", "a", "b"), ("compare",)):
            require_refused(fkl(*words), tmp_path, said)


@pytest.mark.parametrize("algo", ["pof_mkl", "omkl_gf", "coke"])
def test_nothing_is_refused_that_fits(monkeypatch: pytest.MonkeyPatch, algo: str) -> None:
    """What is foreseen of many features is at most a quarter above what they take."""
    experiment = prepare_run(quick_run(f"algo={algo}", "kernels.D=2048"))
    foreseen: list[int] = []
    monkeypatch.setattr(memory, "require_memory", lambda needed, what, keys: foreseen.append(needed))
    _, peak = rehearse_round(experiment)
    assert foreseen
    assert 0.1 * peak < min(foreseen) <= max(foreseen) < 1.25 * peak


def test_fewer_replicates_run_together_where_little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is free, and one replicate at least."""
    experiment = prepare_run(quick_run("algo=pof_mkl", "replicates=100"))
    _, peak = rehearse_round(experiment)
    monkeypatch.setattr(memory, "peak_bytes", lambda work: work() or peak)
    assert fitting_chunk(experiment) > 30
    monkeypatch.setattr(memory, "available_bytes", lambda: 6 * peak)
    assert (fitting_chunk(experiment), fitting_chunk(experiment, 2)) == (3, 2)
    monkeypatch.setattr(memory, "available_bytes", lambda: peak)
    assert fitting_chunk(experiment) == 1
