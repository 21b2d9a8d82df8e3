"""`fkl list` and `fkl data`: complete, and light to start."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from conftest import ALGORITHMS, SMALL

from fkl import __version__, conf_folder
from fkl.cli.commands import commands
from fkl.cli.listing import ALL
from fkl.config.choices import abouts

HEAVY = ("numpy", "pandas", "matplotlib", "numba", "hydra", "sklearn", "scipy")


def test_list_fits_a_screen_and_has_every_name(fkl: Callable) -> None:
    """Papers' runs by their folders."""
    answer = fkl("list")
    assert answer.code == 0
    assert len(answer.out.splitlines()) <= 66 and max(map(len, answer.out.splitlines())) <= 80
    names = {*answer.out.replace(",", " ").split()}
    for group in ALL[:-1]:
        assert {name for name, words in abouts(group).items() if words} <= names
    assert {"coke/...", "fdskl/..."} <= names
    assert set(ALGORITHMS) <= names


def test_list_of_a_group_says_what_each_choice_is(fkl: Callable) -> None:
    """In families of methods; as a table of Markdown, CSV or JSON where asked for."""
    for group in ALL:
        told = json.loads(fkl("list", group, "--format=json").out)
        known = {name: words for name, words in abouts(group).items() if words}
        assert {row[group]: row["what it is"] for row in told} == known
    answer = fkl("list", "algo")
    assert "\nAgents on a graph:\n" in answer.out
    assert fkl("list", "algo", "--format=markdown").out.startswith("| algo")
    assert fkl("list", "partition", "--format=csv").out.startswith("partition,family,what it is")
    refused = fkl("list", "dataste")
    assert refused.code == 2 and "did you mean dataset?" in refused.err


def test_list_imports_nothing_heavy() -> None:
    """What makes it answer at once: no numerical library is loaded."""
    code = "import sys; sys.argv = ['fkl', 'list']; from fkl.cli import main; main(); "
    code += f"assert not set({HEAVY!r}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


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


def test_verify_tells_missing_files_and_fails(fkl: Callable) -> None:
    """Exit code 2 where a file is not as it should be."""
    answer = fkl("data", "verify", "naval")
    assert answer.code == 2
    assert "data.txt" in answer.out and "missing" in answer.out


def test_help_names_the_commands(fkl: Callable) -> None:
    """`fkl` alone and `fkl --help` say what there is."""
    assert fkl("--help").out == fkl().out == fkl("help").out == fkl("-h").out
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


def test_help_shows_every_default_and_every_action() -> None:
    def required(command: click.Command, parent: click.Context | None = None) -> None:
        context = click.Context(command, parent, command.name)
        shown = command.get_help(context)
        for option in command.params:
            default = option.to_info_dict()["default"]
            if isinstance(option, click.Option) and default not in (None, False, ()):
                assert f"[default: {default}]" in " ".join(shown.split()), (command.name, option.name)
        if isinstance(command, click.Group):
            actions = command.list_commands(context)
            usage = command.subcommand_metavar or ""
            assert "COMMAND" in usage or usage.startswith("|".join(actions)), command.name
            for name in actions:
                required(command.get_command(context, name), context)

    required(commands)


def test_version_is_the_package_s(fkl: Callable) -> None:
    assert fkl("--version").out == f"fkl {__version__}\n"


def _into(descriptor: int, *words: str) -> "subprocess.CompletedProcess[str]":
    """`fkl` in a process of its own whose output goes to a file descriptor."""
    command = [sys.executable, "-m", "fkl", *words]
    return subprocess.run(command, stdout=descriptor, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("words", [("run", "--cfg", "job"), ("list",), ("data", "list")])
def test_a_reader_that_goes_away_ends_it_quietly(words: tuple[str, ...]) -> None:
    """As `head` does once it has its lines."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = _into(writing, *words)
    assert (ended.returncode, ended.stderr) == (0, "")
    os.close(writing)


def test_a_run_needs_no_stdout_and_no_stderr(tmp_path: Path) -> None:
    """As `fkl run >&- 2>&-` and some cron jobs start it: no file of the run takes their descriptors."""
    shell = f"exec {sys.executable} -m fkl run {' '.join(SMALL)} figures=none out=here >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "here" / "summary.csv").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("words", [("run", "--cfg", "job"), ("list",)])
def test_output_that_cannot_be_written_is_one_line(words: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    ended = _into(full, *words)
    os.close(full)
    assert (ended.returncode, ended.stderr) == (2, "error: stdout: cannot be written (No space left on device)\n")


NOT_LOADED = {
    "raise MemoryError": "error: out of memory: free some, raise the limit",
    "raise ImportError('x.so: failed to map segment from shared object')": "error: out of memory (x.so: failed to map",
    "raise AttributeError('numpy has no x')": "error: the library pandas cannot be loaded (AttributeError: numpy has",
    "import no_such_library": "error: the library pandas cannot be loaded (ModuleNotFoundError: No module named",
}


LOADING = [("run", *SMALL), ("run", "-m", *SMALL, "seed=1,2"), ("data", "describe", SMALL[0])]


@pytest.mark.parametrize(
    ("code", "words"),
    [*((code, LOADING[0]) for code in NOT_LOADED), *(("raise MemoryError", one) for one in LOADING[1:])],
)
def test_a_library_that_cannot_be_loaded_is_one_line(tmp_path: Path, code: str, words: tuple[str, ...]) -> None:
    """Because it is damaged, or because of the memory."""
    (tmp_path / "pandas.py").write_text(code)
    found = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "fkl", *words]
    ended = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and NOT_LOADED[code].removeprefix("error: ") in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr and ended.stderr.count("\n") == 1


REFUSED_BY_A_LIBRARY = {
    "NUMBA_THREADING_LAYER=abc": "NUMBA_THREADING_LAYER=abc: ",
    "NUMBA_NUM_THREADS=0": "the library numba cannot be loaded (ValueError: Number of threads",
    "MPLBACKEND=abc": "the library matplotlib cannot be loaded (ValueError: Key backend: 'abc'",
    "TQDM_NCOLS=abc": "the library tqdm cannot be loaded (ValueError: ",
}


@pytest.mark.parametrize("variable", REFUSED_BY_A_LIBRARY)
def test_a_variable_that_a_library_refuses_is_one_line(tmp_path: Path, variable: str) -> None:
    name, _, value = variable.partition("=")
    command = [sys.executable, "-m", "fkl", "run", *SMALL]
    environment = os.environ | {name: value}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    *bar, last = re.split("[\r\n]+", ended.stderr.strip())
    assert ended.returncode == 2 and last.startswith(f"error: {REFUSED_BY_A_LIBRARY[variable]}"), ended.stderr
    assert all("round/s" in line or not line.strip() for line in bar)
    assert not (tmp_path / "outputs").exists()


def test_an_interruption_while_the_command_is_imported_is_one_line(tmp_path: Path) -> None:
    """By the entry that is installed as `fkl`, with a click that is interrupted in place of the real one."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["fkl"].partition(":")
    command = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
    found = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ended = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("command", [("data", "list"), ("run", *SMALL)])
def test_an_empty_variable_counts_as_unset(
    fkl: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("FKL_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FKL_CACHE", "")
    without = fkl(*command)
    monkeypatch.delenv("FKL_DATA")
    monkeypatch.delenv("FKL_CACHE")
    assert (without.code, without.out.splitlines()[-3:]) == (0, fkl(*command).out.splitlines()[-3:])
    assert (tmp_path / ".cache" / "fkl").is_dir() == (command[0] == "run")


@pytest.mark.parametrize(("word", "needed"), [("algo.nope=1", {"hydra"}), ("algo.M=0", {"hydra", "numpy", "scipy"})])
def test_a_run_that_is_refused_without_its_data_imports_nothing_heavy(word: str, needed: set[str]) -> None:
    """A slip of the pen is told before any numerical library is loaded, a value that cannot be before most of them."""
    code = f"import sys; sys.argv = ['fkl', 'run', {word!r}]\n"
    code += "from fkl.cli import main\ntry: main()\nexcept SystemExit as stop: assert stop.code == 2\n"
    code += f"heavy = {{*{HEAVY!r}, 'scipy.special', 'scipy.linalg'}} - {needed!r}\n"
    code += "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
