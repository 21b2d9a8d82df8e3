"""scripts/swarm.py draws configurations that fit, finds what is planted, and reduces it to the words that matter."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.conformance.promises import words_of_scenario

SCRIPT = Path(__file__).parents[2] / "scripts" / "swarm.py"
if not SCRIPT.exists():
    pytest.skip("the tests are not in a checkout", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("swarm", SCRIPT)
swarm = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(swarm)


def test_drawn_words_make_a_configuration() -> None:
    words = swarm.drawn(np.random.default_rng(0))
    assert words == swarm.drawn(np.random.default_rng(0))
    load(compose(*words_of_scenario(*words)))


def test_a_failure_is_told_with_the_words_that_matter(monkeypatch, capsys) -> None:
    def check(words):
        if "seed=2" in words and "privacy=central" in words:
            raise ValueError(f"{len(words)} words are wrong")
        if "kernels.D=3" in words:
            raise FklError("refused")
        if "chunk=2" in words:
            raise BrokenPromiseError("wrong 1")

    given = ("algo=pof_mkl", "seed=2", "chunk=1", "privacy=central", "precision=float64")
    failure = swarm.failed("engine jax", check, given)
    assert failure.text == "ValueError: 5 words are wrong"
    assert swarm.reduced(failure, check, given) == ("algo=pof_mkl", "seed=2", "privacy=central")
    assert swarm.failed("engine jax", check, ("algo=pof_mkl", "chunk=1")) is None
    with pytest.raises(FklError, match="refused"):
        swarm.failed("engine jax", check, ("algo=pof_mkl", "kernels.D=3"))
    monkeypatch.setattr(swarm, "drawn", lambda rng: ("algo=pof_mkl", "seed=3", "chunk=2"))
    monkeypatch.setattr(swarm, "checks", lambda words, rng: [("promise x", check)])
    assert swarm.swarm(1 / 600, 0) == 1
    first, line, *_ = capsys.readouterr().out.splitlines()
    assert first == "FAILED in configuration 0: promise x: wrong 1"
    assert line.split() == ["python", "-m", "fkl.conformance", "algo=pof_mkl", "chunk=2"]
