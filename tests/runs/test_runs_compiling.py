"""The first run on a machine compiles: it says so, and the time is none of the rounds'."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import small

import fkl
from fkl.runs.play import RoundsBar


def test_the_bar_says_compiling_until_the_next_round(capsys: pytest.CaptureFixture[str]) -> None:
    """Its clock starts again then: a minute of compiling would tell of hours to come."""
    with RoundsBar("A on b", 10) as progress:
        begun = progress.bar.start_t
        progress.on_start(None)
        progress.on_start(None)
        assert capsys.readouterr().err.count("A on b, compiling (once)") == 1
        progress.bar.start_t = progress.bar.last_print_t = begun - 1000
        progress.advance(1)
        assert progress.bar.format_dict["elapsed"] < 900
        assert progress.bar.n == 1
        progress.bar.refresh()
        assert "compiling" not in capsys.readouterr().err.split("\r")[-1]


@pytest.mark.slow
def test_an_installation_and_a_home_that_cannot_be_written_are_enough(tmp_path: Path) -> None:
    """As in a container with any user: compiled code and fonts are not kept, and one line says so.

    Files take the places of the folders, which stops root, too.
    """
    installed = Path(fkl.__file__).parent
    shutil.copytree(installed, tmp_path / "fkl", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(fkl.conf_folder(), tmp_path / "conf")
    for folder in {file.parent for file in (tmp_path / "fkl").rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_", "MPL", "FKL_"))}
    environment = kept | {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "fkl", "run", *small("rfomkr"), "out=here"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in re.split("[\r\n]+", ended.stderr) if line.strip() and "round/s" not in line]
    assert len(lines) == 1 and lines[0].startswith("warning: compiled code is not kept"), lines
    assert (tmp_path / "here" / "mse.png").is_file()


USING_A_CACHE = """
from fkl.kernels.cached_njit import njit_cached
@njit_cached("float64(float64)")
def one(x):
    return x + 1
@njit_cached(nogil=True)
def two(x):
    return one(x) + x
print(two(2.0))
"""
BROKEN = {
    "no cache yet": lambda file: None,
    "cut": lambda file: os.truncate(file, 5),
    "mended": lambda file: None,
    "not a file": lambda file: (file.unlink(), file.mkdir()),
}
"""What becomes of the cache's files before the next process, and whether it says that it keeps none."""


def test_no_damage_of_numba_s_cache_stops_a_process(tmp_path: Path) -> None:
    (tmp_path / "using.py").write_text(USING_A_CACHE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DEBUG_CACHE": "1"}
    loaded = {}
    for name, change in BROKEN.items():
        for file in [*tmp_path.glob("cache/*/*.nb[ic]")]:
            change(file)
        command = [sys.executable, str(tmp_path / "using.py")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0 and "5.0" in ended.stdout, (name, ended.stderr)
        assert ended.stderr.count("compiled code is not kept") == (name == "not a file"), (name, ended.stderr)
        loaded[name] = ended.stdout.count("data loaded")
    assert loaded == {"no cache yet": 0, "cut": 0, "mended": 2, "not a file": 0}
