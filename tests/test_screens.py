"""What every command shows: no line is wider than a terminal of 80 columns, and no stream changes how it ends."""

import ast
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL
from rich.cells import cell_len

import fkl
from fkl.cli.commands import commands

ROWS, COLUMNS = 24, 80
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
COMMANDS = {
    "help": ("--help",),
    "run": ("run", *SMALL, "kernels.N=5"),
    "sweep": ("run", "-m", *SMALL, "kernels.N=5", "algo=pof_mkl,vm_kofl"),
    "list": ("list",),
    "list algo": ("list", "algo"),
    "describe": ("describe", "pof_mkl"),
    "data list": ("data", "list"),
    "plan": ("plan", *SMALL),
    "compare": ("compare", "dataset=diabetes"),
    "too many": ("run", "algo.M=100"),
    "no such paper": ("table", "pof_mlk/1"),
}
REFUSED = {"too many", "no such paper"}
IN_A_LAUNCHER = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweep.dir=swept", "seed=1,2,3")
STUDY = """
question: Größer?
methods: [ofmkl_avg, pooled_raker]
datasets: [diabetes]
judge: {seeds: 3}
set: [kernels.D=4, kernels.N=2, kernels.laplacians=0, "kernels.smallest=0.5", "kernels.largest=2.0"]
"""
EVERY_COMMAND = COMMANDS | {
    "in a launcher": ("run", "-m", *SMALL, "kernels.N=5", *IN_A_LAUNCHER),
    "of any name": ("run", *SMALL, "kernels.N=5", "out=größe", "save_model=true"),
    "not there": ("run", "dataset=file", "dataset.path=größe.csv"),
    "report": ("report",),
    "show": ("show", "coke", "dkla"),
    "replay": ("replay", "größe"),
    "bound": ("bound", "größe"),
    "predict": ("predict", "größe", "größe.csv"),
    "merge": ("merge", "größe", "größe", "--out=größer"),
    "forget": ("forget", "größe", "--client=0", "--out=größer"),
    "figure": ("figure", "parsimonious/1"),
    "study": ("study", "größe.yaml"),
    "reproduce": ("reproduce", "nobody"),
    "flower": ("flower", "init", "größe", "--sites", "2"),
}
NOT_DONE = REFUSED | {"not there", "reproduce", "flower", "predict", "merge", "forget"}
PLAYER = """
import json, os, sys
from pathlib import Path
import blank
from fkl import cli
blank.begin()
codes, every, streams = {}, *map(json.loads, sys.argv[1:])
for stream in streams:
    if stream == "closed":
        given = os.dup(1), os.dup(2)
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
    elif stream == "ascii":
        os.environ["PYTHONIOENCODING"] = stream  # of a launcher's workers
        sys.stdout.reconfigure(encoding=stream)
        sys.stderr.reconfigure(encoding=stream)
    codes[stream] = {}
    for name, words in every.items():
        sys.argv = ["fkl", *words]
        try:
            cli.main()
            codes[stream][name] = 0
        except BaseException as error:
            codes[stream][name] = error.code if isinstance(error, SystemExit) else repr(error)
    if stream == "closed":
        os.dup2(given[0], 1)
        os.dup2(given[1], 2)
Path("codes.json").write_text(json.dumps(codes))
"""
"""Plays all commands for each kind of stream in one process, and writes nothing of its own on stdout or stderr."""


def environment() -> dict[str, str]:
    here = Path(__file__).parent
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FKL_DATA")}
    path = os.pathsep.join(map(str, [here, here.parent, *sys.path]))
    return kept | {"PYTHONPATH": path, "PAGER": "cat", "TERM": "xterm-256color"}


@pytest.mark.slow
def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    """Of 80 columns, with colours; of a bar no state of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [sys.executable, "-c", PLAYER, json.dumps(COMMANDS), '["terminal"]']
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs
    ) as played:
        os.close(theirs)
        text = b""
        while part := _read(ours):
            text += part
    os.close(ours)
    assert played.returncode == 0, text
    ended = {name: 2 if name in REFUSED else 0 for name in COMMANDS}
    assert json.loads((tmp_path / "codes.json").read_text()) == {"terminal": ended}, text
    assert b"\x1b[" in text
    wide = [line for line in re.split("[\r\n]", ESCAPES.sub("", text.decode())) if cell_len(line.rstrip()) > COLUMNS]
    assert not wide


@pytest.mark.slow
def test_no_stream_changes_how_a_command_ends(tmp_path: Path) -> None:
    """Whether nobody reads it any more, or it cannot hold the signs that fkl prints.

    Files are in UTF-8 all the same: Python warns of a file that is opened without a word about it.
    """
    (tmp_path / "größe.yaml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "größe.csv").write_text("größe\n1\n", encoding="utf-8")
    assert {words[0] for words in EVERY_COMMAND.values()} - {"--help"} == {*commands.commands}
    streams = ["closed", "ascii"]
    command = [sys.executable, "-c", PLAYER, json.dumps(EVERY_COMMAND), json.dumps(streams)]
    variables = environment() | {"PYTHONWARNDEFAULTENCODING": "1"}
    ended = subprocess.run(command, cwd=tmp_path, env=variables, stdout=-1, stderr=-1, check=False)
    assert ended.returncode == 0, ended.stderr
    codes = json.loads((tmp_path / "codes.json").read_text())
    expected = {name: 2 if name in NOT_DONE else 0 for name in EVERY_COMMAND}
    assert codes == dict.fromkeys(streams, expected)
    assert not (tmp_path / "outputs" / "failed").exists()
    assert set(pd.read_csv(tmp_path / "swept" / "jobs.csv").state) == {"finished already"}
    said = (ended.stdout + ended.stderr).decode("latin-1")
    assert "\n+ " in said and "R^2" in said and "\x1b" not in said, "a pipe gets no escape code"
    assert {*re.findall(r"\\x..|\\u....", said)} == {r"\xf6", r"\xdf"}, "only letters of a name have no likeness"
    assert not re.search(rf"{Path(fkl.__file__).parent}.*EncodingWarning", said)


def test_every_sign_has_a_likeness_in_ascii() -> None:
    """All of fkl's sources and choices: whatever is printed comes from there, or from the user."""
    modules = (ast.parse(file.read_text(encoding="utf-8")) for file in Path(fkl.__file__).parent.rglob("*.py"))
    texts = [str(node.value) for module in modules for node in ast.walk(module) if isinstance(node, ast.Constant)]
    texts += [file.read_text(encoding="utf-8") for file in fkl.conf_folder().rglob("*.yaml")]
    signs = {sign for text in texts for sign in text if not sign.isascii() and (sign.isprintable() or sign.isspace())}
    assert {"✓", "▲", "✗", "±", "\u00a0"} <= signs
    told = {sign: sign.encode("ascii", "fkl.signs").decode() for sign in signs}
    assert {sign for sign, ascii in told.items() if ascii.startswith("\\") and not sign.isalpha()} == set()
    assert "R² × 10⁻³".encode("ascii", "fkl.signs") == b"R^2 x 10^-3"


def _read(descriptor: int) -> bytes:
    """What was written next; nothing once the other end is closed."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # what Linux says of a terminal that nobody writes to any more
        return b""
