"""How long fkl takes to read text, as a ratio to pandas' C parser in the same run.

python -m benchmarks.reading_speed
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from fkl.data.store import Store
from fkl.data.table_file import TableFile

ROWS, TIMES = 500_000, 3


def seconds(read: Callable[[], object]) -> float:
    """The least of some tries."""
    taken = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        read()
        taken.append(time.perf_counter() - begin)
    return min(taken)


rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(ROWS, 6)).round(4), columns=[*"abcde", "y"])
holed = frame.mask(rng.random(frame.shape) < 0.01).assign(y=frame["y"])
worded = frame.assign(e=rng.choice(["north", "south", "east"], ROWS))
with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "own.csv")
    for name, table in {"numbers": frame, "with missing cells": holed, "with words": worded}.items():
        table.to_csv(path, index=False)
        own = TableFile(path=path, target="y", missing="mean", text="code")
        ratio = seconds(lambda own=own: own.load(Store(Path()), None)) / seconds(lambda: pd.read_csv(path))  # type: ignore[misc]
        print(f"{ROWS:,} x 6 {name}: {ratio:.1f} times pandas")
