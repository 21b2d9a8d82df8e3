"""What an engine can play follows from facts that a method states, before any data are read."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from fkl.basics.errors import BadValue
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_engine, load_run
from fkl.config.settings import ENGINES
from fkl.contract.star import Federated


class Own(Federated):
    """A method of a user's own that states nothing."""

    label: ClassVar[str] = "Own"


def able(method: Any) -> list[str]:
    """Engines that can play it."""
    run: Run = replace(load_run(compose_config("algo=pof_mkl")), algo=method)
    return [name for name in ENGINES if load_engine(name).can_play(run) is None]


@pytest.mark.parametrize(
    ("facts", "engines"),
    [
        ({}, ["numba", "numpy"]),
        ({"compiled_only": True}, ["numba"]),
        ({"not_traceable": ""}, ["numba", "numpy", "jax"]),
        ({"not_traceable": "it reads a clock"}, ["numba", "numpy"]),
        ({"in_turn": True}, ["numba", "numpy"]),
    ],
)
def test_engines_conclude_from_facts(facts: dict[str, Any], engines: list[str]) -> None:
    assert able(type("Stated", (Own,), facts)()) == engines


def test_a_refusal_names_the_reason_and_the_engines_that_can() -> None:
    said = r"^engine=jax: must be numba or numpy for eM-KOFL: JAX cannot trace privacy, network.compute_s$"
    with pytest.raises(BadValue, match=said):
        load_run(
            compose_config(
                "algo=em_kofl", "engine=jax", "network.compute_s=0.1", "privacy=sampled", "participation=share"
            )
        )
