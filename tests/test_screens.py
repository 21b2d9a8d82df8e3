"""What every command shows: no line is wider than a terminal of 80 columns, and a pipe gets no escape code."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL
from rich.cells import cell_len
from rich.console import Console

from fkl.screen.tables import show_table

ROWS, COLUMNS = 24, 80
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
MARKER = "=== command "
OF_A_PAPER = ("dataset=naval", "replicates=2", "network.uplink_budget=1000")
AUDIT = ("dataset=ellipses", "dataset.rows=90", "dataset.test_rows=0", "partition=vertical", "partition.parties=2")
COMMANDS = {
    "help": ("--help",),
    "run": ("run", *SMALL),
    "again": ("run", *SMALL, "-v"),
    "sweep": ("run", "-m", *SMALL, "algo=pof_mkl,vm_kofl"),
    "paper": ("run", "-m", *OF_A_PAPER, "+pof_mkl/row_as_published=vm_kofl,pof_mkl_m1"),
    "list": ("list",),
    "list algo": ("list", "algo"),
    "describe": ("describe", "pof_mkl"),
    "describe a key": ("describe", "algo.eta"),
    "data list": ("data", "list"),
    "data describe": ("data", "describe", "dataset=diabetes"),
    "plan": ("plan", *SMALL),
    "plan -m": ("plan", "-m", *SMALL, "algo=pof_mkl,vm_kofl", "seed=0,1"),
    "compare": ("compare", "dataset=diabetes"),
    "table": ("table", "pof_mkl/1"),
    "audit": ("audit", "fdskl", *AUDIT, "algo.iterations=2", "algo.features=2", "algo.batch=8"),
    "report": ("report",),
    "no such method": ("run", "algo=pof_mlk"),
    "too many": ("run", "algo.M=100"),
    "no such paper": ("table", "pof_mlk/1"),
}
REFUSED = {"no such method", "too many", "no such paper"}
PLAYER = f"""
import json, sys
from dataclasses import replace
import blank
from fkl import cli
from fkl.data import readers
blank.begin()
published = readers.data_file
readers.data_file = lambda *given: replace(published(*given), sha256=None, size=None)
for name, words in json.loads(sys.argv[1]).items():
    sys.argv = ["fkl", *words]
    code = 0
    print("{MARKER}" + name, flush=True)
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code
    print("\\n{MARKER}ended " + str(code), flush=True)
"""
"""Plays all commands in one process, since it takes a while to start one; data files are stand-ins."""


@pytest.fixture(scope="module")
def naval(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random numbers in naval's layout."""
    folder = tmp_path_factory.mktemp("data")
    with (folder / "data.txt").open("w") as file:
        np.savetxt(file, np.random.default_rng(0).random((11934, 18)), fmt="   %.7e", delimiter="")
    return folder


def environment(naval: Path) -> dict[str, str]:
    here = Path(__file__).parent
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FKL_DATA")}
    path = os.pathsep.join(map(str, [here, here.parent, *sys.path]))
    return kept | {"FKL_DATA": str(naval), "PYTHONPATH": path, "PAGER": "cat", "TERM": "xterm-256color"}


def by_command(text: str) -> dict[str, str]:
    """What each command showed; all that should be refused is, and nothing else."""
    parts = [part.partition("\n") for part in text.replace("\r\n", "\n").split(MARKER)]
    shown = {name: told for name, _, told in parts if name in COMMANDS}
    codes = [name.removeprefix("ended ") for name, _, _ in parts if name.startswith("ended")]
    assert dict(zip(shown, codes, strict=True)) == {name: "2" if name in REFUSED else "0" for name in COMMANDS}, text
    return shown


def test_a_pipe_gets_no_escape_code(tmp_path: Path, naval: Path) -> None:
    """Neither on stdout nor on stderr."""
    command = [sys.executable, "-c", PLAYER, json.dumps(COMMANDS)]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment(naval), stdout=-1, stderr=-1, text=True, check=True
    )  # fmt: skip
    for name, told in by_command(ended.stdout).items():
        assert "\x1b" not in told, name
        assert bool(told.strip()) == (name not in REFUSED), name
    assert "\x1b" not in ended.stderr
    for said in ("did you mean pof_mkl?", "algo.M=100: must be an integer from 1 to kernels.N=51"):
        assert said in ended.stderr


def test_no_line_is_wider_than_the_terminal(tmp_path: Path, naval: Path) -> None:
    """Of 80 columns, with colours; of a bar no state of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [sys.executable, "-c", PLAYER, json.dumps(COMMANDS)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(naval), stdin=theirs, stdout=theirs, stderr=theirs
    ) as played:
        os.close(theirs)
        text = b""
        while part := _read(ours):
            text += part
    os.close(ours)
    assert played.returncode == 0, text
    shown = by_command(text.decode())
    for name, told in shown.items():
        for line in re.split("[\r\n]", ESCAPES.sub("", told)):
            assert cell_len(line.rstrip()) <= COLUMNS, (name, line)
    for name in ("run", "sweep", "data list", "table", "audit", *REFUSED):
        assert "\x1b[" in shown[name], name


def _read(descriptor: int) -> bytes:
    """What was written next; nothing once the other end is closed."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # what Linux says of a terminal that nobody writes to any more
        return b""


def test_a_table_that_is_too_wide_is_cut_at_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first column begins each part; words stay whole."""
    stream = StringIO()
    monkeypatch.setattr("fkl.screen.tables.console", lambda _: Console(file=stream, width=30))
    show_table(["method", "first", "second", "third"], [["POF-MKL", "1" * 10, "2" * 10, "3" * 10]], numbers=[1, 2, 3])
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert [line for line in lines if line and "─" not in line[0]] == [
        ["method", "first"],
        ["POF-MKL", "1" * 10],
        ["method", "second"],
        ["POF-MKL", "2" * 10],
        ["method", "third"],
        ["POF-MKL", "3" * 10],
    ]
    assert max(map(cell_len, stream.getvalue().splitlines())) <= 30
