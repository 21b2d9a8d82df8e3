"""Methods over parties: literal transcriptions, pooled equals, what is sent, ciphers, refusals."""

import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.common import Array
from literal.parties import FOUR, POOLED, THREE, Counts, Split, partitions, real_targets, samples
from literal.toy_cipher import Toy
from literal.vertical_boosting import Node, boosted
from literal.vertical_fd_svrg import fd_svrg
from scipy.stats import kstest
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR

from fkl.algorithms.vertical import ridge as ridges
from fkl.algorithms.vertical.ciphers import Cipher, CountingCipher, Operations, Paillier, Sorting
from fkl.algorithms.vertical.fd_svrg import FdSvrg
from fkl.algorithms.vertical.kernel_machines import JITTER, Distances, Libsvm, PpSvmv, VerticalNystroem
from fkl.algorithms.vertical.parties import LearningWithKeys, PartyRows, Wire
from fkl.algorithms.vertical.ridge import Angles, FeatureRidge, squared_hinge
from fkl.algorithms.vertical.secureboost import LEAF, DecisionTree, SecureBoost
from fkl.algorithms.vertical.sums import round_the_ring, tree_rooted_at
from fkl.basics.errors import FklError
from fkl.basics.pointwise import OF_PARTIES
from fkl.conformance.isolated import ActorInSight, Mail
from fkl.contract.parties import deal_features

X, Y = samples(60)
REAL = real_targets(X)
TARGETS = pytest.mark.parametrize("real", [False, True], ids=["classes", "real targets"])


def samples_of(real: bool, n: int = 150) -> tuple[Array, Array]:
    """Samples, and their classes or real targets."""
    x, y = samples(n)
    return x, real_targets(x) if real else y


# FD-SVRG


@settings(max_examples=40)
@given(partitions(), st.sampled_from(OF_PARTIES), st.integers(1, 3), st.sampled_from([None, 1, 5]), st.booleans())
def test_fd_svrg_is_its_messages(partition: Split, loss: str, batch: int, inner: int | None, intercept: bool) -> None:
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


# LIBSVM and PP-SVMV


def scikit_learn(x: Array, y: Array, **settings: Any) -> Any:
    """The values of its SVC, or of its SVR on standardised targets in the targets' unit again."""
    if set(y) == {-1, 1}:
        return SVC(tol=1e-9, **settings).fit(x, y).decision_function
    svr = SVR(tol=1e-9, epsilon=0.2, **settings).fit(x, (y - y.mean()) / y.std())
    return lambda new: svr.predict(new) * y.std() + y.mean()


@TARGETS
def test_libsvm_is_scikit_learn(real: bool) -> None:
    x, y = samples_of(real, 300)
    model = Libsvm(C=3.0, gamma=0.2, epsilon=0.2, tolerance=1e-9).fit(x[:200], y[:200], *THREE)
    expected = scikit_learn(x[:200], y[:200], C=3.0, gamma=0.2)(x)
    np.testing.assert_allclose(model.decision(x), expected, atol=1e-6)
    np.testing.assert_allclose(model.function.predict(x)[0], expected, atol=1e-6)


@settings(max_examples=25)
@given(partitions(), st.integers(0, 2**32))
def test_pp_svmv_merges_what_pooled_data_give(partition: Split, seed: int) -> None:
    groups, active = partition
    grams, mails = [], []
    for one in (seed, seed + 1):
        rngs = [np.random.default_rng(one) if party == active[0] else None for party in range(len(groups))]
        owned, wires = deal_features(PartyRows(X, Y, groups, active), rngs), [Wire() for _ in groups]
        mails.append([])
        actors = [ActorInSight(PpSvmv().merge_products(*both), both[1]) for both in zip(owned, wires, strict=True)]
        grams.append(Mail(actors, mails[-1]).deliver_letters()[active[0]])
    np.testing.assert_allclose(grams[0], X @ X.T, atol=len(groups) * 2.0**-40, rtol=1e-12)
    assert np.array_equal(*grams), "whatever the mask, not a bit of it is left"

    parties = len(groups)
    ring = [active[0], *(party for party in range(parties) if party != active[0]), active[0]]
    links = [("matrix", a, b, (60 * 61 // 2,)) for a, b in pairwise(ring) if parties > 1]
    assert [(letter.kind, letter.sender, letter.receiver, letter.values.shape) for letter in mails[0]] == links


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@TARGETS
def test_pp_svmv_is_the_pooled_machine(kernel: str, real: bool) -> None:
    (x, y), counts, settings = samples_of(real, 300), Counts(), {"C": 2.0, "gamma": 0.3}
    method = PpSvmv(kernel=kernel, epsilon=0.2, tolerance=1e-9, **settings)
    merged = method.fit(x[:200], y[:200], *THREE, np.random.default_rng(0), counts)
    expected = scikit_learn(x[:200], y[:200], kernel=kernel, **settings)(x)
    np.testing.assert_allclose(merged.decision(x), expected, atol=1e-4 if real else 1e-6)
    assert counts.bytes == Counter({("matrix", *link): 8 * 200 * 201 // 2 for link in ((1, 0), (0, 2), (2, 1))})


@pytest.mark.parametrize("algorithm", [Libsvm(epsilon=9.0), PpSvmv(epsilon=9.0)])
def test_machines_without_a_support_vector_are_a_constant(algorithm: Libsvm | PpSvmv) -> None:
    """Where no error is above epsilon, and where all targets are equal."""
    for y in (REAL, np.full(60, 3.0)):
        model = algorithm.fit(X, y, *THREE, np.random.default_rng(0))
        np.testing.assert_allclose(model.decision(X), (y.max() + y.min()) / 2, rtol=1e-12)
        np.testing.assert_allclose(model.function.predict(X)[0], model.decision(X))


# Nystroem and random features


def root_of(z: Array) -> Array:
    """K(z, z)^(-1/2)."""
    values, vectors = np.linalg.eigh(rbf_kernel(z, gamma=0.7) + JITTER * np.eye(len(z)))
    return vectors / np.sqrt(values) @ vectors.T


@TARGETS
def test_nystroem_is_the_pooled_ridge_on_the_landmarks_features(real: bool) -> None:
    """The features K(x, z) K(z, z)^(-1/2), scikit-learn's ridge on them."""
    (x, y), (new, _) = samples_of(real), samples(200)
    model = VerticalNystroem(landmarks=40, gamma=0.7, lam=1e-3).fit(x, y, *FOUR, np.random.default_rng(3))
    phi = [rbf_kernel(rows, model.support, gamma=0.7) @ root_of(model.support) for rows in (x, new)]
    expected = Ridge(alpha=len(y) * 1e-3).fit(phi[0], y).predict(phi[1])
    np.testing.assert_allclose(model.decision(new), expected, atol=1e-6 * y.std())


def test_nystroem_on_all_samples_is_kernel_ridge_regression_with_a_free_bias() -> None:
    """The stationary point of (1/N) |K a + b - y|^2 + lam a'K a: a = (y - b - K a) / (N lam), sum a = 0."""
    x, y = samples_of(real=True)
    model = VerticalNystroem(landmarks=1000, gamma=0.7, lam=1e-3).fit(x, y, *FOUR)
    size, kernel, one = len(x), rbf_kernel(x, gamma=0.7), np.ones((len(x), 1))
    system = np.block([[kernel + size * 1e-3 * np.eye(size), one], [one.T, np.zeros((1, 1))]])
    *a, b = np.linalg.solve(system, np.append(y, 0.0))
    np.testing.assert_allclose(model.decision(x), kernel @ a + b, atol=1e-6 * y.std())


@pytest.mark.parametrize("sort", [False, True], ids=["both classes first", "one class first"])
def test_squared_hinge_ends_in_the_minimum_of_its_convex_objective(sort: bool) -> None:
    """Where the gradient is zero."""
    lam, y = 1e-3, samples(150)[1]
    y = np.sort(y) if sort else y
    phi = np.random.default_rng(0).standard_normal((150, 20))
    phi[:, 0] += y  # so that some samples end beyond the margin
    theta, bias = squared_hinge(phi, y, lam)
    f = phi @ theta + bias
    slope = -y * np.maximum(0, 1 - y * f)
    assert 0 < np.mean(y * f > 1) < 1
    np.testing.assert_allclose(slope @ phi / 150 + lam * theta, 0, atol=1e-10)
    np.testing.assert_allclose(slope.mean(), 0, atol=1e-10)


@TARGETS
def test_feature_ridge_is_the_pooled_ridge_on_the_kernel_s_features(real: bool) -> None:
    (x, y), (new, _) = samples_of(real), samples(200)
    model = FeatureRidge(angles=100, gamma=0.7, lam=1e-3).fit(x, y, *FOUR, np.random.default_rng(3))
    assert model.w.var() == pytest.approx(2 * 0.7, rel=0.15), "Rahimi and Recht, for exp(-0.7 |x - z|^2)"
    phi = [np.hstack([np.cos(rows @ model.w), np.sin(rows @ model.w)]) / 10 for rows in (x, new)]
    expected = Ridge(alpha=len(y) * 1e-3).fit(phi[0], y).predict(phi[1])
    np.testing.assert_allclose(model.decision(new), expected, atol=1e-6 * y.std())


@pytest.mark.parametrize("largest", [1.0, 1e9])
def test_cosines_and_sines_are_exact_to_rounding(largest: float) -> None:
    """As numpy's, at angles of all quadrants and both signs, and at whole numbers of them."""
    angles = np.append(np.random.default_rng(0).uniform(-largest, largest, 996), np.arange(-2, 2) * np.pi / 2)
    features = ridges._cosines_of_angles(angles.reshape(-1, 4)) * 2
    expected = np.hstack([np.cos(angles).reshape(-1, 4), np.sin(angles).reshape(-1, 4)])
    np.testing.assert_allclose(features, expected, atol=5e-16)


@pytest.mark.parametrize(
    "method", [VerticalNystroem(landmarks=40, gamma=0.7), FeatureRidge(30, gamma=0.7), PpSvmv(gamma=0.2)]
)
def test_blocks_change_no_digit_that_counts(method: LearningWithKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = method.fit(X, Y, *FOUR, np.random.default_rng(0))
    for module in ("kernel_machines", "ridge"):
        monkeypatch.setattr(f"fkl.algorithms.vertical.{module}.BLOCK", 7 * len(X) if module < "l" else 7)
    monkeypatch.setattr("fkl.algorithms.vertical.kernel_machines.PREDICTED", 100)
    blocks = method.fit(X, Y, *FOUR, np.random.default_rng(0))
    np.testing.assert_allclose(blocks.decision(X), whole.decision(X), atol=1e-5)
    assert blocks.decision(X[:0]).shape == (0,)


def test_what_goes_once_round_the_ring() -> None:
    """N M distances or N D angles a link; and M names of landmarks."""
    ring, of_nystroem, of_ridge, nothing = ((1, 0), (0, 2), (2, 3), (3, 1)), Counts(), Counts(), Counts()
    VerticalNystroem(landmarks=40).fit(X, Y, *FOUR, count=of_nystroem)
    expected = {("distances", *link): 60 * 40 for link in ring} | {("landmarks", 1, other): 40 for other in (0, 2, 3)}
    assert of_nystroem.bytes == {link: 8 * items for link, items in expected.items()}
    FeatureRidge(angles=30).fit(X, Y, *FOUR, count=of_ridge)
    assert of_ridge.bytes == {("angles", *link): 4 * 60 * 30 for link in ring}
    FeatureRidge(angles=30).fit(X, Y, *POOLED, count=nothing)
    assert not nothing.items, "one party alone sends nothing"


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
def test_what_goes_round_the_ring_is_uniform_whatever_it_hides(word: type[np.unsignedinteger]) -> None:
    """And two receptions of one party differ by what lies between them alone; the sum is exact modulo 2^bits."""
    parts = [np.full(4000, value, word) for value in (np.iinfo(word).max, 0, 12345)]
    kind = Angles if word is np.uint32 else Distances
    rngs, held = (
        [np.random.default_rng(0), None, None],
        PartyRows(np.zeros((4000, 3)), X, tuple(np.eye(3, dtype=int)), (0,)),
    )
    wires, heard = [Wire() for _ in parts], []
    actors = [
        round_the_ring(own, wire, kind, (4000,), [(slice(None), part.copy())])
        for own, wire, part in zip(deal_features(held, rngs), wires, parts, strict=True)
    ]
    total, *nothing = Mail([ActorInSight(*both) for both in zip(actors, wires, strict=True)], heard).deliver_letters()
    assert (total == sum(parts[1:], parts[0])).all() and nothing == [None, None]
    received = [letter.values for letter in heard[:-1]]
    for message in received:
        assert kstest(message / 2.0 ** (8 * word().nbytes), "uniform").pvalue > 1e-3
    for first, second in pairwise(received):
        assert (second - first == parts[1]).all(), "which is why neighbours must not collude"


@pytest.mark.parametrize(
    ("method", "x", "y", "said"),
    [
        (VerticalNystroem(landmarks=5, loss="squared_hinge"), X, REAL, "-1 and 1, and both must occur"),
        (PpSvmv(), X, np.ones(60), "-1 and 1, and both must occur"),
        (VerticalNystroem(landmarks=5), 1e4 * X, Y, "normalise the features"),
        (PpSvmv(), 1e4 * X, Y, "normalise the features"),
        (FeatureRidge(angles=30, lam=1e-300), 0 * X, Y, r"lam=1e-300.* raise algo\.lam"),
        (SecureBoost(learning_rate=2.1), X, REAL, r"learning_rate=2\.1: must be at most 2 for real targets"),
        (FdSvrg(batch=61), X, Y, "batch=61: must be at most 60"),
    ],
)
def test_what_no_method_can_learn_is_refused(method: LearningWithKeys, x: Array, y: Array, said: str) -> None:
    with pytest.raises(FklError, match=said):
        method.fit(x, y, *FOUR, np.random.default_rng(0))


# SecureBoost


SMALL = SecureBoost(trees=3, depth=3, min_child_weight=0.5, bins=8)


def nested(tree: DecisionTree, node: int = 0) -> Node:
    """A tree as the literal booster writes it."""
    if tree.feature[node] == LEAF:
        return (tree.value[node],)
    children = nested(tree, int(tree.left[node])), nested(tree, int(tree.right[node]))
    return int(tree.feature[node]), tree.threshold[node], *children


@pytest.mark.parametrize(
    ("settings", "y"),
    [
        ({}, Y),
        ({}, REAL),
        ({"lam": 0.0, "gamma": 0.2, "min_child_weight": 0.0}, Y),
        ({"depth": 1, "bins": 2, "trees": 6}, REAL),
    ],
)
def test_secureboost_on_one_party_is_the_literal_booster(settings: dict[str, Any], y: Array) -> None:
    algorithm = replace(SMALL, **settings)
    limits = algorithm.lam, algorithm.gamma, algorithm.min_child_weight
    trees, f = boosted(X, y, algorithm.trees, algorithm.depth, algorithm.learning_rate, *limits, algorithm.bins)
    forest = algorithm.fit(X, y, *POOLED)
    assert [nested(tree) for tree in forest.trees] == trees
    assert np.array_equal(forest.decision(X), f)
    assert forest.operations == Operations()


def test_secureboost_on_real_targets_is_xgboost() -> None:
    """To its single precision, on features of fewer values than bins; gamma in variances of the target, and halved."""
    xgboost = pytest.importorskip("xgboost")
    x = np.round(4 * samples(400)[0]) / 4
    y = real_targets(x)
    forest = SecureBoost(trees=30, depth=4, lam=3.0, gamma=1e-3, bins=256).fit(x, y, *THREE)
    keys = {"n_estimators": 30, "max_depth": 4, "learning_rate": 0.3, "reg_lambda": 3.0, "gamma": 2e-3 * y.var()}
    pooled = xgboost.XGBRegressor(**keys, tree_method="hist", base_score=float(y.mean())).fit(x, y)
    np.testing.assert_allclose(forest.decision(x), pooled.predict(x), atol=1e-4 * y.std())


@settings(max_examples=30)
@given(partitions(), st.sampled_from([Y, REAL]))
def test_secureboost_loses_nothing(partition: Split, y: Array) -> None:
    pooled = SMALL.fit(X, y, *POOLED)
    forest = SMALL.fit(X, y, *partition)
    assert [nested(tree) for tree in forest.trees] == [nested(tree) for tree in pooled.trees]
    groups = partition[0]
    for tree in forest.trees:
        for feature, owner in zip(tree.feature, tree.owner, strict=True):
            assert owner == LEAF if feature == LEAF else feature in groups[owner]


@pytest.mark.parametrize(
    "method",
    [
        Libsvm(tolerance=1e-9),
        PpSvmv(tolerance=1e-9),
        FdSvrg("square", passes=3),
        FeatureRidge(20),
        VerticalNystroem(20),
        replace(SMALL, gamma=0.01),
    ],
    ids=lambda method: str(method.label),
)
def test_no_key_depends_on_the_unit_of_real_targets(method: LearningWithKeys) -> None:
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


def test_paillier_without_its_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    monkeypatch.setitem(sys.modules, "phe.paillier", None)
    with pytest.raises(FklError, match=r"^the cipher Paillier needs the package phe: pip install phe$"):
        Paillier().keys()


@pytest.mark.parametrize("cipher", [CountingCipher(), Toy()])
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
