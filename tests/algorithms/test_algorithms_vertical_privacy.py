"""Split angles: the protocol is the pooled method, its ledger is exact, its messages say nothing; and the attacks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import assert_close
from numpy.typing import NDArray
from scipy.stats import kstest

from fkl.algorithms.vertical.fdskl import MASKS, Fdskl
from fkl.algorithms.vertical.fdskl_letters import DEALT, FACTOR, MASKED, PART, SHARE
from fkl.algorithms.vertical.fdskl_split import SplitWorker
from fkl.basics.errors import FklError
from fkl.basics.random_streams import Streams
from fkl.conformance.isolated_vertical import play_apart
from fkl.conformance.party_process import PartyObject
from fkl.contract.parties import Wire
from fkl.contract.world import Common
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.kernels import Dictionary
from fkl.papers.fdskl.attack import FITS, listen, solve, split_equations
from fkl.papers.fdskl.audit import OUTSIDER, Played, audit, write_audit

ONE = Streams(5, (1,))
PARTIES = 5


def make_problem(x: NDArray[np.float64] | None = None, q: int = PARTIES, rows: int = 200) -> Vertical:
    """Features that are 0 or 1, unless given; two parties ask."""
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (rows, 10)).astype(float) if x is None else x
    names = tuple(f"feature {number}" for number in range(x.shape[1]))
    y = np.resize([-1.0, 1.0, 1.0], len(x))
    return FeatureGroups(q, active=2).split(Table.of_one_site(x, y, names), random)


def known(problem: Vertical, sigma: float = 1.0) -> Common:
    """What all parties know."""
    kernel = Dictionary(N=1, smallest=sigma, largest=sigma, bandwidth_convention="deviation")
    return Common(kernel, problem.dimension, 1, ONE, "float64")


@settings(max_examples=12)
@given(
    st.builds(
        Fdskl,
        iterations=st.integers(1, 20),
        loss=st.sampled_from(["logistic", "smooth_hinge"]),
        gamma=st.sampled_from([0.3, 2.0]),
        lam=st.sampled_from([0.0, 0.2]),
        batch=st.integers(1, 4),
        features=st.integers(1, 3),
        masks=st.just("split"),
    ),
    st.integers(3, 7),
)
def test_split_angles_give_the_pooled_method_and_its_ledger(method: Fdskl, q: int) -> None:
    """To the 24 binary places of what travels; batches come again, so that saved shares are used."""
    problem = make_problem(q=q, rows=16)
    common = known(problem)
    held, parties = method.dealt(common, problem)
    parts, counted = play_apart(method, parties, PartyObject)
    booked = {kind: count[:, :2] for kind, count in counted.items()}
    fast, sent = method.learner(common, problem), []
    for until in (method.iterations // 3, method.iterations):
        sent.append(fast.sent(until))
        method.advance(common, problem, fast, until)
    learned = {s: alpha for part in parts for s, (_, alpha) in part.features.items()}
    alpha = np.stack([learned[s] for s in range(method.iterations)])
    assert_close(alpha, fast.alpha, 1e-5, "alpha")
    f = method.assembled(parts, held).decision(problem.x[fast.split.test])
    assert_close(f, method.values_on_tests(common, problem, fast), 1e-5, "f")
    nothing = np.zeros((q, 2), np.int64)
    for kind in {kind for part in sent for kind in part}:
        assert (sum(part.get(kind, nothing) for part in sent) == booked.get(kind, nothing)).all(), kind


def test_split_angles_cost_less_than_the_paper_s_masks_from_five_workers() -> None:
    """A feature and row: q - 2 shares and 4 factors, where T1 and T2 take 2 q - 3."""
    for q, cheaper in ((3, False), (4, False), (5, False), (6, True), (8, True)):
        scalars = {}
        for masks in ("paper", "split"):
            x = np.zeros((4000, 8))
            problem = make_problem(x, q)
            learner = Fdskl(iterations=20, batch=100, features=20, masks=masks).learner(known(problem), problem)
            scalars[masks] = sum(int(count[:, 1].sum()) for count in learner.sent(20).values())
        assert (scalars["split"] < scalars["paper"]) == cheaper
        assert scalars["split"] / scalars["paper"] == pytest.approx((q + 2) / (2 * q - 3), rel=0.1)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_what_anyone_receives_of_split_angles_is_uniform_whatever_the_data(value: float) -> None:
    """Each share, each sum on its way, each factor, each share of f: Kolmogorov and Smirnov find no difference."""
    problem = make_problem(np.full((200, 10), value))
    method = Fdskl(iterations=3, batch=20, features=20, masks="split")
    workers = [SplitWorker(method, holder, Wire()) for holder in method.dealt(known(problem), problem)[1]]
    heard = listen(workers)
    kinds = {MASKED, FACTOR, DEALT, SHARE, PART}
    assert kinds <= {message.kind for message in heard}
    seen = [message for message in heard if message.kind in kinds and message.values.size >= 20]
    shares = [share for worker in workers for share in worker.angles.values()]
    assert len(shares) == 2 * 3, "of each feature, at l and at l'"
    tests = [kstest(one.ravel() / 2.0**64, "uniform").pvalue for one in [*(one.values for one in seen), *shares]]
    assert len(tests) > 50 and min(tests) > 1e-3 / len(tests)


PLAYED, SIGMA = Fdskl(iterations=8, batch=64, features=32), 1.5
"""128 features of each worker that asks."""


def recovered(masks: tuple[str, ...] = MASKS, **change: object) -> dict[tuple[str, str], float]:
    """Shares of entries by masks and attacker."""
    problem = make_problem()
    frame = audit(replace(PLAYED, **change), known(problem, SIGMA), problem, masks)
    assert (frame["recovered_percent"].between(0, 100)).all()
    return frame.set_index(["masks", "attacker"])["recovered_percent"].to_dict()


def test_only_split_angles_survive_the_asking_worker() -> None:
    found = recovered()
    asking, pair, other, others, outsider = list(dict.fromkeys(attacker for _, attacker in found))
    assert outsider == OUTSIDER
    assert all(found["paper", attacker] == 100 for attacker in (asking, pair, other, others, outsider))
    assert all(found["reduced", attacker] == 100 for attacker in (asking, pair, other, others, outsider))
    assert found["fresh", asking] == found["fresh", pair] == found["fresh", outsider] == 100
    assert found["fresh", other] == 0
    assert found["split", asking] == found["split", other] == found["split", outsider] == 0
    assert found["split", pair] == 100, "two of three hold all"


def test_one_iteration_is_enough_for_the_asking_worker_that_knows_the_range_alone() -> None:
    """The phase is private, but drops out of differences; the smallest and the largest value give the rest."""
    x = np.random.default_rng(1).uniform(0, 1, (400, 10))
    x = (x - x.min(axis=0)) / np.ptp(x, axis=0)
    problem = make_problem(x)
    played = Played(replace(PLAYED, iterations=1, batch=300), known(problem, SIGMA), problem)
    assert not played.binary
    found = played.attack((0,), turned=False)
    assert found is not None
    others = np.concatenate(problem.groups[1:])
    errors = np.abs(found.x - x[played.rows])[:, others]
    assert found.claimed[:, others].all() and errors.max() < 0.02


@pytest.mark.parametrize("role", ["l and l'", "l and the dealer", "l' and the dealer"])
def test_any_two_of_three_have_split_angles(role: str) -> None:
    problem = make_problem()
    played, method = Played(replace(PLAYED, masks="split"), known(problem, SIGMA), problem), PLAYED
    duties = np.column_stack([method.duties(problem, ONE), method.dealers(problem, ONE)])
    assert all(len({*three}) == 3 for three in duties.tolist())
    pair = {"l and l'": (0, 1), "l and the dealer": (0, 2), "l' and the dealer": (1, 2)}[role]
    for s in range(method.iterations):
        members = tuple(duties[s, list(pair)].tolist())
        blocks = split_equations(played.heard, members, s)
        found = solve(blocks, turned=True, binary=True)
        others = np.concatenate([group for j, group in enumerate(problem.groups) if j not in members])
        right = (found.x == problem.x[played.rows])[:, others]
        if found.claimed[:, others].mean() > 0.9:
            break
    assert right.mean() > 0.9


def test_a_fit_by_chance_is_no_claim() -> None:
    """Angles that have nothing to do with the features leave 1.8 radians."""
    problem = make_problem()
    played = Played(replace(PLAYED, masks="split"), known(problem, SIGMA), problem)
    found = played.attack((0,), turned=True)
    assert found is not None and not found.claimed.any() and FITS < 1.8 / 2


def test_the_command_writes_a_table_and_refuses_what_it_cannot_attack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "dataset=ellipses",
        "dataset.rows=90",
        "dataset.test_rows=0",
        "partition=vertical",
        "partition.parties=2",
        "algo.iterations=2",
        "algo.features=2",
    ]
    write_audit(["fdskl", *words, "algo.batch=8"], tmp_path)
    shown = capsys.readouterr().out
    assert "asking worker" in shown and "split" not in shown
    assert [line.split()[1] for line in shown.splitlines() if line[0:1] in ("✓", "✗")] == [
        f"{masks}:" for masks in MASKS[:-1]
    ]
    write_audit(["fdskl", *words, "algo.batch=8"], tmp_path, format="csv")
    assert capsys.readouterr().out == (tmp_path / "tables/audit/fdskl.csv").read_text()
    assert sorted(file.name for file in (tmp_path / "tables/audit").iterdir()) == ["fdskl.csv", "fdskl.md", "fdskl.tex"]
    for wrong in ([], ["coke"], ["fdskl", "algo=dsg"], ["fdskl", "algo.nothing=1"], ["fdskl", "nonsense"]):
        with pytest.raises(FklError) as refused:
            write_audit(wrong, tmp_path)
        assert "\n" not in str(refused.value)
