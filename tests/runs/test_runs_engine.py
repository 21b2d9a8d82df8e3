"""engine=numpy is the reference: the same numbers but for rounding, and nothing compiled."""

import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from conftest import ALGORITHMS, Answer, small

from fkl.algorithms.base import World
from fkl.basics.errors import BadValue
from fkl.conformance import scenario

COMPILED = ("dsg", "fd_svrg", "fdskl", "omkl_gf", "omkl_sfg", "omkl_sfg_r", "omkr", "parsimonious_centralized")
COMPILED += ("parsimonious_federated", "poly_2", "pooled_omkl_gf", "rbf_1", "secureboost")
"""Whose loops exist only compiled."""
PLAY = """
import sys
import fkl.kernels.compiled, fkl.kernels.exact, fkl.kernels.compiled
from numba.core.dispatcher import Dispatcher
from fkl.conformance import scenario
from fkl.runs.prepare import prepare
from fkl.engines.rounds import simulate

def compiled():
    modules = [(name, module) for name, module in sys.modules.items() if name.startswith("fkl.")]
    functions = [(name, key, value) for name, module in modules for key, value in vars(module).items()]
    return {(name, key): len(value.signatures) for name, key, value in functions if isinstance(value, Dispatcher)}

engine, *algorithms = sys.argv[1:]
for algo in algorithms:
    experiment, before = prepare(scenario(f"algo={algo}", f"engine={engine}")), compiled()
    list(simulate(experiment, 1, None, id))
    found = [key for key, count in compiled().items() if count > before.get(key, 0)]
    assert not found, f"{algo} called {found}"
"""
"""Compiled functions, also those that are loaded from numba's cache, have a signature once they are called."""


def play(engine: str, *algorithms: str) -> str:
    """Run algorithms in a process of their own and return what it says of compiled functions that were called."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY, engine, *algorithms], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


@pytest.mark.slow
def test_numpy_calls_nothing_compiled() -> None:
    """No method that engine=numpy may play calls a compiled loop."""
    assert play("numpy", *(algo for algo in ALGORITHMS if algo not in COMPILED)) == ""
    assert "vm_kofl called [('fkl.kernels.compiled', " in play("numba", "vm_kofl")


@pytest.mark.parametrize("algo", COMPILED)
def test_what_is_only_compiled_refuses_numpy(algo: str) -> None:
    """In one line that names the key and the method."""
    with pytest.raises(BadValue, match=r"engine=numpy: must be numba for [A-Z]"):
        scenario(f"algo={algo}", "engine=numpy")


@pytest.mark.parametrize("algo", ["pof_mkl", "em_kofl", "raker", "dkla"])
def test_both_engines_make_the_same_run(algo: str, fkl: Callable[..., Answer]) -> None:
    """In doubles all columns agree to 1e-9; the folder is another, since last digits may differ."""
    tables, folders = [], set()
    for engine in ("numba", "numpy"):
        answer = fkl("run", *small(algo), "precision=float64", f"engine={engine}")
        assert answer.code == 0, answer.err
        folder = re.findall("^  run  +(.*)$", answer.out, re.MULTILINE)[-1]
        folders.add(folder)
        tables.append(pd.read_csv(f"{folder}/rounds.csv").drop(columns="runtime_s", errors="ignore"))
    assert len(folders) == 2
    mine, reference = tables
    assert list(mine) == list(reference)
    np.testing.assert_allclose(mine.to_numpy(), reference.to_numpy(), rtol=1e-9, atol=1e-12)


def test_bank_and_namespace_follow_the_engine() -> None:
    """Parties find the bank of their engine, and its array namespace, in what they know in common."""
    from fkl.engines.base import make_world
    from fkl.kernels import BANKS
    from fkl.runs.prepare import prepare

    for engine, kind in BANKS.items():
        world: World = make_world(prepare(scenario("algo=pof_mkl", f"engine={engine}")), (0,))[0]
        assert type(world.bank) is kind
        assert world.common.xp is world.bank.xp is np
