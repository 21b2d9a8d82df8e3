"""Data files that somebody could have by mistake, or be given by an enemy, and what is said about each."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

GOOD = "width,height,price\n1,2,3\n4,5,6\n7,8,10\n"
LINE, TEXT = r"own\.csv, line 2", "is not text in UTF-8"
FIRST = rf"{LINE}, column width: .* is not a (finite )?number"
CONTROL = r"own\.csv, line \d+: the control character U\+{} is not text"
RAGGED = r"own\.csv, line \d+: \d+ cells? where line 1 has \d+"
NUMBER = r"own\.csv, line 3, column height: .* is not a finite number"


class Hostile(NamedTuple):
    """A file's content, a pattern of the line that refuses it, keys beside path and target, and its name."""

    content: bytes
    said: str
    keys: tuple[str, ...] = ()
    name: str = "own.csv"


def _cell(word: str, said: str = NUMBER, *keys: str) -> Hostile:
    """A good table with a word in place of the 5."""
    return Hostile(GOOD.replace("5", word).encode(), said, keys)


def _first(word: str, said: str = FIRST, *keys: str) -> Hostile:
    """A good table with a word in its first cell, and so in a column of words."""
    return Hostile(GOOD.replace("\n1", f"\n{word}").encode(), said, keys)


def _header(line: str, said: str, *keys: str) -> Hostile:
    return Hostile(GOOD.replace("width,height,price", line).encode(), said, keys)


def _packed(content: bytes, said: str, suffix: str) -> Hostile:
    return Hostile(content, said, (), f"own.csv{suffix}")


def _zip(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.eye(3))
    return buffer.getvalue()


def _cut(content: bytes, at: float = 0.6) -> bytes:
    return content[: int(at * len(content))]


def _flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


WORDS = (
    *[
        "1e5e5",
        "0x1F",
        "+-1",
        "1/2",
        "12:30",
        "2020-01-01",
        "TRUE",
        "=1+1",
        "@SUM(A1)",
        "$5",
        "5%",
        "#DIV/0!",
        "#N/A",
        "1.#QNAN",
        "-nan(ind)",
        "N/A",
        "None",
        "-",
    ],
    *[
        "1d5",
        "∞",
        "½",
        "−5",
        "5!",
        "5'",
        "1e",
        ".e5",
        "1e309",
        "-1e309",
        "infinity",
        "+INF",
        "0b101",
        "1_0",
        "१२x",
        "`id`",
        "${x}",
    ],
    *("5 cm", "1 000", "9" * 400, "\u202e5", "5\u200b"),
)
LARGE = (GOOD + "1,2,3.5\n" * 5000).encode()
DAMAGED = "cannot be decompressed, it is damaged or cut short"
TABLES: dict[str, Hostile] = {
    # control characters, and what else is not text
    "zero byte in a cell": _cell("5\0", CONTROL.format("0000")),
    "zero byte in the header": _header("wi\0dth,height,price", CONTROL.format("0000")),
    "zero bytes at the end, as after a crash": Hostile(GOOD.encode() + bytes(512), CONTROL.format("0000")),
    "a terminal's colours in the header": _header("\x1b[31mwidth,height,price", CONTROL.format("001B")),
    "a terminal's title in a cell": _cell("\x1b]0;pwned\x07", CONTROL.format("001B")),
    "a cleared screen in words that are coded": _first("\x1b[2Jred", CONTROL.format("001B"), "dataset.text=code"),
    "a bell": _cell("5\x07", CONTROL.format("0007")),
    "a backspace": _cell("5\b6", CONTROL.format("0008")),
    "delete": _cell("5\x7f", CONTROL.format("007F")),
    "an eight-bit escape": _cell("\x9b31m5", CONTROL.format("009B")),
    "the end of a file of DOS": Hostile(GOOD.encode() + b"\x1a", CONTROL.format("001A")),
    "a form feed between pages": Hostile(GOOD.replace("\n4", "\n\f4").encode(), CONTROL.format("000C")),
    "a vertical tab": _cell("5\v", CONTROL.format("000B")),
    "a unit separator as delimiter": Hostile(GOOD.replace(",", "\x1f").encode(), CONTROL.format("001F")),
    "an overlong zero": Hostile(GOOD.encode().replace(b"5", b"\xc0\x80"), f"line 3: byte 0xc0 {TEXT}"),
    "half a surrogate": Hostile(GOOD.encode().replace(b"5", b"\xed\xa0\x80"), f"line 3: byte 0xed {TEXT}"),
    "beyond all characters": Hostile(GOOD.encode().replace(b"5", b"\xf5\x80\x80\x80"), f"line 3: byte 0xf5 {TEXT}"),
    "cut inside a character": Hostile(GOOD.encode() + "8,9,ü".encode()[:-1], f"line 5: byte 0xc3 {TEXT}"),
    "latin-1 in a later line": Hostile(GOOD.encode() + b"8,9,\xfc\n", f"line 5: byte 0xfc {TEXT}"),
    "utf-16 without a mark": Hostile(GOOD.encode("utf-16-le"), CONTROL.format("0000")),
    "ebcdic": Hostile(GOOD.encode("cp500"), f"line 1: byte 0x.. {TEXT}"),
    "shift-jis": Hostile("幅,price\n1,2\n3,4\n".encode("shift_jis"), f"line 1: byte 0x.. {TEXT}"),
    # files of another kind
    "a picture": Hostile(b"\x89PNG\r\n\x1a\n" + bytes(20), "is a file of another program"),
    "a photograph": Hostile(b"\xff\xd8\xff\xe0\x00\x10JFIF", "is a file of another program"),
    "a program": Hostile(b"\x7fELF\x02\x01\x01" + bytes(20), "is a file of another program"),
    "a spreadsheet": Hostile(
        _zip({"xl/workbook.xml": b"<a/>"}),
        "is an Excel workbook; give it a name that ends in .xlsx",
    ),
    "an old spreadsheet": Hostile(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an old Excel workbook; give it a name that ends in .xls"
    ),
    "a database": Hostile(b"SQLite format 3\0\x10\0\1\1", "is a file of another program"),
    "columns as parquet": Hostile(b"PAR1\x15\x04\x15\x30\x15", "is a Parquet, Feather or numpy file"),
    "a numpy array": Hostile(_array(), "is a Parquet, Feather or numpy file"),
    "a pickle": Hostile(pickle.dumps([1.0, 2.0]), "is a file of another program"),
    "a pickle that is text": Hostile(
        b"cos\nsystem\n(S'touch pwned'\ntR.", r"target=price: must be a column of own\.csv"
    ),
    "a page of the web": Hostile(b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "is a web page or XML"),
    "an answer in JSON": Hostile(b'[{"width": 1, "price": 2}, {"width": 3, "price": 4}]\n', "is JSON; save it as CSV"),
    "a pointer to a large file": Hostile(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
        r"target=price: must be a column of own\.csv",
    ),
    "a document": Hostile(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "is a file of another program"),
    "a script": Hostile(b"import os\nos.system('touch pwned')\n", "1 row where at least 2 are needed"),
    "a merge that was not finished": Hostile(
        GOOD.replace("4,5,6", "<<<<<<< HEAD\n4,5,6\n=======\n4,5,7\n>>>>>>> b").encode(), RAGGED
    ),
    # cells
    **{f"a cell of {word}": _cell(word) for word in WORDS},
    "thousands in quotes": _cell('"1,234"', r"line 3, column height: '1,234' is not a finite number"),
    "an empty pair of quotes": _cell('""', r"line 3, column height: '' is missing"),
    "a formula in the first cell": _first("=HYPERLINK(1)"),
    "a date in the first cell": _first("2020-01-01T00:00:00"),
    "yes and no": Hostile(b"width,price\nyes,1\nno,2\nyes,3\n", FIRST),
    "a target of words": Hostile(
        b"width,price\n1,low\n2,high\n", "column price: 'low' is not a number, and the target"
    ),
    "a target that is missing": Hostile(b"width,price\n1,?\n2,NA\n", "column price: .* is missing"),
    "no target is left": Hostile(
        b"width,price\n1,?\n2,NA\n", "0 rows without a missing target where at least 2", ("dataset.missing=mean",)
    ),
    "one target is left": Hostile(
        b"width,price\n1,?\n2,5\n", "1 row without a missing target where at least 2", ("dataset.missing=mean",)
    ),
    "words with holes": Hostile(
        b"width,price\nred,1\n?,5\nblue,2\n",
        "words have no mean",
        ("dataset.missing=mean", "dataset.text=code"),
    ),
    # headers and lines
    "names that differ in spaces": _header('width,"width ",price', "line 1: two columns are named width"),
    "the target twice": _header("width,price,price", "line 1: two columns are named price"),
    "a header in the midst": Hostile((GOOD + GOOD).encode(), "line 5, column width: 'width' is not a finite number"),
    "a line of sums": Hostile((GOOD + "total,15,19\n").encode(), "line 5, column width: 'total' is not a finite"),
    "units under the header": Hostile(GOOD.replace("\n1", "\nm,m,EUR\n1").encode(), f"{LINE}, column width: 'm'"),
    "another delimiter further down": Hostile((GOOD + "1;2;3\n").encode(), RAGGED),
    "a quote that is never closed": Hostile(GOOD.replace("width", '"width').encode(), r"own\.csv, line 1: "),
    "a quote inside a cell": _cell('5"6"x', r"own\.csv, line 3"),
    "two tables": Hostile((GOOD + "\nname,price\nx,1\n").encode(), RAGGED),
    "a cell with a line end": _cell('"5\n6"', NUMBER),
    "only commas": Hostile(b",,,\n,,,\n,,,\n", "target=price: must be a column of own.csv, which has 1, 2, 3, 4"),
    "only quotes": Hostile(b'""\n""\n', "target=price: must be a column"),
    "a hundred thousand empty cells": Hostile(b"," * 100_000 + b"\n", "1 row where at least 2"),
    "one line of a megabyte": Hostile(b"1" * (1 << 20), "line 1: field larger than field limit"),
    "a name of a megabyte": _header("w" * (1 << 20) + ",height,price", "line 1: field larger than field limit"),
    "a name of many letters": Hostile(
        ("w" * 50_000 + ",price\n1,2\nx,3\n").encode(), r"line 3, column w{60}\.\.\.: 'x' is not a finite number"
    ),
    "a name of many letters, all cells missing": Hostile(
        ("w" * 50_000 + ",price\n?,2\n?,3\n").encode(), r"column w{60}\.\.\.: all cells", ("dataset.missing=mean",)
    ),
    "a million quotes": Hostile(b'"' * 1_000_000, "line 1: field larger than field limit"),
    "tabs said to be commas": Hostile(
        GOOD.replace(",", "\t").encode(), "which has width height price", ("dataset.delimiter=comma",)
    ),
    "no header, though it is said": Hostile(b"1,2,3\n4,5,6\n7,8,9\n", "which has 1, 2, 3", ("dataset.header=true",)),
    "a header, though it is said that there is none": Hostile(
        GOOD.encode(),
        "line 1, column 1: 'width' is not a finite number",
        ("dataset.header=false", "dataset.target='3'"),
    ),
    "column 0": Hostile(b"1,2\n3,4\n", "target=0: must be a column of .* which has 1, 2", ("dataset.target='0'",)),
    "a column from the end": Hostile(b"1,2\n3,4\n", "target=-1: must be a column", ("dataset.target='-1'",)),
    "a target in other letters": Hostile(GOOD.encode(), "target=PRICE: must be a column", ("dataset.target=PRICE",)),
    "numbers that are all one": Hostile(b"width,price\n1,2\n3,2\n", r"own\.csv: the target is 2\.0 in every row"),
    "features too small for a norm": Hostile(
        b"width,price\n5e-324,2\n5e-324,3\n", r"own\.csv: all features of all", ("scaling=unit_ball",)
    ),
    "features too large in one row": Hostile(
        b"width,price\n1,2\n1e200,3\n", r"own\.csv, row 2: its features are too l", ("scaling=unit_ball",)
    ),
    # compressed
    "gz that is none": _packed(GOOD.encode(), DAMAGED, ".gz"),
    "xz that is none": _packed(GOOD.encode(), DAMAGED, ".xz"),
    "bz2 that is none": _packed(GOOD.encode(), DAMAGED, ".bz2"),
    "gz cut short": _packed(_cut(gzip.compress(LARGE)), DAMAGED, ".gz"),
    "xz cut short": _packed(_cut(lzma.compress(LARGE)), DAMAGED, ".xz"),
    "bz2 cut short": _packed(_cut(bz2.compress(LARGE)), DAMAGED, ".bz2"),
    "gz without its end": _packed(gzip.compress(LARGE)[:-8], DAMAGED, ".gz"),
    "gz with another length": _packed(gzip.compress(LARGE)[:-4] + b"\1\2\3\4", DAMAGED, ".gz"),
    "gz with a flipped bit": _packed(_flipped(gzip.compress(LARGE), 20), DAMAGED, ".gz"),
    "xz with a flipped bit": _packed(_flipped(lzma.compress(LARGE), 40), DAMAGED, ".xz"),
    "bz2 with a flipped bit": _packed(_flipped(bz2.compress(LARGE), 30), DAMAGED, ".bz2"),
    "gz with words behind it": _packed(gzip.compress(LARGE) + b"and more", DAMAGED, ".gz"),
    "xz called gz": _packed(lzma.compress(LARGE), DAMAGED, ".gz"),
    "gz called bz2": _packed(gzip.compress(LARGE), DAMAGED, ".bz2"),
    "zlib called gz": _packed(zlib.compress(LARGE), DAMAGED, ".gz"),
    "a method that gz has not": _packed(b"\x1f\x8b\x07" + gzip.compress(LARGE)[3:], DAMAGED, ".gz"),
    "gz in gz": _packed(gzip.compress(gzip.compress(LARGE)), "is compressed twice", ".gz"),
    "nothing, as gz": _packed(b"", "empty; must be a table", ".gz"),
    "nothing, compressed": _packed(gzip.compress(b""), "empty; must be a table", ".gz"),
    "a binary file, compressed": _packed(
        gzip.compress(bytes(range(256))), CONTROL.format("0000").replace("csv", "csv.gz") + f"|byte 0x80 {TEXT}", ".gz"
    ),
    "a zip": _packed(
        _zip({"own.csv": GOOD.encode(), "two.csv": b""}), "zip archive with 2 tables among 2 files", ".zip"
    ),
}
"""Of a user's own table; what does not say otherwise is refused by name, and line where there is one."""


def _sparse(folder: Path) -> str:
    with (folder / "own.csv").open("wb") as file:
        file.truncate(1 << 42)
    return "own.csv"


def _made(make: Callable[[Path], object], name: str = "own.csv") -> Callable[[Path], str]:
    def place(folder: Path) -> str:
        make(folder / name)
        return name

    return place


def _loop(path: Path) -> None:
    path.symlink_to("other")
    path.with_name("other").symlink_to(path.name)


NO_FILE = "path=.*: must be a file that is there, no folder, pipe or device"
OR_UNREADABLE = rf"{NO_FILE}|cannot be read"
PLACES: dict[str, tuple[Callable[[Path], str], str]] = {
    "endless zeros": (lambda _: "/dev/zero", NO_FILE),
    "endless noise": (lambda _: "/dev/urandom", NO_FILE),
    "the device of nothing": (lambda _: "/dev/null", NO_FILE),
    "the device that is full": (lambda _: "/dev/full", NO_FILE),
    "a terminal": (lambda _: "/dev/tty", NO_FILE),
    "a pipe": (_made(os.mkfifo), NO_FILE),
    "a link to a pipe": (_made(lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe"))), NO_FILE),
    "a link to endless zeros": (_made(lambda path: path.symlink_to("/dev/zero")), NO_FILE),
    "a loop of links": (_made(_loop), OR_UNREADABLE),
    "a link to itself": (_made(lambda path: path.symlink_to(path.name)), OR_UNREADABLE),
    "a link to a folder": (_made(lambda path: path.symlink_to("..")), NO_FILE),
    "a folder": (_made(Path.mkdir), NO_FILE),
    "below a file": (lambda folder: _made(lambda path: path.write_text(GOOD))(folder) + "/more", OR_UNREADABLE),
    "this folder": (lambda _: ".", NO_FILE),
    "the root": (lambda _: "/", NO_FILE),
    "an address": (lambda _: "https://example.org/own.csv", NO_FILE),
    "an address of a file": (lambda _: "file:///etc/hostname", NO_FILE),
    "a pattern of no file": (lambda _: "'*.tsv'", "path=.*: must be a pattern of files that are there"),
    "a home that is no folder": (lambda _: "'~nobody/own.csv'", NO_FILE),
    "four terabytes of nothing": (_sparse, r"own\.csv, 4 TiB of text would take at least .* is free"),
    "the memory of this process": (lambda _: "/proc/self/mem", "empty|cannot be read|must be a file"),
    "all memory": (lambda _: "/proc/kcore", "of text would take at least|empty|cannot be read|must be a file"),
    "what the kernel says": (lambda _: "/proc/kmsg", "empty|cannot be read|must be a file"),
}
"""Paths that are given for a user's own table: what makes them in a folder, and what is said."""

EDGE = "is not an edge, which is two integers"
GRAPHS: dict[str, Hostile] = {
    "zero byte": Hostile(b"0 1\n1 2\0\n", r"edges\.txt, line 2: the control character U\+0000"),
    "a terminal's colours": Hostile(b"0 1\n\x1b[31m1 2\n", r"edges\.txt, line 2: the control character U\+001B"),
    "counted from 1": Hostile(b"1 2\n2 3\n3 4\n", "line 3: there is no agent 4"),
    "weights": Hostile(b"0 1 0.5\n1 2 0.5\n", f"line 1: .* {EDGE}"),
    "a header": Hostile(b"source target\n0 1\n", f"line 1: .* {EDGE}"),
    "semicolons": Hostile(b"0;1\n", f"line 1: .* {EDGE}"),
    "a hyphen": Hostile(b"0-1\n", f"line 1: .* {EDGE}"),
    "digits of elsewhere": Hostile("0 １\n".encode(), f"line 1: .* {EDGE}"),
    "a plus": Hostile(b"+0 +1\n", f"line 1: .* {EDGE}"),
    "an exponent": Hostile(b"0 1e0\n", f"line 1: .* {EDGE}"),
    "hexadecimal": Hostile(b"0x0 0x1\n", f"line 1: .* {EDGE}"),
    "underscores": Hostile(b"0 0_1\n", f"line 1: .* {EDGE}"),
    "a comment behind": Hostile(b"0 1 # here\n", f"line 1: .* {EDGE}"),
    "a matrix": Hostile(b"0 1 0 0\n1 0 1 0\n0 1 0 1\n0 0 1 0\n", f"line 1: .* {EDGE}"),
    "a graph as XML": Hostile(b"<graphml>\n<edge source='0' target='1'/>\n</graphml>\n", f"line 1: .* {EDGE}"),
    "a graph as JSON": Hostile(b'{"edges": [[0, 1], [1, 2]]}\n', f"line 1: .* {EDGE}"),
    "a graph as dot": Hostile(b"graph {\n0 -- 1\n}\n", f"line 1: .* {EDGE}"),
    "the far end of all numbers": Hostile(b"0 999999999999999999\n", "line 1: there is no agent 999999999999999999"),
    "a mark in the midst": Hostile("0 1\n\ufeff1 2\n".encode(), f"line 2: .* {EDGE}"),
    "latin-1": Hostile(b"# gr\xfcn\n0 1\n", "line 1: byte 0xfc is not text in UTF-8"),
    "spaces that are none": Hostile("0\u200b1\n".encode(), f"line 1: .* {EDGE}"),
    "a compressed file": Hostile(gzip.compress(b"0 1\n1 2\n2 3\n"), "line 1: byte 0x8b|control character"),
    "a million letters": Hostile(b"x" * 1_000_000, rf"line 1: 'x{{60}}\.\.\.' {EDGE}"),
    "the other way round": Hostile(b"0 1\n1 2\n2 3\n2 1\n", "line 4: edge 2 1 is in line 2 already"),
    "with itself, at last": Hostile(b"0 1\n1 2\n2 3\n3 3\n", "line 4: joins agent 3 to itself"),
}
"""Edge lists that are no graph of four agents."""


class Served(NamedTuple):
    """Files of the catalogue, by their path below the data folder, keys, and what is said."""

    files: dict[str, bytes]
    keys: tuple[str, ...]
    said: str


GISETTE = ("dataset=gisette", "algo=fdskl")


def _gisette(line: bytes, said: str) -> Served:
    """LIBSVM's text, with a line after a good one."""
    content = b"1 1:0.5 5000:-1\n" + line + b"\n-1 2:0.5\n"
    return Served({"gisette_scale": content}, GISETTE, rf"gisette_scale, line 2{said}")


def _packed_gisette(content: bytes, suffix: str, said: str = "gisette_scale cannot be read, it is damaged") -> Served:
    return Served({f"gisette/gisette_scale{suffix}": content}, GISETTE, said)


def _wec(change: Callable[[list[bytes]], list[bytes]], said: str) -> Served:
    """A site's file with one row changed."""
    rows = [b",".join(b"%d" % (row + column) for column in range(49)) for row in range(4)]
    return Served(
        {"wec/Adelaide_Data.csv": b"\n".join(change(rows)) + b"\n"}, ("dataset=wec",), rf"Adelaide_Data\.csv{said}"
    )


def _row(row: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda rows: [*rows[:2], row, *rows[3:]]


def _archive(content: bytes, said: str) -> Served:
    name = "wave%2Benergy%2Bconverters.zip".replace("%2B", "+")
    return Served({f"wec/{name}": content}, ("dataset=wec",), said)


def _wisdm(content: bytes, said: str) -> Served:
    """The only participant at hand, of whose file no hash is known."""
    return Served({"wisdm/data_1601_accel_phone.txt": content}, ("dataset=wisdm", "scaling=none"), said)


def _encrypted() -> bytes:
    """A zip whose member says that it has a password."""
    content = bytearray(_zip({"Adelaide_Data.csv": b"1"}, zipfile.ZIP_STORED))
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + place] |= 1
    return bytes(content)


def _strange() -> bytes:
    """A zip whose member is packed in a way that nobody knows."""
    content = bytearray(_zip({"Adelaide_Data.csv": b"1"}, zipfile.ZIP_STORED))
    for mark, place in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        content[content.index(mark) + place] = 77
    return bytes(content)


NOT_A_SAMPLE = ": .* is not a label and index:value pairs"
WIDE = b",".join([b"1"] * 49)
NO_LINE = "none of its . lines is '1601,letter,timestamp,x,y,z;'"
MEMBER = {"WECs/Adelaide_Data.csv": WIDE}
SAMPLES = (
    *(b"", b"# a comment", b"oops 1:1", b"1 0:1", b"1 5001:1", b"1 2:1 1:1", b"1 1", b"1 1:", b"1 :1", b"1 a:1"),
    *(b"1 1:1:1", b"1 1.5:1", b"1 -1:1", b"1 99999999999999999999999:1", b"1 1:0x5", b"1\t1:1,2:1"),
    *(b"<html>", b"1 1:1 qid:3 2:1 2:1", b"\xff\xfe", b"1 1:1\x1b[31m 2:x", b"1 1:--1", b"1,2,3"),
)
SERVED: dict[str, Served] = {
    **{f"libsvm: {word!r}": _gisette(word, NOT_A_SAMPLE) for word in SAMPLES},
    "libsvm: nan": _gisette(b"1 1:nan", ", feature 1: nan is not a finite number"),
    "libsvm: infinite": _gisette(b"1 7:-inf", ", feature 7: -inf is not a finite number"),
    "libsvm: empty": Served({"gisette_scale": b""}, GISETTE, "gisette_scale: 0 rows where 6000 are needed"),
    "libsvm: cut short": Served(
        {"gisette_scale": b"1 1:0.5\n-1 2:0.5\n"}, GISETTE, "gisette_scale: 2 rows where 6000 are needed"
    ),
    "bz2 cut short": _packed_gisette(_cut(bz2.compress(LARGE)), ".bz2"),
    "bz2 with a flipped bit": _packed_gisette(_flipped(bz2.compress(LARGE), 30), ".bz2"),
    "bz2 that is none": _packed_gisette(b"<html>Not found</html>", ".bz2"),
    "gz that is none": _packed_gisette(b"<html>Not found</html>", ".gz"),
    "xz cut short": _packed_gisette(_cut(lzma.compress(LARGE)), ".xz"),
    "a row of letters": _wec(_row(b"x" * 99), ", line 3"),
    "a row too short": _wec(_row(b"1,2,3"), ", line 3: 3 columns where 49 are expected"),
    "a row too long": _wec(_row(WIDE + b",1"), ", line 3: 50 columns where 49 are expected"),
    "a first row too long": _wec(lambda rows: [WIDE + b",1", *rows], ", line 1: 50 columns where 49 are expected"),
    "a hole": _wec(_row(WIDE[:-1]), ", line 3, column .*: '' is not a finite number"),
    "an infinite cell": _wec(_row(WIDE[:-1] + b"inf"), ", line 3, column .*: 'inf' is not a finite number"),
    "a cell that is no number": _wec(_row(WIDE[:-1] + b"nan"), ", line 3, column .*: 'nan' is not a finite number"),
    "a cell of words": _wec(_row(WIDE[:-1] + b"oops"), ", line 3, column .*: 'oops' is not a finite number"),
    "a cell of many letters": _wec(_row(WIDE[:-1] + b"y" * 100_000), r", line 3, column .*: 'y{200}\.\.\.' is not"),
    "a terminal's colours": _wec(_row(WIDE[:-1] + b"\x1b[31m"), r", line 3, column .*: '\\x1b\[31m' is not"),
    "a zero byte": _wec(_row(WIDE[:-1] + b"1\0"), r", line 3, column .*: '1\\x00' is not"),
    "bytes that are no text": _wec(_row(WIDE[:-1] + b"\xff"), ", line 3, column .* is not a finite number"),
    "rows that are missing": _wec(lambda rows: rows, ": 4 rows where 72000 are expected"),
    "no row at all": _wec(lambda rows: [], ", line 1: 0 columns where 49 are expected"),
    "a quote never closed": _wec(_row(b'"' + WIDE), ", line 4: 1 columns where 49 are expected"),
    "a zip that is none": _archive(b"<html>Not found</html>", "cannot be read, it is damaged or cut short"),
    "a zip cut short": _archive(_cut(_zip({"Adelaide_Data.csv": os.urandom(5000)})), "cannot be read, it is damaged"),
    "a zip with a flipped bit": _archive(
        _flipped(_zip({"Adelaide_Data.csv": b"1" * 5000}, zipfile.ZIP_STORED), 2500), "cannot be read, it is damaged"
    ),
    "a zip without the file": _archive(_zip({"other.csv": WIDE}), "the archive holds no file Adelaide_Data.csv"),
    "an empty zip": _archive(_zip({}), "the archive holds no file Adelaide_Data.csv"),
    "nothing called zip": _archive(b"", "cannot be read, it is damaged or cut short"),
    "a zip that points up": _archive(
        _zip({"../../evil.sh": b"", **MEMBER}), "refused, because its member '../../evil.sh'"
    ),
    "a zip that points to the root": _archive(_zip({"/etc/cron.d/x": b"", **MEMBER}), "refused, because its member"),
    "a zip that points to a drive": _archive(_zip({"C:\\x.exe": b"", **MEMBER}), "refused, because its member"),
    "a zip that points up, and tells the terminal": _archive(
        _zip({"../\x1b[2J": b"", **MEMBER}), r"refused, because its member '../\\x1b\[2J'"
    ),
    "a zip in the zip that points up": _archive(
        _zip({"in.zip": _zip({"../up": b"", **MEMBER})}), r"refused, because its member '\.\./up'"
    ),
    "a zip in the zip that is none": _archive(
        _zip({"in.zip": b"<html>"}), "cannot be read, it is damaged or cut short"
    ),
    "three zips deep": _archive(_zip({"a.zip": _zip({"b.zip": _zip(MEMBER)})}), "the archive holds no file"),
    "a zip with a password": _archive(_encrypted(), "cannot be read, it is damaged .*(password|encrypted)"),
    "a zip packed in another way": _archive(_strange(), "cannot be read, it is damaged or cut short"),
    "a folder of that name in the zip": _archive(
        _zip({"Adelaide_Data.csv/": b""}), "the archive holds no file Adelaide_Data.csv"
    ),
    "wisdm: empty": _wisdm(b"", NO_LINE),
    "wisdm: somebody else's": _wisdm(b"1602,A,1,1,2,3;\n", NO_LINE),
    "wisdm: no such activity": _wisdm(b"1601,N,1,1,2,3;\n", NO_LINE),
    "wisdm: two axes": _wisdm(b"1601,A,1,1,2;\n", NO_LINE),
    "wisdm: commas in numbers": _wisdm(b"1601,A,1,1,5,2,5,3,5;\n", NO_LINE),
    "wisdm: a negative time": _wisdm(b"1601,A,-5,1,2,3;\n", NO_LINE),
    "wisdm: a time beyond all": _wisdm(b"1601,A,9999999999999999999,1,2,3;\n", NO_LINE),
    "wisdm: hexadecimal": _wisdm(b"1601,A,1,0x1,2,3;\n", NO_LINE),
    "wisdm: words": _wisdm(b"1601,A,1,nan,inf,x;\n", NO_LINE),
    "wisdm: a number of a million digits": _wisdm(b"1601,A,1," + b"1" * 1_000_000 + b",2,3;\n", NO_LINE),
    "wisdm: zero bytes": _wisdm(bytes(1000), NO_LINE),
    "wisdm: no line end": _wisdm(b"1601,A,1,1,2,3;" * 1000, NO_LINE),
    "wisdm: utf-16": _wisdm("1601,A,1,1,2,3;\n".encode("utf-16"), "none of its . lines"),
    "wisdm: one reading": _wisdm(b"1601,A,1,1,2,3;\n", "wisdm: no window of walking in the 1 files"),
    "wisdm: time stands still": _wisdm(b"1601,A,1,1,2,3;\n" * 1000, "wisdm: no window of walking in the 1 files"),
    "wisdm: time runs back": _wisdm(
        b"".join(b"1601,A,%d,1,2,3;\n" % (10**12 - row * 10**8) for row in range(500)), "no window of walking"
    ),
    "wisdm: too large for a float": _wisdm(b"1601,A,1,1e999,2,3;\n", "wisdm: no window of walking"),
    "wisdm: one activity only": _wisdm(
        b"".join(b"1601,A,%d,1,2,3;\n" % (row * 5 * 10**7) for row in range(500)), "wisdm: no window of jogging"
    ),
}
"""What could lie in the data folder, of data sets whose files have no known hash."""
