"""The first run on a machine compiles: it says so, and the time is none of the rounds'."""

import subprocess
import sys
from pathlib import Path

import pytest

from fkl.runs.progress import Progress


def test_the_bar_says_compiling_until_the_next_round(capsys: pytest.CaptureFixture[str]) -> None:
    """Its clock starts again then: a minute of compiling would tell of hours to come."""
    with Progress("A on b", 10) as progress:
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


CODE = """
import sys
import numba
from fkl.runs.progress import Progress
with Progress("A on b", 1) as progress:
    numba.njit(lambda x: x + 1)(1)
    progress.advance(1)
numba.njit(lambda x: x + 2)(1)
"""


def test_whatever_numba_compiles_is_told(tmp_path: Path) -> None:
    """Only while a run is under way, and only of what is compiled, not of what is loaded."""
    ended = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stderr.count("compiling (once)") == 1
    loaded = subprocess.run(
        [sys.executable, "-c", CODE.replace("numba.njit", "(lambda f: f)")], capture_output=True, text=True
    )
    assert "compiling" not in loaded.stderr
