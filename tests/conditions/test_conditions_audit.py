"""Canaries show an epsilon that is below the stated one, close to it, and above it where something is wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from fkl.basics.arrays import normal_quantile
from fkl.basics.errors import BadValue, FklError
from fkl.basics.random_streams import Streams
from fkl.conditions import accountant, audit, privacy
from fkl.conditions.audit_bounds import (
    OBJECTION,
    Scores,
    checked,
    gaussian,
    guesses,
    guesses_to_make,
    noncentrality,
    of_replicates,
    right_of,
)
from fkl.conditions.privacy import Central, Local, Noise
from fkl.conformance import Conformance
from fkl.conformance.promises import scenario
from fkl.contract.star import Turn
from fkl.engines.rounds import simulate
from fkl.runs.command import verdict
from fkl.runs.folder import provenance, read_summary
from fkl.runs.play import execute
from fkl.runs.prepare import prepare
from fkl.runs.tables import summary_without_comparison
from fkl.wire.payloads import PerClient

pytestmark = pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
MU = {0.5: 0.1422, 1: 0.2681, 2: 0.5016, 4: 0.9249, 8: 1.666, 16: 2.9055}
"""mu of a Gaussian mechanism by its epsilon at delta 1e-5."""
PRIVATE = ("privacy=central", "privacy.clip=0.7", "privacy.noise=1", "audit=canaries", "replicates=1", "dataset=drift")


def audited(*words: str) -> pd.DataFrame:
    """The summary of an audit."""
    experiment = prepare(scenario(*PRIVATE, *words))
    return pd.concat([summary_without_comparison(experiment, chunk) for chunk in simulate(experiment)])


def drawn(rng: np.random.Generator, mu: float, *shape: int) -> tuple[Any, Any]:
    """Scores of honest audits, and coins."""
    inside = rng.random(shape) < 0.5
    return mu * inside + rng.normal(size=shape), inside


# --- the bounds


@pytest.mark.parametrize(("df", "ncp"), [(6, 1.0), (98, 3.0), (998, 10.0), (3998, 20.0)])
def test_the_bound_of_a_noncentral_t_covers_as_often_as_it_says(df: int, ncp: float) -> None:
    """In 95 of 100 draws."""
    rng, n = np.random.default_rng(df), 40_000
    t = (rng.normal(size=n) + ncp) / np.sqrt(rng.chisquare(df, size=n) / df)
    assert (noncentrality(t, np.int64(df), 0.05) <= ncp).mean() == pytest.approx(0.95, abs=0.004)
    along = noncentrality(np.linspace(-3, 40, 400), np.int64(df), 0.0005)  # no gap, though scipy has some
    assert (np.diff(along) >= -1e-9).all()
    assert np.diff(along).max() <= 0.11


@pytest.mark.parametrize("seeds", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_gaussian_bounds_cover_in_95_of_100_audits(seeds: int) -> None:
    """In each cell of canaries and epsilon, and of all cells together."""
    rng, covered = np.random.default_rng(seeds), []
    for count in (100, 300, 1000, 3000, 10_000):
        for mu in MU.values():
            covered.append(float((gaussian(*drawn(rng, mu, seeds, count), 0.05) <= mu).mean()))
    sd = np.sqrt(0.95 * 0.05 / seeds)
    assert min(covered) >= 0.95 - 3.2 * sd
    assert np.mean(covered) == pytest.approx(0.95, abs=3.2 * sd / np.sqrt(len(covered)))


def test_guesses_are_those_of_the_paper_and_cover() -> None:
    """690 of 1000 right guesses reject mu = 0.337; the bound is above the truth in at most 5 of 100 audits."""
    assert guesses(1000, 1000, 690, 0.05) == pytest.approx(0.337, abs=0.001)
    rng = np.random.default_rng(0)
    for mu in (MU[1], MU[4], MU[16]):
        made = guesses_to_make(1000, mu, 0.05)
        audits = (drawn(rng, mu, 1000) for _ in range(40))
        found = [guesses(1000, made, right_of(*one, made), 0.05) for one in audits]
        assert np.mean(np.array(found) > mu) <= 0.05
    assert accountant.epsilon_of(2.0, 1e-5) == pytest.approx(9.9973, abs=1e-4)


def test_no_canary_is_guessed_twice() -> None:
    """However little it moves its score."""
    assert guesses_to_make(1000, 0.01, 0.05) <= 1000


def test_the_interval_of_the_noise_covers_it_in_95_of_100_audits() -> None:
    """It is below in as many of the others as above; the mean square is right. Each audit has 20 canaries."""
    rng, audits = np.random.default_rng(3), 1000
    sides = rng.normal(size=(2, 10, audits))
    means, squares = sides.mean(axis=1), sides.var(axis=1, ddof=1).mean(axis=0)
    each = zip(*means, np.sqrt(squares), strict=True)
    found = np.array([of_replicates([np.array([one]) for one in (20, 10, *moments)], 0.05) for moments in each])
    ratio, low, high, _ = found.T
    assert np.mean(ratio**2) == pytest.approx(1, abs=0.03)
    assert [np.mean(low > 1), np.mean(high < 1)] == pytest.approx([0.025, 0.025], abs=0.01)


@pytest.mark.parametrize(("rounds", "clients"), [(3, 40), (10, 20), (200, 1)])
def test_scores_of_an_honest_audit_pass_the_checks_at_5_percent_in_95_of_100(rounds: int, clients: int) -> None:
    """However few scores a client has, whatever their mean is, and where a fifth is missing."""
    rng, p = np.random.default_rng(rounds), list[float]()
    for _ in range(500):
        scores, inside = drawn(rng, 1.0, rounds, clients)
        scores[rng.random(scores.shape) < 0.2] = np.nan
        p.append(checked(scores + 10 * rng.normal(size=clients), inside))
    assert np.mean(np.array(p) >= 0.05) == pytest.approx(0.95, abs=0.03)
    assert max(p) == 1


def test_checks_find_another_distribution_another_variance_and_noise_that_is_used_again() -> None:
    """For one client the check of variances is the F test; the unit, and the side, of scores change nothing."""
    rng = np.random.default_rng(4)
    inside = rng.random((300, 2)) < 0.3
    noise = rng.normal(size=inside.shape)
    again = noise + 0.5 * np.concatenate([np.zeros((1, 2)), noise[:-1]])
    louder = noise * np.where(inside, 1.4, 1)
    for scores in (rng.random(inside.shape), louder, again):
        p = checked(scores, inside)
        assert 0 < p < OBJECTION
        assert checked(np.where(rng.random(inside.shape) < 0.2, np.nan, scores), inside) < OBJECTION
        assert checked(scores / 1000, inside) == pytest.approx(p, rel=1e-6, abs=0)
        assert checked(scores, ~inside) == pytest.approx(p, rel=1e-6, abs=0)
    ratio = louder[inside[:, 0], 0].var(ddof=1) / louder[~inside[:, 0], 0].var(ddof=1)
    p = 2 * scipy.stats.f.sf(ratio, inside[:, 0].sum() - 1, (~inside[:, 0]).sum() - 1)
    assert checked(louder[:, :1], inside[:, :1]) == pytest.approx(3 * p, rel=1e-6, abs=0)  # of three checks


def test_gaussian_bounds_are_close() -> None:
    """With 1000 canaries, medians of the bound over the true epsilon as in the specification."""
    rng = np.random.default_rng(2)
    for epsilon, close in ((2, 0.77), (4, 0.87), (8, 0.91), (16, 0.93)):
        median = float(np.median(gaussian(*drawn(rng, MU[epsilon], 1000, 1000), 0.05)))
        assert accountant.epsilon_of(median, 1e-5) / epsilon == pytest.approx(close, abs=0.03)


# --- honest runs


@pytest.mark.parametrize("where", ["central", "local"])
@pytest.mark.parametrize("algo", ["ofmkl_avg", "pof_mkl", "rf_gp", "vm_kofl"])
def test_an_honest_run_is_not_contradicted(algo: str, where: str) -> None:
    """The bound is close to the stated epsilon, the noise is the stated one, and the scores pass."""
    [told] = audited(f"algo={algo}", "dataset.clients=4", "dataset.rounds=500", f"privacy={where}").to_dict("records")
    assert told["epsilon_upper"] == pytest.approx(4.377, abs=1e-3)
    assert 0.7 <= told["epsilon_lower"] / told["epsilon_upper"] <= 1.07
    assert 0 < told["epsilon_lower_guesses"] < told["epsilon_lower"]
    assert told["noise_ratio"] == pytest.approx(1, abs=0.06)
    assert told["scores_p"] > OBJECTION


def test_a_run_says_what_its_audit_has_found(tmp_path: Path) -> None:
    """In its folder: columns, bounds by round with a figure, and three lines."""
    words = "algo=ofmkl_avg", "dataset.clients=4", "dataset.rounds=30", "replicates=2", f"paths.outputs={tmp_path}"
    run = scenario(*PRIVATE, *words)
    assert execute(run, progress=False)
    assert (run.folder / "epsilon.png").exists()
    summary, rounds = read_summary(run.folder), pd.read_csv(run.folder / "rounds.csv")
    assert 0 < summary["epsilon_lower"][0] < 5
    for column in audit.CURVES:
        assert (rounds[rounds["round"] == 30][column].to_numpy() == summary[column].to_numpy()).all()
    assert (rounds[rounds["round"] == 1]["epsilon_lower"] == 0).all()  # 4 canaries allow no bound
    for said in ("at least", "errors in this run are of canaries", "nothing contradicts the stated epsilon"):
        assert said in provenance(run.folder)["warning"]
    mark, answer = verdict(summary)
    assert (mark, answer.partition(" is ")[0]) == ("✓", "audit: epsilon")
    assert verdict(summary.assign(epsilon_lower=99.0)) == ("▲", "audit: epsilon is at least 99.0, stated 4.38")


def test_a_client_and_a_message_of_many_samples_have_bounds() -> None:
    """A client's messages count together; a message of many samples moves by 2 C."""
    many = "algo=rf_gp", "algo.flush=5", "dataset.clients=4", "dataset.rounds=1000"
    [told] = audited(*many).to_dict("records")
    assert 0.6 <= told["epsilon_lower"] / 9.9973 <= 1.07
    long = "dataset.clients=60", "dataset.rounds=20", "replicates=20"
    clients = (*FEW, *long, "audit.level=client", "privacy.noise=5")
    told = audited(*clients)
    assert (told["canaries"] == 40).all()  # no more than a message has entries
    assert told["epsilon_lower"].mean() > 0
    assert (told["epsilon_lower"] > told["epsilon_upper"]).mean() <= 0.15
    assert told["noise_ratio"].mean() == pytest.approx(1, abs=0.1)


def test_clients_without_a_free_entry_disturb_no_canary() -> None:
    """60 clients share 40 entries: with little noise, scores of the 40 canaries differ by the noise alone."""
    few = "dataset.clients=60", "dataset.rounds=2", "privacy=local", "privacy.noise=0.01", "secure=pairwise"
    [told] = audited(*FEW, *few).to_dict("records")
    assert told["canaries"] == 80
    assert told["noise_ratio"] == pytest.approx(1, abs=0.3)


AGENTS = ("privacy=local", "dataset.clients=100", "dataset.rounds=10", "kernels.D=10", "replicates=3")


@pytest.mark.parametrize("algo", ["dkla", "cta", "odkla", "domkl", "consensus_rf_gp", "d_rf_gp"])
def test_agents_on_a_graph_have_canaries(algo: str) -> None:
    """One for each agent, whose message moves by 2 C; bounds are close, and all replicates together closer."""
    iterations = ("algo.iterations=10",) if algo in ("dkla", "cta") else ()
    told = audited(f"algo={algo}", *AGENTS, "privacy.noise=6", *iterations)
    assert (told["canaries"] == 100).all()
    assert told["epsilon_upper"][0] == pytest.approx(accountant.epsilon_of(2 * np.sqrt(10) / 6, 1e-5), rel=1e-6)
    assert 0.5 <= told["epsilon_lower"].mean() / told["epsilon_upper"][0] <= 1
    ratio, low, high, mu = of_replicates([told[name].to_numpy() for name in audit.MOMENTS], 0.05)
    assert low < ratio < high
    assert 0.6 <= accountant.epsilon_of(mu, 1e-5) / told["epsilon_upper"][0] <= 1.07
    assert (told["score_in"] - told["score_out"]).mean() == pytest.approx(2 * np.sqrt(10) / 6, abs=0.3)


def test_bounds_do_not_depend_on_how_many_replicates_run_together() -> None:
    """One at a time, or three: the same numbers; and agents' memory survives a checkpoint."""
    words = (*PRIVATE, "algo=dkla", *AGENTS, "algo.iterations=10", "privacy.noise=6")
    experiment = prepare(scenario(*words))
    one, all_ = (
        pd.concat([summary_without_comparison(experiment, chunk) for chunk in simulate(experiment, chunk=together)])
        for together in (1, 3)
    )
    for name in audit.COLUMNS:
        if name in one:
            assert (one[name].to_numpy() == all_[name].to_numpy()).all()
    Conformance.from_overrides(*words).state_survives_save_and_load()


def test_noise_that_agents_use_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error, in 10 of 10 seeds; and half the noise."""
    for plant in (same_noise, half_noise):
        with monkeypatch.context() as patch:
            plant(patch)
            for seed in range(10):
                with pytest.raises(FklError, match="CONTRADICTED"):
                    audited("algo=dkla", *AGENTS, "algo.iterations=10", "privacy.noise=3", f"seed={seed}")


def test_the_bound_of_replicates_is_that_of_all_their_scores() -> None:
    """From counts, means and deviations, in any unit, or from the scores themselves."""
    scores, inside = drawn(np.random.default_rng(5), 1.0, 4, 50)
    each = [Scores(row[None], coins[None], False, 1.0, 1e-5) for row, coins in zip(scores, inside, strict=True)]
    found = of_replicates([*np.transpose([one.moments(0.5) for one in each])], 0.05)
    assert found[-1] == pytest.approx(float(gaussian(scores.ravel(), inside.ravel(), 0.05)), rel=1e-12)


def test_seven_coins_on_a_side_show_nothing() -> None:
    """However far the scores are apart; eight do."""
    for out in (7, 8):
        inside = np.arange(60)[None] >= out
        found = Scores(20.0 * inside + np.random.default_rng(0).normal(size=inside.shape), inside, False, 20.0, 1e-5)
        bounds = found.at_least(0.05), found.guessed(0.05)
        assert all(bounds) if out == 8 else bounds == (0, 0)
        assert (gaussian(found.known, found.coins, 0.05) > 0) == (out == 8)


def test_secure_sums_show_less() -> None:
    """The audit sees sums: mu is 1 / (sigma sqrt(n)), whose epsilon stands beside the stated one."""
    sums = "algo=ofmkl_avg", "privacy=local", "secure=pairwise", "dataset.clients=23", "dataset.rounds=450"
    [told] = audited(*sums).to_dict("records")
    mu = 1 / np.sqrt(23)  # 0.2085
    assert told["canaries"] == 23 * 450
    assert told["score_in"] - told["score_out"] == pytest.approx(mu, abs=0.05)
    assert told["epsilon_upper"] == pytest.approx(4.377, abs=1e-3)
    assert told["epsilon_upper_sums"] == pytest.approx(accountant.epsilon_of(mu, 1e-5), rel=1e-6)
    assert 0.5 <= told["epsilon_lower"] / told["epsilon_upper_sums"] <= 1.1
    assert told["noise_ratio"] == pytest.approx(1, abs=0.04)
    with pytest.raises(FklError, match="some of their entries"):
        audited("algo=pof_mkl", *sums[1:])


def test_a_sum_of_messages_of_many_samples_moves_by_2c() -> None:
    words = "algo=rf_gp", "algo.flush=5", "privacy=local", "secure=pairwise", "dataset.clients=5", "dataset.rounds=20"
    [told] = audited(*words, "kernels.D=10", "kernels.N=2").to_dict("records")
    assert told["epsilon_upper_sums"] == pytest.approx(accountant.epsilon_of(2 / np.sqrt(5), 1e-5), rel=1e-6)


def test_a_sum_of_some_clients_is_no_score() -> None:
    """It has less noise than a sum of all."""
    words = "algo=ofmkl_avg", "privacy=local", "secure=pairwise", "dataset.clients=4", "dataset.rounds=20"
    [told] = audited(*words, "participation=schedule", "participation.clients=3").to_dict("records")
    assert (told["canaries"], told["epsilon_lower"], told["scores_p"]) == (0, 0, 1)


def test_one_client_has_canaries() -> None:
    [told] = audited("algo=ofmkl_avg", "dataset.clients=1", "dataset.rounds=20").to_dict("records")
    assert told["canaries"] == 20


def test_coins_change_nothing_but_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """With canaries of length 0, other coins give the same errors, bit for bit."""
    monkeypatch.setattr(audit, "NORM", 0.0)
    words, coins = ("algo=pof_mkl", "dataset.clients=4", "dataset.rounds=20"), audit.Placed._coins
    first = audited(*words)["mse"]
    monkeypatch.setattr(audit.Placed, "_coins", lambda *given: (~coins(*given)[0], coins(*given)[1]))
    assert (audited(*words)["mse"] == first).all()


# --- planted faults


def half_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise of half the deviation."""
    right = privacy.gaussian
    patch.setattr(privacy, "gaussian", lambda *given: right(*given) / 2)


def no_clip(patch: pytest.MonkeyPatch) -> None:
    """Messages of any length."""
    patch.setattr(Noise, "clipped", lambda _, message: message)


def same_noise(patch: pytest.MonkeyPatch) -> None:
    """The noise of the first round in all rounds."""

    def first(turn: Any, role: Any, size: int, number: int) -> Any:
        return normal_quantile(turn.streams.vectors(role, 0, turn.clients, size, number))

    patch.setattr(privacy, "gaussian", first)


def half(scores: Any, inside: Any, mu: float) -> Any:
    """Noise of half the deviation: scores are in deviations of it."""
    return scores + mu * inside


def none_clipped(scores: Any, inside: Any, mu: float) -> Any:
    """Canaries of 10 C."""
    return scores + 9 * mu * inside


def cancelled(scores: Any, inside: Any, mu: float) -> Any:
    """The same noise in all rounds, under signs that add up to 0."""
    return mu * inside


@pytest.mark.parametrize("seeds", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("fault", "epsilon", "rounds", "clients"),
    [
        (half, 1, 1, 800), (half, 4, 1, 80), (half, 8, 1, 30),
        (none_clipped, 1, 1, 30), (none_clipped, 4, 1, 30), (none_clipped, 8, 1, 30),
        (cancelled, 1, 1, 30), (cancelled, 4, 1, 30), (cancelled, 8, 1, 30),
    ],
)  # fmt: skip
def test_faults_are_found_in_nine_of_ten_audits(
    fault: Callable[..., Any], epsilon: int, rounds: int, clients: int, seeds: int
) -> None:
    """With as many canaries as these faults need, at most, for a bound at 95 %: 8 in and 8 out are the fewest."""
    rng, mu = np.random.default_rng(seeds), MU[epsilon]
    found = []
    for _ in range(seeds):
        scores, inside = drawn(rng, mu, rounds, clients)
        scores = fault(scores, inside, mu)
        found.append(Scores(scores, inside, rounds > 1, mu, 1e-5).at_least(0.05) > epsilon)
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("seeds", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_an_honest_audit_has_a_bound_above_the_truth_in_1_of_20(seeds: int) -> None:
    rng, above = np.random.default_rng(seeds), []
    for epsilon in (1, 4, 8):
        audits = (Scores(*drawn(rng, MU[epsilon], 50, 20), True, MU[epsilon], 1e-5) for _ in range(seeds))
        above += [one.at_least(0.05) > epsilon for one in audits]
    assert np.mean(above) <= 0.05 + 3.2 * np.sqrt(0.05 * 0.95 / len(above))


FEW = ("algo=ofmkl_avg", "dataset.clients=30", "kernels.N=2", "kernels.D=10")
FAULTS = {
    half_noise: (*FEW, "dataset.rounds=40"),
    no_clip: (*FEW, "dataset.rounds=2"),
    same_noise: (*FEW, "dataset.rounds=20", "audit.level=client"),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_planted_faults_are_found(plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """In 10 of 10 seeds, as an error that says where to look."""
    plant(monkeypatch)
    for seed in range(10):
        with pytest.raises(FklError, match="CONTRADICTED"):
            audited(*FAULTS[plant], f"seed={seed}")


def test_blind_spots_stay_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries of the clipping norm do not find that there is no clip, nor one sign noise that is used again."""
    with monkeypatch.context() as patch:
        no_clip(patch)
        patch.setattr(audit, "NORM", 1.0)
        assert audited(*FEW, "dataset.rounds=20")["epsilon_lower"][0] < 5
    coins = audit.Placed._coins
    same_noise(monkeypatch)
    monkeypatch.setattr(audit.Placed, "_coins", lambda *given: (coins(*given)[0], np.ones(1)))
    assert audited(*FEW, "dataset.rounds=20", "audit.level=client")["epsilon_lower"][0] < 20


@dataclass(frozen=True)
class Theta:
    """As agents' messages are."""

    theta: PerClient


def test_a_state_canary_shows_2c_where_c_is_stated() -> None:
    """300 agents fit ridge to two rows with one z, of targets -1 and 1/2; a coin decides whether the first is there."""
    z, m, local = np.array([0.6, 0.8]), 300, Local(clip=0.1, noise=1.0)
    for seed in range(10):
        inside = np.random.default_rng(seed).random(m) < 0.5
        target = np.where(inside, -1 + 0.5, 0.5) / np.where(inside, 2, 1)
        theta = Theta(PerClient(target[None, :, None] * z / (1 + 1e-3)))
        turn = Turn(0, 0, Streams(seed, (0,)), range(m))
        _, noisy = local.client_sends(None, None, theta, None, turn)  # type: ignore[arg-type]
        scores = Scores(-(noisy.theta.values[0] @ z / local.clip)[None], inside[None], False, 1.0, 1e-5)
        assert accountant.epsilon_of(1.0, 1e-5) < scores.at_least(audit.CONTRADICTION)
        assert scores.at_least(audit.CONTRADICTION) < accountant.epsilon_of(2.0, 1e-5)


# --- refusals


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("algo=ofmkl_avg", "privacy.noise=0"), "without privacy.noise"),
        (("algo=ofmkl_avg", "secure=pairwise"), "null with secure"),
        (("algo=ofmkl_avg", "privacy=local", "compression=uniform"), "null with compression"),
        (("algo=pof_mkl", "algo.xi=0.5"), "choice of entries"),
        (("algo=push_cta", "privacy=local"), "audit"),
        (("algo=ofmkl_avg", "audit.level=row"), "sample or client"),
    ],
)
def test_what_an_audit_cannot_score_is_refused(words: tuple[str, ...], says: str) -> None:
    """In one line that names the key."""
    with pytest.raises(FklError, match=says) as refused:
        prepare(scenario(*PRIVATE, *words))
    assert "\n" not in str(refused.value)


def test_a_condition_inside_privacy_hides_no_fact() -> None:
    """A method inside another condition still says that its choices reveal data: local privacy refuses it."""
    with pytest.raises(BadValue, match="reveal its data"):
        prepare(scenario("algo=pof_mkl", "algo.xi=0.5", "aggregate=median", "privacy=local", *PRIVATE[1:3]))
    assert Central(clip=1.0).warnings(None) == ()
