"""Files that no run can be made of, each made at random from a good one, and what must be said about it."""

import gzip
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

FEATURES = ("width", "height", "depth")
ROW = r"line \d+"
CELL = r"line \d+, column (width|height|depth|price)"


class Broken(NamedTuple):
    """A file's content, a pattern of the line that refuses it, and keys beside path and target."""

    content: bytes
    said: str
    keys: tuple[str, ...] = ()


def good(rng: np.random.Generator) -> list[list[str]]:
    """A table with a header and 6 to 30 rows of 2 to 4 columns, the target price last."""
    count = int(rng.integers(1, len(FEATURES) + 1))
    rows = rng.normal(size=(int(rng.integers(6, 31)), count + 1)).round(3)
    return [[*FEATURES[:count], "price"], *([str(number) for number in row] for row in rows)]


def written(table: list[list[str]], delimiter: str = ",") -> bytes:
    """A table as a file has it."""
    return "".join(delimiter.join(cells) + "\n" for cells in table).encode()


def _cell(table: list[list[str]], rng: np.random.Generator, word: str, column: int | None = None) -> bytes:
    """The table with another word in one cell below its first row."""
    row = int(rng.integers(2, len(table)))
    table[row][int(rng.integers(len(table[0]))) if column is None else column] = word
    return written(table)


def _cells(words: tuple[str, ...], said: str) -> Callable[[list[list[str]], np.random.Generator], Broken]:
    return lambda table, rng: Broken(_cell(table, rng, str(rng.choice(words))), CELL + said)


def _ragged(table: list[list[str]], rng: np.random.Generator) -> Broken:
    row = int(rng.integers(2, len(table)))
    table[row] = [*table[row], "1"] if rng.random() < 0.5 else table[row][:-1]
    return Broken(
        written(table), rf"line {row + 1}: \d cells? where line 1 has {len(table[0])}", ("dataset.delimiter=comma",)
    )


def _all(table: list[list[str]], word: str, columns: slice) -> bytes:
    for row in table[1:]:
        row[columns] = [word] * len(row[columns])
    return written(table)


def _garbage(table: list[list[str]], rng: np.random.Generator) -> Broken:
    return Broken(b"\xff" + rng.bytes(int(rng.integers(1, 3000))), f"{ROW}: byte 0xff is not text in UTF-8")


def _far(table: list[list[str]], rng: np.random.Generator, column: int, said: str, *keys: str) -> Broken:
    """A column from end to end of what numbers can be."""
    table[1][column], table[2][column] = "-1.7e308", "1.7e308"
    return Broken(written(table), said, keys)


def _with(
    write: Callable[[list[list[str]]], bytes], said: str, *keys: str
) -> Callable[[list[list[str]], np.random.Generator], Broken]:
    """A way to break a table that needs no dice."""
    return lambda table, rng: Broken(write(table), said, keys)


def _column(word: str, columns: slice, said: str, *keys: str) -> Callable[..., Broken]:
    """One word in all cells of some columns."""
    return _with(lambda table: _all(table, word, columns), said, *keys)


FIRST, FEATURE_COLUMNS, TARGET = slice(0, 1), slice(0, -1), slice(-1, None)
NOT_FINITE, NOT_TEXT = ": .* is not a finite number", "is not text in UTF-8"
BREAK: dict[str, Callable[[list[list[str]], np.random.Generator], Broken]] = {
    "empty": _with(lambda table: b"", "empty; must be a table"),
    "blank": _with(lambda table: b"\n" * len(table), "empty; must be a table"),
    "byte order mark": _with(lambda table: b"\xef\xbb\xbf", "empty; must be a table"),
    "header only": _with(lambda table: written(table[:1]), "0 rows where at least 2 are needed"),
    "one row": _with(lambda table: written(table[:2]), "1 row where at least 2 are needed"),
    "one row, no header": _with(lambda table: written(table[1:2]), "1 row where at least 2", "dataset.target='1'"),
    "nan": _cells(("nan", "NaN", "NA", "", "?", "null"), ": .* is missing"),
    "infinite": _cells(("inf", "-inf", "Infinity", "1e999", "-1e400"), NOT_FINITE),
    "text": _cells(("oops", "1.2.3", "1_000", "0x1f", "--1", "1;5"), NOT_FINITE),
    "text from the start": _column("blue", FIRST, f"{CELL}: 'blue' is not a number"),
    "text as target": _column("dear", TARGET, f"{CELL}: 'dear' is not a number"),
    "decimal comma": _with(
        lambda table: written([[cell.replace(".", ",") for cell in row] for row in table], ";"),
        f"{CELL}: .* is not a finite number; .*dataset.decimal=comma reads it as",
    ),
    "ragged": _ragged,
    "two of a name": _with(
        lambda table: written([[*table[0], "width"], *([*row, "1"] for row in table[1:])]),
        "line 1: two columns are named width",
    ),
    "open quote": lambda table, rng: Broken(_cell(table, rng, '"1'), f"{ROW}: "),
    "garbage": _garbage,
    "utf-16, cut short": _with(
        lambda table: written(table).decode().encode("utf-16")[:-1], r"line \d+: byte 0x.. is not text in UTF-16"
    ),
    "latin-1": _with(lambda table: "größe,price\n1,2\n3,4\n".encode("latin-1"), f"line 1: byte 0xf6 {NOT_TEXT}"),
    "compressed twice": _with(lambda table: gzip.compress(gzip.compress(written(table))), "is compressed twice"),
    "zeros": lambda table, rng: Broken(bytes(int(rng.integers(1, 99))), f"{ROW}|empty|rows where"),
    "huge cell": lambda table, rng: Broken(
        _cell(table, rng, "9" * 200_000), f"{ROW}(: field larger|, column .* is not a finite number)"
    ),
    "only a target": _with(lambda table: written([row[-1:] for row in table]), "no column is left beside the target"),
    "unknown target": _with(written, r"dataset\.target=cost: must be a column of .* which has", "dataset.target=cost"),
    "empty target": _with(written, r"dataset\.target=: must be a column", "dataset.target=''"),
    "wrong delimiter": _with(written, r"dataset\.target=price: must be a column", "dataset.delimiter=pipe"),
    "constant target": _column("3.5", TARGET, r"own\.csv: the target is 3\.5 in every row"),
    "features of 0": _column("0", FEATURE_COLUMNS, r"own\.csv: all features of all rows are 0", "scaling=unit_ball"),
    "features near 0": _column(
        "1e-200", FEATURE_COLUMNS, r"own\.csv: all features of all rows are 0, or as good as", "scaling=unit_ball"
    ),
    "too large for a norm": lambda table, rng: Broken(
        _cell(table, rng, "1e300", 0), r"own\.csv, row \d+: its features are too l", ("scaling=unit_ball",)
    ),
    "target too far": lambda table, rng: _far(
        table, rng, -1, r"own\.csv: the target goes from -1\.7e\+308 to 1\.7e\+308"
    ),
    "feature too far": lambda table, rng: _far(
        table, rng, 0, r"own\.csv: column width goes from .* too far", "scaling=unit_box"
    ),
    "too large unscaled": lambda table, rng: _far(
        table, rng, 0, r"own\.csv, row 1, column width: .* too large", "scaling=none"
    ),
    "all cells missing": _column("", FIRST, "column width: all cells are missing", "dataset.missing=mean"),
    "no row is whole": _column("NA", FIRST, "0 rows without a missing cell", "dataset.missing=drop"),
}
"""What can be wrong with a table: from a good one, which may be changed, to a broken one."""

EDGES: dict[str, Broken] = {
    "empty": Broken(b"", "4 agents are in 4 pieces"),
    "comments only": Broken(b"# nothing\n\n", "4 agents are in 4 pieces"),
    "in pieces": Broken(b"0 1\n2 3\n", "4 agents are in 2 pieces"),
    "an agent apart": Broken(b"0 1\n1 2\n", "4 agents are in 2 pieces"),
    "no such agent": Broken(b"0 1\n1 2\n2 4\n", "line 3: there is no agent 4; must be from 0 to 3"),
    "below 0": Broken(b"0 -1\n", "line 1: there is no agent -1; must be from 0 to 3"),
    "itself": Broken(b"0 1\n1 1\n", "line 2: joins agent 1 to itself"),
    "twice": Broken(b"0 1\n1 2\n2 3\n1 0\n", "line 4: edge 1 0 is in line 1 already"),
    "one number": Broken(b"0 1\n2\n", "line 2: '2' is not an edge, which is two integers"),
    "three numbers": Broken(b"0 1 1.5\n", "line 1: .* is not an edge"),
    "commas": Broken(b"0,1\n", "line 1: .* is not an edge"),
    "words": Broken(b"a b\n", "line 1: .* is not an edge"),
    "no integer": Broken(b"0 1.5\n", "line 1: .* is not an edge"),
    "nan": Broken(b"0 nan\n", "line 1: .* is not an edge"),
    "huge": Broken(b"0 99999999999999999999999999\n", "line 1: .* is not an edge"),
    "garbage": Broken(b"\xff\xfe\x00", "line 1: byte 0x00 is not text in UTF-16$"),
    "latin-1": Broken(b"0 1\xe4\n", "line 1: byte 0xe4 is not text in UTF-8$"),
    "long line": Broken(b"7" * 10_000 + b"\n", r"line 1: '7+\.\.\.' is not an edge"),
}
"""Edge lists that are no graph of four agents."""


def broken_table(what: str, seed: int) -> Broken:
    """A table with this wrong."""
    rng = np.random.default_rng([seed, *what.encode()])
    return BREAK[what](good(rng), rng)
