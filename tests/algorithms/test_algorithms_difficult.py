"""The promises of `fkl.conformance` where clients are absent, messages are lost, or more can go wrong otherwise."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from conftest import conformance
from recount import ledger_books_every_message

from fkl.conformance import PROMISES, Conformance

Promise = Callable[[Conformance], None]
ALIKE, LEDGER = Conformance.replicates_are_independent, ledger_books_every_message
KEPT, APART = Conformance.state_survives_save_and_load, Conformance.parties_see_what_they_hold_alone
LABELS, CHUNKS = (Conformance.labels_are_not_known_before_they_are_shown, Conformance.threads_and_chunks_do_not_matter)
INPUTS = Conformance.inputs_stay_as_they_are
IN_ONE_PROCESS = [
    ledger_books_every_message,
    *(promise for promise in PROMISES if promise is not Conformance.parties_share_nothing_but_messages),
]

KERNELS = "kernels.N=9"
ABSENT = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60", "precision=float64")
NEAREST = ("compression=uniform", "compression.rounding=nearest")
NOISY = ("privacy=local", "privacy.clip=1.5", "privacy.noise=0.5")
DIGITS = ("dataset=digits", "partition.clients=4", "partition.rounds=60", "kernels.D=4")
LOSSY = ("network.loss=0.3", "topology=erdos_renyi", "topology.p=0.9")
WHERE_ABSENT = {LEDGER, APART, KEPT}
WHERE_LOST = {LEDGER, APART, KEPT, ALIKE}
DIFFICULT: dict[str, tuple[set[Promise], tuple[str, ...]]] = {
    "pof_mkl, bins drawn, clients absent": (
        WHERE_ABSENT | {ALIKE, CHUNKS},
        ("algo=pof_mkl", KERNELS, "algo.M=2", "algo.xi=0.3", *ABSENT),
    ),
    "em_kofl, clients absent": (WHERE_ABSENT, ("algo=em_kofl", KERNELS, *ABSENT)),
    "fed_poe, clients absent": (WHERE_ABSENT | {ALIKE}, ("algo=fed_poe", KERNELS, "algo.eta_k=3", *ABSENT)),
    "fomd_oms, clients absent": (
        WHERE_ABSENT | {ALIKE},
        ("algo=fomd_oms", KERNELS, "algo.J=3", "algo.eta=32", "algo.step_size=0.5", *ABSENT),
    ),
    "rf_gp, an active few, clients absent": (
        WHERE_ABSENT | {ALIKE},
        ("algo=rf_gp", KERNELS, "algo.M=3", "algo.flush=7", "algo.personal=true", *ABSENT),
    ),
    "rf_gp, summed up, clients absent": (WHERE_ABSENT, ("algo=rf_gp", KERNELS, "algo.rank=2", "algo.flush=6", *ABSENT)),
    "raker, mixed families": (
        {ALIKE, CHUNKS, INPUTS},
        ("algo=raker", "kernels.N=7", "kernels.laplacians=3", "precision=float64"),
    ),
    "coke, messages lost": (WHERE_LOST, ("algo=coke", "algo.v=0.1", *LOSSY)),
    "coke, quantized": ({LEDGER, APART, KEPT}, ("algo=coke", "algo.v=0.1", *NEAREST, "compression.bits=6")),
    "odkla, clients absent": (WHERE_ABSENT, ("algo=odkla", *ABSENT)),
    "consensus_rf_gp, clients absent": (  # an estimated noise of 1e-6 would magnify rounding in a log density
        WHERE_ABSENT,
        ("algo=consensus_rf_gp", KERNELS, "algo.flush=null", "algo.forget=0.95", "algo.noise=0.01", *ABSENT),
    ),
    "d_rf_gp, messages lost": (WHERE_LOST, ("algo=d_rf_gp", KERNELS, *LOSSY)),
    "domkl, weights added, messages lost": (WHERE_LOST, ("algo=domkl", "algo.weights=added", KERNELS, *LOSSY)),
    "fedavg_batches, softmax": (
        WHERE_ABSENT | {ALIKE},
        ("algo=fedavg", "kernels=coke", "algo.loss=softmax", "algo.iterations=20", *DIGITS, "participation=share"),
    ),
    "one_shot_ridge, clients absent": (
        WHERE_ABSENT | {ALIKE, LABELS},
        ("algo=one_shot_ridge", *ABSENT, "participation=share", *NOISY),
    ),
    "dkla, logistic": (
        {CHUNKS, LABELS, APART},
        ("algo=dkla", "algo.loss=logistic", "algo.iterations=20", "dataset=ellipses", "dataset.rows=90"),
    ),
    "fdskl, a bank": ({ALIKE, LEDGER, APART, INPUTS}, ("algo=fdskl", "algo.bank=24", "precision=float64")),
    "fdskl, fresh masks, a fold": (
        {ALIKE, LEDGER, APART, LABELS, KEPT},
        ("algo=fdskl", "algo.masks=fresh", "algo.fold=1", "precision=float64"),
    ),
    "secureboost, real targets": ({LEDGER, APART, LABELS}, ("algo=secureboost", "algo.trees=3", "dataset=diabetes")),
}
"""Where there is more that can go wrong: the promises that this can break (all others are slow), and how to run it."""


def asked(name: str, promise: Promise) -> Any:
    """A test's arguments."""
    slow = promise not in DIFFICULT[name][0]
    return pytest.param(name, promise, id=f"{name}-{promise.__name__}", marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(("name", "promise"), [asked(*pair) for pair in product(DIFFICULT, IN_ONE_PROCESS)])
def test_difficult_scenario(name: str, promise: Promise) -> None:
    """Parties are objects here, not processes."""
    promise(conformance(*DIFFICULT[name][1]))
