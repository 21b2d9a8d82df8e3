"""A run that is killed leaves nothing that looks finished, the same command completes it, a user's files stay."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SMALL, Answer
from processes import Command

from fkl.basics.files import whole_file
from fkl.engines import rounds as rounds_module
from fkl.runs import folder as results_folder
from fkl.runs.folder import find_damage


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_killed_before_the_last_step_only_that_is_done_again(tmp_path: Path) -> None:
    deadly = "import os; from fkl.runs import folder; folder._move_to_place = lambda *_: os.kill(os.getpid(), 9)"
    words = ("run", *SMALL, "kernels.N=5", "out=here")
    dead = Command(tmp_path, *words, before=deadly).wait()
    assert dead.code == -signal.SIGKILL, dead.err
    assert not (tmp_path / "here").exists()
    again = Command(tmp_path, *words).wait()
    assert again.code == 0, again.err
    assert "finished already" in again.out  # it only had to be moved
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert find_damage(tmp_path / "here") is None


def test_what_lies_beside_a_run_stays(fkl: Callable[..., Answer]) -> None:
    """Folders and files of the user's, whatever their names, and a finished run with such a name."""
    assert fkl("run", *SMALL, "kernels.N=5", "seed=1", "out=a.failed").code == 0
    Path(".a.lock").write_text("mine")
    (Path(".b.partial") / "deep").mkdir(parents=True)
    (Path(".b.partial") / "deep" / "diary.txt").write_text("mine")
    before = contents(Path())
    for words in (("out=a", "algo.eta=1e30"), ("out=b", "seed=2"), ("out=a", "algo.M=99")):
        assert fkl("run", *SMALL, "kernels.N=5", *words).code == 2
        assert before.items() <= contents(Path()).items()


def test_a_damaged_run_is_set_aside_and_made_again(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """The same command tells what is wrong, keeps what there is, and leaves the files that it left before."""
    words = ("run", *SMALL, "kernels.N=5")
    assert fkl(*words).code == 0
    (run,) = (tmp_path / "outputs" / "runs").iterdir()
    whole = contents(run)
    os.truncate(run / "summary.csv", 30)
    broken = contents(run)
    answer = fkl(*words)
    assert answer.code == 0 and "moved to outputs/broken/" in answer.err
    (aside,) = (tmp_path / "outputs" / "broken").iterdir()
    assert contents(aside) == broken
    again = contents(run)
    for timed in ("summary.csv", "provenance.json"):
        del whole[timed], again[timed]
    assert again == whole
    assert "finished already" in fkl(*words).out


def full(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A disk that has no room for files that are called so."""
    opened = Path.open

    def refuse(path: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if name in path.name and any(letter in mode for letter in "wax"):
            raise OSError(28, "No space left on device")
        return opened(path, mode, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)


def test_a_full_disk_is_one_line_with_the_path(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, and nothing is left that takes room; a checkpoint that cannot be written only warns."""
    with monkeypatch.context() as patch:
        full(patch, "rounds.csv")
        answer = fkl("run", *SMALL, "kernels.N=5", "out=here")
    told = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    assert answer.code == 2 and len(told) == 1 and "cannot be written" in told[0] and "here" in told[0]
    assert list(tmp_path.iterdir()) == []
    full(monkeypatch, "checkpoint")
    answer = fkl("run", *SMALL, "kernels.N=5", "out=here", "checkpoint_s=0")
    assert answer.code == 0 and answer.err.count("no checkpoint for now: ") == 1
    assert find_damage(Path("here")) is None


@pytest.mark.drawn
def test_a_run_goes_on_from_its_checkpoint_to_the_same_files(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error in its second replicate, as at a cluster's time limit, and on a disk that is full at the end."""
    words = ("run", *SMALL, "kernels.N=5", "out=here", "checkpoint_s=0", "chunk=1")
    saved, rounds = rounds_module._save_if_due, list[object]()

    def save(*about: object) -> None:
        saved(*about)
        rounds.append(about)
        if len(rounds) == 12:
            raise RuntimeError

    monkeypatch.setattr(rounds_module, "_save_if_due", save)
    assert fkl(*words).code == 1
    with monkeypatch.context() as patch:
        full(patch, "config.yaml")
        assert fkl(*words).code == 2
    assert (tmp_path / ".here.partial" / results_folder.CHECKPOINT).exists()
    assert fkl(*words).code == 0
    assert len(rounds) < 20 and [path.name for path in tmp_path.glob("here*")] == ["here"]
    assert fkl(*words, "out=whole").code == 0
    for name in ("rounds.csv", "clients.csv", "mse.png"):
        assert Path("here", name).read_bytes() == Path("whole", name).read_bytes()


def test_what_is_called_finished_is_on_the_disk(fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is synchronised before the folder gets its name, and the name itself afterwards."""
    synchronised: list[str] = []
    real = os.fsync

    def told(handle: int) -> None:
        synchronised.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        real(handle)

    monkeypatch.setattr(os, "fsync", told)
    assert fkl("run", *SMALL, "kernels.N=5", "out=here").code == 0
    names = {path.name for path in Path("here").iterdir()}
    assert names - {"provenance.json"} <= set(synchronised)
    assert any(name.startswith(".provenance.json") for name in synchronised)
    assert synchronised[-1] == Path.cwd().name
    assert json.loads(Path("here/provenance.json").read_text())["files"].keys() == names - {"provenance.json"}


def test_only_abandoned_temporary_files_are_deleted(tmp_path: Path) -> None:
    """Not those of a process that is still writing, links, folders, pipes, nor files with similar names."""
    path, end = tmp_path / "file", ".partial-1-0123abcd"
    mine, link, folder, pipe = (tmp_path / f".file.partial-{n}-0123abcd" for n in range(4))
    mine.touch()
    link.symlink_to(tmp_path / "precious")
    folder.mkdir()
    os.mkfifo(pipe)
    kept = [
        tmp_path / name for name in ("precious", f"file{end}", f".other{end}", ".file.partial-notes", f".file{end}.txt")
    ]
    for file in kept:
        file.touch()
    with whole_file(path) as writing:
        (held,) = set(tmp_path.iterdir()) - {link, folder, pipe, *kept}
        assert held.name == Path(writing.name).name, "the abandoned one is gone"
        with whole_file(path) as other:
            other.write(b"other")
        assert held.exists()
    assert {*tmp_path.iterdir()} == {link, folder, pipe, *kept, path}
