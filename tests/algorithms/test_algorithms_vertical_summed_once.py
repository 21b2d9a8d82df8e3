"""Vertical Nystroem and random-feature ridge: pooled equals, counts, what the ring carries, refusals."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from fkl.algorithms.vertical import ridge as ridges
from fkl.algorithms.vertical.kernel_machines import JITTER, Distances, Nystroem
from fkl.algorithms.vertical.parties import Groups, Held, Wire
from fkl.algorithms.vertical.ridge import Angles, FeatureRidge, squared_hinge
from fkl.algorithms.vertical.sums import from_fixed_point, round_the_ring, to_fixed_point
from fkl.basics.errors import BadValue, FklError
from fkl.conformance.isolated import ActorInSight, Mail
from fkl.contract.parties import deal_features

Array = NDArray[np.float64]

GROUPS: Groups = (np.array([1, 4]), np.array([6, 0]), np.array([], np.int64), np.array([2, 3, 5]))
ACTIVE = (1, 3)
RING = ((1, 0), (0, 2), (2, 3), (3, 1))
POOLED: Groups = (np.arange(7),)


def samples(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Labels that no plane divides."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 7))
    return x, np.where((x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.02 * rng.standard_normal(n) > 0, 1.0, -1.0)


X, Y = samples(150)
REAL = 1000 + 50 * (np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2])
TARGETS = pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real targets"])


class Counted:
    """A `Count` that remembers."""

    def __init__(self) -> None:
        self.items: Counter[tuple[str, int, int]] = Counter()
        self.bytes: Counter[tuple[str, int, int]] = Counter()

    def __call__(self, kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        """One message each."""
        assert messages == 1
        self.items[kind, sender, receiver] += items
        self.bytes[kind, sender, receiver] += size


@TARGETS
def test_nystroem_is_the_pooled_ridge_on_the_landmarks_features(y: Array) -> None:
    """The features K(x, z) K(z, z)^(-1/2), scikit-learn's ridge on them."""
    method = Nystroem(landmarks=40, gamma=0.7, lam=1e-3)
    model = method.fit(X, y, GROUPS, ACTIVE, np.random.default_rng(3))
    z = model.support
    values, vectors = np.linalg.eigh(rbf_kernel(z, gamma=0.7) + JITTER * np.eye(40))
    root = vectors / np.sqrt(values) @ vectors.T
    pooled = Ridge(alpha=len(y) * 1e-3).fit(rbf_kernel(X, z, gamma=0.7) @ root, y)
    x, _ = samples(50, 1)
    expected = pooled.predict(rbf_kernel(x, z, gamma=0.7) @ root)
    np.testing.assert_allclose(model.decision(x), expected, atol=1e-6 * y.std())


@TARGETS
def test_nystroem_on_all_samples_is_kernel_ridge_regression(y: Array) -> None:
    """K (K + N lam I)^-1 on centred K and y: with the bias left free."""
    model = Nystroem(landmarks=1000, gamma=0.7, lam=1e-3).fit(X, y, GROUPS, ACTIVE)
    assert len(model.support) == len(X)
    # the stationary point of (1/N) |K a + b - y|^2 + lam a'K a: a = (y - b - K a) / (N lam), sum a = 0
    size, kernel = len(X), rbf_kernel(X, gamma=0.7)
    system = np.block(
        [[kernel + size * 1e-3 * np.eye(size), np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
    )
    *a, b = np.linalg.solve(system, np.append(y, 0.0))
    np.testing.assert_allclose(model.decision(X), kernel @ a + b, atol=1e-6 * y.std())
    pooled = KernelRidge(alpha=size * 1e-3, kernel="precomputed").fit(kernel, y - b)
    np.testing.assert_allclose(model.decision(X), pooled.predict(kernel) + b, atol=1e-6 * y.std())


@pytest.mark.parametrize("sort", [False, True], ids=["both classes first", "one class first"])
@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_squared_hinge_ends_in_the_minimum_of_its_convex_objective(lam: float, sort: bool) -> None:
    """Where the gradient is zero."""
    y = np.sort(Y) if sort else Y
    phi = np.random.default_rng(0).standard_normal((150, 20))
    phi[:, 0] += y  # so that some samples end beyond the margin
    theta, bias = squared_hinge(phi, y, lam)
    f = phi @ theta + bias
    slope = -y * np.maximum(0, 1 - y * f)
    assert 0 < np.mean(y * f > 1) < 1
    np.testing.assert_allclose(slope @ phi / 150 + lam * theta, 0, atol=1e-10)
    np.testing.assert_allclose(slope.mean(), 0, atol=1e-10)


def test_nystroem_with_squared_hinge_is_the_pooled_machine() -> None:
    """scikit-learn's on the features K(x, z) K(z, z)^(-1/2), with a column that lets the bias almost free."""
    method = Nystroem(landmarks=40, loss="squared_hinge", gamma=0.7, lam=1e-3)
    model = method.fit(X, Y, GROUPS, ACTIVE, np.random.default_rng(3))
    values, vectors = np.linalg.eigh(rbf_kernel(model.support, gamma=0.7) + JITTER * np.eye(40))
    features = rbf_kernel(X, model.support, gamma=0.7) @ (vectors / np.sqrt(values) @ vectors.T)
    pooled = LinearSVC(C=1 / (2 * 150 * 1e-3), dual=False, tol=1e-10, intercept_scaling=1e3, max_iter=100_000)
    expected = pooled.fit(features, Y).decision_function(features)
    np.testing.assert_allclose(model.decision(X), expected, atol=1e-4)


@TARGETS
def test_feature_ridge_is_the_pooled_ridge_on_the_features(y: Array) -> None:
    method = FeatureRidge(angles=30, gamma=0.7, lam=1e-3)
    model = method.fit(X, y, GROUPS, ACTIVE, np.random.default_rng(3))
    x, _ = samples(50, 1)
    features = [np.hstack([np.cos(rows @ model.w), np.sin(rows @ model.w)]) / np.sqrt(30) for rows in (X, x)]
    pooled = Ridge(alpha=len(y) * 1e-3).fit(features[0], y)
    np.testing.assert_allclose(model.decision(x), pooled.predict(features[1]), atol=1e-6 * y.std())


@pytest.mark.parametrize("largest", [1.0, 1e3, 1e9])
def test_cosines_and_sines_are_exact_to_rounding(largest: float) -> None:
    """As numpy's, at angles of all quadrants and both signs, and at whole numbers of them."""
    angles = np.append(np.random.default_rng(0).uniform(-largest, largest, 996), np.arange(-2, 2) * np.pi / 2)
    features = ridges._cosines_of_angles(angles.reshape(-1, 4)) * 2
    expected = np.hstack([np.cos(angles).reshape(-1, 4), np.sin(angles).reshape(-1, 4)])
    np.testing.assert_allclose(features, expected, atol=5e-16)


def test_products_of_features_are_the_kernel() -> None:
    """Rahimi and Recht, Claim 1, to the rate of random features."""
    model = FeatureRidge(angles=20_000, gamma=0.7, lam=1.0)
    w = np.sqrt(1.4) * np.random.default_rng(0).standard_normal((7, model.angles))
    phi = ridges._cosines_of_angles(X[:20] @ w)
    assert np.abs(phi @ phi.T - rbf_kernel(X[:20], gamma=0.7)).max() < 4 / np.sqrt(model.angles)


@pytest.mark.parametrize("method", [Nystroem(landmarks=40, gamma=0.7), FeatureRidge(angles=30, gamma=0.7)])
def test_blocks_and_parties_that_hold_nothing_change_no_digit_that_counts(
    method: Nystroem | FeatureRidge, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = method.fit(X, Y, GROUPS, ACTIVE, np.random.default_rng(0))
    for module in ("kernel_machines", "ridge"):
        monkeypatch.setattr(f"fkl.algorithms.vertical.{module}.BLOCK", 7)
    blocks = method.fit(X, Y, GROUPS, ACTIVE, np.random.default_rng(0))
    np.testing.assert_allclose(blocks.decision(X), whole.decision(X), atol=1e-5)
    assert blocks.decision(X[:0]).shape == (0,)


def test_nystroem_does_not_depend_on_the_partition() -> None:
    method = Nystroem(landmarks=40, gamma=0.7)
    parted = method.fit(X, Y, GROUPS, ACTIVE, np.random.default_rng(0))
    pooled = method.fit(X, Y, POOLED, (0,), np.random.default_rng(0))
    np.testing.assert_allclose(parted.decision(X), pooled.decision(X), atol=1e-6)


def test_what_the_parties_send() -> None:
    """Round the ring N M distances or N D angles a link, once; and M names of landmarks."""
    counted = Counted()
    Nystroem(landmarks=40).fit(X, Y, GROUPS, ACTIVE, count=counted)
    expected = {("distances", *link): 150 * 40 for link in RING} | {("landmarks", 1, other): 40 for other in (0, 2, 3)}
    assert counted.items == expected
    assert counted.bytes == {link: 8 * items for link, items in expected.items()}
    counted = Counted()
    FeatureRidge(angles=30).fit(X, Y, GROUPS, ACTIVE, count=counted)
    assert counted.items == {("angles", *link): 150 * 30 for link in RING}
    assert counted.bytes == {("angles", *link): 4 * 150 * 30 for link in RING}
    counted = Counted()
    FeatureRidge(angles=30).fit(X, Y, POOLED, (0,), count=counted)
    assert not counted.items, "one party alone sends nothing"


@pytest.mark.parametrize("word", [np.uint32, np.uint64])
def test_what_goes_round_is_uniform_whatever_it_hides(word: type[np.unsignedinteger]) -> None:
    """And two receptions of one party differ by what lies between them alone; the sum is exact modulo 2^bits."""
    parts = [np.full(4000, value, word) for value in (np.iinfo(word).max, 0, 12345)]
    kind = Angles if word is np.uint32 else Distances
    rngs, held = [np.random.default_rng(0), None, None], Held(np.zeros((4000, 3)), X, tuple(np.eye(3, dtype=int)), (0,))
    wires, heard = [Wire() for _ in parts], []
    actors = [
        round_the_ring(own, wire, kind, (4000,), [(slice(None), part.copy())])
        for own, wire, part in zip(deal_features(held, rngs), wires, parts, strict=True)
    ]
    total, *nothing = Mail([ActorInSight(*both) for both in zip(actors, wires, strict=True)], heard).deliver()
    assert (total == sum(parts[1:], parts[0])).all() and nothing == [None, None]
    received = [letter.values for letter in heard[:-1]]
    for message in received:
        assert kstest(message / 2.0 ** (8 * word().nbytes), "uniform").pvalue > 1e-3
    for first, second in pairwise(received):
        assert (second - first == parts[1]).all(), "which is why neighbours must not collude"


def test_the_active_party_could_learn_inner_products_of_rows_from_many_angles() -> None:
    """As PP-SVMV tells them: shares of an angle have covariance 2 gamma X X' over the directions, and no more."""
    rng = np.random.default_rng(0)
    shares = X[:6] @ (np.sqrt(2 * 0.7) * rng.standard_normal((7, 200_000)))
    np.testing.assert_allclose(shares @ shares.T / 200_000 / 1.4, X[:6] @ X[:6].T, atol=0.05)
    turned = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    np.testing.assert_allclose(X[:6] @ turned @ (X[:6] @ turned).T, X[:6] @ X[:6].T, atol=1e-12)


def test_codes_are_exact_to_half_their_unit() -> None:
    numbers = np.random.default_rng(0).uniform(-1e6, 1e6, 1000)
    assert np.abs(from_fixed_point(to_fixed_point(numbers.copy())) - numbers).max() <= 2.0**-41


@pytest.mark.parametrize("y", [np.ones(150), REAL])
def test_the_squared_hinge_refuses_other_labels(y: Array) -> None:
    with pytest.raises(FklError, match="-1 and 1, and both must occur"):
        Nystroem(landmarks=5, loss="squared_hinge").fit(X, y, GROUPS, ACTIVE)


def test_what_cannot_be_coded_is_refused() -> None:
    with pytest.raises(FklError, match="normalise the features"):
        Nystroem(landmarks=5).fit(1e4 * X, Y, GROUPS, ACTIVE)


@pytest.mark.parametrize(
    ("method", "key", "value"),
    [
        (Nystroem, "landmarks", 0),
        (Nystroem, "gamma", 0.0),
        (Nystroem, "lam", 0.0),
        (Nystroem, "loss", "hinge"),
        (FeatureRidge, "angles", 0),
        (FeatureRidge, "gamma", np.inf),
        (FeatureRidge, "lam", -1.0),
    ],
)
def test_values_that_make_no_sense_name_their_key(method: type, key: str, value: float) -> None:
    with pytest.raises(BadValue, match=rf"^{key}="):
        method(**{key: value})


def test_equations_without_a_solution_say_so() -> None:
    """More features than samples, and almost no regularisation."""
    x = np.zeros((20, 7))
    with pytest.raises(FklError, match=r"lam=1e-300.* raise algo\.lam"):
        FeatureRidge(angles=30, lam=1e-300).fit(x, np.tile([-1.0, 1.0], 10), GROUPS, ACTIVE)


def test_more_landmarks_come_nearer_to_kernel_ridge_regression() -> None:
    """The objective on all samples is the lowest there is."""

    def objective(landmarks: int) -> float:
        model = Nystroem(landmarks, gamma=5.0, lam=1e-4).fit(X, Y, GROUPS, ACTIVE)
        norm = model.weight @ rbf_kernel(model.support, gamma=5.0) @ model.weight
        return float(np.mean((model.decision(X) - Y) ** 2) + 1e-4 * norm)

    few, some, whole = (objective(landmarks) for landmarks in (10, 60, 150))
    assert whole < 0.99 * some < 0.9 * few
