"""What a long run has done so far, in a file beside its folder: a killed run goes on from there."""

import glob
import os
import pickle
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, KeyError, TypeError)
"""What pickle raises for a file that is damaged, or that another version wrote."""


class Checkpoint:
    """The file in which a run keeps what it has done.

    A file has two parts, so that a reader can build from the first what the second refers to.

    Parameters
    ----------
    file : Path
    every : float or None
        Seconds between two savings: 0 saves whenever it may, None never.
    digest : str
        Of the run; the file of another run is not read.
    """

    def __init__(self, file: Path, every: float | None, digest: str) -> None:
        self.file, self._digest = file, digest
        self._every = float("inf") if every is None else every
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._last >= self._every

    def place(self) -> Any | None:
        """First part of what was saved; None where there is nothing of this run that can be read."""
        try:
            with self.file.open("rb") as stream:
                digest, place = pickle.load(stream)
        except (*UNREADABLE, ValueError):
            return None
        return place if digest == self._digest else None

    def load(self, owner: Any) -> Any | None:
        """Second part of what was saved, with the attributes of `owner` that it refers to; None where unreadable."""
        try:
            with self.file.open("rb") as stream:
                pickle.load(stream)
                return _Unpickler(stream, owner).load()
        except (*UNREADABLE, ValueError):
            return None

    def save(self, place: Any, done: Any, owned: Mapping[str, Any]) -> None:
        """Write both parts beside the file and move it there in one step.

        Parameters
        ----------
        place, done : any
            What can be pickled.
        owned : mapping of str to object
            Attributes of the reader's owner; `done` refers to them by name.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        try:
            with partial.open("wb") as stream:
                pickle.dump((self._digest, place), stream, pickle.HIGHEST_PROTOCOL)
                _Pickler(stream, owned).dump(done)
            partial.replace(self.file)
        except (pickle.PicklingError, AttributeError, TypeError) as error:  # a method of the user's own
            print(f"no checkpoints: its state cannot be kept ({error})", file=sys.stderr)
            self._every = float("inf")
        finally:
            partial.unlink(missing_ok=True)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Forget what was saved, also by a process that was killed while it saved."""
        for file in self.file.parent.glob(f"{glob.escape(self.file.name)}*"):
            file.unlink(missing_ok=True)


class _Pickler(pickle.Pickler):
    """Writes a name in place of each object that the reader has too."""

    def __init__(self, stream: BinaryIO, owned: Mapping[str, Any]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._names = {id(value): name for name, value in owned.items() if value is not None}

    def persistent_id(self, value: Any) -> str | None:
        return self._names.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: BinaryIO, owner: Any) -> None:
        super().__init__(stream)
        self._owner = owner

    def persistent_load(self, name: str) -> Any:
        return getattr(self._owner, name)
