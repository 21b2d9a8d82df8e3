"""Conformal intervals: theorems, other people's code, and runs."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import Answer
from hypothesis import given, settings
from hypothesis import strategies as st

from fkl.basics.random_streams import Streams
from fkl.tasks.intervals import (
    LEVELS,
    Adaptive,
    AdaptiveIntervals,
    Split,
    best_ranks,
    expected_coverage,
    federated_quantiles,
)

ORACLES = Path(__file__).parents[1] / "oracles"


def started(keys: Adaptive, rounds: int, clients: int = 1) -> AdaptiveIntervals:
    problem = SimpleNamespace(clients=clients, rounds=rounds)
    return keys.begin(SimpleNamespace(streams=SimpleNamespace(replicates=(0,)), problem=problem), False)


@settings(max_examples=50, deadline=None)
@given(
    errors=st.lists(st.floats(0, 1e6), min_size=1, max_size=200),
    gamma=st.floats(0.001, 1),
    window=st.integers(1, 30),
)
def test_long_run_coverage_is_that_of_proposition_4_1(errors: list[float], gamma: float, window: int) -> None:
    """For any targets, |mean err - alpha| <= (max(alpha_1, 1 - alpha_1) + gamma) / (T gamma)."""
    intervals = started(Adaptive(gamma, window), len(errors))
    for t, error in enumerate(errors):
        intervals.enter(t, np.zeros((1, 1)), np.array([error]), np.ones(1, bool))
    alpha = 1 - LEVELS
    outside = 1 - np.array([intervals.covered.columns()[f"conformal_coverage_{p}"][0, 0] for p in (80, 90, 95)])
    bound = (np.maximum(alpha, 1 - alpha) + gamma) / (len(errors) * gamma)
    assert (np.abs(outside - alpha) <= bound + 1e-9).all()


def test_alpha_follows_mapie() -> None:
    """With the same targets outside, alpha_t is MAPIE's in all 200 rounds."""
    told = json.loads((ORACLES / "mapie_aci.json").read_text())
    for level in range(len(LEVELS)):
        intervals = started(Adaptive(told["gamma"], 2000), len(told["outside"]))
        intervals.scores[:], intervals.seen[:] = np.linspace(0.1, 5, 2000), 2000
        for t, (outside, alpha) in enumerate(zip(told["outside"], told["alpha"], strict=True)):
            half = intervals.half_lengths()[level, 0, 0]
            assert np.isfinite(half)
            score = half + 0.1 * outside[level]
            intervals.enter(t, np.zeros((1, 1)), np.array([score]), np.ones(1, bool))
            assert intervals.alpha[level, 0, 0] == pytest.approx(alpha[level], abs=1e-12)


def test_intervals_are_the_quantiles_of_the_last_scores() -> None:
    """By numpy's quantile; a client that misses rounds keeps its intervals."""
    rng, keys = np.random.default_rng(0), Adaptive(0.0, 40)
    intervals, scores = started(keys, 100, clients=2), rng.random((100, 2))
    for t, score in enumerate(scores):
        intervals.enter(t, np.zeros((1, 2)), score, np.array([True, t < 60]))
    for client, last in enumerate((scores[60:, 0], scores[20:60, 1])):
        expected = np.quantile(np.append(last, np.inf), LEVELS, method="inverted_cdf")
        np.testing.assert_array_equal(intervals.half_lengths()[:, 0, client], expected)


def test_expected_coverage_is_that_of_the_authors() -> None:
    """Matrices M of FedCP-QQ's own code, and the pair that its notebook chooses for 5 clients with 10 rows."""
    for case in json.loads((ORACLES / "fedcp_qq.json").read_text()):
        m, n = case["clients"], case["rows"]
        found = np.stack([expected_coverage(np.full(m, n), np.full(m, rank + 1)) for rank in range(n)], axis=1)
        np.testing.assert_allclose(found, case["coverage"], rtol=0, atol=1e-12)
    assert best_ranks((10,) * 5, 0.9) == ((10,) * 5, 3)


def test_targets_are_covered_as_often_as_the_theorem_says() -> None:
    """Clients with other numbers of scores: the coverage over 4,000 draws is the expected one, at least P."""
    rng, counts, draws = np.random.default_rng(0), (3, 9, 20, 20, 31), 4000
    covered = np.empty((draws, len(LEVELS)))
    for draw in range(draws):
        half = federated_quantiles([rng.random(n) for n in counts])
        covered[draw] = half  # of a uniform score
    error = covered.std(axis=0) / np.sqrt(draws)
    for level, mean, apart in zip(LEVELS.tolist(), covered.mean(axis=0), error, strict=True):
        ranks, k = best_ranks(counts, level)
        expected = expected_coverage(np.array(counts), np.array(ranks))[k - 1]
        assert list(ranks) == [-(-max(ranks) * (n + 1) // (max(counts) + 1)) for n in counts]
        assert abs(mean - expected) < 4 * apart
        assert level <= expected < level + 0.02


def test_too_few_scores_leave_intervals_unbounded() -> None:
    assert best_ranks((3,), 0.9)[1] == 0
    assert np.isinf(federated_quantiles([np.arange(3.0)])).all()
    assert np.isinf(federated_quantiles([np.zeros(0)])).all()


def test_without_a_server_each_client_calibrates_on_its_own_rows() -> None:
    """Errors of 1/4 and 3/4: their intervals are twice as long; a third client's, of two rows, have no bound."""
    intervals = Split(0.5).begin(SimpleNamespace(streams=Streams(0, (0,))), False)  # type: ignore[arg-type]
    client, y = np.append(np.arange(80) % 2, [2, 2]), np.arange(82.0)
    together, own = intervals.columns(0, [y], [y + 0.25 + 0.5 * client], [client], 3)
    assert own["conformal_length_90"].tolist() == [pytest.approx([0.5, 1.5, np.nan], nan_ok=True)]
    assert own["conformal_coverage_90"].tolist() == [[1, 1, 1]]
    assert together["conformal_length_90"] == 1  # of bounded ones alone


BATCH = ("dataset=diabetes", "kernels.D=20", "replicates=3", "precision=float64", "figures=none")


def test_a_run_calibrates_on_test_rows_and_books_three_numbers(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """All other columns are those of the same run without intervals; 3 scalars go up and down for each client."""
    tables = []
    for name, words in (("plain", ()), ("split", ("intervals=split",))):
        folder = tmp_path / name
        code, out, err = fkl("run", "algo=one_shot_ridge", *BATCH, *words, f"out={folder}")
        assert code == 0, err
        tables.append(pd.read_csv(folder / "summary.csv"))
    plain, split = tables
    own = [name for name in split if name.startswith("conformal_")]
    assert len(own) == 9 and "length" in out
    sent = [name for name in plain if name.startswith(("uplink", "downlink"))]
    rest = [name for name in plain if name not in sent and not name.startswith("runtime")]
    pd.testing.assert_frame_equal(plain[rest], split[rest])
    for direction in ("uplink", "downlink"):
        assert (split[f"{direction}_scalars"] - plain[f"{direction}_scalars"] == 3 * 4).all()
    assert split["conformal_coverage_90"].between(0.7, 1).all()
