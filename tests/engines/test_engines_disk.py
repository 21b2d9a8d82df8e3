"""engine=disk: clients in parts, with large arrays in files, come to the bytes of all clients in memory."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.basics import memory
from fkl.basics.errors import BadValue
from fkl.basics.files import CannotWriteError
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines import disk
from fkl.runs.play import execute_run
from fkl.runs.tables import TIMING_COLUMNS

IID = ("dataset=synthetic", "dataset.rows=9000", "partition.clients=700", "partition.rounds=8", "kernels.D=6")
IID += ("kernels.N=5", "replicates=2")
SMALL = ("partition=quantity_skew", *IID, "partition.alpha=5")
"""Two parts of clients, most of whom are gone before the end."""
CLIP = ("privacy.clip=1", "privacy.noise=1")
CASES = {
    "pof_mkl": ("algo=pof_mkl", *SMALL, "algo.xi=0.5", "algo.M=2"),
    "fed_poe-few": ("algo=fed_poe", *SMALL, "participation=share", "privacy=local", *CLIP),
    "em_kofl-two-exchanges": ("algo=em_kofl", *SMALL, "compression=top_k"),
    "fomd_oms-draws": ("algo=fomd_oms", *SMALL, "dataset.sites=3", "scaling=unit_box"),
    "scaffold": ("algo=scaffold", *IID),
}


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Put every array into a file, in parts of one tile; the folder of these files."""
    monkeypatch.setattr(disk, "CLIENTS_A_PART", 256)
    monkeypatch.setattr(memory, "LEAST_BYTES", 1)
    monkeypatch.setattr(memory, "ROWS", 100)
    (folder := tmp_path / "files").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def tables(folder: Path) -> dict[str, str]:
    """The three CSVs without the columns of time."""
    read = {name: pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("rounds", "clients", "summary")}
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in read.items()}


@pytest.mark.parametrize("case", CASES)
def test_parts_come_to_the_bytes_of_all_clients_together(case: str, in_files: Path, tmp_path: Path) -> None:
    found = []
    for engine in ("numba", "disk"):
        execute_run(
            load_run(compose_config(*CASES[case], f"engine={engine}", f"out={tmp_path / engine}")), progress=False
        )
        found.append(tables(tmp_path / engine))
    assert found[0] == found[1]
    assert not [*in_files.iterdir()]


def test_a_part_without_present_clients_is_not_touched(
    in_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 clients take part at once, so in the first round only the first of two parts plays."""
    played: list[tuple[int, range]] = []
    client = PofMkl.client

    def recorded(method: Any, common: Any, state: Any, down: Any, samples: Any, turn: Any) -> Any:
        if common.rounds == 8 and common.bank.width == 12:  # not while code is compiled
            played.append((turn.t, turn.clients))
            assert samples.present.any()
        return client(method, common, state, down, samples, turn)

    monkeypatch.setattr(PofMkl, "client", recorded)
    words = ("algo=pof_mkl", *IID, "replicates=1", "participation=schedule", "engine=disk")
    execute_run(
        load_run(compose_config(*words, "participation.clients=100", f"out={tmp_path / 'run'}")), progress=False
    )
    first, second = range(256), range(256, 700)
    assert {clients for t, clients in played if t == 0} == {first}
    assert {clients for t, clients in played if t == 4} == {second}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("algo=coke",), "its agents send messages to neighbours"),
        (("algo=pof_mkl", "aggregate=median"), "cannot have aggregate"),
        (("algo=pof_mkl", "late=labels"), "with late, all clients have to be in memory"),
        (("algo=pof_mkl", "save_model=true", "stop_when=mse<1"), "with stop_when, save_model, all clients"),
    ],
)
def test_runs_that_parts_cannot_play_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(BadValue, match=rf"^engine=disk: must be numba .*{why}"):
        load_run(compose_config(*words, "engine=disk"))


def test_a_full_disk_is_refused_before_it_is_written(in_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(CannotWriteError, match="cannot be written"), memory.on_disk():
        memory.empty_array(10)


@pytest.mark.parametrize("n", [1, 250])
def test_work_by_blocks_is_numpys(n: int, in_files: Path) -> None:
    values, which = np.random.default_rng(n).random((n, 3)), np.random.default_rng(n).random((n, 3)) < 0.6
    with memory.on_disk():
        np.testing.assert_array_equal(memory.number_range(n), np.arange(n))
        np.testing.assert_array_equal(memory.by_block(np.sqrt, values), np.sqrt(values))
        np.testing.assert_array_equal(memory.take_values(values, which), values[which])
        np.testing.assert_array_equal(memory.spread_values(values[which], which), np.where(which, values, 0))
        np.testing.assert_array_equal(memory.row_variance(values), values.var(axis=0))
        assert not [*in_files.iterdir()]
