"""FDSKL: literal = protocol = fast path = DSG, its ledger, its trees, and what its workers can learn of one another."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import fdskl as literal
from literal.worlds import assert_close
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fkl.algorithms.vertical import dsg
from fkl.algorithms.vertical.dsg import TURN, Dsg, cosine_features
from fkl.algorithms.vertical.fdskl import MASK, MASKED, MASKS, Counts, Fdskl, FunctionPart, Index, Worker, seconds
from fkl.algorithms.vertical.sums import (
    Tree,
    all_masks_tree,
    binary_tree,
    gather_at_root,
    mask_trees,
    pass_down_tree,
    ring_tree,
    seconds_of_sum,
    star_tree,
    tree_rooted_at,
)
from fkl.basics import memory
from fkl.basics.errors import BadValue, FklError
from fkl.basics.random_streams import Role, Streams
from fkl.conformance.isolated import ActorInSight, Heard, Mail, play_apart
from fkl.conformance.party_process import PartyObject
from fkl.contract.parties import Actor, Own, Wire
from fkl.contract.world import Common
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.kernels.losses import POINTWISE_LOSSES
from fkl.network import Network
from fkl.network.settings import CostModel

Array = NDArray[np.float64]

FEATURES = 7
ONE = Streams(5, (1,))


def make_table(rows: int = 16, features: int = FEATURES, seed: int = 0, classes: bool = True) -> Table:
    """Features from 0 to 1, and a target that depends on products of them."""
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, (rows, features))
    y = (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.05 * random.standard_normal(rows)
    names = tuple(f"feature {number}" for number in range(features))
    return Table.of_one_site(x, np.where(y > np.median(y), 1.0, 0.0) if classes else y, names)


def make_problem(q: int = 3, how: str = "contiguous", active: int | None = None, **of_table: int) -> Vertical:
    """Split a table's features among q parties."""
    return FeatureGroups(q, how, active=active).split(make_table(**of_table), np.random.default_rng(1))


def kernel(sigma: float = 1.0, family: str = "rbf") -> Dictionary:
    """One kernel of this standard deviation."""
    return Dictionary(family, N=1, smallest=sigma, largest=sigma, bandwidth_convention="deviation")


def known(problem: Vertical, dictionary: Dictionary | None = None, precision: str = "float64") -> Common:
    """What all parties know."""
    return Common(dictionary or kernel(), problem.dimension, problem.rounds, ONE, precision)


def played(method: Fdskl, common: Common, problem: Vertical) -> tuple[dict[int, Array], Array, Counts]:
    """Run the protocol: alpha (D,) of each draw, f of the rows that are tested on, and what was sent."""
    held, parties = method.dealt(common, problem)
    parts, sent = play_apart(method, parties, PartyObject)
    alpha = {s: one for part in parts for s, (_, one) in part.features.items()}
    tested = method.learner(common, problem).split.test
    f = method.assembled(parts, held).decision(problem.x[tested])
    return alpha, f, {kind: count[:, :2] for kind, count in sent.items()}


def assert_same_counts(counts: Counts, expected: Counts) -> None:
    """Entry by entry."""
    assert counts.keys() == expected.keys()
    for kind, count in counts.items():
        assert (count == expected[kind]).all(), (kind, count, expected[kind])


METHODS = st.builds(
    Fdskl,
    iterations=st.integers(1, 25),
    loss=st.sampled_from(sorted(POINTWISE_LOSSES)),
    gamma=st.sampled_from([0.3, 2.0]),
    rate=st.sampled_from(dsg.RATES),
    lam=st.sampled_from([0.0, 0.2]),
    batch=st.integers(1, 4),
    rows=st.sampled_from(dsg.ROWS),
    features=st.integers(1, 3),
    masks=st.sampled_from(MASKS),
)
KERNELS = st.builds(kernel, st.sampled_from([0.5, 2.0]), st.sampled_from(dsg.FAMILIES))


@settings(max_examples=50)
@given(METHODS, KERNELS, st.integers(2, 7), st.sampled_from(["contiguous", "random"]), st.integers(1, 7))
def test_literal_protocol_fast_path_and_dsg_are_one(
    method: Fdskl, dictionary: Dictionary, q: int, how: str, active: int
) -> None:
    problem = make_problem(q, how, min(active, q))
    common = known(problem, dictionary)
    held, f, counts = played(method, common, problem)
    alpha = np.stack([held[s] for s in range(method.iterations)])

    fast, pooled = method.learner(common, problem), Dsg.learner(method, common, problem)
    sent: list[Counts] = []
    for until in (method.iterations // 3, method.iterations):
        sent.append(fast.sent(until))
        method.advance(common, problem, fast, until)
    Dsg.advance(method, common, problem, pooled, method.iterations)

    T = range(method.iterations)
    duties = method.duties(problem, ONE).tolist()
    draws = [(method.directions(common, t), method.phases(common, t, apart)) for t, (_, apart) in enumerate(duties)]
    b = np.array([[method.phases(common, t, worker) for worker in range(q)] for t in T]).transpose(0, 2, 1)
    expected, scalars = literal.fdskl(
        problem.x,
        problem.y,
        [group.tolist() for group in problem.groups],
        [asking for asking, _ in duties],
        [apart for _, apart in duties],
        fast.batches.tolist(),
        np.stack([w for w, _ in draws]),
        b,
        literal.SLOPES[method.loss],
        [method.gamma_at(t) for t in T],
        method.lam,
    )

    phi = [cosine_features(problem.x[fast.split.test], *draw) for draw in draws]
    for name, found in {"protocol": alpha, "fast path": fast.alpha, "DSG": pooled.alpha}.items():
        assert_close(found, expected, 1e-9, f"alpha of the {name}")
    tested = {
        "protocol": f,
        "fast path": method.values_on_tests(common, problem, fast),
        "DSG": method.values_on_tests(common, problem, pooled),
    }
    for name, values in tested.items():
        assert_close(values, sum(phi[t] @ expected[t] for t in T), 1e-9, f"f of the {name}")

    kinds = {kind for part in sent for kind in part}
    nothing = np.zeros((q, 2), np.int64)
    assert_same_counts({kind: sum(part.get(kind, nothing) for part in sent) for kind in kinds}, counts)
    if method.masks != "fresh":  # one message more a sum
        assert sum(int(count[:, 1].sum()) for count in counts.values()) == sum(scalars)


@settings(max_examples=30)
@given(METHODS, KERNELS, st.integers(1, 6), st.integers(2, 6))
def test_with_a_bank_too_they_are_one_and_nothing_is_asked_for_twice(
    method: Fdskl, dictionary: Dictionary, draws: int, q: int
) -> None:
    method = replace(method, bank=draws * method.features)
    problem, T = make_problem(q), range(method.iterations)
    common = known(problem, dictionary)
    held, f, booked = played(method, common, problem)
    fast = method.learner(common, problem)
    sent: list[Counts] = []
    for until in (method.iterations // 2, method.iterations):
        sent.append(fast.sent(until))
        method.advance(common, problem, fast, until)

    duties = method.duties(problem, ONE).tolist()
    draws_of = [t % method.draws for t in T]
    drawn = [(method.directions(common, s), method.phases(common, s, duties[s][1])) for s in draws_of]
    b = np.random.default_rng(0).uniform(0, TURN, (method.draws, method.features, q))[np.arange(len(T)) % method.draws]
    for t in T:
        b[t, :, duties[t][1]] = drawn[t][1]
    alpha, scalars = literal.fdskl(
        problem.x,
        problem.y,
        [group.tolist() for group in problem.groups],
        *([pair[role] for pair in duties] for role in (0, 1)),
        fast.batches.tolist(),
        np.stack([w for w, _ in drawn]),
        b,
        literal.SLOPES[method.loss],
        [method.gamma_at(t) for t in T],
        method.lam,
        method.draws,
    )
    assert_close(fast.alpha, alpha, 1e-9, "alpha of the fast path")
    assert sorted(held) == list(range(method.draws))
    for s, one in held.items():
        assert_close(one, alpha[s :: method.draws].sum(axis=0), 1e-9, "alpha of the protocol")
    expected = sum(cosine_features(problem.x[fast.split.test], *draw) @ alpha[t] for t, draw in enumerate(drawn))
    assert_close(method.values_on_tests(common, problem, fast), expected, 1e-9, "f of the fast path")
    assert_close(f, expected, 1e-9, "f of the protocol")

    nothing = np.zeros((q, 2), np.int64)
    kinds = {kind for part in sent for kind in part}
    assert_same_counts({kind: sum(part.get(kind, nothing) for part in sent) for kind in kinds}, booked)
    if method.masks != "fresh":
        assert sum(int(count[:, 1].sum()) for count in booked.values()) == sum(scalars)
    most = len(fast.split.training) * method.draws * method.features
    assert booked[MASKED][:, 1].sum() <= (q - 1) * most, "each angle of a row once"
    assert fast.traffic.angles * (q - 1) == booked[MASKED][:, 1].sum()


def test_a_bank_that_is_never_used_up_is_new_features_in_every_iteration() -> None:
    """But for the traffic: all angles are saved, so a row that comes again is asked for less."""
    problem, method = make_problem(4), Fdskl(iterations=12, batch=2, features=2)
    common = known(problem)
    one, other = method.learner(common, problem), replace(method, bank=24).learner(common, problem)
    counts = [learner.sent(12)[MASKED][:, 1].sum() for learner in (one, other)]
    method.advance(common, problem, one, 12)
    replace(method, bank=24).advance(common, problem, other, 12)
    assert np.array_equal(one.alpha, other.alpha)
    assert counts[1] <= counts[0]


@pytest.mark.parametrize("bank", [0, 7, -2])
def test_a_bank_holds_whole_draws(bank: int) -> None:
    with pytest.raises(BadValue, match=rf"bank={bank}: must be a multiple of algo.features=2"):
        Fdskl(features=2, bank=bank)


def test_dsg_does_not_depend_on_the_partition_nor_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    method = Dsg(iterations=30, batch=2, features=3, gamma=1.0)
    found = []
    for how, block in (("contiguous", 256), ("random", 7), ("contiguous", 1)):
        monkeypatch.setattr(dsg, "BLOCK", block)
        problem = make_problem(3, how)
        common = known(problem)
        learner = method.learner(common, problem)
        for until in (1, 11, 30):
            method.advance(common, problem, learner, until)
            method.values_on_tests(common, problem, learner)
        found.append(method.values_on_tests(common, problem, learner))
    assert_close(found[1], found[0], 1e-12, "f")
    assert_close(found[2], found[0], 1e-12, "f")


def test_fdskl_learns_what_no_linear_function_tells() -> None:
    """On the sign of a product, and as well in float32."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (800, 4))
    table = Table.of_one_site(x, np.sign(x[:, 0] * x[:, 1]), ("a", "b", "c", "d"))
    problem = FeatureGroups(4).split(table, random)
    method = Fdskl(iterations=150, batch=64, features=32, gamma=20.0)
    found = []
    for precision in ("float64", "float32"):
        common = known(problem, kernel(0.5), precision)
        learner = method.learner(common, problem)
        method.advance(common, problem, learner, method.iterations)
        found.append(method.values_on_tests(common, problem, learner))
        assert np.mean(found[-1] * problem.y[learner.split.test] <= 0) < 0.1
    assert_close(found[1], found[0], 1e-3, "f in float32")


def test_steps_go_from_mark_to_mark_and_replicates_do_not_meet() -> None:
    problem, method = make_problem(4), Fdskl(iterations=25, marks=4, batch=2, features=2)

    def steps(replicates: tuple[int, ...]) -> tuple[list[list[Array]], list[Counts]]:
        small = Experiment(replace(problem, rounds=method.rounds), kernel(), Network(), method, 5, 2, "float64")
        world, ledger = make_world(small, replicates)
        state, history, sent = method.init(world), [], []
        for t in range(method.rounds):
            world.channel.open_round(t, small.problem.present[t])
            state, scored = method.step(world, state, t)
            history.append([f() for f in scored.f])
            sent.append(state.sent[-1])
        assert all(learner.t == method.iterations for learner in state.learners)
        booked = ledger.tallies["link"].by_client[-1]
        assert (booked[:, :2] == sum(count for part in sent for count in part.values())).all()
        assert (booked[:, 2] == 8 * booked[:, 1]).all()
        return history, sent

    (both, _), (alone, sent) = steps((0, 1)), steps((1,))
    assert all((f[1] == g[0]).all() for f, g in zip(both, alone, strict=True))
    assert not np.array_equal(both[-1][0], both[-1][1])
    _, f, counts = played(method, known(problem), problem)
    assert_close(alone[-1][0], f, 1e-9, "f")
    assert_same_counts({kind: sum(part[kind] for part in sent) for kind in counts}, counts)


def test_rows_of_few_features_and_rows_alike_give_the_numbers_of_dense_ones_apart() -> None:
    """Entry by entry in float32, where rows that are alike are computed once, on them and on those tested on."""
    random = np.random.default_rng(0)
    x = np.repeat((random.random((40, 30)) < 0.15) * random.normal(size=(40, 30)), 3, axis=0)
    problem = FeatureGroups(3).split(
        Table.of_one_site(x, random.choice([-1.0, 1.0], 120), tuple(f"x{n}" for n in range(30))), random
    )
    assert isinstance(problem.quick_x, csr_array)
    apart = replace(problem)
    vars(apart).update(quick_x=problem.x, alike=np.arange(120))
    method = Fdskl(iterations=40, batch=4, features=3, gamma=3.0)
    found = []
    for these, precision, rows in ((apart, "float64", 90), (problem, "float64", 40), (problem, "float32", 40)):
        common = known(these, precision=precision)
        learner = method.learner(common, these)
        assert 35 <= len(learner.rows) <= rows
        for until in (17, 40):
            method.advance(common, these, learner, until)
            tested = method.values_on_tests(common, these, learner)
        found.append((learner.alpha, tested))
    for (alpha, f), tolerance in zip(found[1:], (1e-12, 1e-5), strict=True):
        assert_close(alpha, found[0][0], tolerance, "alpha")
        assert_close(f, found[0][1], tolerance, "f")


def wide(columns: int) -> Vertical:
    """60 samples with 30 values each."""
    random = np.random.default_rng(0)
    at = random.integers(columns, size=1800), np.arange(0, 1801, 30)
    x = csr_array((random.random(1800), *at), shape=(60, columns))
    x.sum_duplicates()
    return Vertical(x, random.choice([-1.0, 1.0], 60), tuple(np.array_split(np.arange(columns), 3)), (0, 1), 0.25)


def test_directions_are_drawn_for_the_features_that_samples_have() -> None:
    """Of 200,000 features, 1800 are ever seen; all directions of a block would take 410 MB, and four times that."""
    problem, method = wide(200_000), Fdskl(iterations=300, gamma=1.0)
    common = known(problem, precision="float64")
    assert problem.used is not None and len(problem.used) <= 1800
    w = method.directions(common, 5, 3)
    assert np.array_equal(method.directions(common, 5, 3, used=problem.used), w[:, problem.used])
    learner = method.learner(common, problem)
    peak = memory.peak_bytes(lambda: method.advance(common, problem, learner, 256))
    assert peak < 60e6
    w = method.directions(common, *range(256))
    slow = cosine_features(
        problem.x, w, method._phases_of_iterations(common, [*range(256)], learner.holders[:256]).ravel()
    )
    assert_close(
        method.values_on_tests(common, problem, learner), (slow @ learner.alpha[:256, 0])[learner.split.test], 1e-9, "f"
    )


def test_directions_that_do_not_fit_are_refused_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(features=2000)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000_000)
    with pytest.raises(FklError, match=r"directions of 300 iterations in 2000 features would take at least 15.*MiB"):
        Fdskl(iterations=300).learner(known(problem), problem)


def test_a_sparse_table_gives_the_same_numbers() -> None:
    problem, method = make_problem(3), Fdskl(iterations=12, batch=2, features=2)
    sparse = replace(problem, x=csr_array(problem.x))
    common = known(problem)
    one, other = method.learner(common, problem), method.learner(common, sparse)
    method.advance(common, problem, one, 12)
    method.advance(common, sparse, other, 12)
    expected = method.values_on_tests(common, problem, one)
    assert_close(method.values_on_tests(common, sparse, other), expected, 1e-9, "fast path")
    assert_close(played(method, common, sparse)[1], expected, 1e-9, "protocol")


@pytest.mark.parametrize("q", [2, 3, 8])
def test_an_iteration_sends_order_of_q_t_scalars(q: int) -> None:
    """FDSKL, Section 3.3: 2 q - 3 for each feature and row, and 4 (q - 1) for the rest, with no row drawn twice."""
    problem = make_problem(q, rows=60, features=9)
    for B, D in ((1, 1), (3, 2)):
        method = Fdskl(iterations=12, batch=B, features=D)
        learner = method.learner(known(problem), problem)
        for t in range(1, 13):
            counts = learner.sent(t)
            learner.t = t
            scalars = sum(int(count[:, 1].sum()) for count in counts.values())
            assert scalars == (2 * q - 3) * t * B * D + (q - 1) * (B + 1) + (q - 1) * B + (q - 1)
            messages = sum(int(count[:, 0].sum()) for count in counts.values())
            assert messages == (2 * q - 3) * t + 3 * (q - 1)


def test_simulated_time_of_iterations_by_hand() -> None:
    """Five workers, T0 of three levels, T1 of three, T2 of three: 4 others, 3 others, and on to the root."""
    cost, method = CostModel(latency_s=0.5, bandwidth_bytes_per_s=8.0), Fdskl(batch=3, features=2)
    third = 3 * (0.5 + 4) + 3 * (0.5 + 1) + 3 * (0.5 + 3) + (3 + 3) * (0.5 + 3 * 2 * 3)
    assert seconds(method, 5, 2, 3, cost) == third
    parts = [seconds(method, 5, t, t + 1, cost) for t in range(7)]
    assert seconds(method, 5, 0, 7, cost) == pytest.approx(sum(parts))
    assert seconds(method, 5, 0, 0, cost) == 0
    assert seconds(replace(method, masks="fresh"), 2, 0, 1, cost) > seconds(method, 2, 0, 1, cost)


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
    assert (replace(method, iterations=9).batches(rows, Streams(6, (1,))) != again).any()


@pytest.mark.parametrize("rows", dsg.ROWS)
def test_the_mean_of_f_is_that_of_the_closed_form(rows: str) -> None:
    """With the square loss, and training rows too far apart to share a kernel.

    Independent draws: E f_t+1(x_i) = (1 - gamma lam) E f_t(x_i) - (2 gamma / n) (E f_t(x_i) - y). A shuffled epoch has
    each row once, at any place.
    """
    y, n, gamma, lam = 0.7, 3, 0.6, 0.1
    x = np.arange(4.0)[:, None] * [40.0, 0.0]
    table = Table.of_one_site(x + 1e-3 * np.random.default_rng(0).random(x.shape), y + 1e-9 * x[:, 0], ("a", "b"))
    problem = FeatureGroups(2).split(table, np.random.default_rng(1))
    method = Dsg(iterations=n, gamma=gamma, lam=lam, features=64, loss="square", rows=rows, marks=1)
    values = []
    for seed in range(400):
        common = Common(kernel(), 2, 1, Streams(seed, (1,)), "float64")
        learner = method.learner(common, problem)
        assert len(learner.split.training) == n
        method.advance(common, problem, learner, n)
        w, b = method._drawn_features(common, learner, 0, n)
        values.append(cosine_features(problem.x[learner.split.training], w, b) @ learner.alpha.ravel())
    stays = 1 - gamma * (lam + 2 / n)
    independent = y * (2 / n) / (lam + 2 / n) * (1 - stays**n)
    shuffled = 2 * gamma * y * np.mean([(1 - gamma * lam) ** later for later in range(n)])
    expected = {"iid": independent, "shuffled": shuffled}[rows]
    error = np.std(np.mean(values, axis=1)) / np.sqrt(len(values))
    assert abs(np.mean(values) - expected) < 4 * error < 0.2 * abs(independent - shuffled)


@pytest.mark.parametrize("name", sorted(POINTWISE_LOSSES))
def test_derivatives_are_those_of_the_losses(name: str) -> None:
    loss, step = POINTWISE_LOSSES[name], 1e-6
    f = np.linspace(-3.05, 3.05, 41)
    for y in (-1.0, 1.0):
        slope = (loss.value(f + step, y) - loss.value(f - step, y)) / (2 * step)
        assert_close(loss.derivative(f, y), slope, 1e-6, name)
        assert_close(loss.derivative(f, y), np.array([literal.SLOPES[name](one, y) for one in f]), 1e-12, name)


@pytest.mark.parametrize("family", dsg.FAMILIES)
def test_mean_product_of_features_is_the_kernel(family: str) -> None:
    """FDSKL, eq. (3)."""
    x = np.random.default_rng(0).uniform(-1, 1, (6, 3))
    method = Dsg(features=50_000)
    common = Common(kernel(1.5, family), 3, 1, ONE, "float64")
    phi = cosine_features(x, method.directions(common, 0), method.phases(common, 0, 0))
    apart = x[:, None] - x
    exact = np.exp(-(apart**2).sum(-1) / (2 * 1.5**2)) if family == "rbf" else np.exp(-np.abs(apart).sum(-1) / 1.5)
    assert np.abs(phi @ phi.T / method.features - exact).max() < 0.02


# --- trees


def subtrees(tree: Tree) -> set[frozenset[int]]:
    """Leaves of every subtree that has more than one."""
    gathered, found = {worker: frozenset({worker}) for worker in tree.workers}, set()
    for level in tree.levels:
        for sender, receiver in level:
            gathered[receiver] |= gathered[sender]
        found |= {gathered[receiver] for _, receiver in level}
    return found


def totally_different(first: Tree, second: Tree) -> bool:
    """Definition 2: no subtree of more than one leaf belongs to both."""
    return not subtrees(first) & subtrees(second)


def workers_that_unmask(masked: Tree, masks: Tree) -> list[int]:
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
        values, known = (np.array([[float(o in some) for o in others] for some in each]) for each in received)
        # A combination of the first that is one of the second makes the rank of both together smaller.
        if values.size and known.size and rank(np.concatenate([values, known])) < rank(values) + rank(known):
            found.append(worker)
    return found


def cases(workers: int) -> Iterator[tuple[int, int]]:
    """Roots and workers apart: all of few workers, some of many."""
    for root in range(workers):
        for apart in range(workers):
            if root != apart and (workers < 8 or (root in (0, 3) and apart % 9 == 1)):
                yield root, apart


@pytest.mark.parametrize("workers", range(2, 65))
def test_mask_trees_are_totally_different_and_disclose_nothing(workers: int) -> None:
    everyone = set(range(workers))
    for root, apart in cases(workers):
        first, second = mask_trees(workers, root, apart)
        assert first.root == second.root == root
        assert first.workers == everyone and second.workers == everyone - {apart}
        assert totally_different(first, second)
        assert workers_that_unmask(first, second) == []
        assert len(first.levels) == (ceil(log2(workers - 1)) if workers > 2 else 0) + 1
        third = all_masks_tree(workers, root, apart)
        assert third.workers == everyone
        assert workers_that_unmask(first, third) == [root], (
            "what remains for it is the others' sum with the b that stays"
        )


def test_the_checks_catch_trees_that_disclose() -> None:
    """Figure 2, workers from 0: Definition 2 holds of these trees, and yet worker 0 learns worker 1's partial sum."""
    figure = binary_tree([0, 1, 2, 3])
    assert subtrees(figure) == {frozenset({0, 1}), frozenset({2, 3}), frozenset({0, 1, 2, 3})}
    assert not totally_different(figure, binary_tree([0, 1, 2]))
    assert workers_that_unmask(figure, binary_tree([0, 1, 2])) == [0]
    assert totally_different(figure, binary_tree([0, 2, 1]))
    assert workers_that_unmask(figure, binary_tree([0, 2, 1])) == [0]
    assert not totally_different(figure, binary_tree([2, 3, 0])), "the same pair under another root"
    assert totally_different(star_tree([0, 1, 2, 3]), star_tree([0, 1, 2])) and workers_that_unmask(
        star_tree([0, 1, 2, 3]), star_tree([0, 1, 2])
    )


@pytest.mark.parametrize("make", [binary_tree, ring_tree, star_tree])
@pytest.mark.parametrize("workers", [1, 2, 3, 7, 64])
def test_sums_are_sums_and_each_sends_once(make: type[Tree], workers: int) -> None:
    order = np.random.default_rng(workers).permutation(workers).tolist()
    tree, nobody = make(order), np.zeros((0, 0))
    groups = (np.zeros(0, np.int64),) * workers
    owned = [Own(j, nobody, None, groups, (tree.root,), None) for j in range(workers)]

    def heard(part: Callable[[Own, Wire], Actor]) -> tuple[list[Array | None], list[Heard]]:
        wires, letters = [Wire() for _ in owned], []
        actors = [ActorInSight(part(own, wire), wire) for own, wire in zip(owned, wires, strict=True)]
        return Mail(actors, letters).deliver(), letters

    sums, letters = heard(
        lambda own, wire: gather_at_root(tree, own, wire, FunctionPart, np.array([1.0, own.number**2]))
    )
    assert tree.root == order[0]
    assert sums.pop(tree.root).tolist() == [workers, sum(worker**2 for worker in order)]
    assert sums == [None] * (workers - 1)
    assert sorted(letter.sender for letter in letters) == sorted(set(order) - {tree.root})
    known_to, told_to = heard(
        lambda own, wire: pass_down_tree(tree, own, wire, Index, np.arange(5.0) if own.number == tree.root else None)
    )
    assert all(values.tolist() == [0, 1, 2, 3, 4] for values in known_to)
    assert sorted(letter.receiver for letter in told_to) == sorted(set(order) - {tree.root})


def test_time_of_a_sum_is_that_of_its_critical_path() -> None:
    """Figure 4: tree below ring and star as workers grow; by hand for five workers."""
    cost = CostModel(latency_s=0.5, bandwidth_bytes_per_s=100.0)
    assert seconds_of_sum("tree", 5, 200, cost) == 3 * (0.5 + 2)
    assert seconds_of_sum("ring", 5, 200, cost) == 4 * (0.5 + 2)
    assert seconds_of_sum("star", 5, 200, cost) == 0.5 + 4 * 2
    assert tree_rooted_at(5, 3).seconds(200, cost) == seconds_of_sum("tree", 5, 200, cost)
    for workers in range(2, 65):
        tree = seconds_of_sum("tree", workers, 1e8, cost)
        assert tree <= seconds_of_sum("ring", workers, 1e8, cost)
        assert workers < 4 or tree < seconds_of_sum("star", workers, 1e8, cost)
        assert tree == ceil(log2(workers)) * (0.5 + 1e6)
    with pytest.raises(BadValue, match="structure=cycle: must be one of tree, ring, star"):
        seconds_of_sum("cycle", 4, 1, cost)


# --- what workers can learn of one another


def workers_of(method: Fdskl, problem: Vertical, dictionary: Dictionary | None = None) -> list[Worker]:
    _, holders = method.dealt(known(problem, dictionary), problem)
    return [Worker(method, holder, Wire()) for holder in holders]


def listen(workers: list[Worker]) -> list[Heard]:
    """All letters of these workers."""
    heard: list[Heard] = []
    Mail([ActorInSight(worker.play(), worker.wire) for worker in workers], heard).deliver()
    return heard


def messages(method: Fdskl, problem: Vertical, dictionary: Dictionary | None = None) -> list[Heard]:
    """All messages of a run."""
    return listen(workers_of(method, problem, dictionary))


def near(values: Array, forbidden: Array) -> bool:
    """Whether some value is a forbidden one, up to whole turns."""
    return bool((np.abs((values.ravel()[:, None] - forbidden.ravel() + 3) % TURN - 3) < 1e-9).any())


def breaches(method: Fdskl, problem: Vertical) -> set[str]:
    """What a worker received, or can make of a masked sum less some sums of masks, that it must not have."""
    found, heard = set(), {}
    for message in messages(method, problem):
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
@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_nobody_receives_features_or_partial_sums(masks: str, q: int) -> None:
    assert breaches(replace(AUDITED, masks=masks), make_problem(q)) == set()


def test_the_audit_finds_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No masks; trees that are not different; the trees of Figure 2, that are and still disclose; raw features."""
    problem = make_problem(4, active=1)
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "mask", lambda self, s, shape: np.zeros(shape))
        assert breaches(AUDITED, problem) == {"partial sum"}
    for second in ([0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]):
        with monkeypatch.context() as patch:
            patch.setattr(
                Worker,
                "trees",
                lambda self, root, apart, order=second: (
                    binary_tree([0, 1, 2, 3]),
                    binary_tree([worker for worker in order if worker != apart]),
                ),
            )
            assert breaches(AUDITED, problem) == {"partial sum"}
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "partial", lambda self, s, rows: self.own.x[rows][:, :1] + np.zeros(2))
        patch.setattr(Worker, "mask", lambda self, s, shape: np.zeros(shape))
        assert f"raw feature: {MASKED}" in breaches(AUDITED, problem)


class Attack:
    """Least squares for a victim's features from the masked values that it alone sent to one neighbour.

    Definition 6: the attacker knows w of every feature. Errors are relative to those of a guess that knows nothing
    but the mean, so 1 is chance and 0 is full disclosure.
    """

    def __init__(self, method: Fdskl, problem: Vertical, attacker: int, victim: int) -> None:
        group, asked = problem.groups[victim], {}
        for message in messages(method, problem, LISTENED_KERNEL):
            if message.kind == MASKED and (message.receiver, message.sender) == (attacker, victim):
                s, *rows = message.about
                if self.leaves(method, problem, s, victim) == {victim}:
                    for row, value in zip(rows, message.values, strict=True):
                        asked.setdefault(row, {})[s] = value
        self.truth = {row: problem.x[row, group] for row in asked}
        self.asked = asked
        common = known(problem, LISTENED_KERNEL)
        self.w = {s: method.directions(common, s)[:, group] for s in range(method.iterations)}

    @staticmethod
    def leaves(method: Fdskl, problem: Vertical, s: int, sender: int) -> frozenset[int]:
        """Whose sum a worker passes on in T1 of feature s."""
        tree, _ = mask_trees(problem.parties, *method.duties(problem, ONE)[s].tolist())
        return next(under for under, link in zip(tree.sent, tree.links, strict=True) if link[0] == sender)

    def levels(self) -> float:
        """From each row's values, with the mask's mean as an intercept."""
        guesses = []
        for values in self.asked.values():
            w = np.concatenate([self.w[s] for s in values])
            one = np.ones((len(w), 1))
            guesses.append(np.linalg.lstsq(np.hstack([w, one]), np.concatenate([*values.values()]))[0][:-1])
        truth = np.stack([self.truth[row] for row in self.asked])
        return rms(np.stack(guesses) - truth) / rms(truth - 0.5)

    def differences(self) -> float:
        """From the differences between two rows' values of the same features, taken to half a turn either way."""
        errors, truths = [], []
        for one, other in combinations(self.asked, 2):
            both = [s for s in self.asked[one] if s in self.asked[other]]
            w = np.concatenate([self.w[s] for s in both])
            apart = np.concatenate([self.asked[one][s] - self.asked[other][s] for s in both])
            truth = self.truth[one] - self.truth[other]
            errors.append(np.linalg.lstsq(w, (apart + np.pi) % TURN - np.pi)[0] - truth)
            truths.append(truth)
        return rms(np.stack(errors)) / rms(np.stack(truths))


def rms(errors: Array) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


LISTENED, LISTENED_KERNEL = Fdskl(iterations=24, batch=3, features=64), kernel(1.5)
"""1536 features, about a third of which a given neighbour sees."""


def attack(masks: str) -> Attack:
    """Worker 1's attack on worker 2, that holds two features; worker 0 asks."""
    problem = make_problem(4, active=1, rows=20, features=8)
    return Attack(replace(LISTENED, masks=masks), problem, attacker=1, victim=2)


def test_without_masks_the_attack_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "mask", lambda self, s, shape: np.zeros(shape))
    found = attack("paper")
    assert found.levels() < 1e-9 and found.differences() < 1e-9


def test_fresh_masks_leave_the_attack_at_chance() -> None:
    found = attack("fresh")
    assert found.levels() > 0.8 and found.differences() > 0.8


def test_the_papers_masks_disclose_differences_and_over_many_features_more() -> None:
    """Theorem 7 does not hold of them.

    b^j(s) is one number for all samples, so it drops out of differences between them; and many masked values average
    out the masks. Modulo 2 pi there is nothing to average, but the differences remain.
    """
    paper, reduced = attack("paper"), attack("reduced")
    assert paper.levels() < 0.6
    assert reduced.levels() > 0.8
    assert paper.differences() < 1e-9
    assert reduced.differences() < 1e-6


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


@pytest.mark.parametrize("masks", MASKS)
def test_no_public_stream_gives_the_phases(masks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 3, line 2: b is of the own seed of l'; it once was the last part of the public stream of features."""
    assert rebuilt(masks) > 1

    def public(self: Fdskl, common: Common, t: int, holder: int) -> Array:
        return TURN * common.streams.uniform(Role.FEATURES, t, 69 * self.features)[0][-self.features :]

    monkeypatch.setattr(Fdskl, "phases", public)
    assert rebuilt(masks) < 1e-9


@pytest.mark.parametrize("masks", MASKS)
def test_the_asking_worker_learns_all_differences_whatever_the_masks(masks: str) -> None:
    """Its output w'x + b has one b for all samples, since otherwise f would not be a function of x."""
    problem = make_problem(4, active=1, rows=20, features=8)
    method = replace(LISTENED, masks=masks, batch=2, iterations=1)
    workers = workers_of(method, problem, kernel(4.0))
    listen(workers)
    [asking] = [worker for worker in workers if worker.angles]
    angle, [one, other] = asking.angles[0], asking.known[0]
    w = method.directions(asking.own.common, 0)
    apart = (angle[0] - angle[1] + np.pi) % TURN - np.pi
    assert_close(np.linalg.lstsq(w, apart)[0], problem.x[one] - problem.x[other], 1e-9, "difference of two samples")


# --- what is refused


def test_groups_partition_the_features() -> None:
    table = make_table(features=11)
    for how in ("contiguous", "random"):
        vertical = FeatureGroups(4, how).split(table, np.random.default_rng(0))
        assert sorted(np.concatenate(vertical.groups).tolist()) == list(range(11))
        assert sorted(map(len, vertical.groups)) == [2, 3, 3, 3]
        assert vertical.active == (0, 1) and vertical.parties == 4
        assert sorted(np.unique(vertical.y)) == [-1, 1]
    given_ = FeatureGroups(2, "given", [[4, 0, 9], [*range(1, 4), *range(5, 9), 10]], active=2)
    vertical = given_.split(table, np.random.default_rng(0))
    assert vertical.groups[0].tolist() == [4, 0, 9] and vertical.active == (0, 1)


def test_rows_split_three_to_one_and_folds_leave_the_test_rows_aside() -> None:
    problem = make_problem(rows=40)
    split = problem.rows(np.random.default_rng(3))
    assert sorted(np.concatenate(split).tolist()) == list(range(40)) and len(split.test) == 10
    folds = [problem.rows(np.random.default_rng(3), fold) for fold in range(5)]
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == sorted(split.training.tolist())
    assert all(not set(fold.training) & set(fold.test) for fold in folds)
    assert not np.array_equal(split.test, problem.rows(np.random.default_rng(4)).test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parties": 1}, "parties=1: must be an integer >= 2: features of one party are not partitioned"),
        ({"how": "even"}, "how=even: must be one of contiguous, random, given"),
        ({"how": "given"}, "groups=None: must be lists of features with how=given, else null"),
        ({"groups": [[0]]}, "groups=[[0]]: must be lists of features with how=given, else null"),
        ({"active": 0}, "active=0: must be an integer from 1 to 3, the parties, or null"),
        ({"active": 4}, "active=4: must be an integer from 1 to 3, the parties, or null"),
        ({"test_share": 0.0}, "test_share=0.0: must be a number > 0 and < 1"),
        ({"test_share": 0.01}, "test_share=0.01: must be one that parts the 16 rows in two"),
        ({"parties": 9}, "parties=9: must be at most 7, the features of the data set"),
        ({"how": "given", "groups": [[0], [1]]}, "groups=2 lists: must be 3 lists, one a party"),
        (
            {"how": "given", "groups": [[0, 1], [2, 1], [3]]},
            "groups=party 1: 1: must be a feature of one party; party 0 has it, too",
        ),
        (
            {"how": "given", "groups": [[0, 1], [2, 7], [3]]},
            "groups=party 1: 7: must be integers from 0 to 6, the features of the data set",
        ),
        ({"how": "given", "groups": [[0, 1], [2], [3]]}, "groups=no party: 4 and 2 more: must be a party for every"),
        ({"how": "given", "groups": [[0, 1], [], [2]]}, "groups=party 1: []: must be at least one feature a party"),
    ],
)
def test_partitions_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadValue) as refused:
        FeatureGroups(**{"parties": 3, **change}).split(make_table(), np.random.default_rng(0))
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss=hinge: must be one of square, logistic, smooth_hinge"),
        ({"rate": "fast"}, "rate=fast: must be constant or diminishing"),
        ({"gamma": -1.0}, "gamma=-1.0: must be a number > 0"),
        ({"lam": -1.0}, "lam=-1.0: must be a number >= 0"),
        ({"gamma": 10.0, "lam": 0.1}, "gamma=10.0: must be below 1 / lam = 10 (FDSKL, Theorem 4)"),
        ({"features": 0}, "features=0: must be an integer from 1 to 1000000000"),
        ({"batch": 13}, "batch=13: must be at most 12, the rows to learn from"),
        ({"masks": "none"}, "masks=none: must be one of paper, reduced, fresh"),
        ({"fold": 5}, "fold=5: must be an integer from 0 to 4, or null"),
    ],
)
def test_hyper_parameters_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    parties = int(change.pop("parties", 3))
    with pytest.raises(BadValue) as refused:
        problem = make_problem(parties)
        Fdskl(**change).learner(known(problem), problem)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("dictionary", "message"),
    [
        (
            Dictionary("polynomial", N=1, smallest=2.0, largest=2.0),
            "kernels.family=polynomial: must be rbf or laplacian",
        ),
        (Dictionary(), "kernels.N=51: must be 1: FDSKL learns one kernel, for example kernels=rbf_single"),
    ],
)
def test_kernels_that_have_no_such_features_are_refused(dictionary: Dictionary, message: str) -> None:
    problem = make_problem()
    with pytest.raises(BadValue) as refused:
        Fdskl().learner(known(problem, dictionary), problem)
    assert str(refused.value) == message


def test_a_loss_of_classification_needs_two_classes() -> None:
    problem = FeatureGroups(3).split(make_table(classes=False), np.random.default_rng(0))
    for loss in ("logistic", "smooth_hinge"):
        with pytest.raises(BadValue, match=f"loss={loss}: must be square: the target has 16 values, not two classes"):
            Fdskl(loss=loss).learner(known(problem), problem)
    Fdskl(loss="square").learner(known(problem), problem)
