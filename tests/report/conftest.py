"""Fixtures of the papers' tests, each of which makes runs of its own first."""

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fkl import cli
from fkl.basics.errors import FklError
from fkl.data import readers
from fkl.data.store import DataFile
from fkl.data.wisdm import Wisdm
from fkl.papers import declared, paper_module
from fkl.runs.finished_runs import collect


@pytest.fixture(scope="session")
def sweeping() -> Callable:
    """Do sweeps in a folder, on files that the test wrote into its `files` and that nothing is compared with."""
    published = readers.data_file

    def unchecked(*given: Any) -> DataFile:
        return replace(published(*given), sha256=None, size=None)

    def sweeping(folder: Path, *sweeps: tuple[str, ...]) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.delenv("FKL_DATA", raising=False)
            patch.setattr(readers, "data_file", unchecked)
            patch.setattr(Wisdm, "files", tuple(replace(file, sha256=None, size=None) for file in Wisdm.files))
            for sweep in sweeps:
                patch.setattr(sys, "argv", ["fkl", "run", "-m", "paths.data=files", *sweep])
                cli.main()
        return folder

    return sweeping


@pytest.fixture
def runs(fkl: Callable, finished: Path, tmp_path: Path) -> Callable:
    """The command, in a folder with the runs of the module's `finished`."""
    shutil.copytree(finished / "outputs", tmp_path / "outputs")
    return fkl


@pytest.fixture
def each_alone(finished: Path) -> Callable:
    """Make all tables and figures of a paper of each run of the module's `finished` alone, where they can be."""

    def each_alone(paper: str) -> None:
        module = paper_module(paper)
        runs = collect(finished / "outputs").runs
        assert runs
        for run in runs:
            for make in ("table", "figure"):
                for number in declared(paper)[f"{make}s"]:
                    with suppress(FklError):  # the line that says what to run first
                        getattr(module, make)(number, [run])

    return each_alone
