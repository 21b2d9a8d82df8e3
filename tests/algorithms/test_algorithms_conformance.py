"""Every registered algorithm keeps the promises of `fkl.conformance`; test_algorithms_difficult.py has more of them."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from conftest import ALGORITHMS, LOCAL_BATCHES, conformance, words_of_few_kernels
from recount import ledger_books_every_message

from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.conformance import PROMISES, BrokenPromiseError, Conformance

Promise = Callable[[Conformance], None]
LABELS, PROCESSES = (
    Conformance.labels_are_not_known_before_they_are_shown,
    Conformance.parties_share_nothing_but_messages,
)
IN_TURN = (
    "a round is a stretch of the server's stream: clients are asked in turn, each after the targets of those before"
)
EXCUSED: dict[tuple[str, Promise], str] = {
    (pooled, LABELS): IN_TURN for pooled in ("pooled_raker", "pooled_ada_raker", "pooled_omkl_gf")
}
"""Promises that an algorithm breaks, and why that is right; one that is kept after all fails."""

WORDS = dict.fromkeys(("consensus_rf_gp", "d_rf_gp"), ("precision=float64",))
"""More words of a method's small run: an agent's system amplifies float32's rounding to 2 % on some processors."""
ONE_OF_EACH_CONTRACT = ("pof_mkl", "odkla", "fdskl")
"""Of a star, of a graph, of parties: each in processes of its own. Those of all others take a second each."""
LIKE_OTHERS = {
    "ada_raker", "cta", "d_rf_gp", "ditto", "dkrr_ny_cm", "domkl", "fed3r", "fedadagrad", "fedadam", "fedavg",
    "fedavgm", "fedprox", "fedyogi", "libsvm", "link_dkla", "nco_oms", "ofskl", "omkl_sfg_r", "omkr",
    "parsimonious_centralized", "pfedme", "poly_2", "pooled_ada_raker", "pooled_omkl_gf", "pooled_svm", "push_cta",
    "q_fedavg", "qc_odkla", "rbf_1", "rfomkr", "vertical_nystroem",
    *(name for name in LOCAL_BATCHES if name != "fedavg_batches"),
}  # fmt: skip
"""Methods that share the code of a file with one that `make test` asks; `make test-slow` asks these."""

CLAIMS = {
    "weight_falls": {
        "em_kofl", "fed_poe", "omkr", "pof_mkl", "poly_2", "pooled_raker", "raker", "rbf_1", "rfomkr", "vm_kofl",
    },
    "unbiased": {
        "fed_poe", "ofmkl_avg", "ofskl", "omkl_sfg", "omkl_sfg_r", "pof_mkl", "pooled_raker", "raker", "vm_kofl",
    },
    "log_evidence": {"rf_gp"},
}  # fmt: skip
"""Methods that claim each identity of `fkl.conformance.identities`."""


def asked(algo: str, promise: Promise) -> Any:
    """A test's arguments."""
    of_few = promise in (PROCESSES, Conformance.seeded_runs_repeat)  # replicates in another order repeat runs, too
    slow = (of_few and algo not in ONE_OF_EACH_CONTRACT) or algo in LIKE_OTHERS
    return pytest.param(algo, promise, id=f"{algo}-{promise.__name__}", marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(
    ("algo", "promise"),
    [asked(*pair) for pair in product([*ALGORITHMS, *LOCAL_BATCHES], (*PROMISES, ledger_books_every_message))],
)
def test_registered_algorithm(algo: str, promise: Promise) -> None:
    """Each promise by itself, or the reason why not."""
    played = conformance(*words_of_few_kernels(algo), *WORDS.get(algo, ()))
    if (algo, promise) in EXCUSED:
        with pytest.raises(BrokenPromiseError):
            promise(played)
        pytest.skip(EXCUSED[algo, promise])
    promise(played)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_not_lost(claim: str) -> None:
    """Without its claim, a method would keep the promise."""
    classes = {name: type(load_run(compose_config(f"algo={name}")).algo) for name in ALGORITHMS}
    assert {name for name, kind in classes.items() if getattr(kind, claim, False)} == CLAIMS[claim]


@pytest.mark.parametrize(
    "words",
    [
        "algo=pof_mkl algo.xi=0.3 algo.bins_by=updated algo.eta_k=5",
        "algo=pof_mkl algo.M=7 algo.local_steps=3",
        "algo=em_kofl algo.losses=sum algo.predictor=copy",
        "algo=vm_kofl aggregate=median compression=sign",
    ],
)
def test_identities_hold_for_other_keys(words: str) -> None:
    """And without the conditions of a run, which are no part of a proof."""
    Conformance.from_overrides(*words.split(), "kernels.N=9").identities_of_its_proofs_hold()
