"""Folders that are no whole run, each made of a whole one, and what must be said about it."""

import json
import os
import struct
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

CONFIG, PROVENANCE, SUMMARY, ROUNDS = "config.yaml", "provenance.json", "summary.csv", "rounds.csv"
MISSING, CHANGED, UNREADABLE = "is missing", "has changed since the run ended", "cannot be read"
NOT_OURS = "provenance.json is missing, damaged or not of a finished run"
FOREVER = 400_000
"""Brackets in brackets: the compiled YAML parser ends the process with fewer."""
ENDLESS = "nested without end, or has aliases"


class Broken(NamedTuple):
    """How a folder is broken, and a pattern of the reason."""

    by: Callable[[Path], object]
    said: str


def sign(folder: Path) -> None:
    """Write new checksums into a run's provenance, as if its files had been so from the first."""
    note = json.loads((folder / PROVENANCE).read_text())
    files = [file for file in folder.iterdir() if file.is_file() and file.name != PROVENANCE]
    note["files"] = {file.name: sha256(file.read_bytes()).hexdigest() for file in files}
    (folder / PROVENANCE).write_text(json.dumps(note))


def _in(name: str, change: Callable[[bytes], bytes], signed: bool = False) -> Callable[[Path], None]:
    """Change what a file holds."""

    def by(folder: Path) -> None:
        file = folder / name
        before = file.read_bytes()
        file.write_bytes(change(before))
        assert file.read_bytes() != before
        if signed:
            sign(folder)

    return by


def _unsigned(name: str, change: Callable[[bytes], bytes], said: str = "") -> Broken:
    return Broken(_in(name, change), said or f"{name} {CHANGED}")


def _signed(name: str, change: Callable[[bytes], bytes], said: str) -> Broken:
    return Broken(_in(name, change, signed=True), f"^{name}: .*{said}")


def _instead(name: str, make: Callable[[Path], object], said: str = MISSING) -> Broken:
    """Put something else in a file's place."""

    def by(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return Broken(by, f"{name} {said}")


def _told(**keys: Any) -> Callable[[bytes], bytes]:
    """Other values in provenance.json."""
    return lambda text: json.dumps(json.loads(text) | keys).encode()


def _untold(*keys: str) -> Callable[[bytes], bytes]:
    """Fewer keys in provenance.json."""
    return lambda text: json.dumps({key: value for key, value in json.loads(text).items() if key not in keys}).encode()


def _key(key: str, value: Any, said: str) -> Broken:
    return _unsigned(PROVENANCE, _told(**{key: value}), f"^provenance.json: {key}=.*: must be {said}")


def _set(mine: str, other: str, said: str) -> Broken:
    """Another line in the configuration."""

    def change(text: bytes) -> bytes:
        assert mine.encode() in text
        return text.replace(mine.encode(), other.encode(), 1)

    return _signed(CONFIG, change, said)


def _more(lines: str, said: str) -> Broken:
    return _signed(CONFIG, lambda text: text + lines.encode(), said)


def _cells(change: Callable[[list[list[str]]], object], said: str, file: str = SUMMARY) -> Broken:
    """Other cells in a table of our own, the reason being about the summary."""

    def written(text: bytes) -> bytes:
        table = [line.split(",") for line in text.decode().splitlines()]
        change(table)
        return "".join(",".join(cells) + "\n" for cells in table).encode()

    return Broken(_in(file, written, signed=True), f"^summary.csv: .*{said}")


def _put(row: int, column: int, word: str) -> Callable[[list[list[str]]], None]:
    def change(table: list[list[str]]) -> None:
        table[row][column] = word

    return change


def _without(column: int) -> Callable[[list[list[str]]], None]:
    def change(table: list[list[str]]) -> None:
        for row in table:
            del row[column]

    return change


def _png(width: int, height: int) -> bytes:
    """A picture of one bit a pixel that says how large it is, and holds one row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")


def _becomes(make: Callable[[Path], object], said: str) -> Broken:
    """Something else in the place of the whole folder."""

    def by(folder: Path) -> None:
        rmtree(folder)
        make(folder)

    return Broken(by, said)


def _loses(*names: str) -> Callable[[Path], None]:
    def by(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()
        if PROVENANCE not in names:
            sign(folder)

    return by


ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
"""A few lines that become 9^29 words."""

BROKEN = {
    # files that are not as they were written
    "rounds cut short": _unsigned(ROUNDS, lambda text: text[: len(text) // 2]),
    "rounds cut at the end of a line": _unsigned(ROUNDS, lambda text: text[: text.rindex(b"\n", 0, -1) + 1]),
    "summary cut short": _unsigned(SUMMARY, lambda text: text[:-9]),
    "summary empty": _unsigned(SUMMARY, lambda text: b""),
    "summary of another digit": _unsigned(SUMMARY, lambda text: text.replace(b"1", b"2", 1)),
    "summary with Windows' line ends": _unsigned(SUMMARY, lambda text: text.replace(b"\n", b"\r\n")),
    "summary with a row twice": _unsigned(SUMMARY, lambda text: text + text.splitlines(keepends=True)[-1]),
    "summary with a mark of its order of bytes": _unsigned(SUMMARY, lambda text: b"\xef\xbb\xbf" + text),
    "clients binary": _unsigned("clients.csv", lambda text: bytes(range(256)) * 9),
    "clients full of zeros, as after a power cut": _unsigned("clients.csv", lambda text: bytes(len(text))),
    "config empty": _unsigned(CONFIG, lambda text: b""),
    "config edited by hand": _unsigned(CONFIG, lambda text: text.replace(b"seed: 0", b"seed: 1")),
    "picture cut short": _unsigned("mse.png", lambda data: data[:999]),
    "picture that is text": _unsigned("mse.png", lambda data: b"<svg onload=alert(1)>"),
    "picture of one other bit": _unsigned("regret.png", lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]),
    "PDF cut short": _unsigned("mse.pdf", lambda data: data[:-1]),
    # files that are not there
    "summary deleted": _instead(SUMMARY, lambda file: None),
    "rounds deleted": _instead(ROUNDS, lambda file: None),
    "clients deleted": _instead("clients.csv", lambda file: None),
    "config deleted": _instead(CONFIG, lambda file: None),
    "picture deleted": _instead("mse.png", lambda file: None),
    "PDF deleted": _instead("regret.pdf", lambda file: None),
    "rounds that are a folder": _instead(ROUNDS, Path.mkdir),
    "summary that is a link to nowhere": _instead(SUMMARY, lambda file: file.symlink_to("nowhere")),
    "summary that is a link to itself": _instead(SUMMARY, lambda file: file.symlink_to(file.name)),
    "clients that are a pipe": _instead("clients.csv", os.mkfifo),
    "picture that is a link to a device": _instead("mse.png", lambda file: file.symlink_to("/dev/zero")),
    # provenance.json that is none
    "provenance deleted": _instead(PROVENANCE, lambda file: None, "is missing"),
    "provenance that is a folder": _instead(PROVENANCE, Path.mkdir, "is missing"),
    "provenance that is a pipe": _instead(PROVENANCE, os.mkfifo, "is missing"),
    "provenance that is a link to nowhere": _instead(PROVENANCE, lambda file: file.symlink_to("nowhere"), "is missing"),
    "provenance empty": _unsigned(PROVENANCE, lambda text: b"", NOT_OURS),
    "provenance cut short": _unsigned(PROVENANCE, lambda text: text[:-9], NOT_OURS),
    "provenance twice": _unsigned(PROVENANCE, lambda text: text + text, NOT_OURS),
    "provenance binary": _unsigned(PROVENANCE, lambda text: b"\xff\x00" * 99, NOT_OURS),
    "provenance in UTF-16": _unsigned(PROVENANCE, lambda text: text.decode().encode("utf-16"), NOT_OURS),
    "provenance that is a list": _unsigned(PROVENANCE, lambda text: b"[" + text + b"]", NOT_OURS),
    "provenance that is a word": _unsigned(PROVENANCE, lambda text: b'"finished"', NOT_OURS),
    "provenance that is nothing": _unsigned(PROVENANCE, lambda text: b"null", NOT_OURS),
    "provenance nested without end": _unsigned(PROVENANCE, lambda text: b"[" * 10**6, NOT_OURS),
    "provenance with a number of 5000 digits": _unsigned(
        PROVENANCE, lambda text: text.replace(b"100,", b"9" * 5000 + b",", 1), NOT_OURS
    ),
    "provenance of a run under way": _unsigned(PROVENANCE, _told(state="running"), NOT_OURS),
    "provenance without state": _unsigned(PROVENANCE, _untold("state"), NOT_OURS),
    "provenance without checksums": _unsigned(PROVENANCE, _untold("files"), NOT_OURS),
    "provenance of an older fkl": _unsigned(PROVENANCE, _untold("state", "files"), "made by an older version of fkl"),
    "checksums that are a list": _unsigned(PROVENANCE, _told(files=[1]), NOT_OURS),
    "checksums that are numbers": _unsigned(PROVENANCE, _told(files={SUMMARY: 1}), f"summary.csv {CHANGED}"),
    "checksums of nothing": _unsigned(PROVENANCE, _told(files={}), "files=: must be with clients.csv, config.yaml"),
    "checksums of a name that no file has": _unsigned(PROVENANCE, _told(files={"\0": ""}), MISSING),
    "checksums of a file elsewhere": Broken(
        lambda folder: _in(PROVENANCE, lambda text: _told(
            files=json.loads(text)["files"] | {f"../{folder.name}/mse.png": json.loads(text)["files"]["mse.png"]}
        )(text))(folder),
        "files of the folder itself",
    ),
    # provenance.json of other keys or types
    **{
        f"provenance without {key}": _unsigned(PROVENANCE, _untold(key), f"^provenance.json: {key}=None: must be ")
        for key in ("digest", "dataset", "algorithm", "rounds", "clients", "features", "rows_left_out",
                    "scalars_by_kind", "fkl", "packages")
    },
    "dataset that is a list": _key("dataset", ["diabetes"], "text"),
    "dataset that is nothing": _key("dataset", None, "text"),
    "algorithm that is a number": _key("algorithm", 7, "text"),
    "algorithm that is keys": _key("algorithm", {"name": "Raker"}, "text"),
    "digest that is a number": _key("digest", 140, "text"),
    "rounds that are text": _key("rounds", "100", "an integer"),
    "rounds that are half a round": _key("rounds", 100.5, "an integer"),
    "rounds that are true": _key("rounds", True, "an integer"),
    "rounds below zero": _key("rounds", -100, "an integer >= 0"),
    "rounds that are no number": _key("rounds", float("nan"), "an integer"),
    "clients without end": _key("clients", 2**63, "an integer >= 0, below 2.63"),
    "packages that are a list": _key("packages", ["numpy"], "keys with values"),
    "blas that is text": _key("blas", "openblas", "a list"),
    "a note nested without end": _unsigned(
        PROVENANCE, lambda text: text.rstrip()[:-1] + b', "note": ' + b"[" * 99 + b"]" * 99 + b"}", "plain values"
    ),
    # config.yaml, with the checksum that it has
    "config with a tab": _more("more:\n\tkey: 1\n", UNREADABLE),
    "config binary": _signed(CONFIG, lambda text: b"\x00\xff" * 99, UNREADABLE),
    "config in UTF-16": _signed(CONFIG, lambda text: text.decode().encode("utf-16"), UNREADABLE),
    "config in Latin-1": Broken(
        _in(CONFIG, lambda text: text + b"name: caf\xe9\n", signed=True), f"^{CONFIG}: {UNREADABLE}"
    ),
    "config that is a list": _signed(CONFIG, lambda text: b"- 1\n", "not keys with plain values"),
    "config that is a word": _signed(CONFIG, lambda text: b"seed\n", "not keys with plain values"),
    "config of nothing": _signed(CONFIG, lambda text: b"# nothing\n", "not keys with plain values"),
    "config of a megabyte": _more("# " + "x" * 2**20 + "\n", "size=.*: must be at most"),
    "config of two documents": _more("---\nseed: 1\n", UNREADABLE),
    "config with an alias bomb": _more(ALIASES, ENDLESS),
    "config with an alias to itself": _more("more: &more [*more]\n", ENDLESS),
    "config with merged keys": _more("more: &more {a: 1}\nless: {<<: *more}\n", ENDLESS),
    "config nested without end": _more("more: " + "[" * FOREVER + "]" * FOREVER + "\n", ENDLESS),
    "config nested too far": _more("more: " + "[" * 99 + "]" * 99 + "\n", ENDLESS),
    "config with a tag of Python's": _more("more: !!python/object/apply:os.system [exit]\n", UNREADABLE),
    "config with a tag of nobody's": _more("more: !mine 1\n", UNREADABLE),
    "config with a time that is none": _more("more: !!timestamp x\n", UNREADABLE),
    "config with a truth that is none": _more("more: !!bool maybe\n", UNREADABLE),
    "config with a day": _more("more: 2001-01-01\n", "not keys with plain values"),
    "config with bytes": _more("more: !!binary aGk=\n", "not keys with plain values"),
    "config with a set": _more("more: !!set {a, b}\n", "not keys with plain values"),
    "config with a key that is a list": _more("? [a]\n: 1\n", UNREADABLE),
    "config with a key that is a number": _more("more:\n  1: a\n", "not keys with plain values"),
    "config with a quote left open": _more('more: "x\n', UNREADABLE),
    "config without seed": _set("seed: 0\n", "", "seed=None: must be an integer"),
    "config with a seed in words": _set("seed: 0", "seed: zero", "seed=zero: must be an integer"),
    "config with a seed below zero": _set("seed: 0", "seed: -1", "seed=-1: must be an integer >= 0"),
    "config with half a replicate": _set("replicates: 2", "replicates: 1.5", "replicates=1.5: must be an integer"),
    "config with a scaling that is a list": _set("scaling: unit_ball", "scaling: [a]", "scaling=.*: must be text"),
    "config with an algo that is nothing": _set("algo:\n", "algo: null\nold:\n", "algo=None: must be keys"),
    "config with a network that is text": _set("network:\n", "network: fast\nold:\n", "network=fast: must be keys"),
    # tables, with the checksums that they have
    "summary of other replicates": Broken(
        _in(CONFIG, lambda text: text.replace(b"replicates: 2", b"replicates: 3"), signed=True),
        "^summary.csv: has not one row for each of the 3 replicates",
    ),
    "summary of no bytes": _signed(SUMMARY, lambda text: b"", UNREADABLE),
    "summary of no lines but the first": _cells(lambda table: table.__delitem__(slice(1, None)), "not one row"),
    "summary without its last line": _cells(lambda table: table.pop(), "not one row"),
    "summary of a replicate twice": _cells(_put(2, 0, "0"), "not one row"),
    "summary of a replicate that is no number": _cells(_put(2, 0, "NaN"), "not one row"),
    "summary without replicates": _cells(_put(0, 0, "copy"), "not one row"),
    "summary without mse": _cells(_without(1), "lacks columns of rounds.csv: mse"),
    "summary with mse renamed": _cells(_put(0, 1, "MSE"), "lacks columns of rounds.csv: mse"),
    "summary with mse twice": _cells(_put(0, 2, "mse"), "lacks columns of rounds.csv: regret_best_kernel"),
    "summary with text": _cells(_put(1, 1, "<script>alert(1)</script>"), "columns=mse: must be numbers"),
    "summary with a formula": _cells(_put(1, 1, "=1+1"), "columns=mse: must be numbers"),
    "summary with commas for points": _cells(_put(1, 1, '"0;2"'), "columns=mse: must be numbers"),
    "summary with infinity": _cells(_put(2, 3, "inf"), "columns=regret_hindsight: must be finite numbers"),
    "summary below all numbers": _cells(_put(1, 1, "-1e999"), "columns=mse: must be finite numbers"),
    "summary with a cell too many": _cells(lambda table: table[2].extend(["1", "2"]), UNREADABLE),
    "summary with a quote left open": _cells(_put(1, 1, '"1'), UNREADABLE),
    "summary that is binary": _signed(SUMMARY, lambda text: bytes(range(256)), UNREADABLE),
    "summary in UTF-16": _signed(SUMMARY, lambda text: text.decode().encode("utf-16"), UNREADABLE),
    "summary that is a page": _signed(SUMMARY, lambda text: b"<html><body>404</body></html>\n", "not one row"),
    "rounds with mse renamed": _cells(_put(0, 2, "MSE"), "lacks columns of rounds.csv: MSE", ROUNDS),
    "rounds that begin with bytes": Broken(
        _in(ROUNDS, lambda text: b"\xff" + text, signed=True), f"^summary.csv: {UNREADABLE}"
    ),
    "run without a summary": Broken(_loses(SUMMARY), "files=: must be with summary.csv"),
    "run without a config": Broken(_loses(CONFIG), "files=: must be with config.yaml"),
    # pictures, with the checksums that they have
    "picture that stops": _signed("mse.png", lambda data: data[:999], "not a picture"),
    "picture of no bytes": _signed("mse.png", lambda data: b"", "not a picture"),
    "picture of words": _signed("mse.png", lambda data: b"<svg onload=alert(1)>", "not a picture"),
    "picture that is a GIF": _signed("mse.png", lambda data: b"GIF89a\x01\0\x01\0\0\0\0;", "not a picture"),
    "picture in PostScript": _signed("mse.png", lambda data: b"%!PS-Adobe-3.0 EPSF-3.0\n", "not a picture"),
    "picture of 10^10 pixels": _signed("mse.png", lambda data: _png(100_000, 100_000), "not a picture"),
    "picture of 60 million pixels": _signed("mse.png", lambda data: _png(60_000_000, 1), "not a picture"),
    "picture of another sum": _signed("regret.png", lambda data: data[:29] + bytes(4) + data[33:], "not a picture"),
    # what is no folder of files
    "a file": _becomes(lambda path: path.write_text("notes"), "not a folder"),
    "an empty folder": _becomes(Path.mkdir, NOT_OURS),
    "a folder of folders": _becomes(lambda path: (path / "runs").mkdir(parents=True), NOT_OURS),
    "a link to nowhere": _becomes(lambda path: path.symlink_to("nowhere"), "not a folder"),
    "a link to itself": _becomes(lambda path: path.symlink_to(path.name), "not a folder"),
    "a pipe": _becomes(os.mkfifo, "not a folder"),
    "a link to a device": _becomes(lambda path: path.symlink_to("/dev/null"), "not a folder"),
}  # fmt: skip
"""Kinds of folders."""

NAMES = {
    "script": "<script>alert(1)",
    "picture": "<img src=x onerror=alert(1)>",
    "attribute": '"onmouseover="alert(1)',
    "ampersand": "a&amp;b",
    "template": "{{ 7 * 7 }}{% raw %}",
    "markdown": "[a](javascript:alert(1)) `b` **c**",
    "escape code": "\x1b[31mred\x1b]0;title\x07",
    "line ends": "one\r\ntwo",
    "turned around": "\u202egnp.exe",
    "not UTF-8": os.fsdecode(b"\xff\xfe"),
    "spaces": "  a  b ",
    "long": "x" * 250,
    "dash": "--help",
    "emoji": "\N{ROCKET}\u200d",
}
"""Names of folders that a page and a terminal must show as text."""

FAILED = {
    "empty": (lambda folder: (folder / "error.txt").write_text(""), "error.txt is empty"),
    "spaces": (lambda folder: (folder / "error.txt").write_text(" \n\n"), "error.txt is empty"),
    "binary": (lambda folder: (folder / "error.txt").write_bytes(b"\xff\x00\x80last"), "last"),
    "missing": (lambda folder: None, "error.txt is missing"),
    "folder": (lambda folder: (folder / "error.txt").mkdir(), "error.txt is missing"),
    "pipe": (lambda folder: os.mkfifo(folder / "error.txt"), "error.txt is missing"),
    "nowhere": (lambda folder: (folder / "error.txt").symlink_to("nowhere"), "error.txt is missing"),
    "escape": (lambda folder: (folder / "error.txt").write_text("\x1b[31mred\x1b[0m\x07"), "[31mred"),
    "script": (lambda folder: (folder / "error.txt").write_text("a\n<script>alert(1)</script>"), "<script>alert(1)"),
    "tag": (lambda folder: (folder / "error.txt").write_text("</ul></main><img src=x onerror=alert(1)>"), "onerror"),
    "surrogate": (lambda folder: (folder / "error.txt").write_bytes(b"\xed\xa0\x80here"), "here"),
    "endless": (lambda folder: (folder / "error.txt").write_bytes(b"y" * 10**6), "y" * 2000),
    "long": (lambda folder: (folder / "error.txt").write_bytes(b"line\n" * 10**6 + b"the end"), "the end"),
    "file": (lambda folder: (folder.rmdir(), folder.write_text("x")), "error.txt is missing"),
}
"""What a failed run may leave, and words that must be on the page."""

UNUSABLE = {
    "outputs is a file": (lambda here: (here / "outputs").write_text(""), r"outputs/runs: cannot be read \(Not a dir"),
    "outputs is a link to itself": (lambda here: (here / "outputs").symlink_to("outputs"), r"outputs/runs: cannot be"),
    "runs is a file": (lambda here: _file(here / "outputs" / "runs"), r"outputs/runs: cannot be read \(Not a dir"),
    "failed is a file": (lambda here: _file(here / "outputs" / "failed"), r"outputs/failed: cannot be read \(Not a"),
    "tables is a file": (lambda here: _file(here / "outputs" / "figures"), r"outputs/figures/.*: cannot be written"),
    "page is a folder": (lambda here: (here / "outputs" / "report.html").mkdir(parents=True), r"report.html: cannot"),
}
"""Folders that no page can be made in, and the line that refuses."""


def _file(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("")
