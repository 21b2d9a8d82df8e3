"""Aggregators and attacks: those of flwr and byzfl to rounding, what the papers promise, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Answer
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import play_experiment
from scipy.stats import norm

from fkl.basics.random_streams import Streams
from fkl.conditions import wrap_method
from fkl.conditions.aggregators import Aggregator, Bulyan, GeometricMedian, Krum, Median, MultiKrum, TrimmedMean
from fkl.conditions.attacks import Alie, LabelFlip, RandomNoise, SignFlip, Zero
from fkl.conformance.promises import quick_run
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.engines.base import Experiment
from fkl.kernels import Dictionary
from fkl.runs.prepare import prepare_run
from fkl.wire.payloads import PerClient, RankOne

BYZFL = json.loads((Path(__file__).parents[1] / "oracles" / "byzfl_rules.json").read_text())


@dataclass(frozen=True)
class Message:
    """A matrix stored as its factors, and vectors."""

    matrix: RankOne
    vectors: tuple[PerClient, ...]


def drawn(seed: int, clients: int) -> Message:
    """Messages of two replicates; those of the first clients are longer."""
    rng = np.random.default_rng(seed)
    long = np.where(np.arange(clients) < 2, 5.0, 1.0)[:, None]
    left, right, vector = (long * rng.normal(size=(2, clients, size)) for size in (2, 3, 4))
    return Message(RankOne(left, right), (PerClient(vector),))


def layers(message: Message, r: int, k: int) -> list[Any]:
    """A client's message in the form that flwr uses."""
    return [payload.dense().values[r, k] for payload in (message.matrix, *message.vectors)]


def common(clients: int = 11, replicates: int = 2) -> Common:
    """Of that many clients."""
    kernel, streams = Dictionary(N=1, D=2, smallest=1.0, largest=1.0), Streams(0, tuple(range(replicates)))
    return Common(kernel, 2, 10, streams, "float64", "numpy", clients)


def turn(clients: int, t: int = 0, replicates: int = 2) -> Turn:
    """A server's, or of clients."""
    return Turn(t, 0, Streams(0, tuple(range(replicates))), range(clients))


def aggregated(rule: Aggregator, message: Any, share: Any) -> Any:
    """What the server learns as the mean."""
    _, told, _ = rule.server_takes(common(), None, message, np.asarray(share), turn(1))
    return told


def experiment(algo: str, **conditions: Any) -> Experiment:
    """A method's small run in conditions."""
    plain = prepare_run(quick_run(f"algo={algo}", "partition.clients=8", "partition.rounds=12", "precision=float64"))
    return replace(plain, algorithm=wrap_method(plain.algorithm, conditions))


# --- third parties' aggregators


@pytest.mark.parametrize(("clients", "f"), [(7, 1), (16, 3)])
def test_aggregators_are_those_of_flwr(clients: int, f: int) -> None:
    """An absent client does not count; all payloads of a message are one vector."""
    flwr = pytest.importorskip("flwr.server.strategy.aggregate")
    message, byzantine = drawn(clients, clients + 1), f / clients
    share = np.where(np.arange(clients + 1) == 3, 0, 1 / clients)
    rules: dict[Any, Any] = {
        Median(): flwr.aggregate_median,
        TrimmedMean(byzantine): lambda results: flwr.aggregate_trimmed_avg(results, f / clients + 1e-12),
        Krum(byzantine): lambda results: flwr.aggregate_krum(results, f, 0),
        MultiKrum(byzantine, 4): lambda results: flwr.aggregate_krum(results, f, 4),
        MultiKrum(byzantine): lambda results: flwr.aggregate_krum(results, f, clients - f),
        Bulyan(byzantine): lambda results: flwr.aggregate_bulyan(results, f, flwr.aggregate_krum, to_keep=0),
    }
    for rule, theirs in rules.items():
        told = aggregated(rule, message, share)
        for r in range(2):
            expected = theirs([(layers(message, r, k), 1) for k in np.flatnonzero(share)])
            found = [payload.mean(share)[r] for payload in (told.matrix, *told.vectors)]
            for one, other in zip(found, expected, strict=True):
                assert np.allclose(one, other, rtol=1e-12, atol=1e-14), rule


def test_aggregators_are_those_of_byzfl() -> None:
    """Its Krum adds up one distance more than the paper's n - f - 2, so it is ours with one false client less."""
    messages, f = np.array(BYZFL["messages"])[None], BYZFL["false"]
    n = messages.shape[1]
    rules = {
        "median": Median(),
        "trimmed_mean": TrimmedMean(f / n),
        "krum": Krum((f - 1) / n),
        "multi_krum": MultiKrum((f - 1) / n, n - f),
        "geometric_median_100": GeometricMedian(100, 1e-6),
    }
    for name, rule in rules.items():
        found = rule.combine_messages(messages, None)[0]
        assert np.allclose(found, BYZFL[name], rtol=1e-12, atol=1e-14), name


# --- what an aggregator promises


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_a_few_false_messages_move_it_only_among_the_honest_ones(seed: int) -> None:
    """However far they are: entries stay between those of honest clients, and Krum's message is an honest one."""
    rng = np.random.default_rng(seed)
    honest, n, f = rng.normal(size=(2, 9, 3)), 11, 2
    false = rng.normal(size=(2, f, 3)) * 10.0 ** rng.integers(0, 8, size=(2, f, 1))
    messages, share = np.concatenate([false, honest], axis=1), f / n
    for rule in (Median(), TrimmedMean(share), Bulyan(share)):
        found = rule.combine_messages(messages, None)
        assert (found >= honest.min(axis=1)).all()
        assert (found <= honest.max(axis=1)).all()
    far = np.concatenate([1e6 + false, honest], axis=1)
    chosen = Krum(share).combine_messages(far, None)
    assert (chosen[:, None] == honest).all(axis=2).any(axis=1).all()
    radius = np.linalg.norm(honest - np.median(honest, axis=1, keepdims=True), axis=2).max()
    middle = GeometricMedian(1000).combine_messages(far, None)
    assert np.linalg.norm(middle - np.median(honest, axis=1), axis=1).max() < 4 * radius


@pytest.mark.parametrize("algo", ["pof_mkl", "em_kofl"])
def test_with_nothing_trimmed_it_is_the_mean(algo: str) -> None:
    """Also of kernels that only some clients send."""
    plain, inside = (last_theta(experiment(algo, **groups)) for groups in ({}, {"aggregate": TrimmedMean(0.0)}))
    assert np.allclose(plain, inside, rtol=1e-9, atol=1e-12)


def last_theta(inside: Experiment) -> Any:
    """The server's theta after all rounds, or iterations."""
    server = play_experiment(replace(inside, replicates=2)).states[-1].server
    while hasattr(server, "method"):
        server = server.method
    return server.average if hasattr(server, "average") else server.theta


def test_entries_that_clients_leave_out_do_not_count() -> None:
    """The median of the senders' values, times their share; an entry without a sender is 0."""
    values = np.array([[[1.0, 0.0, 0.0], [5.0, 2.0, 0.0], [9.0, 0.0, 0.0], [0.0, 4.0, 0.0]]])
    sent = np.array([[[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]]], np.bool_)
    assert Median().combine_messages(values, sent).tolist() == [[5.0 * 3 / 4, 3.0 * 2 / 4, 0.0]]
    assert TrimmedMean(0.4).combine_messages(values, sent).tolist() == [[5.0 * 3 / 4, 3.0 * 2 / 4, 0.0]]


# --- attacks


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("attack=sign_flip", "attack.share=0.2: rounded down, it is 0 of 4 clients"),
        ("attack=zero attack.share=0.25 attack.from_round=101", "attack.from_round=101: the last round is 100"),
        ("attack=zero attack.share=0", "attack.share=0.0: 0 of 4 clients"),
        ("aggregate=trimmed_mean", "aggregate.byzantine=0.2: rounded down, it is 0 of 4 clients"),
        ("aggregate=trimmed_mean aggregate.byzantine=0", "aggregate.byzantine=0.0: 0 of 4 clients"),
        ("aggregate=multi_krum", "aggregate.byzantine=0.2: rounded down, it is 0 of 4 clients"),
        ("aggregate=bulyan", "aggregate.byzantine=0.2: rounded down, it is 0 of 4 clients"),
        ("aggregate=median partition=iid partition.clients=2 partition.rounds=9", "of 2 messages it is the mean"),
        ("compression=uniform compression.bits=32", "compression.bits=32: nothing is compressed"),
        ("compression=top_k compression.share=1", "compression.share=1.0: nothing is compressed"),
        ("compression=sign compression.kinds=[]", "compression.kinds=[]: nothing is compressed"),
        ("late=updates late.rounds=0", "late.rounds=0: nothing is late"),
        ("late=labels late.rounds=0", "late.rounds=0: nothing is late"),
        ("privacy=local privacy.noise=0 privacy.clip=null", "no message is changed"),
        ("participation=share participation.share=1", "participation.share=1: no client is absent"),
        ("participation=dropout participation.share=0.1", "participation.share=0.1: rounded, it is 0 of 4 clients"),
        ("participation=markov participation.leave=0", "participation.leave=0: no client is absent"),
        ("participation=schedule participation.clients=4", "participation.clients=4: no client is absent"),
        ("aggregate=trimmed_mean aggregate.byzantine=0.25", ""),
        ("aggregate=krum", ""),  # the message nearest to the others, although none is assumed to be false
        ("aggregate=median", ""),
        ("aggregate=multi_krum aggregate.keep=3", ""),
        ("compression=uniform", ""),
        ("privacy=local privacy.noise=0 privacy.clip=1", ""),
        ("participation=share", ""),
    ],
)
def test_what_does_nothing_says_so(words: str, line: str, fkl: Callable[..., Answer]) -> None:
    """A default share is nobody of four clients, and the rule would be the mean."""
    answer = fkl(
        "run", "algo=ofmkl_avg", "dataset=diabetes", "kernels.D=4", "replicates=1", "figures=none", *words.split()
    )
    assert answer.code == 0
    assert (f"{line}: as without it" in " ".join(answer.err.split())) if line else "as without it" not in answer.err


def test_attackers_are_as_many_as_said_and_the_same_in_all_rounds() -> None:
    """Each replicate has its own."""
    attack, everyone = Zero(share=0.3, from_round=3), range(10)
    found = [attack.are_attackers(common(10, 50), t, everyone) for t in range(9)]
    assert not found[1].any()
    assert all(np.array_equal(found[2], one) for one in found[2:])
    assert (found[2].sum(axis=1) == 3).all()
    assert len({one.tobytes() for one in found[2]}) > 30
    assert np.array_equal(attack.are_attackers(common(10, 50), 5, range(4, 7)), found[2][:, 4:7])


def test_false_messages_are_what_is_said() -> None:
    """In entries that travel, of attackers alone; the honest ones' are not touched."""
    chosen = np.array([[[True, False]] * 11] * 2)
    values = np.random.default_rng(1).normal(size=(2, 11, 2, 500)) * chosen[..., None]
    message = Message(RankOne(np.ones((2, 11, 2)), np.ones((2, 11, 3))), (PerClient(values, chosen),))
    expected = {SignFlip(0.4, scale=3.0): -3 * values, Zero(0.4): 0 * values, RandomNoise(0.4, scale=3.0): None}
    for attack, false in expected.items():
        mask = attack.are_attackers(common(), 0, range(11))
        _, told = attack.client_sends(common(), None, message, None, turn(11))  # type: ignore[arg-type]
        [found] = told.vectors
        assert np.array_equal(found.values[~mask], values[~mask])
        assert not found.values[:, :, 1].any()
        if false is None:
            numbers = found.values[mask][:, 0]
            assert numbers.std() == pytest.approx(3.0, rel=5 / np.sqrt(2 * numbers.size))
            assert abs(np.corrcoef(numbers)[~np.eye(len(numbers), dtype=bool)]).max() < 0.25
        else:
            assert np.array_equal(found.values[mask], false[mask])


def test_a_little_is_enough_is_that_of_byzfl_and_of_the_paper() -> None:
    """Theirs adds tau deviations with n - 1 in the denominator; the authors of the paper subtract z with n."""
    honest = np.array(BYZFL["messages"])
    n = len(honest)
    everyone = common(n + 3, 1)
    attack = Alie(share=3 / (n + 3), z=1.5 * np.sqrt(n / (n - 1)))
    mask = attack.are_attackers(everyone, 0, range(n + 3))[0]
    values = np.full((1, n + 3, honest.shape[1]), 1e9)
    values[0, ~mask] = -honest
    message = Message(RankOne(np.ones((1, n + 3, 2)), np.ones((1, n + 3, 3))), (PerClient(values),))
    _, told, _ = attack.server_takes(everyone, None, message, np.full(n + 3, 1 / (n + 3)), turn(1, 0, 1))
    [found] = told.vectors
    assert np.allclose(-found.values[0, mask], BYZFL["alie"], rtol=1e-12)
    assert np.array_equal(-found.values[0, ~mask], honest)
    assert Alie()._largest_deviation(24, 26) == pytest.approx(norm.ppf(24 / 26))
    assert Alie()._largest_deviation(3, 2) == pytest.approx(
        norm.ppf(1 - 1 / 10)
    )  # the quantile of 1 is infinite, as that of 0
    assert Alie()._largest_deviation(1, 1) == pytest.approx(norm.ppf(1 / 4))
    flipped = SignFlip(share=1.0).false_values(PerClient(honest[None]), turn(n), 0)
    assert np.allclose(flipped.mean(axis=1)[0], BYZFL["sign_flip"], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("algo", ["pof_mkl", "rf_gp", "one_shot_ridge"])
def test_if_all_clients_flip_their_labels_the_server_learns_from_the_others(algo: str) -> None:
    """As in a run whose targets are -y, bit for bit but for the sums' order."""
    plain = experiment(algo)
    false = last_theta(replace(plain, algorithm=wrap_method(plain.algorithm, {"attack": LabelFlip(share=1.0)})))
    if algo == "one_shot_ridge":
        assert np.allclose(false, -last_theta(plain), rtol=1e-9, atol=1e-12)  # it is linear in the targets
        return
    problem = plain.problem
    expected = last_theta(replace(plain, problem=replace(problem, y=-problem.y)))
    assert np.allclose(false, expected, rtol=1e-9, atol=1e-12)


# --- promises, together


# --- what is refused
