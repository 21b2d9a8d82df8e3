"""FDSKL: literal = protocol = fast path = DSG, its ledger, its trees, and what its workers can learn of one another."""

from dataclasses import replace
from itertools import combinations, permutations
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from literal.worlds import assert_close, script
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import kstest

from fkl.algorithms.vertical import dsg
from fkl.algorithms.vertical.dsg import TURN, Dsg, cosine_features
from fkl.algorithms.vertical.fdskl import MASK, MASKED, MASKS, Counts, Fdskl, Worker, communication_seconds
from fkl.algorithms.vertical.sums import SumTree, all_masks_tree, mask_trees
from fkl.basics import memory
from fkl.basics.pointwise import OF_PARTIES, pointwise_loss
from fkl.basics.random_streams import Role, Streams
from fkl.conformance.isolated import ActorInSight, Heard, Mail, play_apart
from fkl.conformance.party_process import PartyObject
from fkl.contract.parties import Wire
from fkl.contract.world import Common
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.kernels import Dictionary
from fkl.network.settings import CostModel

Array = NDArray[np.float64]
ONE = Streams(5, (1,))


def make_table(rows: int = 16, features: int = 7, classes: bool = True) -> Table:
    """Features from 0 to 1, and a target that depends on products of them."""
    random = np.random.default_rng(0)
    x = random.uniform(0, 1, (rows, features))
    y = (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.05 * random.standard_normal(rows)
    return Table.of_one_site(
        x, np.where(y > np.median(y), 1.0, 0.0) if classes else y, tuple(map(str, range(features)))
    )


def make_problem(q: int = 3, how: str = "contiguous", active: int | None = None, **of_table: int) -> Vertical:
    """Split a table's features among q parties."""
    return FeatureGroups(q, how, active=active).split(make_table(**of_table), np.random.default_rng(1))


def kernel(sigma: float = 1.0, family: str = "rbf") -> Dictionary:
    """One kernel of this standard deviation."""
    return Dictionary(family, N=1, smallest=sigma, largest=sigma, bandwidth_convention="deviation")


def known(problem: Vertical, dictionary: Dictionary | None = None, precision: str = "float64") -> Common:
    """What all parties know."""
    return Common(dictionary or kernel(), problem.dimension, problem.rounds, ONE, precision)


METHODS = st.builds(
    Fdskl,
    iterations=st.integers(1, 25),
    loss=st.sampled_from(OF_PARTIES),
    gamma=st.sampled_from([0.3, 2.0]),
    rate=st.sampled_from(dsg.RATES),
    lam=st.sampled_from([0.0, 0.2]),
    batch=st.integers(1, 4),
    rows=st.sampled_from(dsg.ROWS),
    features=st.integers(1, 3),
    masks=st.sampled_from(MASKS),
)
KERNELS = st.builds(kernel, st.sampled_from([0.5, 2.0]), st.sampled_from(dsg.FAMILIES))
SPLITS = st.builds(make_problem, st.integers(2, 7), st.sampled_from(["contiguous", "random"]), st.integers(1, 2))


@settings(max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(METHODS, KERNELS, SPLITS, st.sampled_from([0, 0, 1, 3, 6]))
def test_literal_protocol_fast_path_and_dsg_are_one(
    method: Fdskl, dictionary: Dictionary, problem: Vertical, draws: int
) -> None:
    """In coefficients, f and messages; with new features in every iteration, and with a bank of `draws` of them."""
    method = replace(method, bank=draws * method.features or None)
    common, q = known(problem, dictionary), problem.parties
    held, parties = method.dealt(common, problem)
    parts, booked = play_apart(method, parties, PartyObject)

    fast, pooled = method.first_learner(common, problem), Dsg.first_learner(method, common, problem)
    sent: list[Counts] = []
    for until in (method.iterations // 3, method.iterations):
        sent.append(fast.sent(until))
        method.advance(common, problem, fast, until)
    Dsg.advance(method, common, problem, pooled, method.iterations)

    duties, of_draw = (
        method.workers_on_duty(problem, ONE).tolist(),
        [t % method.draws for t in range(method.iterations)],
    )
    drawn = [(method.directions(common, s), method.phases(common, s, duties[s][1])) for s in of_draw]
    b = np.random.default_rng(0).uniform(0, TURN, (method.iterations, method.features, q))  # whatever masks there are
    for t, (_, phase) in enumerate(drawn):
        b[t, :, duties[t][1]] = phase
    masks = [apart for _, apart in duties], fast.batches, np.stack([w for w, _ in drawn]), b
    slope = pointwise_loss(method.loss).derivative
    alpha = script("fdskl").fdskl(problem.x, problem.y, problem.groups, *masks, slope, method.gamma_at, method.lam)
    assert_close(fast.alpha, alpha, 1e-9, "alpha of the fast path")
    assert_close(pooled.alpha, alpha, 1e-9, "alpha of DSG")
    for s, (_, one) in {s: of for part in parts for s, of in part.features.items()}.items():
        assert_close(one, alpha[s :: method.draws].sum(axis=0), 1e-9, "alpha of the protocol")
    tested = problem.x[fast.split.test]
    expected = sum(cosine_features(tested, *draw) @ alpha[t] for t, draw in enumerate(drawn))
    assert_close(method.assembled(parts, held).decision(tested), expected, 1e-9, "f of the protocol")
    for learner in (fast, pooled):
        assert_close(method.values_on_tests(common, problem, learner), expected, 1e-9, "f")

    assert booked.keys() == {kind for part in sent for kind in part}
    for kind, count in booked.items():
        assert (sum(part.get(kind, 0 * count[:, :2]) for part in sent) == count[:, :2]).all(), kind
    asked = [(s % method.draws, i) for t in range(method.iterations) for s in range(t + 1) for i in fast.batches[t]]
    again = sum(i in fast.batches[s] for t in range(method.iterations) for s in range(t) for i in fast.batches[t])
    # Of a bank, each angle of a row is asked for once; of new features, that of the rows of their own batch is known.
    angles = method.features * (len(set(asked)) if method.bank else len(asked) - again)
    assert fast.traffic.angles == angles
    assert booked[MASKED][:, 1].sum() == angles * (q - 1)
    if method.masks != "fresh":  # one message more a sum
        others = 2 * method.iterations * (method.batch + 1)  # rows and a seed, parts of f, and the end of the round
        assert sum(int(count[:, 1].sum()) for count in booked.values()) == angles * (2 * q - 3) + others * (q - 1)


def test_dsg_does_not_depend_on_the_partition_nor_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    method, found = Dsg(iterations=30, batch=2, features=3, gamma=1.0), []
    for how, block in (("contiguous", 256), ("random", 7), ("contiguous", 1)):
        monkeypatch.setattr(dsg, "BLOCK", block)
        problem = make_problem(3, how)
        common = known(problem)
        learner = method.first_learner(common, problem)
        for until in (1, 11, 30):
            method.advance(common, problem, learner, until)
            found.append(method.values_on_tests(common, problem, learner))
    for place, f in enumerate(found):
        assert_close(f, found[place % 3], 1e-12, "f")


def test_rows_of_few_features_and_rows_alike_give_the_numbers_of_dense_ones_apart() -> None:
    """Entry by entry in float32, where rows that are alike are computed once, on them and on those tested on."""
    random = np.random.default_rng(0)
    x = np.repeat((random.random((40, 30)) < 0.15) * random.normal(size=(40, 30)), 3, axis=0)
    table = Table.of_one_site(x, random.choice([-1.0, 1.0], 120), tuple(map(str, range(30))))
    problem = FeatureGroups(3).split(table, random)
    assert isinstance(problem.quick_x, csr_array)
    apart = replace(problem)
    vars(apart).update(quick_x=problem.x, alike=np.arange(120))
    method = Fdskl(iterations=40, batch=4, features=3, gamma=3.0)
    found = []
    for these, precision, rows in ((apart, "float64", 90), (problem, "float64", 40), (problem, "float32", 40)):
        common = known(these, precision=precision)
        learner = method.first_learner(common, these)
        assert 35 <= len(learner.rows) <= rows
        for until in (17, 40):
            method.advance(common, these, learner, until)
            tested = method.values_on_tests(common, these, learner)
        found.append((learner.alpha, tested))
    for (alpha, f), tolerance in zip(found[1:], (1e-12, 1e-5), strict=True):
        assert_close(alpha, found[0][0], tolerance, "alpha")
        assert_close(f, found[0][1], tolerance, "f")


def test_directions_are_drawn_for_the_features_that_samples_have() -> None:
    """Of 200,000 features, 1800 are ever seen; all directions of a block would take 410 MB, and four times that."""
    random, columns = np.random.default_rng(0), 200_000
    at = random.integers(columns, size=1800), np.arange(0, 1801, 30)
    x = csr_array((random.random(1800), *at), shape=(60, columns))
    x.sum_duplicates()
    groups = tuple(np.array_split(np.arange(columns), 3))
    problem, method = Vertical(x, random.choice([-1.0, 1.0], 60), groups, (0, 1), 0.25), Fdskl(iterations=300)
    common = known(problem)
    assert problem.used is not None and len(problem.used) <= 1800
    w = method.directions(common, 5, 3)
    assert np.array_equal(method.directions(common, 5, 3, used=problem.used), w[:, problem.used])
    learner = method.first_learner(common, problem)
    assert memory.peak_bytes(lambda: method.advance(common, problem, learner, 256)) < 60e6


def test_simulated_time_of_iterations_by_hand() -> None:
    """Five workers, T0 of three levels, T1 of three, T2 of three: 4 others, 3 others, and on to the root."""
    cost, method = CostModel(latency_s=0.5, bandwidth_bytes_per_s=8.0), Fdskl(batch=3, features=2)
    third = 3 * (0.5 + 4) + 3 * (0.5 + 1) + 3 * (0.5 + 3) + (3 + 3) * (0.5 + 3 * 2 * 3)
    assert communication_seconds(method, 5, 2, 3, cost) == third
    parts = [communication_seconds(method, 5, t, t + 1, cost) for t in range(7)]
    assert communication_seconds(method, 5, 0, 7, cost) == pytest.approx(sum(parts))
    assert communication_seconds(replace(method, masks="fresh"), 2, 0, 1, cost) > communication_seconds(
        method, 2, 0, 1, cost
    )


def test_an_epoch_has_every_row_once() -> None:
    rows = np.arange(100, 160)
    batches = Fdskl(iterations=24, batch=5).batches(rows, ONE)
    assert all(sorted(epoch.ravel()) == rows.tolist() for epoch in np.split(batches, 2))


def test_independent_rows_are_all_subsets_equally_often() -> None:
    """2 of 4 rows: six subsets, whatever was drawn in the iteration before. Chi-square of 35 degrees of freedom."""
    method, rows = Dsg(iterations=36_001, batch=2, rows="iid"), np.array([3, 5, 8, 13])
    batches = np.sort(method.batches(rows, ONE), axis=1)
    subsets = {pair: number for number, pair in enumerate(combinations(rows.tolist(), 2))}
    drawn = np.array([subsets[pair] for pair in map(tuple, batches.tolist())])
    pairs = np.bincount(6 * drawn[:-1] + drawn[1:], minlength=36)
    assert ((pairs - 1000) ** 2 / 1000).sum() < 80  # 1 of 40,000
    again = replace(method, iterations=9).batches(rows, ONE)
    assert (np.sort(again, axis=1) == batches[:9]).all(), "the first iterations of a longer run"


@pytest.mark.parametrize("family", dsg.FAMILIES)
def test_mean_product_of_features_is_the_kernel(family: str) -> None:
    """FDSKL, eq. (3)."""
    x = np.random.default_rng(0).uniform(-1, 1, (6, 3))
    method, dictionary = Dsg(features=50_000), kernel(1.5, family)
    common = Common(dictionary, 3, 1, ONE, "float64")
    phi = cosine_features(x, method.directions(common, 0), method.phases(common, 0, 0))
    assert np.abs(phi @ phi.T / method.features - dictionary.gram(0, x, x)).max() < 0.02


# --- trees


def workers_that_unmask(masked: SumTree, masks: SumTree) -> list[int]:
    """Workers that can unmask a sum of others' values, from what they receive in both trees and their own mask.

    A worker knows the masked sums over some sets of workers and the sums of masks over others. It unmasks something
    if a combination of the first is one of the second, but for itself.
    """
    rank, found = np.linalg.matrix_rank, []
    for worker in sorted(masked.workers):
        received = [
            [some for some, (_, to) in zip(tree.sent, tree.links, strict=True) if to == worker]
            for tree in (masked, masks)
        ]
        others = sorted(masked.workers - {worker})
        values, masks_ = (np.array([[float(o in some) for o in others] for some in each]) for each in received)
        # A combination of the first that is one of the second makes the rank of both together smaller.
        if values.size and masks_.size and rank(np.concatenate([values, masks_])) < rank(values) + rank(masks_):
            found.append(worker)
    return found


def subtrees(tree: SumTree) -> set[frozenset[int]]:
    """Leaves of every subtree that has more than one."""
    gathered, found = {worker: frozenset({worker}) for worker in tree.workers}, set()
    for level in tree.levels:
        for sender, receiver in level:
            gathered[receiver] |= gathered[sender]
        found |= {gathered[receiver] for _, receiver in level}
    return found


@pytest.mark.parametrize("workers", [2, 3, 4, 5, 6, 7, 8, 13, 64])
def test_mask_trees_are_totally_different_and_disclose_nothing(workers: int) -> None:
    everyone = set(range(workers))
    for root, apart in list(permutations(range(workers), 2))[:: 1 if workers < 8 else 97]:
        first, second = mask_trees(workers, root, apart)
        assert first.root == second.root == root
        assert first.workers == everyone and second.workers == everyone - {apart}
        assert not subtrees(first) & subtrees(second), "Definition 2"
        assert workers_that_unmask(first, second) == []
        assert len(first.levels) == (ceil(log2(workers - 1)) if workers > 2 else 0) + 1
        third = all_masks_tree(workers, root, apart)
        assert third.workers == everyone
        assert workers_that_unmask(first, third) == [root], "what remains for it is the others' sum with b that stays"


# --- what workers can learn of one another


def workers_of(method: Fdskl, problem: Vertical, dictionary: Dictionary | None = None) -> list[Worker]:
    _, holders = method.dealt(known(problem, dictionary), problem)
    return [Worker(method, holder, Wire()) for holder in holders]


def listen(workers: list[Worker]) -> list[Heard]:
    """All letters of these workers."""
    heard: list[Heard] = []
    Mail([ActorInSight(worker.play(), worker.wire) for worker in workers], heard).deliver_letters()
    return heard


def near(values: Array, forbidden: Array) -> bool:
    """Whether some value is a forbidden one, up to whole turns."""
    return bool((np.abs((values.ravel()[:, None] - forbidden.ravel() + 3) % TURN - 3) < 1e-9).any())


def breaches(method: Fdskl, problem: Vertical) -> set[str]:
    """What a worker received, or can make of a masked sum less some sums of masks, that it must not have."""
    found, heard = set(), {}
    for message in listen(workers_of(method, problem)):
        if np.isin(np.round(message.values, 12), np.round(problem.x, 12)).any():
            found.add(f"raw feature: {message.kind}")
        if message.kind in (MASKED, MASK):
            heard.setdefault((message.receiver, message.about), {MASKED: [], MASK: []})[message.kind].append(message)
    for (receiver, (s, *rows)), by_kind in heard.items():
        w = method.directions(known(problem), s)
        partial = [problem.x[np.ix_(rows, group)] @ w[:, group].T for group in problem.groups]
        others = [part for j, part in enumerate(partial) if j != receiver]
        forbidden = [sum(some) for size in range(1, len(others) + 1) for some in combinations(others, size)]
        masks = [message.values for message in by_kind[MASK]]
        removals = [sum(some, np.zeros(1)) for size in range(len(masks) + 1) for some in combinations(masks, size)]
        for message in by_kind[MASKED]:
            for removed in removals:
                if any(near(message.values - removed - sum_, np.zeros(1)) for sum_ in forbidden):
                    found.add("partial sum")
    return found


AUDITED = Fdskl(iterations=9, batch=2, features=2)


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("q", [2, 3, 5])
def test_nobody_receives_features_or_partial_sums(masks: str, q: int) -> None:
    assert breaches(replace(AUDITED, masks=masks), make_problem(q)) == set()


def test_only_fresh_masks_leave_differences_of_rows_uniform() -> None:
    """Of what workers hear that do not ask; other masks are one number for all rows, and drop out."""
    problem, uniform = make_problem(4, active=1), {}
    for masks in MASKS:
        letters = listen(workers_of(Fdskl(iterations=8, batch=2, features=64, masks=masks), problem))
        heard = [one.values for one in letters if one.kind == MASKED and one.receiver and len(one.values) == 2]
        uniform[masks] = kstest(np.ravel([(a - b) % TURN for a, b in heard]) / TURN, "uniform").pvalue
    assert uniform["fresh"] > 1e-3 > 1e-9 > max(uniform["paper"], uniform["reduced"])


def rebuilt(masks: str) -> float:
    """Largest error of all features of a batch that the asking worker computes from what is public and its own.

    With the phases one iteration of 128 features is a linear system in the 68 features of each sample. It tries those
    of every public stream of the run and those of every worker but l'.
    """
    problem = make_problem(8, rows=48, features=68)
    method, wide = Fdskl(batch=32, features=128, iterations=1, masks=masks), kernel(20.0)  # so that no angle is turned
    workers, common = workers_of(method, problem, wide), known(problem, wide)
    listen(workers)
    asking, apart = workers[0].own.duties[0].tolist()
    rows, angle = workers[asking].known[0], workers[asking].angles[0]
    w = method.directions(common, 0)
    public = [ONE.uniform(role, 0, w.size + 128)[0] for role in Role]
    phases = [TURN * some for u in public for some in (u[:128], u[w.size :])]
    phases += [method.phases(common, 0, worker) for worker in range(8) if worker != apart]
    turned = [(angle - b + np.pi) % TURN - np.pi for b in phases]
    return min(float(np.abs(np.linalg.lstsq(w, one.T)[0].T - problem.x[rows]).max()) for one in turned)


@pytest.mark.parametrize("masks", ["paper", "fresh"])
def test_no_public_stream_gives_the_phases(masks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 3, line 2: b is of the own seed of l'; it once was the last part of the public stream of features."""
    assert rebuilt(masks) > 1

    def public(self: Fdskl, common: Common, t: int, holder: int) -> Array:
        return TURN * common.streams.uniform(Role.FEATURES, t, 69 * self.features)[0][-self.features :]

    monkeypatch.setattr(Fdskl, "phases", public)
    assert rebuilt(masks) < 1e-9


# --- features of parties, and what is refused


def test_rows_split_three_to_one_and_folds_leave_the_test_rows_aside() -> None:
    problem = make_problem(rows=40)
    split = problem.rows(np.random.default_rng(3))
    assert sorted(np.concatenate(split).tolist()) == list(range(40)) and len(split.test) == 10
    folds = [problem.rows(np.random.default_rng(3), fold) for fold in range(5)]
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == sorted(split.training.tolist())
    assert all(not set(fold.training) & set(fold.test) for fold in folds)
