"""Seals: blocks of a data set that no loader gives out until the study that sealed them is judged.

A seal is a small file of the user in ``~/.fkl/seals``, or in the folder that FKL_SEALS names.
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
    """What a seal says.

    Parameters
    ----------
    study, folder : str
        The study's file, and where its runs go, as of the last date.
    share : float
        Of the blocks that are sealed.
    layout : str
        Hash of the groups of rows, by which a data set that is read in another way is told apart.
    date, broken, spent : str
        When it was made, when all else was judged, and when the sealed rows were; empty before.
    """

    study: str
    folder: str
    share: float
    layout: str
    date: str
    broken: str = ""
    spent: str = ""


def path_of(digest: str, study: Path) -> Path:
    """Where a study's seal of data with this digest lies: its file may move, but not change."""
    return _folder() / f"{digest}-{hashlib.sha256(study.read_bytes()).hexdigest()[:8]}.json"


def layout_of(group: NDArray[np.int64]) -> str:
    """Hash of the group of each row."""
    return hashlib.sha256(np.asarray(group, np.int64).tobytes()).hexdigest()[:12]


def read(path: Path) -> Seal:
    """Read a seal.

    Raises
    ------
    fkl.basics.errors.FklError
        If it is not there, or damaged.
    """
    try:
        return Seal(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FklError(f"{path}: there is no such seal any more") from None
    except (OSError, ValueError, TypeError):
        raise FklError(f"{path}: a damaged seal: its rows are refused until it is put back, or deleted") from None


def write(path: Path, seal: Seal) -> None:
    """Write a seal in the place of what is there."""
    write_text(path, json.dumps(asdict(seal), indent=1) + "\n")


def seals_of(digest: str) -> list[Seal]:
    """All seals of data with this digest that are not spent, the oldest first."""
    found = [read(path) for path in sorted(_folder().glob(f"{digest}-*.json"))]
    return sorted((seal for seal in found if not seal.spent), key=lambda seal: seal.date)


@contextmanager
def lifted() -> Iterator[None]:
    """Refuse nothing in this block, in which nobody learns what is in the rows."""
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
        Of the data.
    rows : str
        As of `fkl.data.dealt_rows.in_part`.
    group : (n,) int64
        As there.
    folder : Path
        Where the run's files go: a study whose seal is broken reads what it sealed, unless an older seal holds.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the study, what may be read, and what opens the rest.
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
