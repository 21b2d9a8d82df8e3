"""Check a method's messages for the facts that the computation of epsilon assumes.

Every party runs again with other samples, but receives the same messages as before. All changes in its own messages are
then due to its own samples.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from fkl.basics.errors import BrokenPromiseError
from fkl.conditions.wrapped import wrapper_of
from fkl.conformance.played import Payloads, Witness, method_outcomes
from fkl.contract.world import innermost_method
from fkl.engines.base import Experiment, make_world
from fkl.network import Network

ROUNDS_SHOWN = 5


def require_privacy_facts(experiment: Experiment, numbers: np.random.Generator) -> str:
    """Check the facts that a method's class states about its messages; return the reason if nothing is checked.

    Samples of every round are changed, one round after another; `numbers` draws the other samples.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If a message contradicts a fact; the error names both.
    """
    method: Any = innermost_method(experiment.algorithm)
    if wrapper_of(method) is None:
        return "it has no epsilon"
    once = [name for name in ("uses_sample_once", "message_of_one_sample") if getattr(method, name, False)]
    if method.choices_reveal_data and not once:
        return "it states no such fact"
    alone = replace(experiment, algorithm=method, network=Network())
    problem, other = experiment.problem, experiment.task.other_samples(numbers)
    first = _witness_run(alone, problem)
    if not method.choices_reveal_data:
        again = _witness_run(alone, other, first)
        for t, k, mine, theirs in _paired_messages(first, again):
            if [(len(body), bits) for body, bits in mine] != [(len(body), bits) for body, bits in theirs]:
                raise BrokenPromiseError(
                    f"the size or existence of party {k}'s message in round {t + 1} depends on its own samples: its "
                    "class must say choices_reveal_data = True"
                )
    if once and not experiment.task.judged_as_it_learns:
        raise BrokenPromiseError(f"{once[0]} = True, but clients have all their samples in every round")
    if len(once) > 1 and not _depends_on_other_rounds(alone, other, first):
        return ""
    for t in range(problem.rounds) if once else ():
        again = _witness_run(alone, _with_rounds_of(problem, other, [t]), first)
        uses: dict[int, set[int]] = {}
        for then, k, mine, theirs in _paired_messages(first, again):
            if mine != theirs:
                uses.setdefault(k, set()).add(then)
        for k, rounds in uses.items():
            if len(rounds) > 1 or (len(once) > 1 and rounds != {t}):
                shown = ", ".join(str(then + 1) for then in sorted(rounds)[:ROUNDS_SHOWN])
                said = f"the sample of round {t + 1} of party {k} changes its messages of rounds {shown}"
                raise BrokenPromiseError(f"{' and '.join(once)} = True, but {said}")
    return ""


def _depends_on_other_rounds(experiment: Experiment, other: Any, first: Witness) -> bool:
    """Whether a message of any round changes with samples of other rounds.

    Each run changes the rounds whose number has a certain binary digit: some run separates each pair of rounds.
    """
    problem, numbers = experiment.problem, np.arange(experiment.problem.rounds)
    for digit, value in product(range(int(numbers[-1]).bit_length()), (0, 1)):
        changed = (numbers >> digit) % 2 == value
        again = _witness_run(experiment, _with_rounds_of(problem, other, changed), first)
        if any(mine != theirs and not changed[t] for t, _, mine, theirs in _paired_messages(first, again)):
            return True
    return False


def _with_rounds_of(problem: Any, other: Any, rounds: Any) -> Any:
    """The problem with the samples of another one in some rounds."""
    changed = {name: getattr(problem, name).copy() for name in ("x", "y")}
    for name, values in changed.items():
        values[rounds] = getattr(other, name)[rounds]
    return replace(problem, **changed)


def _witness_run(experiment: Experiment, problem: Any, before: Witness | None = None) -> Witness:
    """Run all rounds of one replicate with these data; return the witness of its messages."""
    world, _ = make_world(replace(experiment, problem=problem), (0,))
    witness = Witness(world.channel, before)
    with np.errstate(all="ignore"):  # answers do not match the server's messages
        for _ in method_outcomes(experiment.algorithm, replace(world, channel=witness)):
            pass
    return witness


def _paired_messages(first: Witness, again: Witness) -> Iterator[tuple[int, int, Payloads, Payloads]]:
    """Round, party, and its messages in the first and second run."""
    for (t, mine), (_, theirs) in zip(first.sent, again.sent, strict=True):
        for k in mine:
            yield t, k, mine[k], theirs[k]
