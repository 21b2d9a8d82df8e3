"""A file with the state of a long run, from which the run resumes if it was killed."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from fkl.basics.errors import in_one_line
from fkl.basics.files import CannotWriteError, read_sealed, write_sealed
from fkl.basics.plain_data import NotPlainError, Reader, Writer
from fkl.screen.messages import show_warning

Kept = TypeVar("Kept")
CHECKPOINT = "checkpoint"
"""Name of the file in a run's folder."""
TEXT = "text"
"""Name of the array with the JSON."""


class Follower(Protocol):
    """Output that grows during a run, such as its tables, and that can be truncated to a checkpoint's position."""

    @property
    def position(self) -> Any:
        """The current position, as plain data."""
        ...

    def truncate_to(self, position: Any) -> None:
        """Remove the output after this position."""
        ...


class Checkpoint:
    """The file with a run's state: a SHA-256, then plain data, and no code.

    Parameters
    ----------
    file : Path
    every : float or None
        Seconds between two checkpoints; 0 for as often as possible, None for never.
    digest : str
        Digest of the run; a file of another run is not used.
    follower : Follower or None
    """

    def __init__(self, file: Path, every: float | None, digest: str, follower: Follower | None = None) -> None:
        self.file, self._digest, self._follower = file, digest, follower
        self._every = float("inf") if every is None else every
        self._last = time.monotonic()
        self._warned = False

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._last >= self._every

    def place(self) -> tuple[int, int] | None:
        """First of the running replicates, and their number; None without a usable file, with a message."""
        saved = self._read_file()
        if saved is None:
            return None
        place = saved[0].get("place")
        if isinstance(place, list) and len(place) == 2 and all(type(one) is int and one >= 0 for one in place):
            return place[0], max(1, place[1])
        self._say_anew("it does not say which replicates were running")
        return None

    def rounds(self) -> tuple[int, int, int] | None:
        """First of the running replicates, their number, and the number of rounds that they have finished; or None."""
        place = self.place()
        saved = None if place is None else self._read_file()
        done = None if saved is None else saved[0].get("rounds")
        return (*place, done) if place is not None and type(done) is int else None

    def load(self, owner: Any, kind: type[Kept]) -> Kept | None:
        """The saved object of this type, linked to attributes of `owner` to which it refers; None if unreadable.

        The follower is truncated to its position in the checkpoint.
        """
        saved = self._read_file()
        if saved is None:
            return None
        # Text first, then arrays; the follower goes back to its place in the text
        text, arrays = saved
        try:
            reader = Reader(arrays, owner)
            done, position = reader.value(text["done"]), reader.value(text["position"])
            if not isinstance(done, kind):
                raise TypeError(f"it is of {type(done).__name__}")
            if self._follower is not None:
                self._follower.truncate_to(position)
        except Exception as error:  # a hand-written file can cause any error
            self._say_anew(f"{type(error).__name__}: {error}")
            return None
        return done

    def save(self, place: tuple[int, int], done: Any, owned: Mapping[str, Any]) -> None:
        """Write the file completely or not at all; the run continues if it cannot be written.

        Parameters
        ----------
        place : (int, int)
            First of the running replicates, and how many run together.
        done : any
            Plain data, or objects made of plain data.
        owned : mapping of str to object
            Attributes of the reader's owner; `done` refers to them by name.
        """
        # The state as text and arrays, with what it refers to by name
        writer = Writer(owned)
        position = None if self._follower is None else self._follower.position
        try:
            text = {"digest": self._digest, "place": list(place), "rounds": getattr(done, "t", 0)}
            text["done"] = writer.to_plain(done)
            text["position"] = writer.to_plain(position)
            words = np.frombuffer(json.dumps(text).encode(), np.uint8)
            write_sealed(self.file, {TEXT: words, **writer.arrays})
        except NotPlainError as error:  # only a user's own method
            show_warning(f"no checkpoints are saved: the method's state holds {error}")
            self._every = float("inf")
        except CannotWriteError as error:  # there may be space next time
            if not self._warned:
                show_warning(f"no checkpoint for now: {error}")
            self._warned = True
        self.restart_timer()

    def restart_timer(self) -> None:
        """Restart the count of seconds until the next checkpoint."""
        self._last = time.monotonic()

    def delete_file(self) -> None:
        """Delete the saved state."""
        self.file.unlink(missing_ok=True)

    def _read_file(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The JSON and the arrays of this run's file; None without a usable file."""
        # A file of another run, or a damaged one, is no error: the run begins anew
        try:
            arrays = read_sealed(self.file)
            text = json.loads(arrays.pop(TEXT).tobytes())
            if text["digest"] == self._digest:
                return text, arrays
            self._say_anew("it belongs to another run")
        except FileNotFoundError:
            pass
        except Exception as error:  # as above
            self._say_anew(str(error))
        return None

    def _say_anew(self, why: str) -> None:
        show_warning(f"{self.file}: not used, so the run starts from the beginning ({in_one_line(why)})")
