"""The user's own file, read only up to the available memory."""

import codecs
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

from fkl.basics.errors import FklError, count_of, in_one_line, require
from fkl.basics.keys import NO_DEFAULT, Keys, key
from fkl.basics.memory import require_memory, shown_bytes
from fkl.data.store import CHUNK, DAMAGE, OPENERS

NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters except tab, line feed and carriage return, from a binary file or meant for a terminal."""
TEXT = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Encodings by the byte order mark at a file's beginning."""
ZIP = b"PK\x03\x04"
PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
"""Suffixes of compressed files by their first bytes."""
OTHER = "a file of another program; save its table as CSV or Parquet"
LOOKED_AT = 1 << 16
"""Number of first bytes by which other kinds of files are recognised."""
KINDS = {
    re.compile(
        rb"\xd0\xcf\x11\xe0"
    ): "an old Excel workbook; give it a name that ends in .xls, or save its sheet as CSV",
    re.compile(rb"\x1f\x8b|BZh\d1AY|\xfd7zXZ"): "compressed twice; unpack it once",
    re.compile(rb"PAR1"): "a Parquet file; give it a name that ends in .parquet",
    re.compile(rb"ARROW1"): "a Feather file; give it a name that ends in .feather",
    re.compile(rb"\x93NUMPY"): "an array of numpy; give it a name that ends in .npy",
    re.compile(rb"MATLAB [57]\."): (
        "a MATLAB file; numpy.savez('table.npz', **{name: part for name, part in scipy.io.loadmat(path).items() "
        "if name[0] != '_'}) makes a table of its variables"
    ),
    re.compile(rb"\x89HDF"): "an HDF5 file; pandas.read_hdf(path).to_csv('table.csv', index=False) makes a table",
    re.compile(rb"7z\xbc\xaf|Rar!"): "an archive; unpack the table and give its path",
    re.compile(rb".{257}ustar", re.DOTALL): "a tar archive; unpack the table and give its path",
    re.compile(rb"\x80[\x02-\x05]|RDX[23]|X\n\0|SQLite format|<stata_dta|\$FL2|HEADER RECORD"): OTHER,
    re.compile(rb"%PDF|\x89PNG|\xff\xd8\xff|GIF8|\x7fELF"): OTHER,
    re.compile(rb"(?:[ \t\r]*(?:%.*)?\n)*[ \t\r]*@relation\b", re.IGNORECASE): (
        "an ARFF file; pandas.DataFrame(scipy.io.arff.loadarff(path)[0]).to_csv('table.csv', index=False) makes a table"
    ),
    re.compile(rb"\s*(?:<!doctype|<html|<\?xml)", re.IGNORECASE): "a web page or XML; download the file itself",
    re.compile(rb"\s*\{(?:\s*\"users\"\s*:|(?=.*\"user_data\"))", re.DOTALL): (
        "JSON of LEAF; pandas.concat([pandas.DataFrame(one['x']).assign(user=user, y=one['y']) for user, one in "
        "json.load(open(path))['user_data'].items()]).to_csv('table.csv', index=False) makes a table, with "
        "dataset.target=y dataset.site=user"
    ),
    re.compile(rb"\s*\{[^\n]*\}[ \t\r]*\n\s*\{"): (
        "JSON lines; pandas.read_json(path, lines=True, dtype=False, convert_dates=False)"
        ".to_csv('table.csv', index=False) makes a table"
    ),
    re.compile(rb"\s*(?:\{\s*\"|\[\s*\{)"): (
        "JSON; pandas.read_json(path, dtype=False, convert_dates=False).to_csv('table.csv', index=False) makes a table "
        "of a list of rows, or of a dictionary of columns"
    ),
}
"""Kinds of files that are not text tables, with advice, by their first bytes."""
OFFICE = {
    "xl/workbook.xml": "an Excel workbook; give it a name that ends in .xlsx, or save its sheet as CSV",
    "xl/workbook.bin": "an Excel workbook; save its sheet as CSV",
    "content.xml": "a spreadsheet; save its sheet as CSV",
}
"""Kinds of zip archives, by a file in them."""
TABLES = frozenset({".csv", ".tsv", ".tab", ".data", ".dat"})
"""Suffixes by which a table is found among other files in a zip archive."""
PER_BYTE = 6
"""Bytes of memory that a byte of text takes while it is decoded and cut into lines."""
FILES_SHOWN = 10
PER_COLUMN = 1000
"""Bytes of memory that a column takes in addition to its cells."""
ROOM, LEAST_ROOM = 512, 2**29
"""In memory, a file may take this many times its size, and even a small file this many bytes."""
LOWER = "the number of its rows or columns"


def read_bytes(path: str) -> bytes:
    """Raw content of a file.

    Raises
    ------
    FklError
        If there is no such file, it is a folder, a pipe or a device, it cannot be read, or is too large.
    """
    # A regular file that fits in memory several times, because its text is parsed from it
    try:
        require(Path(path).is_file(), "path", path, "an existing file, not a folder, pipe or device")
        with Path(path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            require_memory(PER_BYTE * size, f"{path}, {shown_bytes(size)} of text", LOWER)
            return stream.read(size)  # and no more: files such as those in /proc may have no end, or block
    except OSError as error:
        raise FklError(f"{in_one_line(path)}: cannot be read ({error.strerror})") from None


def memory_room(size: int) -> int:
    """Maximum memory in bytes that the cells of a file of this size may take."""
    return max(ROOM * size, LEAST_ROOM)


def require_room(path: str, raw: bytes, needed: int, what: str) -> None:
    """Refuse cells that take more memory than is available, or than a file of this size should take."""
    if needed > memory_room(len(raw)):
        raise FklError(
            f"{path}: {what} would take {shown_bytes(needed)} of memory, which is too much for a file of "
            f"{shown_bytes(len(raw))}; if this is intended, unpack the file, or write it without compression"
        )
    require_memory(needed, f"{path}, {what}", LOWER)


def decompress_text(path: str, raw: bytes) -> bytes:
    """Content of a text file, decompressed according to its suffix or first bytes, or of a zip archive's only table.

    Raises
    ------
    FklError
        If it is not text, is damaged, or is longer than fits in memory or than a file of its size should be.
    """
    # Decompress by suffix or by the first bytes, since downloads often lose their suffix
    marked = next((suffix for mark, suffix in PACKED.items() if raw.startswith(mark)), "")
    unpack = OPENERS.get(Path(path).suffix.lower(), OPENERS.get(marked))
    try:
        if unpack is not None:
            with cast(BinaryIO, unpack(io.BytesIO(raw))) as stream:
                content = _read_in_pieces(path, raw, stream)
        elif raw.startswith(ZIP):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(_only_table(path, archive)) as member:
                content = _read_in_pieces(path, raw, cast(BinaryIO, member))
        else:
            content = raw
    except (*DAMAGE, ValueError) as error:
        raise FklError(f"{path}: cannot be decompressed, it is damaged or cut short: {error}") from None
    # Files that are no tables, such as web pages and pictures, are named
    for pattern, kind in KINDS.items():
        if pattern.match(content[:LOOKED_AT]):
            raise FklError(f"{path}: is {kind.replace('(path', f'({path!r}')}")
    return content


def _read_in_pieces(path: str, raw: bytes, stream: BinaryIO) -> bytes:
    pieces, size = [], 0
    while piece := stream.read(CHUNK):
        pieces.append(piece)
        size += len(piece)
        require_room(path, raw, PER_BYTE * size, f"{shown_bytes(size)} of text and more")
    return b"".join(pieces)


def _only_table(path: str, archive: zipfile.ZipFile) -> str:
    """Name of the only file in an archive, or of the only one whose suffix is that of a table."""
    # Office documents and numpy's archives are zip files too
    names = archive.namelist()
    for name, kind in OFFICE.items():
        if name in names:
            raise FklError(f"{path}: is {kind}")
    if any(name.endswith(".npy") for name in names):
        raise FklError(f"{path}: has arrays of numpy; give it a name that ends in .npz")
    # The only file, or the only one with the suffix of a table
    files = [name for name in names if not name.endswith("/") and not name.startswith(("__MACOSX/", "."))]
    tables = [name for name in files if Path(name).suffix.lower() in TABLES]
    candidates = files if len(files) == 1 else tables
    if len(candidates) != 1:
        count = f"{count_of(len(tables), 'table')} among {count_of(len(files), 'file')}"
        shown = ", ".join(map(in_one_line, (tables or files)[:FILES_SHOWN])) + ", ..." * (len(candidates) > FILES_SHOWN)
        raise FklError(f"{path}: is a zip archive with {count}: {shown}; unpack the table and give its path")
    return candidates[0]


def decode_text(path: str, raw: bytes, encoding: str | None = None, as_typed: Callable[..., str] | None = None) -> str:
    """Decode a file's content.

    Parameters
    ----------
    path : str
    raw : bytes
    encoding : str or None
        None for UTF-8, and for UTF-16 or UTF-32 with its byte order mark.
    as_typed : callable, optional
        How a command line sets the key ``encoding``, if there is one, for messages.

    Raises
    ------
    FklError
        If it has another encoding or contains control characters; the message names the line.
    """
    # The mark at the beginning decides, unless a key names the encoding
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8-sig")
    try:
        words = raw.decode(encoding or marked)
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = raw.count(b"\n", 0, at) + 1
        wrong = f"byte 0x{raw[at]:02x} is not text in {encoding or marked.removesuffix('-sig').upper()}"
        use = f"; {as_typed(encoding='latin-1')}, or cp1252, ... may read it" if as_typed else ""
        raise FklError(f"{path}, line {line}: {wrong}{use}") from None
    # Signs that no table has show a wrong encoding or a binary file
    words = words.removeprefix("\ufeff").rstrip("\x1a")  # DOS ends a text with Ctrl-Z, and CP/M fills its last block
    if words.isascii() and not words.encode().translate(None, TEXT):
        return words  # in a long text, the search would take as long as reading it
    if sign := NO_TEXT.search(words):
        line = words.count("\n", 0, sign.start()) + 1
        wide = f"utf-16-{'be' if words[0] == sign[0] else 'le'}"
        use = f"; {as_typed(encoding=wide)} may read it" if sign[0] == "\0" and as_typed else ""
        raise FklError(f"{path}, line {line}: the control character U+{ord(sign[0]):04X} is not text{use}")
    return words


@dataclass(frozen=True)
class OfAFile(Keys):
    """A user's text file; base class of choices whose numbers depend on one."""

    path: str = key(NO_DEFAULT, "The file; it is read once.")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the raw file: a run with a changed file is another run; errors as in `read_bytes`."""
        return hashlib.sha256(self._raw).hexdigest()

    @cached_property
    def words(self) -> str:
        """The complete text; raises the errors of `read_bytes` and `decode_text`."""
        return decode_text(self.path, self._raw)

    @cached_property
    def _raw(self) -> bytes:
        return read_bytes(self.path)
