"""Files of published data sets, which few machines have: a test that needs some is skipped where they are missing.

Only this module knows where they lie, so `make test-without-data` finds every test that looks for them by this name.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fkl.data import registry
from fkl.data.store import DataFile, Store

DATA = Path(os.environ.get("FKL_DATA") or Path(__file__).parents[2] / "shared" / "data").absolute()
STORE = Store(DATA, offline=True)
ONE_IS_ENOUGH = ("cod_rna",)
"""Data sets whose files stand for each other."""


def need(files: tuple[DataFile, ...]) -> None:
    """Skip the test unless all of the files are here."""
    missing = [file.name for file in files if STORE.find_file(file) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not in {DATA} (set FKL_DATA)")


def need_data(data: Any) -> Any:
    """The data set, or the one of this name; skip the test unless its files are here."""
    data = registry.named_dataset(data) if isinstance(data, str) else data
    found = [file for file in data.data_files if STORE.find_file(file) is not None]
    need(tuple(found) if found and data.name in ONE_IS_ENOUGH else data.data_files)
    return data


def real(data: Any) -> Any:
    """The table of a data set whose files are here."""
    return need_data(data).load(STORE, np.random.default_rng(0))
