"""What cannot be is one clear line, exit code 2, and nothing left behind."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from conftest import SMALL

FDSKL = "algo=fdskl partition=vertical"
GIVEN = f"{FDSKL} partition.parties=2 partition.how=given partition.groups"
REFUSED = {
    "algo.nonsense=1": "algo.nonsense: no such key",
    "nonsense=1": "nonsense: no such key",
    "+nonsense=1": "nonsense: no such key",
    "algo=nonsense": "algo=nonsense: no such choice",
    "dataset=nonsense": "dataset=nonsense: no such choice",
    "algo.M=52": "algo.M=52: must be an integer from 1 to kernels.N=51",
    "algo.M=0": "algo.M=0: must be an integer from 1",
    "algo.M=two": "algo.M=two: must be an integer",
    "algo.M=1.5": "algo.M=1.5: must be an integer",
    "algo.xi=0": "algo.xi=0.0: must be a number > 0, at most 1",
    "algo.xi=1.01": "algo.xi=1.01: must be a number > 0, at most 1",
    "algo.eta=-1": "algo.eta=-1.0: must be a number > 0, or null",
    "algo.eta=nan": "algo.eta=nan: must be a number > 0, or null",
    "algo.lam=inf": "algo.lam=inf: must be a number >= 0",
    "algo._target_=no.such.Thing": "algo._target_=no.such.Thing: must be the import path of a class",
    "kernels.D=0": "kernels.D=0: must be an integer from 1",
    "kernels.family=cubic": "kernels.family=cubic: must be one of rbf, laplacian, polynomial",
    "kernels.smallest=-1": "kernels.smallest=-1.0: must be a number from 1e-30",
    "partition.clients=443": "partition.clients=443: must be at most 4",
    "partition.clients=5": "partition.clients=5: must be at most 4",
    "replicates=0": "replicates=0: must be an integer from 1",
    "seed=-1": "seed=-1: must be an integer >= 0",
    "precision=float16": "precision=float16: must be float32 or float64",
    "engine=torch": "engine=torch: must be one of numba, numpy, disk, jax",
    "algo=omkl_gf partition=stream engine=numpy": "engine=numpy: must be numba for OMKL-GF",
    "threads=0": "threads=0: must be an integer >= 1, or null",
    "chunk=0": "chunk=0: must be an integer >= 1, or null",
    "network.uplink_budget=0": "network.uplink_budget=0: must be a number of scalars >= 1, or null",
    "network.uplink_budget=15": "network.uplink_budget=15: POF-MKL sends 16 scalars a client in round 1",
    "network.latency_s=1": "network.latency_s=1.0: must be given together with bandwidth_bytes_per_s",
    "seed=": "seed=: must be an integer",
    "out=''": "out=: must be a folder, or null",
    "paths.cache=~no.body": "paths.cache=~no.body: must be a folder; there is no user of this name",
    "paths.outputs=/proc/none": "/proc/none/runs: cannot be written (No such file or directory)",
    "out=/proc/here": "/proc: cannot be written (No such file or directory)",
    "out=/sys/here": "/sys: cannot be written (",
    "out=/dev/null/here": "/dev/null: cannot be written (",
    "out=.": "out=.: must be a folder other than the current one",
    "out=/etc/hostname/here": "/etc/hostname: cannot be written (File exists)",
    "algo.eta=[1": "algo.eta=[1: not understood",
    "algo=fdskl partition=iid": "partition=Iid: must be vertical for FDSKL",
    "partition=vertical": "partition=FeatureGroups: must be one of rows, such as iid, for POF-MKL",
    f"{FDSKL} partition.parties=1": "partition.parties=1: must be an integer >= 2",
    f"{FDSKL} partition.parties=11": "partition.parties=11: must be at most 10, the features of the data set",
    f"{FDSKL} partition.active=0": "partition.active=0: must be an integer from 1 to 8",
    FDSKL: "algo.loss=logistic: must be square: the target has",
    f"{GIVEN}=[[0,1],[1]]": "partition.groups=party 1: 1: must be a feature of one party; party 0 has it, too",
    f"{GIVEN}=[[0,1],[2]]": "partition.groups=no party: 3",
    f"{GIVEN}=[[0,1],[]]": "partition.groups=party 1: []",
    "algo=libsvm": "kernels: no such key",
    "algo=parsimonious_federated": "kernels: no such key",
    "algo=secureboost kernels=rbf": "kernels=Dictionary: must be left out, as by ~kernels: SecureBoost uses none",
    "~kernels kernels.D=8": "kernels: no such key",
    "topology=ring": "topology=Ring: must be left out: POF-MKL is not decentralized",
    "algo=dkla ~topology": "topology=None: must be a graph of agents",
    "algo=dkla topology=null": "topology=None: must be a graph of agents",
    "algo=dkla topology=gnm topology.edges=2": "topology.edges=2: must be an integer from 3 to 6 to join 4 agents",
    "algo=dkla kernels.N=2 kernels.largest=20": "kernels.N=2: must be 1: DKLA learns one kernel",
    "algo=coke algo.loss=logistic": "algo.loss=logistic: must be square: the target has",
    "algo=dkla dataset=digits": "dataset=digits: must be one with a numeric target for DKLA",
    "algo=pof_mkl dataset=digits": "dataset=digits: must be one with a numeric target for POF-MKL",
    f"{FDSKL} algo.loss=square dataset=digits": "dataset=digits: must be one with a numeric target for FDSKL",
    "scaling=cube": "scaling=cube: must be one of unit_ball, unit_box, none",
    "network.loss=1": "network.loss=1.0: must be a number >= 0 and < 1",
    "network.loss=0.1": "network.loss=0.1: must be 0 for POF-MKL, which has no messages between agents",
    "algo=ofskl kernels.N=2 kernels.largest=20": "kernels.N=2: must be 1 for OFSKL",
}


@pytest.mark.parametrize("override", REFUSED)
def test_refused_in_one_line_with_exit_code_2_and_nothing_written(fkl: Callable, tmp_path: Path, override: str) -> None:
    """The line names the key, what was given and what is allowed."""
    words = SMALL[:1] if override.startswith("algo=fdskl") else SMALL  # without kernels.D
    answer = fkl("run", *words, *override.split(" "))
    assert answer.code == 2
    lines = [line for line in answer.err.splitlines() if "round/s" not in line and line.strip()]
    assert all(line.startswith("  help: ") for line in lines[1:]), answer.err
    assert f"error: {REFUSED[override]}" in lines[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["out=loop", "out=loop/here", "paths.outputs=loop", "paths.outputs=loop/here"])
def test_a_link_that_leads_back_to_itself_is_refused_before_the_run(fkl: Callable, tmp_path: Path, word: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    answer = fkl("run", *SMALL, word)
    said = f"error: {tmp_path / 'loop'}: cannot be written (a link that leads back to itself)\n"
    assert (answer.code, answer.out, answer.err) == (2, "", said)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.parametrize("error", [OSError, requests.ConnectionError, requests.Timeout])
def test_data_that_are_missing_name_folder_files_and_the_way_out(
    fkl: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Without the file and a network: one line with the URL, the folder and the data set that needs none."""

    def no_network(*_: object, **__: object) -> None:
        raise error("HTTPSConnectionPool(host='archive.ics.uci.edu', port=443): Max retries exceeded")

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", no_network)
    monkeypatch.setattr("time.sleep", lambda _: None)
    answer = fkl("run", "dataset=naval")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    address = "could not fetch https://archive.ics.uci.edu/static/public/316/"
    for part in (address, "data.txt into data/naval", "dataset=wave_farm"):
        assert part in answer.err
    assert error is OSError or ("no connection" in answer.err and "Pool" not in answer.err)
    assert list(tmp_path.rglob("*.*")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dance",), "dance: no such command"),
        (("table",), "table : say PAPER/NUMBER, for example pof_mkl/1"),
        (("table", "pof_mlk/1"), "pof_mlk: no such paper\n  help: did you mean pof_mkl?"),
        (("table", "pof_mkl/9"), "no such table\n  help: tables of this paper: pof_mkl/1, pof_mkl/2, pof_mkl/3"),
        (("figure", "pof_mkl/9"), "no such figure\n  help: figures of this paper: pof_mkl/1, pof_mkl/2"),
        (
            ("run", "+experiment=pof_mlk/table1"),
            "experiment=pof_mlk/table1: no such choice\n  help: did you mean pof_mkl/",
        ),
        (("data", "describe", "navla"), "dataset=navla: no such choice\n  help: did you mean naval?"),
        (("predict", "x", "y"), "x: not the folder of a run (it does not exist)"),
        (("table", "pof_mkl/1"), "table: no finished run belongs to it; first fkl run -m +experiment=pof_mkl/table1"),
        (("figure", "pof_mkl/2"), "figure: no finished run belongs to it"),
        (("data", "eat"), "data eat: no such action"),
        (("data", "verify", "nonsense"), "nonsense: no such data set"),
        (("list", "all"), "all: no such group"),
        (("report", "all"), "all: one word too many"),
    ],
)
def test_other_commands_refuse_in_one_line_too(fkl: Callable, tmp_path: Path, arguments: tuple, said: str) -> None:
    answer = fkl(*arguments)
    assert answer.code == 2
    first, *others = answer.err.splitlines()
    assert first.startswith("error: ") and said in answer.err
    assert all(line.startswith("  help: ") for line in others)
    assert list(tmp_path.iterdir()) == []


def test_keys_that_do_not_fit_each_other_are_refused_before_data_are_read(
    fkl: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is opened, and no bar drawn."""
    opened: list[object] = []
    monkeypatch.setattr("fkl.data.store.Store.read", lambda *_: opened.append(_))
    for words, said in {
        ("algo.M=100",): "algo.M=100: must be an integer from 1 to kernels.N=51",
        ("algo=dkla", "kernels.N=2"): (
            "kernels.N=2: must be 1: DKLA learns one kernel, for example kernels=rbf_single"
        ),
        ("topology=ring",): "topology=Ring: must be left out: POF-MKL is not decentralized",
        ("links=failing",): "links=Failing: must be null: POF-MKL has no graph of agents",
    }.items():
        answer = fkl("run", "dataset=naval", *words)
        assert (answer.code, answer.out, answer.err) == (2, "", f"error: {said}\n")
    assert opened == []
