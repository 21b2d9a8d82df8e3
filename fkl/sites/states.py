"""The state of a site between two messages and of the server between two rounds, which outlive their processes."""

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line
from fkl.basics.files import DAMAGE, read_arrays, read_sealed, write_arrays
from fkl.basics.plain_data import Reader, Writer
from fkl.sites.configuration import SharedFacts
from fkl.sites.masks import Mask
from fkl.sites.tables import Book

Kind = TypeVar("Kind")
TEXT = "text"
"""Name of the array that holds the JSON."""
SEALED = "server.sealed"
"""Name of the file of the server's state, written after each round."""


@dataclass
class SiteMemory:
    """A site's memory: its clients' states after the last completed round, and after a newer round, if any.

    A round is completed when the server has the answers of all its sites. Other rounds are discarded, as if the site
    had been absent.

    Parameters
    ----------
    state : dict of int to any
        States after round `heard`, by client, without clients that have not taken part.
    y_hat : (n,)
        Predictions of all rows in completed rounds and in `round`; NaN for rows without one.
    heard : int
        Last completed round, from 0; -1 for none.
    round, exchange : int
        Newer round, and last exchange in it; -1 for none.
    rows : list of int
        Rows that were predicted in the newer round.
    after : dict of int to any
        States after the newer round, by client.
    sent : dict of int to int
        Number of messages of each client so far, including those of discarded rounds.
    mask : Mask or None
        State of the current secure sum.
    """

    state: dict[int, Any]
    y_hat: NDArray[np.float64]
    heard: int = -1
    round: int = -1
    exchange: int = -1
    rows: list[int] = field(default_factory=list)
    after: dict[int, Any] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    mask: Mask | None = None

    def settle(self, heard: int) -> None:
        """Keep the newer round if the server has completed it, and discard it otherwise.

        Raises
        ------
        fkl.basics.errors.FklError
            If the server has completed a round that is not in this memory.
        """
        # The server has completed the round: keep it. If not, forget it
        if heard == self.round >= 0:
            self.state, self.heard = self.after, heard
        elif heard != self.heard:
            raise FklError(f"it remembers up to round {self.heard + 1}, but the server has completed round {heard + 1}")
        elif self.round >= 0:
            self.y_hat[self.rows] = np.nan
        self.after, self.rows, self.round, self.exchange = {}, [], -1, -1

    def begin(self, t: int, exchange: int, heard: int) -> dict[int, Any]:
        """The states for an exchange of a round; they may be overwritten.

        Raises
        ------
        fkl.basics.errors.FklError
            If this memory does not have the previous exchange.
        """
        # The first exchange of a round begins from the settled state
        if exchange == 0:
            self.settle(heard)
            return deepcopy(self.state)
        if (self.round, self.exchange, self.heard) != (t, exchange - 1, heard):
            raise FklError(f"it has not done exchange {exchange} of round {t + 1}, and cannot do the next one")
        return self.after

    def end(self, t: int, exchange: int, state: dict[int, Any]) -> None:
        """Store the clients' states after an exchange."""
        self.round, self.exchange, self.after = t, exchange, state

    def store_prediction(self, row: int, y_hat: float) -> None:
        """Store a prediction of the current round."""
        self.rows.append(row)
        self.y_hat[row] = y_hat


@dataclass
class Member:
    """A site that has reported its identity.

    Parameters
    ----------
    node : int
        Flower's node.
    rows : int
    session : str
        Random name of the site's process; empty if every message has its own process.
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
class ServerProgress:
    """State with which a server can continue after it has ended.

    Parameters
    ----------
    project : str
        Digest of the run's configuration and of its sites.
    known : Known
    server : any
        State of the method's server.
    members : dict of int to Member
    book : Book
    summed : dict of int to int
        Number of sums with each client, including those of discarded rounds.
    sent : dict of int to int
        Number of messages of each site's clients, as reported by the site.
    finished : bool
    """

    project: str
    known: SharedFacts
    server: Any
    members: dict[int, Member]
    book: Book
    summed: dict[int, int]
    sent: dict[int, int]
    finished: bool = False


def to_arrays(value: Any) -> dict[str, NDArray[Any]]:
    """Arrays with the complete content of a data value, including its JSON."""
    writer = Writer({})
    words = json.dumps(writer.to_plain(value)).encode()
    return {TEXT: np.frombuffer(words, np.uint8), **writer.arrays}


def of_arrays(arrays: Mapping[str, NDArray[Any]], kind: type[Kind]) -> Kind:
    """Inverse of `to_arrays`.

    Raises
    ------
    TypeError
        For a value of another kind; other errors for arrays that `to_arrays` did not make.
    """
    value = Reader(dict(arrays), None).value(json.loads(arrays[TEXT].tobytes()))
    if not isinstance(value, kind):
        raise TypeError(f"a {type(value).__name__}")
    return value


def to_bytes(value: Any) -> bytes:
    """A data value as bytes."""
    write_arrays(stream := BytesIO(), to_arrays(value))
    return stream.getvalue()


def of_bytes(content: bytes, kind: type[Kind]) -> Kind:
    """Inverse of `to_bytes`; raises the errors of `of_arrays`, and DamagedError, which is a ValueError."""
    return of_arrays(read_arrays(BytesIO(content)), kind)


def read_state(file: Path, kind: type[Kind]) -> Kind | None:
    """The value in a sealed file; None if there is no file.

    Raises
    ------
    fkl.basics.errors.FklError
        For a file that cannot be read.
    """
    try:
        return of_arrays(read_sealed(file), kind)
    except FileNotFoundError:
        return None
    except DAMAGE as error:
        raise FklError(f"{file}: cannot be read ({in_one_line(error)}); delete it to start again") from None


def project_of(settings: Any) -> str:
    """Digest of the settings that identify a project."""
    words = [str(settings[name]) for name in ("configuration", "sites", "clients-per-site")]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def unfinished_folder(out: Path, settings: Any) -> Path | None:
    """The newest folder of an unfinished run of this project. The classes of its method must be loaded already."""
    project = project_of(settings)
    for file in sorted(out.glob(f"*/{SEALED}"), key=lambda file: file.stat().st_mtime, reverse=True):
        if project.encode() in file.read_bytes():  # other projects may have classes that are not loaded
            progress = read_state(file, ServerProgress)
            if progress is not None and progress.project == project and not progress.finished:
                return file.parent
    return None
