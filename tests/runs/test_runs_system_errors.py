"""A message about the system's error names the path that the error is about, or none."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SMALL, Answer

import fkl as package
from fkl.basics.errors import FklError
from fkl.basics.files import CannotWriteError, report_write_errors
from fkl.data.store import DataFile, Store

SWEEP = ("run", "-m", *SMALL, "seed=0,1", "figures=none", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
NEAR = ("", "x.csv", "a/b.csv", "../.runs.lock", "..")
FAR = ("/dev/shm", "/dev/shm/sem.x", "../../elsewhere", "../more/deep/file")
NO_PATH = (None, 3)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("named", [*NEAR, *FAR, *NO_PATH])
def test_a_write_that_fails_names_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | int | None, absolute: bool
) -> None:
    """The block's path for anything in, next to or above it, and for an error without a path; else the error's."""
    monkeypatch.chdir(tmp_path)
    own = str((tmp_path if absolute else Path()) / "out" / "runs" / named) if isinstance(named, str) else named
    folder = Path("out/runs")
    with pytest.raises(CannotWriteError) as caught, report_write_errors(folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), own)
    far = named in FAR
    assert str(caught.value) == (
        f"{own}: No space left on device" if far else f"{folder}: cannot be written (No space left on device)"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, semaphores have no folder")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EMFILE, errno.EAGAIN])
def test_a_worker_that_cannot_start_is_not_blamed_on_the_outputs(
    fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Neither the folder of semaphores nor a limit of the process is a folder of results."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("joblib.externals.loky.ProcessPoolExecutor", refuse)
    answer = fkl(*SWEEP)
    [said] = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    about_semaphores = number in (errno.ENOSPC, errno.EROFS, errno.EACCES)
    assert answer.code == 2 and os.strerror(number) in said and "outputs" not in said
    assert said.startswith("error: hydra/launcher=joblib: ") and ("/dev/shm: " in said) == about_semaphores


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_download_that_a_disk_refuses_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Store, "_download_file", refuse)
    file = DataFile("toy", "toy.csv", "https://nowhere.invalid/toy.csv", None)
    target = tmp_path / "toy" / "toy.csv"
    with pytest.raises(FklError, match=rf"{target}: cannot be written \({os.strerror(number)}\)"):
        Store(tmp_path).fetch_file(file)


COMMANDS = (
    ("run", *SMALL),
    SWEEP,
    ("compare",),
    ("data", "describe", "diabetes"),
    ("predict", "a", "b.csv"),
    ("study", "own.yaml"),
    ("plan", "algo=vm_kofl"),
    ("report",),
)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder that has been deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_current_folder_that_is_gone_is_named(
    fkl: Callable[..., Answer], words: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("nowhere")
    answer = fkl(*words)
    [said] = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    assert answer.code == 2 and said.startswith("error: the current folder has been deleted: ")
    assert fkl("list").code == 0


@pytest.mark.usefixtures("nowhere")
def test_python_names_a_current_folder_that_is_gone() -> None:
    with pytest.raises(FklError, match=r"^the current folder has been deleted: "):
        package.run("algo=vm_kofl", quiet=True)
