"""`python -m benchmarks --store FILE.csv`: ratios to the floor, appended to those of earlier commits."""

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from fkl import __version__
from fkl.basics.errors import FklError
from fkl.basics.files import write_text
from fkl.runs.folder import processor_name

COLUMNS = ["commit", "date", "processor", "benchmark", "ratio"]
"""Columns of the series; `ratio` is the time divided by the floor."""


def read(file: Path) -> pd.DataFrame:
    """The series so far, empty if there is no such file."""
    if not file.exists():
        return pd.DataFrame(columns=COLUMNS)
    with suppress(OSError, ValueError):
        found = pd.read_csv(file, dtype=str, keep_default_na=False)
        if [*found] == COLUMNS:
            return found
    raise FklError(f"--store {file}: must be a new file, or a table with the columns {', '.join(COLUMNS)}")


def append(file: Path, rows: Iterable[Sequence[str]]) -> None:
    """Add rows of `benchmarks.bench`."""
    told = _commit(), datetime.now(UTC).strftime("%Y-%m-%d"), processor_name() or ""
    new = pd.DataFrame([[*told, f"{row[0]}, {row[1]}", row[4]] for row in rows], columns=COLUMNS)
    write_text(file, pd.concat([read(file), new]).to_csv(index=False, lineterminator="\n"))


def _commit() -> str:
    """The commit of this checkout, marked if files differ from it; the version without a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return __version__
