"""Files that are written completely or not at all, and files of arrays that are read unchanged or not at all."""

import hashlib
import math
import os
import re
import secrets
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line

if sys.platform != "win32":
    import fcntl

SEAL = 65
"""Bytes before the arrays of a sealed file: the SHA-256 of the rest in hexadecimal digits, and a newline."""
TEMPORARY = re.compile(r"\.partial-\d+-[0-9a-f]{8}$")
"""End of a temporary file's name."""

DAMAGE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError, RuntimeError, MemoryError,
    OSError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Errors of numpy and the standard library for a damaged npz, such as OSError for a place before its beginning."""


class CannotWriteError(FklError):
    """A full disk, an exceeded quota or a read-only folder; the results so far are still worth keeping."""


class DamagedError(ValueError):
    """A sealed file that has changed since it was written; the message says how."""


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Report a write that the file system refuses, in one line that names the path; the block only writes there.

    If the error names a path elsewhere, the line names that one instead.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        elsewhere = _path_elsewhere(error, path)
        said = f"{path}: cannot be written ({why})" if elsewhere is None else f"{elsewhere}: {why}"
        raise CannotWriteError(said) from error


def _path_elsewhere(error: OSError, path: Path) -> str | None:
    """The path that an error names, unless it is this one, a parent, or something in or next to it, such as a lock."""
    if not isinstance(error.filename, str | bytes):
        return None
    named = os.fsdecode(error.filename)
    try:
        resolved, here = Path(named).resolve(), path.resolve()
    except (OSError, RuntimeError):  # the current folder has been deleted, or a link leads to itself
        return None
    near = resolved.parent == here.parent or resolved.is_relative_to(here) or here.is_relative_to(resolved)
    return None if near else in_one_line(named)


def require_files_in(folder: Path) -> None:
    """Raise an error for a folder that accepts no files, such as /proc; waiting for a lock there would never end."""
    with report_write_errors(folder):
        tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def whole_file(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream to a temporary file that replaces `path` if the block succeeds, and is removed otherwise.

    Parameters
    ----------
    path : Path
    durable : bool
        Whether the file must be on the disk, not only in a cache, when the block has ended.
    """
    with report_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _delete_abandoned(path)
        stream = _open_temporary(path)
        partial = Path(stream.name)
        try:
            with stream:
                yield stream
                stream.flush()
                if durable:
                    flush_to_disk(stream)
                if sys.platform == "win32":
                    stream.close()  # Windows renames no open file
                partial.replace(path)  # before the lock is released, when another process may delete the file
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _open_temporary(path: Path) -> BinaryIO:
    """A new file next to `path`; its lock tells other processes that it is not abandoned."""
    while True:
        name = f".{path.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
        stream = path.with_name(name).open("x+b")
        try:
            _lock_stream(stream)
            usable = os.fstat(stream.fileno()).st_nlink > 0  # not deleted before it was locked
        except BlockingIOError:  # another process has just locked it, and deletes it
            usable = False
        except OSError:
            usable = True  # on a file system without locks
        if usable:
            return stream
        stream.close()


def is_temporary(path: Path, of: str = "") -> bool:
    """Whether a path is a temporary file of `whole_file`, for a file named `of` if given; links and pipes are not."""
    end = TEMPORARY.search(path.name)
    named = end is not None and path.name.startswith(".") and of in ("", path.name[1 : end.start()])
    return named and path.is_file() and not path.is_symlink()


def _delete_abandoned(path: Path) -> None:
    """Delete temporary files of `path` that no process locks: theirs was killed or could not delete them."""
    for left in path.parent.iterdir() if sys.platform != "win32" else ():
        if is_temporary(left, path.name):
            with suppress(OSError), left.open("rb") as stream:
                _lock_stream(stream)
                left.unlink()


def _lock_stream(stream: BinaryIO) -> None:
    """Lock a file until it is closed; not on Windows, where abandoned files stay."""
    if sys.platform != "win32":
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    with whole_file(path) as stream:
        stream.write(text.encode())


def flush_to_disk(stream: BinaryIO) -> None:
    """Wait until the disk has the data."""
    stream.flush()
    os.fsync(stream.fileno())


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_arrays(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as numpy's npz: the same bytes for the same arrays."""
    np.savez(
        stream,
        allow_pickle=False,
        **{name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()},
    )  # type: ignore[arg-type]


def read_arrays(path: Path | BinaryIO) -> dict[str, NDArray[Any]]:
    """Read an npz from an untrusted source: only numbers and words, and never more memory than the file has bytes.

    Raises
    ------
    OSError
        If the file does not exist or cannot be opened.
    DamagedError
    """
    with path.open("rb") if isinstance(path, Path) else nullcontext(path) as stream:
        try:
            with zipfile.ZipFile(stream) as content:
                members = content.infolist()
                if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                    raise DamagedError("its arrays are compressed, which fkl's are not")
                if len({member.filename for member in members}) < len(members):
                    raise DamagedError("it has two arrays with the same name")
                return {member.filename.removesuffix(".npy"): _read_array(content.read(member)) for member in members}
        except DAMAGE as error:
            raise DamagedError(f"it holds no arrays ({in_one_line(error)})") from None


def _read_array(content: bytes) -> NDArray[Any]:
    """An array in numpy's format; its header must agree with its number of bytes."""
    stream = BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read(stream)
    rest = content[stream.tell() :]
    if dtype.hasobject or in_columns or min(shape, default=0) < 0:
        raise ValueError("an array of objects, or one that is not stored row by row")
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"an array of shape {in_one_line(shape)} cannot have {len(rest)} bytes")
    return np.frombuffer(rest, dtype).reshape(shape).copy() if rest else np.zeros(shape, dtype)


def write_sealed(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays after the SHA-256 of all of them."""
    with whole_file(path, durable=False) as stream:  # a file that a crash of the machine has truncated is not read
        stream.write(bytes(SEAL))
        np.savez(stream, allow_pickle=False, **arrays)  # type: ignore[arg-type]
        stream.seek(SEAL)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        stream.seek(0)
        stream.write(f"{digest}\n".encode())


def read_sealed(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a sealed file. Nothing in it can run: it holds numbers and text, no objects.

    Raises
    ------
    OSError
        If the file does not exist or cannot be opened.
    DamagedError
    """
    with path.open("rb") as stream:
        seal = stream.read(SEAL)
        if seal != f"{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode():
            raise DamagedError("its SHA-256 is not the one it was written with")
        stream.seek(SEAL)
        try:
            with np.load(stream, allow_pickle=False) as content:
                if any(member.compress_type != zipfile.ZIP_STORED for member in content.zip.infolist()):
                    raise DamagedError("its arrays are compressed, which fkl's are not")
                return dict(content)
        except DAMAGE as error:
            raise DamagedError(f"it holds no arrays ({in_one_line(error)})") from None
