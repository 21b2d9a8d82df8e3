"""A condition that does nothing changes nothing; whose network cannot have it, says so."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from conftest import LOCAL_BATCHES, LOCAL_TRAINING, words_of
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue
from fkl.conditions import OnMessages, wrap
from fkl.conformance.promises import Conformance, play, require_same, scenario
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.runs.prepare import prepare

STAR = (
    "em_kofl", "fed_poe", "fomd_oms", "fed3r", "ofmkl_avg", "ofskl", "one_shot_ridge",
    "perfedavg", "pof_mkl", "rf_gp", "vm_kofl", *LOCAL_TRAINING, *LOCAL_BATCHES,
)  # fmt: skip
GRAPH = ("coke", "consensus_rf_gp", "cta", "d_rf_gp", "dkla", "domkl", "odkla", "qc_odkla")
ALWAYS = ("em_kofl", "consensus_rf_gp", "coke")
"""Those of `make test`: one with two exchanges a round, and one with streams and one with batches on a graph."""


@dataclass
class Count:
    """Messages so far, (R, K) of a client or an agent, (R, 1) of the server."""

    sent: NDArray[np.int64]


@dataclass(frozen=True)
class Counting(OnMessages):
    """Passes everything on, and remembers how much there was."""

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """One more."""
        return self._counted(memory, turn), message

    def server_sends(self, common: Common, memory: Any, message: Any, turn: Turn) -> tuple[Any, Any]:
        """One more."""
        return self._counted(memory, turn), message

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """One more."""
        return self._counted(memory, turn), message, share

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """One more."""
        return self._counted(memory, turn), message, sends

    def _counted(self, memory: Count | None, turn: Turn) -> Count:
        shape = len(turn.streams.replicates), len(turn.clients)
        return Count((np.zeros(shape, np.int64) if memory is None else memory.sent) + 1)


@pytest.mark.parametrize(
    "algo", [pytest.param(algo, marks=[pytest.mark.slow] * (algo not in ALWAYS)) for algo in (*STAR, *GRAPH)]
)
def test_a_condition_that_does_nothing_changes_no_bit_and_remembers(algo: str) -> None:
    """Outcomes and traffic, round after round; after it was saved and loaded; at parties on their own as together."""
    plain = prepare(scenario(*words_of(algo)))
    inside = replace(plain, algorithm=wrap(plain.algorithm, {"compression": Counting()}))
    require_same(play(plain, (0, 1)), play(inside, (0, 1)), "in a condition that does nothing")
    suite = Conformance(inside)
    suite.state_survives_save_and_load()
    suite.parties_see_what_they_hold_alone()


def test_conditions_are_nested_in_the_order_of_their_groups() -> None:
    """The first is the innermost; what is asked of the whole is the method's to answer."""
    method = prepare(scenario("algo=pof_mkl")).algorithm
    first, second = Counting(), Counting()
    whole = wrap(method, {"privacy": first, "compression": second})
    assert whole.condition is second
    assert whole.method.condition is first
    assert (whole.method.method, whole.label, whole.lam, whole.M) == (method, method.label, method.lam, method.M)


@pytest.mark.parametrize("algo", ["raker", "pooled_raker", "libsvm", "dsg", "cascade_svm"])
def test_other_families_refuse_by_name(algo: str) -> None:
    """Learners, pooled methods, one-shot methods and parties have no messages that a condition could be put around."""
    method = prepare(scenario(f"algo={algo}")).algorithm
    with pytest.raises(BadValue, match=r"compression.*null for"):
        wrap(method, {"compression": Counting()})


@pytest.mark.parametrize(("algo", "where"), [("pof_mkl", "on_a_star"), ("dkla", "on_a_graph")])
def test_the_wrong_kind_of_network_is_refused(algo: str, where: str) -> None:
    """By the condition's own word."""
    condition = type("Elsewhere", (Counting,), {where: False})()
    with pytest.raises(BadValue, match="null for"):
        wrap(prepare(scenario(f"algo={algo}")).algorithm, {"late": condition})
