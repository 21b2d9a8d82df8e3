"""What a server needs to go on after it has ended, sealed in a file after each round."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fkl.engines.flower.configuration import Known
from fkl.engines.flower.memory import read
from fkl.engines.flower.tables import Book

SEALED = "server.sealed"


@dataclass
class Member:
    """A site that has reported its identity.

    Parameters
    ----------
    node : int
        Flower's node.
    rows : int
    session : str
        Random session of the site's process; empty if every message has its own process.
    heard : int
        The last completed round in which it took part, from 0; -1 for none.
    away : bool
        Whether it did not answer, and has not returned since.
    """

    node: int
    rows: int
    session: str = ""
    heard: int = -1
    away: bool = False


@dataclass
class Progress:
    """State with which a server can continue after it has ended.

    Parameters
    ----------
    project : str
        Digest of the run's configuration and of its sites.
    known : Known
    server : any
        The server's state of the method.
    members : dict of int to Member
    book : Book
    summed : dict of int to int
        Number of sums with each client, including those of discarded rounds.
    sent : dict of int to int
        Number of messages of each site's clients, as reported by the site.
    finished : bool
    """

    project: str
    known: Known
    server: Any
    members: dict[int, Member]
    book: Book
    summed: dict[int, int]
    sent: dict[int, int]
    finished: bool = False


def project_of(settings: Any) -> str:
    """Digest of the settings that identify a project."""
    words = [str(settings[name]) for name in ("configuration", "sites", "clients-per-site")]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def unfinished(out: Path, settings: Any) -> Path | None:
    """The newest folder of a run of this project that has not ended, whose method's classes are loaded already."""
    project = project_of(settings)
    for file in sorted(out.glob(f"*/{SEALED}"), key=lambda file: file.stat().st_mtime, reverse=True):
        if project.encode() in file.read_bytes():  # others may have classes that are not loaded
            found = read(file, Progress)
            if found is not None and found.project == project and not found.finished:
                return file.parent
    return None
