"""Canaries show an epsilon that is below the stated one, close to it, and above it where something is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from fkl.basics.arrays import normal_quantile
from fkl.basics.errors import FklError
from fkl.conditions import accountant, audit, privacy
from fkl.conditions.audit_bounds import (
    OBJECTION,
    bound_gaussian,
    check_scores,
    guesses_bound,
    guesses_to_make,
    noncentrality_bound,
    of_replicates,
    right_of,
)
from fkl.conditions.privacy import Noise
from fkl.conformance.promises import quick_run
from fkl.engines.rounds import simulate_run
from fkl.report import draw_figures
from fkl.runs.command import judge_summary
from fkl.runs.folder import read_provenance, read_summary
from fkl.runs.play import execute_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import summary_without_comparison

pytestmark = pytest.mark.skipif(not accountant.INSTALLED, reason="dp-accounting is not installed")
MU = {0.5: 0.1422, 1: 0.2681, 2: 0.5016, 4: 0.9249, 8: 1.666, 16: 2.9055}
"""mu of a Gaussian mechanism by its epsilon at delta 1e-5."""
PRIVATE = ("privacy=central", "privacy.clip=0.7", "privacy.noise=1", "audit=canaries", "replicates=1", "dataset=drift")


def audited(*words: str) -> pd.DataFrame:
    """The summary of an audit."""
    experiment = prepare_run(quick_run(*PRIVATE, *words))
    return pd.concat(
        [pd.DataFrame(summary_without_comparison(experiment, chunk)) for chunk in simulate_run(experiment)]
    )


def drawn(rng: np.random.Generator, mu: float, *shape: int) -> tuple[Any, Any]:
    """Scores of honest audits, and coins."""
    inside = rng.random(shape) < 0.5
    return mu * inside + rng.normal(size=shape), inside


# --- the bounds


@pytest.mark.parametrize(("df", "ncp"), [(6, 1.0), (998, 10.0)])
def test_the_bound_of_a_noncentral_t_covers_as_often_as_it_says(df: int, ncp: float) -> None:
    """In 95 of 100 draws."""
    rng, n = np.random.default_rng(df), 40_000
    t = (rng.normal(size=n) + ncp) / np.sqrt(rng.chisquare(df, size=n) / df)
    assert (noncentrality_bound(t, np.int64(df), 0.05) <= ncp).mean() == pytest.approx(0.95, abs=0.004)
    along = noncentrality_bound(np.linspace(-3, 40, 400), np.int64(df), 0.0005)  # no gap, though scipy has some
    assert (np.diff(along) >= -1e-9).all()
    assert np.diff(along).max() <= 0.11


def test_gaussian_bounds_cover_in_95_of_100_audits() -> None:
    """In each cell of canaries and epsilon, and of all cells together."""
    seeds = 100
    rng, covered = np.random.default_rng(seeds), []
    for count in (100, 300, 1000, 3000, 10_000):
        for mu in MU.values():
            covered.append(float((bound_gaussian(*drawn(rng, mu, seeds, count), 0.05) <= mu).mean()))
    sd = np.sqrt(0.95 * 0.05 / seeds)
    assert min(covered) >= 0.95 - 3.2 * sd
    assert np.mean(covered) == pytest.approx(0.95, abs=3.2 * sd / np.sqrt(len(covered)))


def test_guesses_are_those_of_the_paper_and_cover() -> None:
    """690 of 1000 right guesses reject mu = 0.337; the bound is above the truth in at most 5 of 100 audits."""
    assert guesses_bound(1000, 1000, 690, 0.05) == pytest.approx(0.337, abs=0.001)
    rng = np.random.default_rng(0)
    for mu in (MU[1], MU[4], MU[16]):
        made = guesses_to_make(1000, mu, 0.05)
        audits = (drawn(rng, mu, 1000) for _ in range(40))
        found = [guesses_bound(1000, made, right_of(*one, made), 0.05) for one in audits]
        assert np.mean(np.array(found) > mu) <= 0.05
    assert accountant.epsilon_of(2.0, 1e-5) == pytest.approx(9.9973, abs=1e-4)


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


def test_checks_find_another_distribution_another_variance_and_noise_that_is_used_again() -> None:
    """For one client the check of variances is the F test; the unit, and the side, of scores change nothing."""
    rng = np.random.default_rng(4)
    inside = rng.random((300, 2)) < 0.3
    noise = rng.normal(size=inside.shape)
    again = noise + 0.5 * np.concatenate([np.zeros((1, 2)), noise[:-1]])
    louder = noise * np.where(inside, 1.4, 1)
    for scores in (rng.random(inside.shape), louder, again):
        p = check_scores(scores, inside)
        assert 0 < p < OBJECTION
        assert check_scores(np.where(rng.random(inside.shape) < 0.2, np.nan, scores), inside) < OBJECTION
        assert check_scores(scores / 1000, inside) == pytest.approx(p, rel=1e-6, abs=0)
        assert check_scores(scores, ~inside) == pytest.approx(p, rel=1e-6, abs=0)
        assert check_scores(scores[:5], inside[:5]) == 1, "too few"
    ratio = louder[inside[:, 0], 0].var(ddof=1) / louder[~inside[:, 0], 0].var(ddof=1)
    p = 2 * scipy.stats.f.sf(ratio, inside[:, 0].sum() - 1, (~inside[:, 0]).sum() - 1)
    assert check_scores(louder[:, :1], inside[:, :1]) == pytest.approx(3 * p, rel=1e-6, abs=0)  # of three checks


# --- honest runs


@pytest.mark.parametrize(("algo", "where"), [("pof_mkl", "central"), ("rf_gp", "local")])
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
    run = quick_run(*PRIVATE, *words)
    assert execute_run(run, draw_figures, progress=False)
    assert (run.folder / "epsilon.png").exists()
    summary, rounds = read_summary(run.folder), pd.read_csv(run.folder / "rounds.csv")
    assert 0 < summary["epsilon_lower"][0] < 5
    for column in audit.CURVES:
        assert (rounds[rounds["round"] == 30][column].to_numpy() == summary[column]).all()
    assert (rounds[rounds["round"] == 1]["epsilon_lower"] == 0).all()  # 4 canaries allow no bound
    for said in ("at least", "errors in this run are of canaries", "nothing contradicts the stated epsilon"):
        assert said in read_provenance(run.folder)["warning"]
    mark, answer = judge_summary(summary)
    assert (mark, answer.partition(" is ")[0]) == ("✓", "audit: epsilon")
    assert judge_summary(summary | {"epsilon_lower": np.full(2, 99.0)}) == (
        "▲",
        "audit: epsilon is at least 99.0, stated 4.38",
    )


AGENTS = ("privacy=local", "dataset.clients=100", "dataset.rounds=10", "kernels.D=10", "replicates=3")


@pytest.mark.parametrize("words", ["algo=dkla algo.iterations=10", "algo=consensus_rf_gp kernels.N=9"])
def test_agents_on_a_graph_have_canaries(words: str) -> None:
    """One for each agent, whose message moves by 2 C; bounds are close, and all replicates together closer."""
    told = audited(*words.split(), *AGENTS, "privacy.noise=6")
    assert (told["canaries"] == 100).all()
    assert told["epsilon_upper"][0] == pytest.approx(accountant.epsilon_of(2 * np.sqrt(10) / 6, 1e-5), rel=1e-6)
    assert 0.5 <= told["epsilon_lower"].mean() / told["epsilon_upper"][0] <= 1
    ratio, low, high, mu = of_replicates([told[name].to_numpy() for name in audit.MOMENTS], 0.05)
    assert low < ratio < high
    assert 0.6 <= accountant.epsilon_of(mu, 1e-5) / told["epsilon_upper"][0] <= 1.07
    assert (told["score_in"] - told["score_out"]).mean() == pytest.approx(2 * np.sqrt(10) / 6, abs=0.3)


def test_scores_of_all_exchanges_are_added() -> None:
    """Both of two rounds: four messages of a client, each moved by 2 C, 10 times the noise."""
    words = "algo=em_kofl privacy=local privacy.clip=7 privacy.noise=0.2 dataset.clients=60 dataset.rounds=2"
    [told] = audited(*words.split()).to_dict("records")
    assert told["score_in"] - told["score_out"] == pytest.approx(4 * 10 / np.sqrt(4), abs=1)


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


# --- planted faults


def half_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise of half the deviation."""
    right = privacy.gaussian_draws
    patch.setattr(privacy, "gaussian_draws", lambda *given: right(*given) / 2)


def no_clip(patch: pytest.MonkeyPatch) -> None:
    """Messages of any length."""
    patch.setattr(Noise, "clip_message", lambda _, message: message)


def same_noise(patch: pytest.MonkeyPatch) -> None:
    """The noise of the first round in all rounds."""

    def first(turn: Any, role: Any, size: int, number: int) -> Any:
        return normal_quantile(turn.streams.vectors(role, 0, turn.clients, size, number))

    patch.setattr(privacy, "gaussian_draws", first)


FEW = ("algo=ofmkl_avg", "dataset.clients=30", "kernels.N=2", "kernels.D=10")
OF_AGENTS = ("algo=dkla", *AGENTS, "algo.iterations=10", "privacy.noise=3")
FAULTS = [
    (half_noise, (*FEW, "dataset.rounds=40")),
    (no_clip, (*FEW, "dataset.rounds=2")),
    (same_noise, (*FEW, "dataset.rounds=20", "audit.level=client")),
    (half_noise, OF_AGENTS),
    (same_noise, OF_AGENTS),
]


@pytest.mark.parametrize(("plant", "words"), FAULTS, ids=lambda given: getattr(given, "__name__", ""))
def test_planted_faults_are_found(
    plant: Callable[..., None], words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 3 of 3 seeds, as an error that says where to look."""
    plant(monkeypatch)
    for seed in range(3):
        with pytest.raises(FklError, match="CONTRADICTED"):
            audited(*words, f"seed={seed}")


# --- refusals
