"""Noise is as large as said, hides what is bounded, and epsilon is what the literature says it is."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import kstest, norm

from fkl.basics.errors import BadValue
from fkl.basics.random_streams import Role, Streams
from fkl.conditions import accountant, wrap_method
from fkl.conditions.privacy import Central, Local, NoisyMean, SampledWith, gaussian_draws
from fkl.conformance.promises import quick_run
from fkl.contract.star import Samples, Turn
from fkl.engines.base import make_world
from fkl.kernels import Dictionary
from fkl.runs.prepare import prepare_run
from fkl.wire.payloads import FeatureGradients, PerClient, RankOne, payloads_by_kind


@dataclass(frozen=True)
class Message:
    """A payload, and some that travel together."""

    first: Any
    others: Any


def flat(message: Any) -> Any:
    """All that a message's dense payloads hold, (R, K, n)."""
    arrays = [part.dense().values for _, parts in payloads_by_kind(message) for part in parts]
    return np.concatenate([values.reshape(*values.shape[:2], -1) for values in arrays], axis=-1)


# --- norms in closed form


def gradients(feature_map: str, lam: float, chosen: bool, weighted: bool, seed: int) -> FeatureGradients:
    """Of 2 replicates, 3 clients and 4 kernels."""
    rng = np.random.default_rng(seed)
    bank = Dictionary(N=4, D=5, map=feature_map).bank(2, Streams(seed, (0, 1)), "float64", "numpy")
    mask = rng.random((2, 3, 4)) < 0.5 if chosen else np.ones((2, 3, 4), np.bool_)
    x, theta = rng.normal(size=(3, 2)), rng.normal(size=(2, 4, bank.width))
    weight = 3 * rng.random((2, 3, 4)) * mask if weighted or chosen else None
    return FeatureGradients(bank, x, rng.normal(size=(2, 3, 4)) * mask, theta, lam, weight, mask if chosen else None)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["pairs", "cosine"]), st.sampled_from([0.0, 0.3]), st.booleans(), st.booleans(), st.integers(0, 9)
)
def test_norms_in_factors_are_those_of_the_gradients(
    feature_map: str, lam: float, chosen: bool, weighted: bool, seed: int
) -> None:
    """Also where |z| is not 1; and what is multiplied in factors is what is multiplied entry by entry."""
    payload = gradients(feature_map, lam, chosen, weighted, seed)
    dense, factor = payload.dense(), np.random.default_rng(seed).random((2, 3))
    assert np.allclose(payload.squared_norm(), dense.squared_norm(), rtol=1e-12, atol=1e-12)
    assert np.allclose(payload.times(factor).dense().values, dense.times(factor).values, rtol=1e-12, atol=1e-14)
    share = np.array([0.5, 0.0, 0.5])
    assert np.allclose(payload.times(factor).mean(share), dense.times(factor).mean(share), rtol=1e-12, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 5), st.integers(0, 9))
def test_clipped_messages_are_no_longer_than_the_norm(clip: float, seed: int) -> None:
    """All payloads as one vector; what is short enough stays as it is, and what is not keeps its direction."""
    rng = np.random.default_rng(seed)
    message = Message(
        gradients("pairs", 0.1, True, True, seed),
        (PerClient(rng.normal(size=(2, 3, 4))), RankOne(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 5)))),
    )
    before, after = flat(message), flat(Central(clip=clip).clip_message(message))
    norm_before, norm_after = (np.linalg.norm(one, axis=-1) for one in (before, after))
    assert np.allclose(norm_after, np.minimum(norm_before, clip), rtol=1e-12)
    assert np.allclose(after * norm_before[..., None], before * norm_after[..., None], rtol=1e-9, atol=1e-12)
    short = norm_before < clip
    assert np.array_equal(before[short], after[short])


# --- noise


def turn(clients: int, t: int = 0, exchange: int = 0) -> Turn:
    """Of two replicates."""
    return Turn(t, exchange, Streams(3, (0, 1)), range(clients))


def test_numbers_are_those_of_a_gaussian() -> None:
    """By Kolmogorov and Smirnov; one round's are not another's, nor one payload's, one client's, one exchange's."""
    drawn = gaussian_draws(turn(4), Role.PRIVACY, 5000, 0)
    assert kstest(drawn.ravel(), norm.cdf).pvalue > 1e-3
    others = [gaussian_draws(turn(4, t, e), Role.PRIVACY, 5000, j) for t, e, j in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    several = np.concatenate([drawn.reshape(8, -1), *(other.reshape(8, -1) for other in others)])
    off_diagonal = np.corrcoef(several)[~np.eye(32, dtype=bool)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(5000)


def test_central_noise_has_the_deviation_that_is_said() -> None:
    """Sigma C max share, in every entry of the mean."""
    values, share = np.zeros((2, 3, 10000)), [0.7, 0.2, 0.1]
    mean = NoisyMean(PerClient(values), 0.5 * 2.0, turn(1), 0, np.array(share) > 0).mean(np.array(share))
    expected = 0.5 * 2.0 * max(share)
    assert mean.shape == (2, 10000)
    assert mean.std() == pytest.approx(expected, rel=5 / np.sqrt(2 * mean.size))
    assert abs(mean.mean()) < 5 * expected / np.sqrt(mean.size)


def test_local_noise_has_the_deviation_that_is_said() -> None:
    """Sigma C in every entry that travels, 0 in the others; the mean's noise is smaller by the root of K."""
    chosen = np.zeros((2, 3, 2), np.bool_)
    chosen[:, :, 0] = True
    message = Message(PerClient(np.zeros((2, 3, 2, 5000)), chosen), ())
    noisy = Local(clip=2.0, noise=0.5)._with_noise(message, turn(3)).first
    sent = noisy.values[:, :, 0]
    assert not noisy.values[:, :, 1].any()
    assert sent.std() == pytest.approx(1.0, rel=5 / np.sqrt(2 * sent.size))
    assert noisy.mean(np.full(3, 1 / 3))[:, 0].std() == pytest.approx(3**-0.5, rel=5 / np.sqrt(2 * 10000))


# --- epsilon


def balle_wang(sigma: float, delta: float) -> float:
    """Balle and Wang (2018), theorem 8: Phi(1/2s - es) - exp(e) Phi(-1/2s - es) = delta, solved for e."""

    def excess(epsilon: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return float(norm.cdf(a - b) - np.exp(epsilon + norm.logcdf(-a - b)) - delta)

    return float(brentq(excess, 0, 200, xtol=1e-12)) if excess(0) > 0 else 0.0


def problem(*present: list[int]) -> Any:
    """Who is present in which round."""
    return SimpleNamespace(present=np.array(present, np.bool_))


@pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
@pytest.mark.parametrize(("sigma", "delta"), [(0.3, 1e-3), (1.0, 1e-6), (50.0, 1e-6)])
def test_epsilon_of_one_gaussian_mechanism(sigma: float, delta: float) -> None:
    """Against the closed form, to 1e-6."""
    told = accountant.gaussian_epsilons(sigma, np.array([1, 0]), delta)
    assert told == pytest.approx([balle_wang(sigma, delta), 0], abs=1e-6)


@pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
def test_epsilon_of_many_is_what_privacy_loss_distributions_add_up_to() -> None:
    """An accountant that composes numerically, and by other means; to its discretisation."""
    import dp_accounting

    other = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    for _ in range(12):
        other.compose(dp_accounting.GaussianDpEvent(5.0))
    assert accountant.gaussian_epsilons(5.0, np.array([12]), 1e-5)[0] == pytest.approx(
        other.get_epsilon(1e-5), abs=1e-3
    )


def method_with(**facts: Any) -> SimpleNamespace:
    """The facts of a method with a server that privacy asks for."""
    usual = {"exchanges": 1, "exchanges_up": None, "uses_sample_once": False, "message_of_one_sample": False}
    return SimpleNamespace(**usual | facts)


@pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
def test_columns_count_what_was_sent() -> None:
    """A sample is in one message of POF-MKL with bins drawn uniformly; a client in as many as it was there for."""
    noise, there = Central(clip=1.0, noise=2.0), problem([1, 1], [1, 0], [1, 0])
    told = noise.columns(method_with(uses_sample_once=True, message_of_one_sample=True), there)
    each = [balle_wang(2.0 / np.sqrt(n), 1e-5) for n in (1, 2, 3)]
    assert told["epsilon_sample"] == pytest.approx([each[0]] * 3, abs=1e-6)
    assert told["epsilon_client"] == pytest.approx(each, abs=1e-6)
    assert (np.diff(told["epsilon_client"]) > 0).all()
    half = [balle_wang(1.0 / np.sqrt(n), 1e-5) for n in (1, 2, 3)]
    remembers = noise.columns(method_with(), there)
    assert remembers["epsilon_sample"] == pytest.approx(half, abs=1e-6)
    assert remembers["epsilon_client"] == pytest.approx(each, abs=1e-6)
    of_many = noise.columns(method_with(uses_sample_once=True), there)
    assert of_many["epsilon_sample"] == pytest.approx([half[0]] * 3, abs=1e-6)
    twice = noise.columns(method_with(exchanges=2), there)
    assert twice["epsilon_client"][-1] == pytest.approx(balle_wang(2.0 / np.sqrt(6), 1e-5), abs=1e-6)
    assert Central(clip=1.0).columns(method_with(), there) == {}
    everyone = SampledWith(1.0, 2.0, 1e-5, probability=1.0).columns(method_with(exchanges=2), there)
    assert everyone["epsilon_client"] == pytest.approx(
        accountant.gaussian_epsilons(2.0, 2 * np.arange(1, 4), 1e-5), abs=1e-3
    )


@pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
def test_epsilon_with_drawn_clients_is_that_of_an_independent_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the table in the specification, whose FFT is its own; q = 0.1, sigma = 1."""
    monkeypatch.setattr(accountant, "COMPOSED", 3)  # such as 1, 3 and 9; others have that of the next larger number
    for n, replaced, expected in ((1, True, 1.7892), (1, False, 1.6845), (100, False, 7.0466)):
        found = accountant.sampled_epsilons(1.0, 0.1, np.array([0, n]), 1e-5, replaced)
        assert found == pytest.approx([0, expected], rel=1e-4)
    every = accountant.sampled_epsilons(2.0, 0.3, np.arange(1, 10), 1e-5, False)
    assert every.tolist() == every[[0, 2, 2, 8, 8, 8, 8, 8, 8]].tolist() and every[0] < every[2] < every[8]
    assert every[2] == accountant.sampled_epsilons(2.0, 0.3, np.array([3]), 1e-5, False)[0]
    assert accountant.sampled_epsilons(2.0, 1.0, np.array([7]), 1e-5, False) == pytest.approx(
        accountant.gaussian_epsilons(2.0, np.array([7]), 1e-5), abs=1e-3
    )


SAMPLED = ("privacy=sampled", "privacy.clip=0.5", "privacy.noise=1", "participation=share", "participation.share=0.3")


def test_a_sampled_mean_does_not_show_how_many_take_part() -> None:
    """Its denominator and its noise are the same in every round, also in one without clients."""
    experiment = prepare_run(quick_run("algo=pof_mkl", *SAMPLED, "partition.rounds=30", "replicates=1"))
    world, _ = make_world(experiment, (0,))
    present, method = world.problem.present, experiment.algorithm
    K = world.problem.clients
    counts = present.sum(axis=1)
    assert counts.min() == 0 < counts.max()
    state, moved = method.init(world), []
    for t in range(len(present)):
        world.channel.open_round(t, present[t])
        before = state.server.method.theta.copy()
        state, _ = method.step(world, state, t)
        moved.append((state.server.method.theta - before).std())
    moves = np.array(moved) / (method.rate(len(present)) * 0.5 / (0.3 * K))
    assert moves[counts == 0] == pytest.approx(1, abs=0.2)
    assert moves == pytest.approx(1, abs=0.2)


def test_leaving_out_a_sample_moves_a_clipped_theta_by_twice_the_norm() -> None:
    """Ridge on two rows with the same z and targets -1 and 1/2: without the first, theta points the other way."""
    z, noise = np.array([0.6, 0.8]), Central(clip=0.1)

    def told(y: list[float]) -> Any:
        rows, lam = np.tile(z, (len(y), 1)), 1e-3
        theta = np.linalg.solve(rows.T @ rows / len(y) + lam * np.eye(2), rows.T @ np.array(y) / len(y))
        return noise.clip_message(Message(PerClient(theta[None, None]), ())).first.values

    assert np.linalg.norm(told([-1.0, 0.5]) - told([0.5])) == pytest.approx(2 * 0.1, abs=1e-12)


@pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
@pytest.mark.parametrize(
    ("words", "sigma"),
    [
        (("algo=ofmkl_avg",), 1.0),
        (("algo=rf_gp", "algo.flush=1"), 1.0),
        (("algo=rf_gp", "algo.flush=5"), 0.5),
        (("algo=dkla", "algo.iterations=1"), 0.5),
    ],
)
def test_epsilon_of_a_sample_is_of_what_a_message_holds(words: tuple[str, ...], sigma: float) -> None:
    """One message, or one exchange: 4.38 of one sample, 10.00 of many."""
    noisy = ("privacy=local", "privacy.clip=1", "privacy.noise=1")
    experiment = prepare_run(quick_run(*words, *noisy, "replicates=1"))
    told = experiment.algorithm.columns(experiment.problem)["epsilon_sample"]
    assert told[0] == pytest.approx(balle_wang(sigma, 1e-5), abs=1e-3)


@pytest.mark.parametrize("algo", ["em_kofl", "ofmkl_avg", "pof_mkl", "vm_kofl"])
def test_a_sample_is_in_one_message_where_it_is_said(algo: str) -> None:
    """A client that has seen other samples before sends the same; eM-KOFL's, and POF-MKL's by its bins, do not."""
    experiment = prepare_run(quick_run(f"algo={algo}", "partition.rounds=12", "replicates=1"))
    methods = [experiment.algorithm]
    if algo == "pof_mkl":
        methods.append(replace(methods[0], xi=0.01, M=4, eta_k=5.0))
        assert [one.uses_sample_once for one in methods] == [True, False]
    for one in methods:
        same = [first_message(one, experiment, factor) for factor in (1.0, -3.0)]
        assert np.array_equal(*same) == one.uses_sample_once


def first_message(method: Any, experiment: Any, factor: float) -> Any:
    """What clients send in round 3, told what the server tells at first, with other targets in rounds 1 and 2."""
    world, _ = make_world(experiment, (0,))
    common, state = world.common, method.init(world)
    if hasattr(state.server, "theta"):  # at 0 all kernels predict alike, and no weight moves
        state.server.theta = np.random.default_rng(0).normal(size=state.server.theta.shape)
    for t in range(3):
        x, y, share = world.problem.round(t)
        everyone, alone = (Turn(t, 0, world.streams, range(size)) for size in (len(y), 1))
        _, down = method.tell(common, state.server, alone)
        samples = Samples(x, factor * y if t < 2 else y, share > 0)
        state.client, up, _ = method.client(common, state.client, down, samples, everyone)
        if method.exchanges == 2:
            told = type("Average", (), {"theta": PerClient(np.zeros((1, common.bank.width)))})
            later = replace(everyone, exchange=1)
            state.client, _, _ = method.client(common, state.client, told, samples, later)
    return flat(up)


# --- what is refused


def test_noise_comes_last_and_is_never_read_off() -> None:
    """Nothing makes messages longer again, and a mean with noise tells no client's values."""
    method = prepare_run(quick_run("algo=pof_mkl")).algorithm
    with pytest.raises(BadValue, match="compression, which comes after clipping"):
        wrap_method(method, {"privacy": Central(0.3, 0.2), "compression": Local()})
    with pytest.raises(BadValue, match="reads what each client sent"):
        _ = NoisyMean(PerClient(np.zeros((1, 2, 3))), 1.0, turn(1), 0, np.ones(2, bool)).values


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("algo=ofmkl_avg privacy=central privacy.delta=0.5", "1/400 = 0.0025, one over the number of samples"),
        ("algo=ofmkl_avg privacy=local privacy.delta=0.0025", "1/400 = 0.0025, one over the number of samples"),
        (
            "algo=fedavg kernels=coke algo.iterations=2 privacy=central privacy.delta=0.01",
            "one over the number of samples",
        ),
        ("algo=odkla privacy=local privacy.delta=0.01", "1/400 = 0.0025, one over the number of samples"),
    ],
)
def test_a_delta_that_lets_a_sample_be_published_is_refused(words: str, limit: str, fkl) -> None:
    keys = ("dataset=diabetes", "kernels.D=4", "replicates=1", "figures=none", "privacy.clip=1", *words.split())
    answer = fkl("run", *keys, "privacy.noise=1")
    assert (answer.code, answer.err.count("error: ")) == (2, 1)
    assert answer.err.startswith("error: privacy.delta=0.") and limit in answer.err
    assert fkl("run", *keys, "privacy.noise=0").code == 0  # nothing is stated
