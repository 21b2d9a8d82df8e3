"""`fkl list` and `fkl data`: complete, and light to start."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ALGORITHMS, SMALL

from fkl import __version__, conf_folder
from fkl.cli.commands import commands
from fkl.cli.listing import ALL
from fkl.config.choices import choice_descriptions

HEAVY = ("numpy", "pandas", "matplotlib", "numba", "hydra", "sklearn", "scipy")


def test_list_fits_a_screen_and_has_every_name(fkl: Callable) -> None:
    """Papers' runs by their folders."""
    answer = fkl("list")
    assert answer.code == 0
    assert len(answer.out.splitlines()) <= 66 and max(map(len, answer.out.splitlines())) <= 80
    names = {*answer.out.replace(",", " ").split()}
    for group in ALL[:-1]:
        assert {name for name, words in choice_descriptions(group).items() if words} <= names
    assert {"coke/...", "fdskl/..."} <= names
    assert set(ALGORITHMS) <= names


def test_list_of_a_group_says_what_each_choice_is(fkl: Callable) -> None:
    """In families of methods; as a table of Markdown, CSV or JSON where asked for."""
    for group in ALL:
        told = json.loads(fkl("list", group, "--format=json").out)
        known = {name: words for name, words in choice_descriptions(group).items() if words}
        assert {row[group]: row["what it is"] for row in told} == known
    answer = fkl("list", "algo")
    assert "\nAgents on a graph:\n" in answer.out
    assert fkl("list", "algo", "--format=markdown").out.startswith("| algo")
    assert fkl("list", "partition", "--format=csv").out.startswith("partition,family,what it is")
    refused = fkl("list", "dataste")
    assert refused.code == 2 and "did you mean dataset?" in refused.err


def test_data_list_names_every_data_set(fkl: Callable) -> None:
    """One line each, with what is missing said so."""
    answer = fkl("data", "list")
    assert answer.code == 0
    lines = {row.split()[0]: row for row in answer.out.splitlines() if row}
    names = {path.stem for path in (conf_folder() / "dataset").glob("*.yaml")}
    assert names <= set(lines)
    assert {one["name"] for one in json.loads(fkl("data", "list", "--format=json").out)} == names
    assert "missing" in lines["naval"]
    assert "missing" not in lines["wave_farm"]
    answer = fkl("data", "verify", "naval")
    assert answer.code == 2 and "data.txt" in answer.out and "missing" in answer.out


def test_help_names_the_commands(fkl: Callable) -> None:
    """`fkl` alone and `fkl --help` say what there is."""
    assert fkl("--help").out == fkl().out == fkl("help").out == fkl("-h").out
    assert fkl("--version").out == f"fkl {__version__}\n"
    for command in commands.commands:
        assert f"\n  {command} " in fkl("--help").out


def test_every_command_has_help(fkl: Callable) -> None:
    """Also the actions of one that has several, and whichever way it is asked for."""
    paths = [(name,) for name in commands.commands if name != "run"]
    paths += [(name, action) for name, group in commands.commands.items() for action in getattr(group, "commands", ())]
    assert ("data", "fetch") in paths
    for path in paths:
        answer = fkl(*path, "--help")
        assert answer.code == 0 and answer.err == ""
        assert answer.out.startswith(f"Usage: {' '.join(('fkl', *path))}")
        assert fkl("help", *path).out == fkl(*path, "-h").out == answer.out


def _call(folder: Path, *words: str, stdout: int = subprocess.PIPE, **more: str) -> "subprocess.CompletedProcess[str]":
    """`fkl` in a process of its own, with modules of this folder in the place of others, and with more variables."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])} | more
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=variables, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    """As `head` does once it has its lines."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = _call(tmp_path, "-m", "fkl", "data", "list", stdout=writing)
    assert (ended.returncode, ended.stderr) == (0, "")
    os.close(writing)


def test_a_run_needs_no_stdout_and_no_stderr(tmp_path: Path) -> None:
    """As `fkl run >&- 2>&-` and some cron jobs start it: no file of the run takes their descriptors."""
    shell = f"exec {sys.executable} -m fkl run {' '.join(SMALL)} figures=none out=here >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "here" / "summary.csv").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    ended = _call(tmp_path, "-m", "fkl", "run", "--cfg", "job", stdout=full)
    os.close(full)
    assert (ended.returncode, ended.stderr) == (2, "error: stdout: cannot be written (No space left on device)\n")


NOT_LOADED = {
    "raise MemoryError": "out of memory: free some, raise the limit",
    "raise ImportError('x.so: failed to map segment from shared object')": "out of memory (x.so: failed to map",
    "import no_such_library": "the library numba cannot be loaded (ModuleNotFoundError: No module named",
    "": "the library matplotlib cannot be loaded (ValueError: Key backend: 'abc'",
}


@pytest.mark.parametrize("code", NOT_LOADED)
def test_a_library_that_cannot_be_loaded_is_one_line(tmp_path: Path, code: str) -> None:
    """Because it is damaged, because of the memory, or because it refuses a variable."""
    if code:
        (tmp_path / "numba.py").write_text(code)
    ended = _call(tmp_path, "-m", "fkl", "run", *SMALL, MPLBACKEND="agg" if code else "abc")
    last = re.split("[\r\n]+", ended.stderr.strip())[-1]
    assert ended.returncode == 2 and last.startswith(f"error: {NOT_LOADED[code]}"), ended.stderr
    assert not code or ended.stderr.count("\n") == 1
    assert not (tmp_path / "outputs").exists()


def test_an_interruption_while_the_command_is_imported_is_one_line(tmp_path: Path) -> None:
    """By the entry that is installed as `fkl`, with a click that is interrupted in place of the real one."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["fkl"].partition(":")
    ended = _call(tmp_path, "-c", f"from {module} import {function}; {function}()")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        *((words, "") for words in ("list", "describe pof_mkl", "run --help", "run algo=nope")),
        *(("data list", "numpy"), ("run algo.nope=1", "hydra")),
        ("run dataset=diabetes kernels.D=2 replicates=2", "numpy matplotlib numba hydra sklearn scipy"),
    ],
)
def test_a_command_loads_only_the_heavy_libraries_that_it_needs(words: str, allowed: str, tmp_path: Path) -> None:
    """What makes it answer at once; a slip of the pen is told before a library is loaded."""
    code = f"import sys; sys.argv = ['fkl', *{words.split()!r}]\nfrom fkl.cli import main\n"
    code += "try: main()\nexcept SystemExit as stop: assert stop.code in (0, 2)\n"
    code += f"heavy = {set(HEAVY) - {*allowed.split()}!r} & set(sys.modules)\nassert not heavy, heavy"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=tmp_path)
