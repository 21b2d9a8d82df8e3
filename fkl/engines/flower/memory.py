"""What a site remembers between two messages, and how memories are written: as arrays and words."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.basics.files import DamagedError, read_arrays, read_sealed, write_arrays
from fkl.basics.plain_data import Reader, Writer

Kind = TypeVar("Kind")
TEXT = "text"
"""Name of the array that holds the JSON."""


@dataclass
class Memory:
    """Its clients' states after the last round that counted, and after the one that they played since, if any.

    A round counts when the server has heard all of those that take part in it. One that does not is forgotten, as if
    the site had not been there.

    Parameters
    ----------
    state : dict of int to any
        By client, after round `heard`; without those that have played none.
    y_hat : (n,)
        Predictions of all rows of rounds that counted, and of `round`; NaN where there is none.
    heard : int
        Last round that counted, from 0; -1 for none.
    round, exchange : int
        Played since; -1 for none.
    rows : list of int
        That were predicted in it.
    after : dict of int to any
        As `state`, after that.
    sent : dict of int to int
        Messages that each client has sent so far, also those of rounds that did not count.
    """

    state: dict[int, Any]
    y_hat: NDArray[np.float64]
    heard: int = -1
    round: int = -1
    exchange: int = -1
    rows: list[int] = field(default_factory=list)
    after: dict[int, Any] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)

    def settle(self, heard: int) -> None:
        """Keep the round played last if the server has heard it, and forget it if not.

        Raises
        ------
        fkl.basics.errors.FklError
            Where the server has heard a round that is not remembered here.
        """
        if heard == self.round >= 0:
            self.state, self.heard = self.after, heard
        elif heard != self.heard:
            raise FklError(f"it remembers up to round {self.heard + 1}, where the server has heard round {heard + 1}")
        elif self.round >= 0:
            self.y_hat[self.rows] = np.nan
        self.after, self.rows, self.round, self.exchange = {}, [], -1, -1

    def begin(self, t: int, exchange: int, heard: int) -> dict[int, Any]:
        """The states, to be used up, with which an exchange of a round is played.

        Raises
        ------
        fkl.basics.errors.FklError
            Where the exchange before it was not played here.
        """
        if exchange == 0:
            self.settle(heard)
            return deepcopy(self.state)
        if (self.round, self.exchange, self.heard) != (t, exchange - 1, heard):
            raise FklError(f"it has not played exchange {exchange} of round {t + 1}, and cannot play the next one")
        return self.after

    def end(self, t: int, exchange: int, state: dict[int, Any]) -> None:
        """Remember what came of that."""
        self.round, self.exchange, self.after = t, exchange, state

    def predicted(self, row: int, y_hat: float) -> None:
        """Remember a prediction of the round under way."""
        self.rows.append(row)
        self.y_hat[row] = y_hat


def to_arrays(value: Any) -> dict[str, NDArray[Any]]:
    """Arrays that hold all of a value that is data, its JSON among them."""
    writer = Writer({})
    words = json.dumps(writer.to_plain(value)).encode()
    return {TEXT: np.frombuffer(words, np.uint8), **writer.arrays}


def of_arrays(arrays: Mapping[str, NDArray[Any]], kind: type[Kind]) -> Kind:
    """The value that `to_arrays` was given.

    Raises
    ------
    TypeError
        For a value of another kind; other errors, for arrays that `to_arrays` has not made.
    """
    found = Reader(dict(arrays), None).value(json.loads(arrays[TEXT].tobytes()))
    if not isinstance(found, kind):
        raise TypeError(f"a {type(found).__name__}")
    return found


def to_bytes(value: Any) -> bytes:
    """A value that is data, as bytes."""
    write_arrays(stream := BytesIO(), to_arrays(value))
    return stream.getvalue()


def of_bytes(content: bytes, kind: type[Kind]) -> Kind:
    """The value that `to_bytes` was given; raises as `of_arrays`, and DamagedError, which is a ValueError."""
    return of_arrays(read_arrays(BytesIO(content)), kind)


def read(file: Path, kind: type[Kind]) -> Kind | None:
    """The value that a sealed file holds; None where there is no file.

    Raises
    ------
    fkl.basics.errors.FklError
        For a file that cannot be read.
    """
    try:
        return of_arrays(read_sealed(file), kind)
    except FileNotFoundError:
        return None
    except (OSError, DamagedError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise FklError(f"{file}: cannot be read ({error}); remove it to start anew") from None
