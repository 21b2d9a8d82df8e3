"""Seals: blocks of a data set that no loader returns until the study that sealed them is judged.

A seal is a small file of the user in ``~/.fkl/seals``, or in the folder FKL_SEALS.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fkl.basics.environment import variable
from fkl.basics.errors import FklError
from fkl.basics.files import write_text
from fkl.data.dealt_rows import in_part

_lifted = ContextVar("_lifted", default=False)


@dataclass(frozen=True)
class Seal:
    """Content of a seal.

    Parameters
    ----------
    study, folder : str
        The study's file, and the folder of its runs, at the last date.
    share : float
        Share of sealed blocks.
    layout : str
        Hash of the groups of rows, which detects a data set that is read in another way.
    date, broken, spent : str
        When it was made, when everything else was judged, and when the sealed rows were judged; empty before that.
    """

    study: str
    folder: str
    share: float
    layout: str
    date: str
    broken: str = ""
    spent: str = ""


def path_of(digest: str, study: Path) -> Path:
    """Path of a study's seal of data with this digest; the study's file may move, but not change."""
    return _folder() / f"{digest}-{hashlib.sha256(study.read_bytes()).hexdigest()[:8]}.json"


def layout_of(group: NDArray[np.int64]) -> str:
    """Hash of the group of each row."""
    return hashlib.sha256(np.asarray(group, np.int64).tobytes()).hexdigest()[:12]


def read(path: Path) -> Seal:
    """Read a seal.

    Raises
    ------
    fkl.basics.errors.FklError
        If it is missing or damaged.
    """
    try:
        seal = Seal(**json.loads(path.read_text(encoding="utf-8")))
        if any(type(value) is not Seal.__annotations__[name] for name, value in asdict(seal).items()):
            raise TypeError("a value of another type")
        return seal
    except FileNotFoundError:
        raise FklError(f"{path}: there is no such seal any more") from None
    except (OSError, ValueError, TypeError, RecursionError):
        raise FklError(f"{path}: a damaged seal: its rows are refused until it is put back, or deleted") from None


def write(path: Path, seal: Seal) -> None:
    """Write a seal, replacing an existing one."""
    write_text(path, json.dumps(asdict(seal), indent=1) + "\n")


def seals_of(digest: str) -> list[Seal]:
    """All unspent seals of data with this digest, oldest first."""
    found = [read(path) for path in sorted(_folder().glob(f"{digest}-*.json"))]
    return sorted((seal for seal in found if not seal.spent), key=lambda seal: seal.date)


@contextmanager
def lifted() -> Iterator[None]:
    """Refuse nothing in this block, which must not reveal the content of rows."""
    token = _lifted.set(True)
    try:
        yield
    finally:
        _lifted.reset(token)


def require_open(digest: str, rows: str, group: NDArray[np.int64], folder: Path) -> None:
    """Refuse rows that are sealed.

    Parameters
    ----------
    digest : str
        Digest of the data.
    rows : str
        As in `fkl.data.dealt_rows.in_part`.
    group : (n,) int64
        As there.
    folder : Path
        Folder of the run's files: a study with a broken seal reads its sealed rows, unless an older seal protects them.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the study, the readable rows, and how to open the rest.
    """
    for seal in [] if _lifted.get() else seals_of(digest):
        if seal.broken and folder.resolve() == Path(seal.folder):
            return
        part, opens = f"open_{seal.share:g}", f"fkl study {seal.study} opens all when its runs are judged"
        if seal.layout != layout_of(group):
            raise FklError(f"rows={rows}: {seal.study} sealed these data as read with other keys of dataset; {opens}")
        if (in_part(rows, group) & in_part(f"sealed_{seal.share:g}", group)).any():
            raise FklError(f"rows={rows}: some are sealed by {seal.study}; rows={part} may be read, and {opens}")


def _folder() -> Path:
    return Path(variable("FKL_SEALS", "~/.fkl/seals")).expanduser()
