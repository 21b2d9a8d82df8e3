"""The swarm draws configurations that fit, finds what is planted, and reduces it to the words that matter."""

import numpy as np
import pytest
from swarm import command, drawn, failed, reduced, swarm

from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.conformance.promises import words_of_scenario


@pytest.mark.parametrize("seed", range(3))
def test_drawn_words_make_a_configuration(seed) -> None:
    words = drawn(np.random.default_rng(seed))
    assert words == drawn(np.random.default_rng(seed))
    assert words[0].startswith("algo=")
    load(compose(*words_of_scenario(*words)))


def test_a_failure_is_reduced_to_the_words_that_matter() -> None:
    def check(words):
        if "seed=2" in words and "privacy=central" in words:
            raise ValueError(f"{len(words)} words are wrong")
        if "kernels.D=3" in words:
            raise FklError("refused")

    given = ("algo=pof_mkl", "seed=2", "chunk=1", "privacy=central", "precision=float64")
    failure = failed("engine jax", check, given)
    assert failure is not None
    assert failure.text == "ValueError: 5 words are wrong"
    assert reduced(failure, check, given) == ("algo=pof_mkl", "seed=2", "privacy=central")
    assert failed("engine jax", check, ("algo=pof_mkl", "chunk=1")) is None
    with pytest.raises(FklError, match="refused"):
        failed("engine jax", check, ("algo=pof_mkl", "kernels.D=3"))
    assert command("promise x", given[:2]) == "python -m fkl.conformance algo=pof_mkl seed=2"


def test_a_swarm_tells_its_failures_and_how_much_it_checked(monkeypatch, capsys) -> None:
    def wrong(words):
        raise BrokenPromiseError("wrong 1")

    monkeypatch.setattr("swarm.checks", lambda words, rng: [("promise x", wrong)])
    assert swarm(1 / 60, 0) == 1
    first, line, last = capsys.readouterr().out.splitlines()
    assert first == "FAILED in configuration 0: promise x: wrong 1"
    assert line.split()[:3] == ["python", "-m", "fkl.conformance"]
    assert last.startswith("seed 0: ")
    assert last.endswith("1 different failure")
