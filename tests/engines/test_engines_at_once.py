"""Rounds that a method plays at once: the same bytes, pauses where somebody looks, and what is played by itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import conformance

from fkl.conformance import Conformance
from fkl.engines.base import LOOKS, DivergedError, Experiment, Numba, make_world
from fkl.engines.rounds import simulate_run

AT_ONCE = ("pof_mkl", "ofmkl_avg", "ofskl", "vm_kofl", "fed_poe")
ABSENT = ("participation=share", "participation.share=0.5")


class RoundByRound(Numba):
    """The engine without rounds at once."""

    at_once = False


def pauses(experiment: Experiment) -> list[int]:
    """Number of rounds between the pauses of the first chunk."""
    found: list[int] = []
    next(iter(simulate_run(experiment, advance=found.append, chunk=1)))
    return found


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("algo", AT_ONCE)
@pytest.mark.parametrize(
    "words", [(), ABSENT, ("kernels.map=cosine", "algo.loss=huber"), ("partition.clients=3", "algo.loss=quantile")]
)
def test_rounds_at_once_have_the_bytes_of_rounds(algo: str, precision: str, words: tuple[str, ...]) -> None:
    """From a drawn round on, with clients absent, another feature map, losses, and numbers of clients."""
    for seed in range(3):
        played = replace(conformance(f"algo={algo}", *words, f"precision={precision}"), seed=seed)
        assert Conformance.rounds_at_once_are_rounds(played) == ""


def test_somebody_can_look_at_each_eighth_of_a_run() -> None:
    """No rounds across it are played at once; a condition to stop is checked in each round."""
    experiment = conformance("algo=pof_mkl").experiment
    found, rounds = pauses(experiment), experiment.problem.rounds
    assert max(found) > 1
    assert {rounds * number // LOOKS for number in range(1, LOOKS + 1)} <= set(np.cumsum(found).tolist())
    assert set(pauses(replace(experiment, engine=RoundByRound()))) == {1}


@pytest.mark.parametrize(
    "words",
    [
        ("algo.xi=0.5",),
        ("algo.local_steps=2",),
        ("engine=numpy",),
        ("privacy=local",),
        ("compression=top_k",),
        ("attack=sign_flip",),
    ],
)
def test_what_cannot_be_played_at_once_is_played_by_itself(words: tuple[str, ...]) -> None:
    experiment = conformance("algo=pof_mkl", *words).experiment
    assert set(pauses(experiment)) == {1}
    assert Conformance.rounds_at_once_are_rounds(conformance("algo=pof_mkl", *words))


def test_divergence_is_in_its_round() -> None:
    """The round, the ledger and the error before it are those of rounds one after another."""
    experiment = conformance("algo=ofmkl_avg", "algo.eta=30").experiment
    told: list[Any] = []
    for engine in (Numba(), RoundByRound()):
        with pytest.raises(DivergedError) as error:
            list(simulate_run(replace(experiment, engine=engine)))
        ledger = error.value.failed.ledger
        told.append((error.value.t, str(error.value), ledger.tallies["uplink"].by_round.tolist()))
    assert told[0] == told[1]
    assert make_world(experiment, (0,))[0].problem.rounds > told[0][0] > 0
