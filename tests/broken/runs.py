"""Folders that are no whole run, each made of a whole one, and what must be said about it."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

CONFIG, PROVENANCE, SUMMARY, ROUNDS = "config.yaml", "provenance.json", "summary.csv", "rounds.csv"
MISSING, CHANGED, UNREADABLE = "is missing", "has changed since the run ended", "cannot be read"
NOT_OURS = "provenance.json is missing or damaged, or the run is not finished"
FOREVER = 400_000
"""Brackets in brackets: the compiled YAML parser ends the process with fewer."""
ENDLESS = "nested too deeply, or has aliases"


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


def _in(name: str, change: Callable[[bytes], bytes], said: str, *, signed: bool = False) -> Broken:
    """Change what a file holds; `signed` gives it the checksum that it has then."""

    def by(folder: Path) -> None:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(change(before))
        assert (folder / name).read_bytes() != before
        if signed:
            sign(folder)

    return Broken(by, said)


def _signed(name: str, change: Callable[[bytes], bytes], said: str) -> Broken:
    return _in(name, change, f"^{name}: .*{said}", signed=True)


def _changed(name: str, change: Callable[[bytes], bytes]) -> Broken:
    return _in(name, change, f"{name} {CHANGED}")


def _instead(name: str, make: Callable[[Path], object]) -> Broken:
    """Put something else in a file's place."""
    return Broken(lambda folder: ((folder / name).unlink(), make(folder / name)), f"{name} {MISSING}")


def _key(key: str, value: Any, said: str) -> Broken:
    told = f"^provenance.json: {key}=.*: must be {said}"
    return _in(PROVENANCE, lambda text: json.dumps(json.loads(text) | {key: value}).encode(), told)


def _more(lines: str, said: str) -> Broken:
    return _signed(CONFIG, lambda text: text + lines.encode(), said)


def _cell(row: int, column: int, word: str, said: str) -> Broken:
    """Another cell in the summary."""

    def written(text: bytes) -> bytes:
        table = [line.split(",") for line in text.decode().splitlines()]
        table[row][column] = word
        return "".join(",".join(cells) + "\n" for cells in table).encode()

    return _signed(SUMMARY, written, said)


def _becomes(make: Callable[[Path], object], said: str) -> Broken:
    """Something else in the place of the whole folder."""
    return Broken(lambda folder: (rmtree(folder), make(folder)), said)


ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
"""A few lines that become 9^29 words."""

BROKEN = {
    # files that are not as they were written, or not there
    "rounds cut short": _changed(ROUNDS, lambda text: text[: len(text) // 2]),
    "summary of another digit": _changed(SUMMARY, lambda text: text.replace(b"1", b"2", 1)),
    "clients full of zeros, as after a power cut": _changed("clients.csv", lambda text: bytes(len(text))),
    "config edited by hand": _changed(CONFIG, lambda text: text.replace(b"seed: 0", b"seed: 1")),
    "summary deleted": _instead(SUMMARY, lambda file: None),
    "clients that are a pipe": _instead("clients.csv", os.mkfifo),
    "summary that is a link to itself": _instead(SUMMARY, lambda file: file.symlink_to(file.name)),
    # provenance.json that is none, or of other keys or types
    "provenance deleted": _instead(PROVENANCE, lambda file: None),
    "provenance binary": _in(PROVENANCE, lambda text: b"\xff\x00" * 99, NOT_OURS),
    "provenance nested without end": _in(PROVENANCE, lambda text: b"[" * 10**6, NOT_OURS),
    "provenance of a run under way": _in(PROVENANCE, lambda text: text.replace(b'"finished"', b'"running"'), NOT_OURS),
    "provenance of an older fkl": _in(
        PROVENANCE,
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k not in ("state", "files")}).encode(),
        "made by an older version of fkl",
    ),
    "checksums of nothing": _key("files", {}, "with clients.csv, config.yaml"),
    "checksums of a name that no file has": _in(
        PROVENANCE, lambda text: json.dumps(json.loads(text) | {"files": {"\0": ""}}).encode(), MISSING
    ),
    "checksums of a file elsewhere": Broken(
        lambda folder: (folder / PROVENANCE).write_text(
            (folder / PROVENANCE).read_text().replace('"mse.png"', f'"../{folder.name}/mse.png"')
        ),
        "files of the folder itself",
    ),
    "digest that is nothing": _key("digest", None, "text"),
    "rounds that are half a round": _key("rounds", 100.5, "an integer"),
    "clients without end": _key("clients", 2**63, "an integer >= 0, below 2.63"),
    "a note nested without end": _in(
        PROVENANCE, lambda text: text.rstrip()[:-1] + b', "note": ' + b"[" * 99 + b"]" * 99 + b"}", "plain values"
    ),
    # config.yaml and tables, with the checksums that they have
    "config in UTF-16": _signed(CONFIG, lambda text: text.decode().encode("utf-16"), UNREADABLE),
    "config that is a list": _signed(CONFIG, lambda text: b"- 1\n", "not keys with plain values"),
    "config of a megabyte": _more("# " + "x" * 2**20 + "\n", "size=.*: must be at most"),
    "config with an alias bomb": _more(ALIASES, ENDLESS),
    "config with an alias to itself": _more("more: &more [*more]\n", ENDLESS),
    "config nested without end": _more("more: " + "[" * FOREVER + "]" * FOREVER + "\n", ENDLESS),
    "config with a tag of Python's": _more("more: !!python/object/apply:os.system [exit]\n", UNREADABLE),
    "config with a seed in words": _signed(
        CONFIG, lambda text: text.replace(b"seed: 0", b"seed: zero"), "seed=zero: must be an integer"
    ),
    "config with an algo that is nothing": _signed(
        CONFIG, lambda text: text.replace(b"algo:\n", b"algo: null\nold:\n"), "algo=None: must be keys"
    ),
    "summary without its last line": _signed(SUMMARY, lambda text: text[: text.rindex(b"\n", 0, -1)], "have one row"),
    "summary with mse renamed": _cell(0, 1, "MSE", "lacks columns of rounds.csv: mse"),
    "summary with text": _cell(1, 1, "<script>alert(1)</script>", "columns=mse: must be numbers"),
    "summary with two columns of one name": _cell(0, 2, "mse", "must be different names"),
    "summary with infinity": _cell(2, 3, "inf", "columns=regret_hindsight: must be finite numbers"),
    "picture of words": _signed("mse.png", lambda data: b"<svg onload=alert(1)>", "not a complete PNG"),
    # what is no folder of files
    "a file": _becomes(lambda path: path.write_text("notes"), "not a folder"),
    "an empty folder": _becomes(Path.mkdir, NOT_OURS),
}
"""Kinds of folders."""
