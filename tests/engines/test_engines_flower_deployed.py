"""Three SuperNodes and a SuperLink, each in processes of its own: one site is killed, comes back, and was absent."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra flower")
from engines.sites import script


@pytest.mark.slow
def test_a_site_that_was_killed_was_absent_and_nothing_else(tmp_path: Path) -> None:
    """20 rounds of POF-MKL with TLS and keys; predictions to 1e-9 and bytes exactly those of the simulation."""
    said: list[str] = []
    largest, same, there = script.deployed(tmp_path, said.append)
    assert f"# site {script.KILLED} is started again" in said
    missed = np.flatnonzero(~there[:, script.KILLED]) + 1
    assert missed[0] > script.AFTER and len(missed) >= script.AWAY
    assert f"site {script.KILLED} is back, 100 rows" in said
    assert there[-1].tolist() == [True, False, True]
    assert there[:, 0].all()
    assert largest < 1e-9
    assert same
