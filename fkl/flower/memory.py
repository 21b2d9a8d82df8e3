"""What a site remembers between two messages: arrays and words, in Flower's memory and in a file of its own."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.errors import FklError
from fkl.files import DamagedError, read_sealed, write_sealed
from fkl.plain import Reader, Writer

TEXT = "text"
"""Name of the array that holds the JSON."""


@dataclass
class Memory:
    """A client's state after the last round that counted, and after the one that it played since, if any.

    A round counts when the server has heard all of those that take part in it. One that does not is forgotten, as if
    the client had not been there.

    Parameters
    ----------
    state : any
        After round `heard`, or before the first.
    y_hat : (T,)
        Predictions of all rounds that counted, and of `round`; NaN where there is none.
    heard : int
        Last round that counted, from 0; -1 for none.
    round, exchange : int
        Played since; -1 for none.
    after : any
        State after that.
    """

    state: Any
    y_hat: NDArray[np.float64]
    heard: int = -1
    round: int = -1
    exchange: int = -1
    after: Any = field(default=None)

    def settle(self, heard: int) -> None:
        """Keep the round played last if the server has heard it, and forget it if not.

        Raises
        ------
        fkl.errors.FklError
            Where the server has heard a round that is not remembered here.
        """
        if heard == self.round >= 0:
            self.state, self.heard = self.after, heard
        elif heard != self.heard:
            raise FklError(f"it remembers up to round {self.heard + 1}, where the server has heard round {heard + 1}")
        elif self.round >= 0:
            self.y_hat[self.round] = np.nan
        self.after, self.round, self.exchange = None, -1, -1

    def begin(self, t: int, exchange: int, heard: int) -> Any:
        """The state, to be used up, with which an exchange of a round is played.

        Raises
        ------
        fkl.errors.FklError
            Where the exchange before it was not played here.
        """
        if exchange == 0:
            self.settle(heard)
            return deepcopy(self.state)
        if (self.round, self.exchange, self.heard) != (t, exchange - 1, heard):
            raise FklError(f"it has not played exchange {exchange} of round {t + 1}, and cannot play the next one")
        return self.after

    def end(self, t: int, exchange: int, state: Any) -> None:
        """Remember what came of that."""
        self.round, self.exchange, self.after = t, exchange, state


def to_arrays(value: Any) -> dict[str, NDArray[Any]]:
    """Arrays that say all of a value that is data, its JSON among them."""
    writer = Writer({})
    words = json.dumps(writer.plain(value)).encode()
    return {TEXT: np.frombuffer(words, np.uint8), **writer.arrays}


def memory_of(arrays: Mapping[str, NDArray[Any]]) -> Memory:
    """The memory that `to_arrays` was given.

    Raises
    ------
    TypeError
        For what is no memory, and whatever else arrays that it has not made lead to.
    """
    found = Reader(dict(arrays), None).value(json.loads(arrays[TEXT].tobytes()))
    if not isinstance(found, Memory):
        raise TypeError(f"a {type(found).__name__}")
    return found


def kept(file: Path) -> Memory | None:
    """The memory that a file keeps; None where there is none.

    Raises
    ------
    fkl.errors.FklError
        For a file that cannot be read.
    """
    try:
        return memory_of(read_sealed(file))
    except FileNotFoundError:
        return None
    except (OSError, DamagedError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise FklError(f"{file}: holds no memory of a site ({error})") from None


def keep(file: Path, memory: Memory) -> None:
    """Write the file, whole or not at all."""
    write_sealed(file, to_arrays(memory))
