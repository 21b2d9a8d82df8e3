"""What all conditions share: one that does nothing changes nothing, promises are kept in each, others are refused."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from conftest import LOCAL_BATCHES, LOCAL_TRAINING, conformance, words_of_few_kernels
from numpy.typing import NDArray
from recount import ledger_books_every_message

from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue, FklError
from fkl.conditions import OnMessages, wrap_method
from fkl.conformance.promises import Conformance, quick_run, require_same, trace_rounds
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.runs.prepare import prepare_run

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
    plain = prepare_run(quick_run(*words_of_few_kernels(algo)))
    inside = replace(plain, algorithm=wrap_method(plain.algorithm, {"compression": Counting()}))
    require_same(trace_rounds(plain, (0, 1)), trace_rounds(inside, (0, 1)), "in a condition that does nothing")
    suite = Conformance(inside)
    suite.state_survives_save_and_load()
    suite.parties_see_what_they_hold_alone()


def test_conditions_are_nested_in_the_order_of_their_groups() -> None:
    """The first is the innermost; what is asked of the whole is the method's to answer."""
    method = prepare_run(quick_run("algo=pof_mkl")).algorithm
    first, second = Counting(), Counting()
    whole = wrap_method(method, {"privacy": first, "compression": second})
    assert whole.condition is second
    assert whole.method.condition is first
    assert (whole.method.method, whole.label, whole.lam, whole.M) == (method, method.label, method.lam, method.M)


@pytest.mark.parametrize(("algo", "where"), [("pof_mkl", "on_a_star"), ("dkla", "on_a_graph")])
def test_the_wrong_kind_of_network_is_refused(algo: str, where: str) -> None:
    """By the condition's own word."""
    condition = type("Elsewhere", (Counting,), {where: False})()
    with pytest.raises(BadValue, match="null for"):
        wrap_method(prepare_run(quick_run(f"algo={algo}")).algorithm, {"late": condition})


UNEVEN = "dataset=diabetes partition=quantity_skew partition.clients=4 partition.rounds=40 kernels.N=5"
TIMES = "network.compute_s=1 network.compute_spread=0.5 network.compute_jitter=0.7"
DOES_NOTHING = [
    ("algo=pof_mkl", "privacy=central"),
    ("algo=em_kofl", "privacy=local"),
    ("algo=dkla", "privacy=local"),
    ("algo=pof_mkl", "compression=uniform compression.bits=32 compression.down=true"),
    ("algo=em_kofl", "compression=top_k compression.share=1 compression.down=true"),
    ("algo=coke", "compression=uniform compression.bits=32"),
    ("algo=coke", "compression=sign compression.kinds=[]"),
    ("algo=vm_kofl", "late=updates late.rounds=0 late.drawn=message late.staleness=0.5"),
    ("algo=pof_mkl", "late=labels late.rounds=0"),
    (f"algo=pof_mkl {UNEVEN}", "late=updates late.rounds=0"),
    ("algo=pof_mkl", "participation=share participation.share=1"),
    ("algo=vm_kofl", "participation=markov participation.leave=0"),
    ("algo=em_kofl", f"{TIMES} network.deadline_s=1e6"),
    *(
        ("algo=pof_mkl", f"attack={name} attack.share=0")
        for name in ("sign_flip", "zero", "noise", "label_flip", "alie")
    ),
]
"""Words of a run, and of a condition in which it is the same, although it draws, codes, clips or waits."""


@pytest.mark.parametrize(("words", "nothing"), DOES_NOTHING)
def test_a_limiting_case_is_the_plain_run_bit_for_bit(words: str, nothing: str) -> None:
    """Outcomes and traffic."""
    plain, inside = (
        trace_rounds(prepare_run(quick_run(*one.split(), "kernels.D=4")), (1,)) for one in (words, f"{words} {nothing}")
    )
    require_same(plain, inside, nothing)


NOISE = "privacy.clip=0.3 privacy.noise=0.2"
FEW = "partition=quantity_skew partition.clients=3 partition.rounds=14 precision=float64 kernels.D=4 replicates=3"
SUMS = f"secure=pairwise secure.bits=48 secure.fraction=32 {FEW}"
SOME = "participation=share participation.share=0.3"
LATE = (
    f"{TIMES} network.deadline_s=0.6 network.latency_s=0.1 network.bandwidth_bytes_per_s=10000 network.link_spread=0.5"
)
SHORT = "kernels.N=6 kernels.D=4 partition.rounds=16"
CONDITIONS = [
    f"algo=pof_mkl algo.M=2 algo.xi=0.3 privacy=central {NOISE} {FEW} kernels.N=6",
    f"algo=em_kofl privacy=local {NOISE} {FEW} kernels.N=6",
    f"algo=fomd_oms privacy=central {NOISE} {FEW} kernels.N=6",
    f"algo=pof_mkl privacy=central {NOISE} {SUMS} kernels.N=6 secure.neighbours=2",
    f"algo=em_kofl {SUMS} kernels.N=6",
    f"algo=rf_gp algo.flush=3 {SUMS} kernels.N=6",
    f"algo=pof_mkl aggregate=median attack=alie compression=uniform attack.share=0.3 precision=float64 {SHORT}",
    f"algo=pof_mkl late=updates late.drawn=message late.staleness=0.5 {UNEVEN} kernels.D=8",
    f"algo=perfedavg late=updates late.drawn=client {SHORT}",
    f"algo=vm_kofl late=labels late.rounds=3 {SHORT}",
    *(f"algo={name} {SOME} precision=float64 {SHORT}" for name in ("em_kofl", "fomd_oms", "pof_mkl")),
    *(f"algo={name} {LATE} precision=float64 {SHORT}" for name in ("em_kofl", "pof_mkl")),
    f"algo=pof_mkl compression=uniform compression.bits=3 compression.down=true algo.M=2 {SHORT}",
    f"algo=vm_kofl compression=top_k compression.share=0.2 compression.down=true {SHORT}",
    f"algo=ofskl compression=sign partition=quantity_skew partition.clients=5 {SHORT} kernels.N=1",
    "algo=dkla compression=top_k compression.share=0.2 kernels.D=4 algo.iterations=12",
    "algo=coke algo.v=0.1 links=failing links.p=0.3 algo.iterations=12 topology=complete",
]
"""Of each condition: with clients that are absent, with more than one exchange a round, on a graph."""


@pytest.mark.parametrize("words", CONDITIONS)
def test_promises_are_kept(words: str) -> None:
    """Those that a condition can break: what it draws, keeps and sends; parties on their own come to the same."""
    suite = conformance(*words.split())
    ledger_books_every_message(suite)
    suite.replicates_are_independent()
    suite.threads_and_chunks_do_not_matter()
    suite.state_survives_save_and_load()
    suite.labels_are_not_known_before_they_are_shown()
    suite.parties_see_what_they_hold_alone()


SAMPLED = "algo=pof_mkl privacy=sampled privacy.clip=0.5 privacy.noise=1"
NOISY = "privacy=local privacy.clip=1 privacy.noise=1"
AUDIT = "privacy=central privacy.clip=0.7 privacy.noise=1 audit=canaries dataset=drift"
REFUSED = [
    ("algo=raker compression=sign", "compression=Sign"),
    ("algo=pooled_raker compression=sign", "compression=Sign"),
    ("algo=libsvm compression=sign", "compression=Sign"),
    ("algo=dsg compression=sign", "compression=Sign"),
    ("algo=cascade_svm compression=sign", "compression=Sign"),
    ("algo=em_kofl compression=top_k compression.kinds=[x]", "compression.kinds.*eM-KOFL sends: losses, theta"),
    ("algo=vm_kofl compression=sign compression.kinds=[weights]", "compression.kinds.*vM-KOFL sends: losses, theta"),
    ("algo=pof_mkl links=failing", "links=Failing"),
    ("algo=coke links=failing compression=sign", "compression=Sign"),
    ("algo=coke participation=share compression=sign", "compression=Sign"),
    ("algo=em_kofl late=updates", "late=LateUpdates"),
    ("algo=dkla late=labels", "late=LateLabels"),
    ("algo=raker late=updates", "late=LateUpdates"),
    (f"algo=pof_mkl late=labels {UNEVEN}", "late=LateLabels"),
    ("algo=ofmkl_avg late=updates partition.rounds=5", "late.rounds=5: must be an integer below 5"),
    (f"{SAMPLED} participation=markov", "privacy=Sampled"),
    (f"{SAMPLED} participation=share secure=pairwise", "privacy=Sampled"),
    (f"{SAMPLED} participation=share privacy.noise=0", "privacy.noise=0"),
    (f"algo=pof_mkl algo.xi=0.5 {NOISY}", "privacy=Local.*reveal its data"),
    (f"algo=coke {NOISY}", "privacy=Local.*reveal its data"),
    ("algo=pof_mkl privacy=central privacy.noise=1", "privacy.clip=None"),
    ("algo=dkla privacy=central", "privacy=Central"),
    (f"algo=ofmkl_avg {AUDIT} privacy.noise=0", "audit=Canaries"),
    (f"algo=ofmkl_avg {AUDIT} secure=pairwise", "audit=Canaries"),
    (f"algo=pof_mkl {AUDIT} algo.xi=0.5", "audit=Canaries"),
    ("algo=pof_mkl aggregate=median secure=pairwise", "aggregate=Median"),
    ("algo=pof_mkl aggregate=median privacy=central privacy.clip=1 privacy.noise=1", "aggregate=Median"),
    ("algo=fomd_oms aggregate=median", "aggregate=Median"),
    (
        "algo=pof_mkl partition.clients=8 aggregate=krum aggregate.byzantine=0.4",
        "aggregate.byzantine=0.4.*2 f \\+ 3; now 3 of n = 8",
    ),
    ("algo=pof_mkl partition.clients=8 aggregate=bulyan aggregate.byzantine=0.3", "aggregate.byzantine=0.3.*4 f \\+ 3"),
    (
        "algo=pof_mkl partition.clients=8 aggregate=multi_krum aggregate.byzantine=0.4",
        "aggregate.byzantine=0.4.*2 f \\+ 3",
    ),
    *((f"algo={name} participation=share", "participation=Share") for name in ("raker", "pooled_svm", "libsvm")),
    *((f"algo={name} network.compute_s=1", "network.compute_s=1.0") for name in ("raker", "pooled_svm", "libsvm")),
    ("algo=dkla secure=pairwise", "secure=Pairwise"),
    ("algo=pooled_raker secure=pairwise", "secure=Pairwise"),
    ("algo=fomd_oms late=updates", "late=LateUpdates: must be labels"),
    ("algo=fomd_oms compression=uniform compression.down=true", "compression.down=True"),
    ("algo=nco_oms compression=uniform", "compression=Uniform"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_makes_no_sense_is_refused(words: str, said: str) -> None:
    """In one line that names the key, at the latest before the first round."""
    with pytest.raises(FklError, match=f"^{said}") as refused:
        trace_rounds(prepare_run(quick_run(*words.split())), (0,))
    assert "\n" not in str(refused.value)
