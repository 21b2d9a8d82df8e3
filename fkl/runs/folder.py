"""A run's folder: complete or absent, made by one process at a time.

While a run's folder NAME is made, there are also `.NAME.lock`, which one process holds, and `.NAME.partial`, the
working folder. fkl deletes only folders with its own mark in provenance.json, left by a process that has certainly
ended, because its lock is free.
"""

import csv
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from filelock import BaseFileLock, FileLock, Timeout
from threadpoolctl import threadpool_info

from fkl import __version__
from fkl.basics.errors import FklError, require
from fkl.basics.files import (
    CannotWriteError,
    flush_to_disk,
    is_temporary,
    report_write_errors,
    require_files_in,
    sha256_of,
    write_text,
)
from fkl.config.loading import Run
from fkl.engines.checkpoint import CHECKPOINT
from fkl.screen.messages import print_note
from fkl.tasks.task import Values

MODEL = "model.npz"
SUMS = "sums.npz"
LAST_FILE = "provenance.json"
FINISHED, FAILED, UNDER_WAY, DERIVED = "finished", "failed", "under way", "derived"
"""Values of `state` in provenance.json; a derived folder has a model, made from those of runs, and no tables."""
DIVERGED = "diverged"
"""Key of provenance.json that is true if a run failed because its numbers grew without bound."""
LEFT_BY_A_FAILURE = ("config.yaml", "error.txt", "rounds.csv", LAST_FILE)
PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "llvmlite",
    "scikit-learn",
    "networkx",
    "xlrd",
    "hydra-core",
    "omegaconf",
    "matplotlib",
)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Be the only process that works on a run's folder; if another process does, print a message and wait.

    Parent folders that are created for this, and stay empty, are removed again.
    """
    # The lock is next to the folder, because the folder is replaced when the run ends
    folder = _resolve_links(folder)
    lock = FileLock(hidden_neighbour(folder, "lock"), is_singleton=False)
    with create_folder(folder.parent):
        with report_write_errors(folder):
            require_files_in(folder.parent)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                print_note(f"{folder}: another process is using it; waiting until it ends")
                lock.acquire()
        try:
            yield
        finally:
            release_lock(lock)


def release_lock(lock: BaseFileLock) -> None:
    """Release a lock, and delete its file, unless someone else has written into it."""
    file = Path(lock.lock_file)
    with suppress(OSError):
        if file.stat().st_size == 0:  # while the lock is held; a waiting process notices this and makes another file
            file.unlink()
    lock.release()


@contextmanager
def create_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; new ones that are empty when the block ends are deleted."""
    new = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        with report_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder_made in new:
            with suppress(OSError):
                folder_made.rmdir()


def is_locked(folder: Path) -> bool:
    """Whether a process works on a run's folder, or was killed at the end of its work."""
    return hidden_neighbour(_resolve_links(folder), "lock").exists()


def is_finished(run: Run) -> bool:
    """Whether this run is complete in its folder.

    Raises
    ------
    fkl.basics.errors.FklError
        If the folder has something else, which is never overwritten.
    """
    # A run replaces its folder, which therefore must not be the current one
    folder, given = run.folder, Path(run.settings.out or run.folder)
    require(
        _resolve_links(folder) != Path.cwd(),
        "out",
        given,
        "a folder other than the current one, because it is replaced completely",
    )
    # An empty folder is a new one; any other must have this same run
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    require(_is_mine(run), "out", given, "a new or empty folder, or a folder with this same run")
    return find_damage(folder) is None


def _is_mine(run: Run) -> bool:
    """Whether the folder at a run's path is this run, damaged or not, according to its digest."""
    digest = read_provenance(run.folder).get("digest")
    return run.folder.is_dir() and (run.settings.out is None or digest == run.digest)


def find_damage(folder: Path, only: Collection[str] | None = None) -> str | None:
    """Error in a finished run's folder, in one line; None if it is complete.

    Parameters
    ----------
    folder : Path
    only : collection of str, optional
        Files whose checksums are checked, instead of all of the run's.
    """
    # What the folder says about itself, then the checksum of each file
    facts = read_provenance(folder)
    files = facts.get("files")
    if "digest" in facts and not {"state", "files"} & {*facts}:
        return "made by an older version of fkl: no checksums"
    if facts.get("state") == DERIVED:
        return "a model that was made from those of runs, without tables; fkl predict and fkl.load_model read it"
    if facts.get("state") != FINISHED or not isinstance(files, dict):
        return f"{LAST_FILE} is missing or damaged, or the run is not finished"
    for name, digest in files.items():
        if only is not None and name not in only:
            continue
        try:
            if not (folder / name).is_file():  # for example not a pipe or a device, which may never end
                return f"{name} is missing"
            if sha256_of(folder / name) != digest:
                return f"{name} has changed since the run ended"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


def read_provenance(folder: Path) -> dict[str, Any]:
    """Content of a folder's provenance.json; empty if it cannot be read."""
    try:
        file = folder / LAST_FILE
        facts = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def read_summary(folder: Path) -> Values:
    """The summary of a finished run: the columns of summary.csv, (R,) each, integers or floats; empty cells are NaN."""
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    # A column of whole numbers becomes integers, any other floats
    columns, columns_of_words = {}, []
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        try:
            whole = all(cell.removeprefix("-").isdigit() for cell in cells)
            columns[name] = (
                np.array(cells).astype(np.int64) if whole else np.array([float(cell or "nan") for cell in cells])
            )
        except ValueError:
            columns_of_words.append(name)
    require(not columns_of_words, "columns", ", ".join(columns_of_words), "numbers")
    require(len(columns) == len(header), "columns", ", ".join(header), "different names")
    return columns


@contextmanager
def run_workspace(run: Run) -> Iterator[Path]:
    """The folder in which a run is made; `complete_folder` moves it to its place.

    The caller must hold the lock, see `lock_folder`.

    Files of another process that was killed are reused. The folder remains if it has a checkpoint from which the run
    can resume: after an interruption, at a cluster's time limit, or with a full disk.
    """
    # The workspace is next to the folder; one of another program is refused
    folder = hidden_neighbour(_resolve_links(run.folder), "partial")
    usable = not folder.is_symlink() and (not folder.exists() or folder.is_dir())
    if usable and folder.exists():  # it has fkl's mark, or the process was killed before it wrote one
        facts = read_provenance(folder)
        marked = facts.get("state") in (UNDER_WAY, FINISHED) and isinstance(facts.get("digest"), str)
        usable = marked or _is_begun(folder)
    require(usable, "out", run.folder, f"a folder without a {folder.name} next to it that fkl did not make")
    # Clear what a killed process has left, except for its checkpoint
    with report_write_errors(run.folder):
        folder.mkdir(exist_ok=True)
        for left_behind in filter(is_temporary, folder.iterdir()):
            left_behind.unlink()
    try:
        _write_provenance(folder, UNDER_WAY, run.digest)
        yield folder
    # After an error the workspace goes, unless it has a checkpoint from which the run can continue
    except BaseException as error:
        refused = isinstance(error, FklError) and not isinstance(error, CannotWriteError)
        if refused or not (folder / CHECKPOINT).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def complete_folder(run: Run, folder: Path, notes: dict[str, Any]) -> None:
    """Complete a workspace that has tables and figures, and move it to the run's place in one step.

    Parameters
    ----------
    run : Run
    folder : Path
        The workspace.
    notes : dict
        Further entries of provenance.json.
    """
    # Configuration last, then every file to the disk, before the folder says that it is finished
    with report_write_errors(run.folder):
        (folder / "config.yaml").write_text(yaml.safe_dump(run.resolved, sort_keys=False), encoding="utf-8")
        files = sorted(file for file in folder.iterdir() if file.name not in (LAST_FILE, CHECKPOINT))
        for file in files:
            with file.open("rb+") as stream:
                flush_to_disk(stream)
        # Versions and the machine, with the commit if fkl runs from a checkout
        commit = ""
        with suppress(OSError):  # git is missing
            command = ["git", "-C", str(Path(__file__).resolve().parent), "rev-parse", "HEAD"]
            commit = subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout.strip()
        environment = {
            "fkl": __version__,
            "commit": commit or None,
            **run.parts,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in PACKAGES},
            "machine": platform.platform(),
            "processor": processor_name(),
            "cores": os.cpu_count(),
            "blas": sorted({f"{pool['internal_api']} {pool.get('version')}" for pool in threadpool_info()}),
        }
        hashes = {file.name: sha256_of(file) for file in files}
        _write_provenance(folder, FINISHED, run.digest, {**notes, **environment, "files": hashes})
        _move_to_place(folder, run)


def add_file(run: Run, name: str, write: Callable[[Path], None]) -> None:
    """Write another file into a finished run's folder; the caller must hold the lock, see `lock_folder`."""
    facts = read_provenance(run.folder)
    with report_write_errors(run.folder):
        write(run.folder / name)
        files = facts["files"] | {name: sha256_of(run.folder / name)}
    _write_provenance(run.folder, FINISHED, run.digest, facts | {"files": dict(sorted(files.items()))})


def recover_folder(run: Run) -> bool:
    """Whether a killed process had completed the run but not moved it to its place; if so, it is moved."""
    folder = hidden_neighbour(_resolve_links(run.folder), "partial")
    if folder.is_symlink() or read_provenance(folder).get("digest") != run.digest or find_damage(folder) is not None:
        return False
    with report_write_errors(run.folder):
        _move_to_place(folder, run)
    return True


def _move_to_place(folder: Path, run: Run) -> None:
    """Move a finished workspace to its place; a damaged folder there is moved aside, never deleted."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    # A damaged folder of this run is moved aside; anything else in its place is an error
    place = _resolve_links(run.folder)
    if place.exists() and any(place.iterdir()):
        if find_damage(place) is None and _is_mine(run):  # made by another process, on a file system without locks
            shutil.rmtree(folder)
            return
        if not _is_mine(run):
            raise CannotWriteError(f"{run.folder}: has files that did not exist when the run began")
        aside = next(one for one in _numbered_folders(run.broken_folder) if not one.exists())
        print_note(f"{run.folder}: {find_damage(place)}; moved to {aside}, and the run is repeated")
        aside.parent.mkdir(parents=True, exist_ok=True)
        place.rename(aside)
    folder.replace(place)
    if os.name == "posix":
        handle = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(handle)  # the name is also on the disk
        finally:
            os.close(handle)


def write_failed(
    folder: Path,
    config: dict[str, Any],
    error: str,
    digest: str = "",
    rounds: Path | None = None,
    notes: dict[str, Any] | None = None,
) -> Path:
    """Write the files of a failed run (configuration, error and valid rows), and return their folder.

    Parameters
    ----------
    folder : Path
        Used if it is new or empty, or has this run's earlier failure; otherwise a number is added to its name.
    config : dict
    error : str
    digest : str
        Digest of the run.
    rounds : Path or None
        File to move there.
    notes : dict, optional
        Further entries of provenance.json.
    """
    # The same failure again overwrites its folder; another one gets a number
    ours = {"state": FAILED, "digest": digest}
    folder = next(
        one for one in _numbered_folders(folder) if _is_begun(one) or ours.items() <= read_provenance(one).items()
    )
    with create_folder(folder), report_write_errors(folder):
        _write_provenance(folder, FAILED, digest, notes)
        (folder / "rounds.csv").unlink(missing_ok=True)
        if rounds is not None:
            rounds.replace(folder / "rounds.csv")
        write_text(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_text(folder / "error.txt", f"{error.rstrip()}\n")
    return folder


def _is_begun(folder: Path) -> bool:
    """Whether a folder does not exist, or has only files of a process that was killed before it marked the folder."""
    return not folder.exists() or (folder.is_dir() and all(map(is_temporary, folder.iterdir())))


def forget_failed(folder: Path, digest: str) -> None:
    """Delete the files of this run's failure, and nothing else; called when the run is finished."""
    # Only files that fkl wrote for this failure
    if folder.is_symlink() or not folder.is_dir():
        return
    with suppress(OSError):
        left = [*filter(is_temporary, folder.iterdir())]  # of a process that was killed before it marked the folder
        if {"state": FAILED, "digest": digest}.items() <= read_provenance(folder).items():
            left += [folder / name for name in LEFT_BY_A_FAILURE]
        for file in left:
            file.unlink(missing_ok=True)
        if left:
            folder.rmdir()  # unless the user has added a file
            folder.parent.rmdir()  # if this was the only failure


def _resolve_links(folder: Path) -> Path:
    """Target of links; a cyclic link is refused."""
    place = Path(os.path.realpath(folder))
    for part in (place, *place.parents):
        if part.is_symlink():  # realpath leaves only cyclic links
            raise FklError(f"{part}: cannot be written (it is a link to itself)")
    return place


def hidden_neighbour(folder: Path, kind: str) -> Path:
    """The place of fkl's own files about a folder, next to it."""
    return folder.with_name(f".{folder.name}.{kind}")


def _numbered_folders(folder: Path) -> Iterator[Path]:
    """The folder itself, then NAME-1, NAME-2, ..."""
    yield folder
    yield from (folder.with_name(f"{folder.name}-{number}") for number in count(1))


def _write_provenance(folder: Path, state: str, digest: str, more: dict[str, Any] | None = None) -> None:
    """Write a folder's provenance.json, which marks it as fkl's."""
    told = {"state": state, "digest": digest, **(more or {})}
    write_text(folder / LAST_FILE, json.dumps(told, indent=2) + "\n")


def processor_name() -> str:
    """Name of the processor, if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
