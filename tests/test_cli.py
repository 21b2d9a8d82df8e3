"""`fkl list` and `fkl data`: complete, and light to start."""

import subprocess
import sys
from collections.abc import Callable

from conftest import ALGORITHMS

from fkl import conf_folder
from fkl.cli import GROUPS

HEAVY = ("numpy", "pandas", "matplotlib", "numba", "hydra", "sklearn", "scipy")


def test_list_has_a_line_for_every_choice(fkl: Callable) -> None:
    """Every YAML of every group appears with what its first comment says."""
    answer = fkl("list")
    assert answer.code == 0
    names = [line.split()[0] for line in answer.out.splitlines() if line.startswith("  ")]
    for group in GROUPS:
        for file in (conf_folder() / group).rglob("*.yaml"):
            assert file.relative_to(conf_folder() / group).with_suffix("").as_posix() in names
    assert all(len(line.split(maxsplit=1)) == 2 for line in answer.out.splitlines() if line.startswith("  "))
    assert set(ALGORITHMS) <= set(names)


def test_list_imports_nothing_heavy() -> None:
    """What makes it answer at once: no numerical library is loaded."""
    code = "import sys; sys.argv = ['fkl', 'list']; from fkl.cli import main; main(); "
    code += f"assert not set({HEAVY!r}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_data_list_names_every_data_set(fkl: Callable) -> None:
    """One line each, with what is missing said so."""
    answer = fkl("data", "list")
    assert answer.code == 0
    _heading, _rule, *rows = answer.out.splitlines()
    lines = {row.split()[0]: row for row in rows}
    assert {path.stem for path in (conf_folder() / "dataset").glob("*.yaml")} == set(lines)
    assert "missing" in lines["naval"]
    assert "missing" not in lines["wave_farm"]


def test_verify_tells_missing_files_and_fails(fkl: Callable) -> None:
    """Exit code 2 where a file is not as it should be."""
    answer = fkl("data", "verify", "naval")
    assert answer.code == 2
    assert "data.txt" in answer.out and "missing" in answer.out


def test_help_names_the_commands(fkl: Callable) -> None:
    """`fkl` alone and `fkl --help` say what there is."""
    assert fkl("--help").out == fkl().out
    for command in ("run", "list", "data", "table", "figure", "report"):
        assert f"fkl {command}" in fkl("--help").out
