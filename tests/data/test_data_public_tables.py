"""What `fkl data describe` says of a table."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd


def test_what_a_run_would_see_is_described_in_the_file_s_units(fkl: Callable) -> None:
    """Numbers of the table, of clients, and a picture."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": 40 + rng.normal(size=30), "ward": ["a$b", "c", "c"] * 10, "stay": rng.normal(size=30)})
    frame.to_csv("own.csv", index=False)
    answer = fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.target=stay", "dataset.site=ward")
    assert "own: 30 rows, 1 feature, 2 sites" in answer.out, answer.err
    assert f"target: mean {frame['stay'].mean():.5g}, sd {frame['stay'].std(ddof=0):.5g}" in answer.out
    assert f"{frame['age'].mean():.5g}" in answer.out
    assert "2 clients, 20 rounds, 10 to 20 samples each, median 15" in answer.out
    assert all(Path(f"outputs/data/own-sites.{kind}").stat().st_size for kind in ("png", "pdf"))
    parties = fkl("data", "describe", "diabetes", "partition=vertical", "partition.parties=3")
    assert "party 2: 3 features: s4, s5, s6" in parties.out
