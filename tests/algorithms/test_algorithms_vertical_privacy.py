"""Attacks on the messages of FDSKL's workers."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from fkl.algorithms.vertical.fdskl import MASKS, Fdskl
from fkl.basics.errors import FklError
from fkl.basics.random_streams import Streams
from fkl.contract.world import Common
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.kernels import Dictionary

sys.path.append(str(Path(__file__).parents[2] / "examples" / "fdskl_masks"))
from mask_audit import FILE, OUTSIDER, audit, main

ONE = Streams(5, (1,))
PARTIES = 5


def make_problem(x: NDArray[np.float64] | None = None, q: int = PARTIES, rows: int = 200) -> Vertical:
    """Features that are 0 or 1, unless given; two parties ask."""
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (rows, 10)).astype(float) if x is None else x
    names = tuple(f"feature {number}" for number in range(x.shape[1]))
    y = np.resize([-1.0, 1.0, 1.0], len(x))
    return FeatureGroups(q, active=2).split(Table.of_one_site(x, y, names), random)


def known(problem: Vertical, sigma: float = 1.0) -> Common:
    """What all parties know."""
    kernel = Dictionary(N=1, smallest=sigma, largest=sigma, bandwidth_convention="deviation")
    return Common(kernel, problem.dimension, 1, ONE, "float64")


PLAYED, SIGMA = Fdskl(iterations=8, batch=64, features=32), 1.5
"""128 features of each worker that asks."""


def test_no_masks_withstand_the_asking_worker() -> None:
    problem = make_problem()
    frame = audit(PLAYED, known(problem, SIGMA), problem, MASKS)
    found = frame.set_index(["masks", "attacker"])["recovered_percent"].to_dict()
    asking, pair, other, others, outsider = list(dict.fromkeys(attacker for _, attacker in found))
    assert outsider == OUTSIDER
    for masks in ("paper", "reduced"):
        assert all(found[masks, attacker] == 100 for attacker in (asking, pair, other, others, outsider))
    assert found["fresh", asking] == found["fresh", pair] == found["fresh", outsider] == 100
    assert found["fresh", other] == 0


def test_the_script_writes_a_table_and_refuses_what_it_cannot_attack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = ["dataset=ellipses", "dataset.rows=90", "dataset.test_rows=0", "partition=vertical", "partition.parties=2"]
    main([*data, "algo.iterations=2", "algo.features=2", "algo.batch=8"])
    assert "asking worker" in capsys.readouterr().out
    assert set(pd.read_csv(FILE)["masks"]) == set(MASKS)
    with pytest.raises(FklError):
        main(["algo=dsg"])
