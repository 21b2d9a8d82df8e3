"""Every method in every condition, and every two conditions together: the promises are kept, or a line refuses."""

from itertools import combinations

import pytest
from conftest import ALGORITHMS

from fkl.basics.errors import FklError
from fkl.config import choices
from fkl.conformance import PROMISES, Conformance
from fkl.engines.base import make_world

pytestmark = pytest.mark.slow
KEYS: dict[str, tuple[str, ...]] = {
    "privacy=central": ("privacy.clip=0.5", "privacy.noise=0.1"),
    "privacy=local": ("privacy.clip=0.5", "privacy.noise=0.1"),
    "compression=uniform": ("compression.bits=4",),
    "late=labels": ("late.rounds=2",),
    "late=updates": ("late.rounds=2", "late.drawn=client"),
    "participation=schedule": ("participation.clients=2",),
    "secure=pairwise": ("secure.fraction=12",),
    **{f"aggregate={name}": ("precision=float64",) for name in choices.files("aggregate")},
    **{
        f"attack={name}": ("attack.share=0.25", "attack.from_round=2", "precision=float64")
        for name in choices.files("attack")
    },
}
"""Values that make a condition do something in a small run; the others do by themselves. False messages, and choices
among messages, magnify the rounding of float32.
"""
CHOICES = [f"{group}={name}" for group in choices.CONDITIONS for name in choices.files(group) if name != "trace"]
"""A trace is a file of the user's: what it says is tested where it is read."""
TOGETHER = [(a, b) for a, b in combinations(CHOICES, 2) if a.partition("=")[0] != b.partition("=")[0]]
AROUND = ("pof_mkl", "vm_kofl", "dkla")


def kept_or_refused(algo: str, *choices: str) -> None:
    """Each promise, as objects and as processes; or a line that names one of the groups."""
    words = [word for choice in choices for word in (choice, *KEYS.get(choice, ()))]
    groups = [choice.partition("=")[0] for choice in choices]
    try:
        suite = Conformance.from_overrides(f"algo={algo}", "kernels.D=4", *words)
        suite.experiment.algorithm.init(make_world(suite.experiment, (0,))[0])  # a condition may refuse the data
    except FklError as error:
        assert any(group in str(error) for group in groups), error
        assert "\n" not in str(error)
        return
    for promise in PROMISES:
        promise(suite)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_method_in_a_condition(algo: str, choice: str) -> None:
    kept_or_refused(algo, choice)


@pytest.mark.parametrize(("one", "other"), TOGETHER)
@pytest.mark.parametrize("algo", AROUND)
def test_two_conditions_together(algo: str, one: str, other: str) -> None:
    kept_or_refused(algo, one, other)
