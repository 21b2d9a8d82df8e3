"""engine=mpi: on one rank or several, the bytes of every table are those of one process without it, but for times."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import ALGORITHMS, LOCAL_TRAINING

from fkl.basics.errors import BadValue
from fkl.config import load
from fkl.config.compose import compose
from fkl.results.folder import provenance
from fkl.results.tables import TIMING_COLUMNS
from fkl.runs.execute import execute

pytest.importorskip("mpi4py", reason="needs the extra mpi")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
WITH_MPI = pytest.mark.skipif(not MPIEXEC.exists(), reason="needs the mpiexec of the extra mpi")
STAR = ("em_kofl", "fed_poe", "fomd_oms", "nco_oms", "ofmkl_avg", "ofskl", "perfedavg", "pof_mkl", "rf_gp", "vm_kofl")
STAR += tuple(LOCAL_TRAINING)
"""Methods that ranks can play."""
SMALL = ("dataset=synthetic", "dataset.rows=9000", "partition=quantity_skew", "partition.rounds=8", "kernels.D=6")
SMALL += ("partition.clients=700", "partition.alpha=5", "replicates=2")
"""Three tiles of clients, most of whom are gone before the end."""
LATENCY = ("network.latency_s=0.01", "network.bandwidth_bytes_per_s=1e6")
CASES: dict[str, tuple[str, ...]] = {algo: (f"algo={algo}", *SMALL) for algo in STAR}
for algo in LOCAL_TRAINING:
    CASES[algo] += ("kernels.N=3", "participation=share", "save_model=true")
CASES["ofskl"] += ("kernels=rbf_single", "kernels.D=6")
CASES["pof_mkl-steps"] = ("algo=pof_mkl", *SMALL, "algo.local_steps=3", "algo.xi=0.5", "precision=float64", *LATENCY)
CASES["perfedavg-steps"] = ("algo=perfedavg", *SMALL, "algo.local_steps=2")
CASES["fed_poe-drawn-once"] = ("algo=fed_poe", *SMALL, "kernels.shared=true", "kernels.map=cosine")
CASES["em_kofl-sum"] = (*CASES["em_kofl"], "algo.losses=sum", "save_model=true")
GAUSSIAN = ("algo=rf_gp", *SMALL, "kernels.N=3", "save_model=true")
CASES["rf_gp"] = GAUSSIAN
CASES["rf_gp-kept"] = (*GAUSSIAN, "algo.flush=null", "algo.M=2", "algo.personal=true", "participation=share")
CASES["rf_gp-each-third"] = (*GAUSSIAN, "algo.flush=3", "algo.forget=0.9", "compression=uniform")
FEW = ("participation=share", "participation.share=0.3", "save_model=true")
CASES["pof_mkl-few"] = ("algo=pof_mkl", *SMALL, *FEW, "privacy=central", "privacy.clip=0.5", "privacy.noise=1")
CASES["fed_poe-few"] = ("algo=fed_poe", *SMALL, *FEW, "privacy=local", "privacy.clip=1", "privacy.noise=0.1")
CASES["nco_oms-few"] = ("algo=nco_oms", *SMALL, "participation=markov", "save_model=true")
CASES["vm_kofl-bits"] = ("algo=vm_kofl", *SMALL, "compression=uniform", "compression.down=true", "save_model=true")
CASES["em_kofl-top"] = ("algo=em_kofl", *SMALL, "compression=top_k", "save_model=true")
CASES["perfedavg-sign"] = ("algo=perfedavg", *SMALL, "compression=sign", "participation=share", "save_model=true")
CASES["ofmkl_avg-late"] = ("algo=ofmkl_avg", *SMALL[:2], "partition=iid", *SMALL[3:6], "late=labels", "late.rounds=2")
CASES["pof_mkl-labels"] = ("algo=pof_mkl", *SMALL, "attack=label_flip", "attack.share=0.002", "save_model=true")
CASES["perfedavg-noise"] = ("algo=perfedavg", *SMALL, "attack=noise", "attack.from_round=3", "compression=uniform")
CASES["one-tile"] = ("algo=pof_mkl", *SMALL, "partition.clients=4")
EXCHANGED = {
    f"{K}x{T}": ("algo=pof_mkl", *SMALL, f"partition.clients={K}", f"partition.rounds={T}")
    for K in (600, 700)
    for T in (8, 10)
}
"""Runs that tell what a round exchanges."""
TIMEOUT_S = 600
PROGRAM = str(Path(__file__).with_name("play_together.py"))


def run_on(ranks: int, *words: str, folder: Path) -> subprocess.Popen[str]:
    """Begin a program on so many ranks, each with one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def ended(ranks: int, *words: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of a program on so many ranks."""
    process = run_on(ranks, *words, folder=folder)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


def fkl(*words: str) -> tuple[str, ...]:
    """`fkl run` with these words."""
    return ("-m", "fkl", "run", "engine=mpi", *words)


def tables(folder: Path) -> dict[str, Any]:
    """The three CSVs without the columns of time, and the bytes of the model, where there is one."""
    read = {name: pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("rounds", "clients", "summary")}
    told = {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in read.items()}
    return told | {file.name: file.read_bytes() for file in folder.glob("model.npz")}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders numba/CASE of one process, 1/CASE, 2/CASE and 3/CASE of as many ranks, CLIENTSxROUNDS of two."""
    folder = tmp_path_factory.mktemp("ranks")

    def words(engine: str, where: str) -> Sequence[tuple[str, ...]]:
        return [(*case, f"engine={engine}", f"out={folder / where / name}") for name, case in CASES.items()]

    for case in words("numba", "numba"):
        execute(load(compose(*case)))
    alike = [(*case, "engine=mpi", f"out={folder / name}") for name, case in EXCHANGED.items()]
    played = [((0, 1), [*words("mpi", "2"), *alike]), ((2,), words("mpi", "1")), ((0, 1, 2), words("mpi", "3"))]
    (folder / "words.json").write_text(json.dumps(played))
    code, _, err = ended(3, PROGRAM, str(folder / "words.json"), folder=folder)
    assert code == 0, err
    return folder


@WITH_MPI
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_ranks_come_to_the_bytes_of_one_process(case: str, ranks: int, played: Path) -> None:
    """Every table but for times, whatever the method sends up and down; and every rank that had clients is told of."""
    assert tables(played / str(ranks) / case) == tables(played / "numba" / case)
    assert (played / str(ranks) / case / "model.npz").exists() == ("save_model=true" in CASES[case])
    told, alone = (provenance(played / where / case) for where in (str(ranks), "numba"))
    assert told["ranks"] == (1 if case == "one-tile" else ranks)
    assert told["scalars_by_kind"] == alone["scalars_by_kind"]


@pytest.mark.parametrize("algo", sorted(set(ALGORITHMS) - {*STAR}))
def test_what_ranks_cannot_play_is_refused(algo: str) -> None:
    """In one line that names the engine and the method."""
    run = load(compose(f"algo={algo}"))
    with pytest.raises(BadValue, match=rf"^engine=mpi: must be numba( or numpy)?( or jax)? for {run.algo.label}"):
        load(compose(f"algo={algo}", "engine=mpi"))


REFUSED = [
    (("secure=pairwise",), "knows no secure"),
    (("aggregate=median",), "knows no aggregate"),
    (("attack=alie",), "knows no attack"),
    (("late=updates", "participation=share"), "knows no late"),
    (("network.compute_s=1",), "knows no network.compute_s"),
    (("algo=rf_gp", "algo.rank=2"), "for RF-GP: its server asks for more than means"),
]


@pytest.mark.parametrize(("words", "named"), REFUSED)
def test_what_ranks_cannot_play_of_a_run_is_refused(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(BadValue, match=r"^engine=mpi: must be numba or numpy( or jax)? for .*") as refused:
        load(compose("algo=pof_mkl", "engine=mpi", *words))
    assert named in str(refused.value)


REFUSAL = "error: engine=mpi: must be numba or numpy or jax"


@WITH_MPI
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("algo=coke",), f"{REFUSAL} for COKE: its agents speak to neighbours, not to a server\n"),
        (("algo=pof_mkl", "algo.M=0"), "error: algo.M=0: must be an integer from 1 to kernels.N\n"),
        (("-m", "algo=pof_mkl"), "error: engine=mpi: one run at a time, without -m\n"),
    ],
)
def test_all_ranks_together_say_one_line(words: tuple[str, ...], line: str, tmp_path: Path) -> None:
    assert ended(2, *fkl(*words), folder=tmp_path) == (2, "", line)


LONG = ("algo=pof_mkl", *SMALL, "kernels.D=50", "partition.rounds=60", "dataset.rows=30000", "chunk=1")
KILLED = (1, 0)
"""Ranks, the first before the second."""


@WITH_MPI
@pytest.mark.slow
def test_a_rank_that_is_killed_ends_all_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """From the last round that both have kept, to the bytes of a run that nobody disturbed."""
    kept = tmp_path / ".killed.partial" / "checkpoints"
    execute(load(compose(*LONG, f"out={tmp_path / 'whole'}")))
    words = [(*LONG, "engine=mpi", "checkpoint_s=0", f"out={tmp_path / 'killed'}")]
    (tmp_path / "words.json").write_text(json.dumps([((0, 1), words)]))
    for number in KILLED:
        before = {file.name: file.stat().st_mtime_ns for file in kept.glob("*of*")}
        process = run_on(2, PROGRAM, str(tmp_path / "words.json"), folder=tmp_path)
        while process.poll() is None and not _all_newer(kept, before):
            time.sleep(0.005)
        os.kill(int((tmp_path / f"pid.{number}").read_text()), signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode != 0, "the run ended before it could be killed: make it longer"
        assert not (tmp_path / "killed").exists()
        assert sorted(file.name for file in kept.glob("*of2.?")) == ["1of2.a", "1of2.b", "2of2.a", "2of2.b"]
    rounds = _rounds_played(tmp_path)
    assert 0 < rounds < 2 * 60
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
    assert not (tmp_path / "killed" / "checkpoints").exists()


def _all_newer(folder: Path, before: dict[str, int]) -> bool:
    """Whether both files of both ranks have been written since."""
    now = {file.name: file.stat().st_mtime_ns for file in folder.glob("*of2.?")}
    return len(now) == 4 and all(now[name] > before.get(name, 0) for name in now)


def _rounds_played(folder: Path) -> int:
    """Finish the run, and tell how many rounds that took."""
    code, _, err = ended(2, PROGRAM, str(folder / "words.json"), folder=folder)
    assert code == 0, err
    return int((folder / "rounds.0").read_text())


ALONE = """
from fkl.engines.mpi import ending_together, hush, started
hush()
from fkl.basics.errors import FklError
ranks = started()
with ending_together(ranks):
    if ranks.number == 1:
        raise FklError("no room on the disk")
    ranks.say()
    ranks.all_say("here")
"""


@WITH_MPI
def test_a_rank_that_fails_alone_ends_all_with_its_line(tmp_path: Path) -> None:
    code, out, err = ended(2, "-c", ALONE, folder=tmp_path)
    assert code == 2
    assert out == ""
    assert [line for line in err.splitlines() if line.startswith("error")] == ["error: no room on the disk"]


@WITH_MPI
def test_what_a_round_exchanges(played: Path) -> None:
    """The sums of its gradients once, what theta is weighed with there, and three numbers a replicate of the judge."""
    R, N, P = 2, 51, 2 * 6
    for K in (600, 700):
        few, more = (provenance(played / f"{K}x{T}")["bytes_summed_over_ranks"] for T in (8, 10))
        assert more - few == 2 * 8 * (R * N * P + R * N + 3 * R)
