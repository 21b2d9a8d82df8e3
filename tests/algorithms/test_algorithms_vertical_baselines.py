"""FD-SVRG, PP-SVMV, LIBSVM and SecureBoost: literal transcriptions, pooled equals, counts, ciphers, refusals."""

import sys
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.toy_cipher import Toy
from literal.vertical_boosting import Node, boosted
from literal.vertical_fd_svrg import fd_svrg
from numpy.typing import NDArray
from sklearn.svm import SVC, SVR

from fkl.algorithms.vertical.ciphers import Cipher, Operations, Paillier, Plain, Sorting
from fkl.algorithms.vertical.fd_svrg import LOSSES, FdSvrg, _slope_of_loss
from fkl.algorithms.vertical.kernel_machines import Libsvm, Nystroem, PpSvmv
from fkl.algorithms.vertical.parties import Groups, Held, Learning, Wire
from fkl.algorithms.vertical.ridge import FeatureRidge
from fkl.algorithms.vertical.secureboost import LEAF, SecureBoost, Tree
from fkl.algorithms.vertical.sums import tree_rooted_at
from fkl.basics.errors import BadValue, FklError
from fkl.conformance.isolated import ActorInSight, Mail
from fkl.contract.parties import deal_features
from fkl.kernels.losses import POINTWISE_LOSSES

Array = NDArray[np.float64]
D = 7


def samples(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Features of which some have few values, one none but 0 and two are alike, and labels that are no plane's."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    x[:, 1] = np.round(x[:, 1])
    x[:, 4] = 0
    x[:, 5] = x[:, 2]
    y = np.where(x[:, 0] * x[:, 1] + 0.5 * x[:, 2] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return x, y


X, Y = samples(60)


def real_targets(x: Array) -> Array:
    """Of a curved function with noise, in units and from a level that no method has for a default."""
    noise = np.random.default_rng(9).normal(size=len(x))
    return 1000 + 50 * (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * noise)


REAL = real_targets(X)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Groups, tuple[int, ...]]:
    """Parties, some of which may hold no feature, and an active one."""
    parties = draw(st.integers(1, 5))
    owner = np.array(draw(st.lists(st.integers(0, parties - 1), min_size=D, max_size=D)))
    active = draw(st.integers(0, parties - 1))
    return tuple(np.flatnonzero(owner == party) for party in range(parties)), (active,)


POOLED: tuple[Groups, tuple[int, ...]] = ((np.arange(D),), (0,))
THREE: tuple[Groups, tuple[int, ...]] = ((np.array([1, 4]), np.array([6, 0]), np.array([2, 3, 5])), (1, 2))


class Counts:
    """A `Count` that remembers sums by kind, sender and receiver."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, int, int]] = Counter()
        self.items: Counter[tuple[str, int, int]] = Counter()
        self.bytes: Counter[tuple[str, int, int]] = Counter()

    def __call__(self, kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        """Add to the sums."""
        assert sender != receiver
        self.messages[kind, sender, receiver] += messages
        self.items[kind, sender, receiver] += items
        self.bytes[kind, sender, receiver] += size


# FD-SVRG


@settings(max_examples=40)
@given(partitions(), st.sampled_from(sorted(LOSSES)), st.integers(1, 3), st.sampled_from([None, 1, 5]), st.booleans())
def test_fd_svrg_is_its_messages(
    partition: tuple[Groups, tuple[int, ...]], loss: str, batch: int, inner: int | None, intercept: bool
) -> None:
    x, y = X[:20], Y[:20]
    groups, active = partition
    algorithm = FdSvrg(loss, 1e-2, 0.05, passes=2, inner=inner, batch=batch, intercept=intercept)
    counts = Counts()
    model = algorithm.fit(x, y, groups, active, np.random.default_rng(3), counts)

    rng, steps = np.random.default_rng(3), inner or 20 // batch
    indices = [rng.integers(20, size=(steps, batch)).tolist() for _ in range(2)]
    held = [x[:, group] for group in groups]
    if intercept:
        held[active[0]] = np.column_stack([held[active[0]], np.ones(20)])
    links = list(tree_rooted_at(len(groups), active[0]).links)
    w, post = fd_svrg(held, y, active[0], links, loss, 1e-2, 0.05, indices)

    bias = w[active[0]][-1] if intercept else 0.0
    np.testing.assert_allclose(model.bias, bias, atol=1e-12)
    for group, part in zip(groups, w, strict=True):
        np.testing.assert_allclose(model.w[group], part[: len(group)], atol=1e-12)
    assert counts.messages == post.messages
    assert counts.items == post.scalars
    assert counts.bytes == Counter({link: 8 * scalars for link, scalars in post.scalars.items()})
    # 2 (q - 1) (N + M u) scalars an outer iteration
    assert counts.items.total() == 2 * 2 * (len(groups) - 1) * (20 + steps * batch)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_fd_svrg_finds_the_minimum_of_its_objective(loss: str) -> None:
    model = FdSvrg(loss, lam=0.1, eta=0.02, passes=150).fit(X, Y, *THREE, np.random.default_rng(0))
    f = model.decision(X)
    z = Y * f
    slope = {"square": 2 * (f - Y), "logistic": -Y / (1 + np.exp(z)), "smooth_hinge": -Y * np.clip(1 - z, 0, 1)}[loss]
    np.testing.assert_allclose(slope @ X / len(Y) + 0.1 * model.w, 0, atol=1e-7)
    np.testing.assert_allclose(slope.mean() + 0.1 * model.bias, 0, atol=1e-7)


def test_fd_svrg_on_real_targets_finds_the_closed_form() -> None:
    """(2 / N X'X + lam I) w = 2 / N X'y, with the feature that is always 1 and is regularised, too."""
    y = REAL / 1000
    model = FdSvrg("square", lam=0.1, eta=0.02, passes=150).fit(X, y, *THREE, np.random.default_rng(0))
    x = np.column_stack([X, np.ones(len(X))])
    w = np.linalg.solve(2 / len(y) * x.T @ x + 0.1 * np.eye(D + 1), 2 / len(y) * x.T @ y)
    np.testing.assert_allclose([*model.w, model.bias], w, atol=1e-9)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_fd_svrg_has_the_losses_of_fdskl(loss: str) -> None:
    assert LOSSES.keys() == POINTWISE_LOSSES.keys()
    f, y = np.linspace(-800, 800, 65), np.tile([1.0, -1.0], 33)[:65]
    ours = [_slope_of_loss(*pair, LOSSES[loss]) for pair in zip(f, y, strict=True)]
    np.testing.assert_allclose(ours, POINTWISE_LOSSES[loss].derivative(f, y), rtol=1e-12, atol=1e-300)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_fd_svrg_that_diverges_shows_it_to_the_loop() -> None:
    diverged = FdSvrg("square", eta=100.0).fit(X, Y, *POOLED, np.random.default_rng(0))
    assert not np.isfinite(diverged.decision(X)).all()


def test_fd_svrg_asks_for_no_more_samples_a_step_than_there_are() -> None:
    with pytest.raises(FklError, match=rf"batch={len(X) + 1}: must be at most {len(X)}"):
        FdSvrg(batch=len(X) + 1).fit(X, Y, *POOLED)


# LIBSVM and PP-SVMV


def test_libsvm_decides_as_scikit_learn() -> None:
    x, y = samples(300)
    model = Libsvm(C=3.0, gamma=0.2).fit(x[:200], y[:200], *THREE)
    svc = SVC(C=3.0, gamma=0.2).fit(x[:200], y[:200])
    np.testing.assert_allclose(model.decision(x), svc.decision_function(x), atol=1e-10)


def standardised_svr(x: Array, y: Array, **settings: Any) -> Any:
    """scikit-learn's SVR on standardised targets, as a function that has the targets' unit again."""
    svr = SVR(epsilon=0.2, **settings).fit(x, (y - y.mean()) / y.std())
    return lambda new: svr.predict(new) * y.std() + y.mean()


def test_libsvm_on_real_targets_is_scikit_learn_on_standardised_ones() -> None:
    x, _ = samples(300)
    y = real_targets(x)
    model = Libsvm(C=3.0, gamma=0.2, epsilon=0.2, tolerance=1e-9).fit(x[:200], y[:200], *THREE)
    svr = standardised_svr(x[:200], y[:200], C=3.0, gamma=0.2, tol=1e-9)
    np.testing.assert_allclose(model.decision(x), svr(x), atol=1e-6)
    np.testing.assert_allclose(model.function.predict(x)[0], svr(x), atol=1e-6)


@settings(max_examples=25)
@given(partitions(), st.integers(0, 2**32))
def test_pp_svmv_merges_what_pooled_data_give(partition: tuple[Groups, tuple[int, ...]], seed: int) -> None:
    groups, active = partition
    grams, mails = [], []
    for one in (seed, seed + 1):
        rngs = [np.random.default_rng(one) if party == active[0] else None for party in range(len(groups))]
        owned, wires = deal_features(Held(X, Y, groups, active), rngs), [Wire() for _ in groups]
        mails.append([])
        actors = [ActorInSight(PpSvmv().merged(*both), both[1]) for both in zip(owned, wires, strict=True)]
        grams.append(Mail(actors, mails[-1]).deliver()[active[0]])
    np.testing.assert_allclose(grams[0], X @ X.T, atol=len(groups) * 2.0**-40, rtol=1e-12)
    assert np.array_equal(*grams), "whatever the mask, not a bit of it is left"

    parties = len(groups)
    ring = [active[0], *(party for party in range(parties) if party != active[0]), active[0]]
    links = [("matrix", a, b, (60 * 61 // 2,)) for a, b in pairwise(ring) if parties > 1]
    assert [(letter.kind, letter.sender, letter.receiver, letter.values.shape) for letter in mails[0]] == links


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_pp_svmv_is_the_pooled_machine(kernel: str) -> None:
    x, y = samples(300)
    settings = {"C": 2.0, "gamma": 0.3, "tolerance": 1e-9}
    merged = PpSvmv(kernel=kernel, **settings).fit(x[:200], y[:200], *THREE, np.random.default_rng(0))
    svc = SVC(C=2.0, gamma=0.3, tol=1e-9, kernel=kernel).fit(x[:200], y[:200])
    np.testing.assert_allclose(merged.decision(x), svc.decision_function(x), atol=1e-6)
    if kernel == "rbf":
        pooled = Libsvm(**settings).fit(x[:200], y[:200])
        np.testing.assert_allclose(merged.decision(x), pooled.decision(x), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_pp_svmv_on_real_targets_is_the_pooled_machine_and_sends_the_same(kernel: str) -> None:
    x, signs = samples(300)
    y, settings = real_targets(x), {"C": 2.0, "gamma": 0.3}
    method, counts, of_signs = PpSvmv(kernel=kernel, epsilon=0.2, tolerance=1e-9, **settings), Counts(), Counts()
    merged = method.fit(x[:200], y[:200], *THREE, np.random.default_rng(0), counts)
    svr = standardised_svr(x[:200], y[:200], tol=1e-9, kernel=kernel, **settings)
    np.testing.assert_allclose(merged.decision(x), svr(x), atol=1e-4)
    method.fit(x[:200], signs[:200], *THREE, np.random.default_rng(0), of_signs)
    assert counts.bytes == of_signs.bytes == Counter(dict.fromkeys(counts.bytes, 8 * 200 * 201 // 2))


@pytest.mark.parametrize("algorithm", [Libsvm(epsilon=9.0), PpSvmv(epsilon=9.0)])
def test_machines_without_a_support_vector_are_a_constant(algorithm: Libsvm | PpSvmv) -> None:
    """Where no error is above epsilon, and where all targets are equal."""
    for y in (REAL, np.full(60, 3.0)):
        model = algorithm.fit(X, y, *THREE, np.random.default_rng(0))
        np.testing.assert_allclose(model.decision(X), (y.max() + y.min()) / 2, rtol=1e-12)
        np.testing.assert_allclose(model.function.predict(X)[0], model.decision(X))


def test_pp_svmv_works_on_blocks_as_on_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PpSvmv(gamma=0.2).fit(X, Y, *THREE, np.random.default_rng(0))
    monkeypatch.setattr("fkl.algorithms.vertical.kernel_machines.BLOCK", 7 * len(X))
    monkeypatch.setattr("fkl.algorithms.vertical.kernel_machines.PREDICTED", 100)
    blocks = PpSvmv(gamma=0.2).fit(X, Y, *THREE, np.random.default_rng(0))
    np.testing.assert_allclose(blocks.decision(X), whole.decision(X), atol=1e-9)
    assert blocks.decision(X[:0]).shape == (0,)


def test_pp_svmv_refuses_a_matrix_before_it_makes_one() -> None:
    x, y = np.zeros((30000, D)), np.tile([-1.0, 1.0], 15000)
    tracemalloc.start()
    with pytest.raises(FklError, match=r"^algo\.memory_gib=4: .* 30000 x 30000 samples takes 6\.7 GiB; .*$"):
        PpSvmv().fit(x, y, *THREE, np.random.default_rng(0))
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_pp_svmv_refuses_what_it_cannot_code() -> None:
    with pytest.raises(FklError, match="normalise the features"):
        PpSvmv().fit(1e4 * X, Y, *THREE, np.random.default_rng(0))


@pytest.mark.parametrize("algorithm", [Libsvm(), PpSvmv()])
def test_machines_refuse_one_class_alone(algorithm: Libsvm | PpSvmv) -> None:
    with pytest.raises(FklError, match="-1 and 1, and both must occur"):
        algorithm.fit(X, np.ones(60), *THREE, np.random.default_rng(0))


# SecureBoost


SMALL = SecureBoost(trees=3, depth=3, min_child_weight=0.5, bins=8)


def nested(tree: Tree, node: int = 0) -> Node:
    """A tree as the literal booster writes it."""
    if tree.feature[node] == LEAF:
        return (tree.value[node],)
    children = nested(tree, int(tree.left[node])), nested(tree, int(tree.right[node]))
    return int(tree.feature[node]), tree.threshold[node], *children


@pytest.mark.parametrize(
    "settings", [{}, {"lam": 0.0, "gamma": 0.2, "min_child_weight": 0.0}, {"depth": 1, "bins": 2, "trees": 6}]
)
@pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real targets"])
def test_secureboost_on_one_party_is_the_literal_booster(settings: dict[str, Any], y: Array) -> None:
    algorithm = replace(SMALL, **settings)
    limits = algorithm.lam, algorithm.gamma, algorithm.min_child_weight
    trees, f = boosted(X, y, algorithm.trees, algorithm.depth, algorithm.learning_rate, *limits, algorithm.bins)
    forest = algorithm.fit(X, y, *POOLED)
    assert [nested(tree) for tree in forest.trees] == trees
    assert np.array_equal(forest.decision(X), f)
    assert forest.operations == Operations()


@pytest.mark.parametrize(
    "settings", [{"depth": 3, "learning_rate": 0.3, "min_child_weight": 1.0}, {"depth": 5, "lam": 3.0}]
)
def test_secureboost_on_real_targets_is_xgboost(settings: dict[str, Any]) -> None:
    """To its single precision, on features of fewer values than bins; gamma in variances of the target, and halved."""
    xgboost = pytest.importorskip("xgboost")
    x = np.round(4 * samples(400)[0]) / 4
    y = real_targets(x)
    forest = SecureBoost(trees=30, gamma=1e-3, bins=256, **settings).fit(x, y, *THREE)
    theirs = {{"depth": "max_depth", "lam": "reg_lambda"}.get(key, key): value for key, value in settings.items()}
    gamma, mean = 2e-3 * y.var(), float(y.mean())
    pooled = xgboost.XGBRegressor(
        n_estimators=30, **{"learning_rate": 0.3} | theirs, gamma=gamma, tree_method="hist", base_score=mean
    )
    np.testing.assert_allclose(forest.decision(x), pooled.fit(x, y).predict(x), atol=1e-4 * y.std())


@settings(max_examples=30)
@given(partitions(), st.sampled_from([Y, REAL]))
def test_secureboost_loses_nothing(partition: tuple[Groups, tuple[int, ...]], y: Array) -> None:
    pooled = SMALL.fit(X, y, *POOLED)
    forest = SMALL.fit(X, y, *partition)
    assert [nested(tree) for tree in forest.trees] == [nested(tree) for tree in pooled.trees]
    groups = partition[0]
    for tree in forest.trees:
        for feature, owner in zip(tree.feature, tree.owner, strict=True):
            assert owner == LEAF if feature == LEAF else feature in groups[owner]


@settings(max_examples=12)
@given(partitions(), st.sampled_from([Y, REAL]))
def test_ciphers_change_nothing_but_bytes(partition: tuple[Groups, tuple[int, ...]], y: Array) -> None:
    plain, sealed = Counts(), Counts()
    forest = SMALL.fit(X, y, *partition, count=plain)
    again = replace(SMALL, cipher=Toy()).fit(X, y, *partition, count=sealed)
    assert [nested(tree) for tree in forest.trees] == [nested(tree) for tree in again.trees]
    assert forest.operations == again.operations
    assert (plain.messages, plain.items) == (sealed.messages, sealed.items)
    wide = Counts()
    replace(SMALL, cipher=Plain(32)).fit(X, y, *partition, count=wide)
    assert wide.bytes == sealed.bytes


@settings(max_examples=30)
@given(partitions(), st.sampled_from([Y, REAL]))
def test_secureboost_counts_what_its_trees_took(partition: tuple[Groups, tuple[int, ...]], y: Array) -> None:
    groups, (active,) = partition
    counts, passive = Counts(), [party for party in range(len(groups)) if party != active]
    forest = SMALL.fit(X, y, *partition, count=counts)

    bins = [min(SMALL.bins, len(np.unique(X[:, k]))) for k in range(D)]
    histogram = [2 * sum(bins[k] for k in group) for group in groups]
    messages, items, size = Counter(), Counter(), Counter()
    decryptions = 0

    def send(kind: str, sender: int, receiver: int, count: int, width: float) -> None:
        messages[kind, sender, receiver] += 1
        items[kind, sender, receiver] += count
        size[kind, sender, receiver] += int(np.ceil(count * width))

    def follow(tree: Tree, node: int, rows: NDArray[np.int64], depth: int) -> None:
        nonlocal decryptions
        if depth == SMALL.depth:
            return
        for party in passive:
            send("sums", party, active, histogram[party], 8)
            decryptions += histogram[party]
        if tree.feature[node] == LEAF:
            return
        owner = int(tree.owner[node])
        if owner != active:
            send("split", active, owner, 2, 8)
            send("left", owner, active, len(rows), 1 / 8)
        if depth + 1 < SMALL.depth:
            for party in passive:
                if party != owner:
                    send("left", active, party, len(rows), 1 / 8)
        left = X[rows, tree.feature[node]] <= tree.threshold[node]
        follow(tree, int(tree.left[node]), rows[left], depth + 1)
        follow(tree, int(tree.right[node]), rows[~left], depth + 1)

    for tree in forest.trees:
        for party in passive:
            send("statistics", active, party, 2 * len(X), 8)
        follow(tree, 0, np.arange(len(X)), 0)
    assert (counts.messages, counts.items, counts.bytes) == (messages, items, size)
    assert forest.operations.decryptions == decryptions
    # Each node adds all of its samples' g and h into one bin of each passive feature: one ciphertext becomes part of
    # another's sum for every addition, and a bin without samples takes a ciphertext of its own instead.
    fresh = forest.operations.encryptions - 2 * len(X) * SMALL.trees * bool(passive)
    terms = 0

    def met(tree: Tree, node: int, rows: NDArray[np.int64], depth: int) -> None:
        nonlocal terms
        if depth < SMALL.depth:
            terms += 2 * len(rows) * sum(len(groups[party]) for party in passive)
        if tree.feature[node] != LEAF:
            left = X[rows, tree.feature[node]] <= tree.threshold[node]
            met(tree, int(tree.left[node]), rows[left], depth + 1)
            met(tree, int(tree.right[node]), rows[~left], depth + 1)

    for tree in forest.trees:
        met(tree, 0, np.arange(len(X)), 0)
    assert forest.operations.additions == terms - (decryptions - fresh)


def test_secureboost_learns_tree_after_tree() -> None:
    x, y = samples(1200)
    errors = [
        np.mean(np.sign(forest.decision(x[800:])) != y[800:])
        for forest in SecureBoost(trees=40, depth=4).learn(x[:800], y[:800], *THREE)
    ]
    assert len(errors) == 40
    assert errors[-1] < 0.17 < errors[0]


def test_steps_that_let_trees_on_real_targets_diverge_are_refused() -> None:
    """Up to 2 the squared error does not grow, which keeps the sums exact."""
    squares = [
        np.square(forest.decision(X) - REAL).mean()
        for forest in SecureBoost(trees=30, learning_rate=2.0, lam=0.0).learn(X, REAL, *THREE)
    ]
    assert max(squares) <= REAL.var() * (1 + 1e-9)
    with pytest.raises(BadValue, match=r"learning_rate=2\.1: must be at most 2 for real targets"):
        SecureBoost(learning_rate=2.1).fit(X, REAL, *THREE)
    SecureBoost(trees=2, learning_rate=2.1).fit(X, Y, *THREE)


@pytest.mark.parametrize(
    "method",
    [
        Libsvm(tolerance=1e-9),
        PpSvmv(tolerance=1e-9),
        FdSvrg("square", passes=3),
        FeatureRidge(20),
        Nystroem(20),
        replace(SMALL, gamma=0.01),
    ],
    ids=lambda method: str(method.label),
)
def test_no_key_depends_on_the_unit_of_real_targets(method: Learning) -> None:
    """Targets in another unit give the same function in that unit; FD-SVRG regularises the bias, so no shift here."""
    y = REAL - 1000
    once, again = (method.fit(X, scale * y, *THREE, np.random.default_rng(0)).decision(X) for scale in (1.0, 1e5))
    np.testing.assert_allclose(again / 1e5, once, atol=1e-6 * y.std())


@pytest.mark.parametrize("forgets", [(), (2,), (1, 3)])
def test_values_handed_on_are_those_of_all_trees_to_the_bit(forgets: tuple[int, ...]) -> None:
    """Also where a run was resumed in between, or nobody asked for a round."""
    method, rows, handed_on = SecureBoost(trees=6, depth=3), np.array([50, 3, 7, 59]), None
    for t, forest in enumerate(method.learn(X[:50], Y[:50], *THREE)):
        if t == 4:
            continue
        f, handed_on = method.values(forest, X, rows, None if t in forgets else handed_on)
        assert (f == forest.decision(X[rows])).all()


def test_secureboost_stops_where_nothing_gains() -> None:
    forest = replace(SMALL, gamma=1e6).fit(X, Y, *THREE)
    assert all(len(tree.feature) == 1 for tree in forest.trees)
    flat = SMALL.fit(np.zeros((60, 2)), Y, (np.array([0]), np.array([1])), (0,))
    assert np.ptp(flat.decision(np.zeros((3, 2)))) == 0


def test_secureboost_refuses_more_samples_than_it_can_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fkl.algorithms.vertical.secureboost.MOST_SAMPLES", 59)
    with pytest.raises(FklError, match="exact for 59 samples at most, not 60"):
        SMALL.fit(X, Y, *THREE)


@pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real targets"])
def test_paillier_is_as_plain(y: Array) -> None:
    pytest.importorskip("phe")
    few = SecureBoost(trees=2, depth=2, bins=4, min_child_weight=0.1, cipher=Paillier(key_bits=256))
    x, y = X[:16], y[:16]
    counts = Counts()
    sealed = few.fit(x, y, *THREE, count=counts)
    plain = replace(few, cipher=Plain()).fit(x, y, *THREE)
    assert [nested(tree) for tree in sealed.trees] == [nested(tree) for tree in plain.trees]
    assert sealed.operations == plain.operations
    assert counts.bytes["statistics", 1, 0] == 2 * 2 * 16 * 64


def test_paillier_without_its_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    monkeypatch.setitem(sys.modules, "phe.paillier", None)
    with pytest.raises(FklError, match=r"^the cipher Paillier needs the package phe: pip install phe$"):
        Paillier().keys()


@pytest.mark.parametrize("cipher", [Plain(), Toy()])
def test_ciphers_sum_what_they_cannot_read(cipher: Cipher) -> None:
    keys = cipher.keys()
    values = np.array([[1, -(2**62)], [2, 5], [-4, 6], [8, 7]])
    sorting = Sorting.from_bins(np.array([[0, 0, 0, 2], [1, 0, 0, 1]]), np.array([0, 3, 5]))
    total = keys.sums(keys.encrypt(values), np.array([0, 1, 3]), sorting)
    assert keys.decrypt(total).tolist() == [[3, 5 - 2**62], [0, 0], [8, 7], [2, 5], [9, 7 - 2**62]]
    assert keys.operations == Operations(encryptions=8 + 2, additions=2 * 2, decryptions=10)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_sums_outside_the_fullest_bins_tell_those_in_them(share: float) -> None:
    """To the bit, of any rows, whole numbers near the largest ones included, and in any number of ways."""
    random = np.random.default_rng(0)
    for ways in (0, 1, 5):
        starts = np.arange(ways + 1) * 4
        bins = np.where(random.random((ways, 300)) < share, random.integers(4, size=(ways, 300)), 2).astype(np.uint8)
        sorting, pairs = Sorting.from_bins(bins, starts), random.integers(-(2**61), 2**61, (300, 2))
        assert (len(sorting.places) > 0) == (ways > 0 and share == 0.1)
        for rows in (np.arange(300), np.array([7]), np.zeros(0, np.int64), random.permutation(300)[:50]):
            total, members = sorting.sums(pairs, rows)
            for k, start in enumerate(starts[:-1]):
                for bin_ in range(4):
                    inside = rows[bins[k, rows] == bin_]
                    assert members[start + bin_] == len(inside)
                    assert (total[start + bin_] == pairs[inside].sum(axis=0)).all()


WRONG: list[tuple[type, str, list[Any]]] = [
    (FdSvrg, "loss", ["hinge"]),
    (FdSvrg, "lam", [-1.0, np.inf, np.nan]),
    (FdSvrg, "eta", [0.0, np.nan]),
    (FdSvrg, "passes", [0]),
    (FdSvrg, "inner", [0]),
    (FdSvrg, "batch", [0]),
    (PpSvmv, "kernel", ["poly"]),
    (PpSvmv, "memory_gib", [0.0, np.nan]),
    *(
        (kind, key, [0.0, -1.0, np.inf])
        for kind in (Libsvm, PpSvmv)
        for key in ("C", "gamma", "tolerance", "cache_mib")
    ),
    *((kind, "epsilon", [-0.1, np.inf, np.nan]) for kind in (Libsvm, PpSvmv)),
    (SecureBoost, "trees", [0]),
    (SecureBoost, "depth", [0, 17]),
    (SecureBoost, "learning_rate", [0.0, np.nan]),
    (SecureBoost, "lam", [-1.0]),
    (SecureBoost, "gamma", [-1.0, np.inf]),
    (SecureBoost, "min_child_weight", [-1.0]),
    (SecureBoost, "bins", [1, 257]),
    (Plain, "width", [0]),
    (Paillier, "key_bits", [64, 1023]),
]


@pytest.mark.parametrize(("kind", "key", "values"), WRONG)
def test_wrong_values_are_named(kind: type, key: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(BadValue) as caught:
            kind(**{key: value})
        assert caught.value.key == key
