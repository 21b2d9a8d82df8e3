"""A run's folder: whole or not at all."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from threadpoolctl import threadpool_info

from fkl import __version__
from fkl.config import Run
from fkl.errors import FklError, require
from fkl.results.records import Records

LAST_FILE = "provenance.json"
FLOATS = "%.10g"
PACKAGES = ("numpy", "scipy", "pandas", "numba", "scikit-learn", "hydra-core", "omegaconf", "matplotlib")


def finished(run: Run) -> bool:
    """Whether this very run lies in its folder already.

    Raises
    ------
    fkl.errors.FklError
        When the folder holds something else, which is never overwritten, or cannot be made.
    """
    folder = run.folder
    require(
        folder.resolve() != Path.cwd(), "out", folder, "a folder other than the current one, which is replaced whole"
    )
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        nearest = next(parent for parent in folder.resolve().parents if parent.exists())
        if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
            raise FklError(f"out={folder}: {nearest} is not a folder that can be written to")
        return False
    try:
        found = json.loads((folder / LAST_FILE).read_text())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    require(found == run.digest, "out", folder, "a new or empty folder, or one with this same run")
    return True


def read_summary(folder: Path) -> pd.DataFrame:
    """The summary of a finished run, one row a replicate."""
    return pd.read_csv(folder / "summary.csv")


def damage(folder: Path) -> str | None:
    """What is wrong with the folder of a finished run, in one line; None where all is as it was written."""
    name = LAST_FILE
    try:
        if not (folder / name).is_file():
            return f"{name} is missing"
        provenance = json.loads((folder / name).read_text(encoding="utf-8"))
        if not isinstance(provenance, dict):
            return f"{name} is not what fkl writes"
        if "files" not in provenance:
            return "made by an older version of fkl: no checksums"
        if provenance.get("state") != "finished" or not isinstance(provenance["files"], dict):
            return f"{name} is not that of a finished run"
        for name, checksum in provenance["files"].items():
            if not (folder / name).is_file():  # which a pipe is not either, that nobody may ever write to
                return f"{name} is missing"
            if _checksum(folder / name) != checksum:
                return f"{name} is not as it was written"
    except OSError as error:
        return f"{name} cannot be read ({error.strerror})"
    except (ValueError, RecursionError):  # not JSON, not text, nested without end; a name that no file can have
        return f"{LAST_FILE} is not what fkl writes"
    return None


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_run(run: Run, records: Records, draw: Callable[[Path], None], notes: dict[str, Any]) -> None:
    """Write a run's files next to their place and move them there in one step; what is there already stays.

    Parameters
    ----------
    run : Run
    records : Records
    draw : callable
        Draws the run's figures into the folder it is given.
    notes : dict
        What else provenance.json shall tell.
    """
    try:
        with replacing(run.folder) as folder:
            for name in ("rounds", "clients", "summary"):
                getattr(records, name).to_csv(folder / f"{name}.csv", index=False, float_format=FLOATS)
            (folder / "config.yaml").write_text(yaml.safe_dump(run.resolved, sort_keys=False))
            draw(folder)
            files = {file.name: _checksum(file) for file in sorted(folder.iterdir())}
            provenance = {"state": "finished", "digest": run.digest, **notes, **_environment(), "files": files}
            (folder / LAST_FILE).write_text(json.dumps(provenance, indent=2) + "\n")
    except FklError:
        if not finished(run):  # by another process, of a sweep beside this one, that had the same run
            raise
    shutil.rmtree(run.failed_folder, ignore_errors=True)


def write_failed(folder: Path, config: dict[str, Any], error: str, rounds: pd.DataFrame | None = None) -> None:
    """Write what a failed run leaves: its configuration, its error, and the rows that are right."""
    shutil.rmtree(folder, ignore_errors=True)
    with replacing(folder) as partial:
        (partial / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        (partial / "error.txt").write_text(f"{error.rstrip()}\n")
        if rounds is not None:
            rounds.to_csv(partial / "rounds.csv", index=False, float_format=FLOATS)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder` that takes its place when the block ends well, and vanishes when not."""
    folder = folder.resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left_behind in folder.parent.glob(f".{folder.name}.partial-*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
    except OSError as error:
        raise FklError(f"out={folder}: cannot be written ({error.strerror})") from None
    try:
        yield partial
        partial.chmod(0o755)
        try:
            partial.replace(folder)
        except OSError as error:
            raise FklError(f"out={folder}: cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replacing_file(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and move it there in one step.

    Raises
    ------
    fkl.errors.FklError
        When it cannot be written; what was there stays.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    except OSError as error:
        raise FklError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _environment() -> dict[str, Any]:
    return {
        "fkl": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas": sorted({f"{pool['internal_api']} {pool.get('version')}" for pool in threadpool_info()}),
    }


def _commit() -> str | None:
    """Commit of the checkout that this package runs from, where it runs from one."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return None
    return answer.stdout.strip() or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
