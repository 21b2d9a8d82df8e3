"""Banks of both engines and precisions against the reference, and that against the formula of the features."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from literal.common import Array, feature_vector, frequencies

from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary, FeatureBank
from fkl.kernels.bank import CompiledBank
from fkl.kernels.compiled import CLIENT_TILE, FEW, KERNEL_RUN, WIDE, usual_values
from fkl.kernels.threads import at_most, available_threads

TOLERANCE = {"float32": 3e-6, "float64": 1e-13}
OPTIONS: list[dict[str, Any]] = [
    {"map": mapping, **draw}
    for mapping in ("pairs", "cosine")
    for draw in ({}, {"shared": True}, {"family": "laplacian"}, {"laplacians": 2})
]


@dataclass(frozen=True)
class Pair:
    """A bank, the reference in doubles with the same draws, and operands for their methods."""

    bank: FeatureBank
    reference: FeatureBank
    x: Array
    theta: Array
    update: Array


def make_pair(
    clients: int,
    kernels: int = 3,
    replicates: int = 2,
    precision: str = "float32",
    engine: str = "numba",
    features: int = 4,
    **options: Any,
) -> Pair:
    """Banks of D = 7 over bandwidths 0.1 to 10; two thirds of the clients have updates."""
    dictionary = Dictionary(**{"bandwidth_convention": "variance"} | options, N=kernels, smallest=0.1, largest=10, D=7)
    bank = dictionary.bank(features, Streams(3, tuple(range(replicates))), precision, engine)
    reference = FeatureBank(*(array.astype(np.float64) for array in (bank.rho, bank.scale, bank.phase)))
    random = np.random.default_rng(clients)
    x = random.standard_normal((clients, features)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1).max()
    theta = random.standard_normal((replicates, kernels, bank.width)).astype(np.float32).astype(np.float64)
    shape = (replicates, clients, kernels)
    update = np.where(random.random(shape) < 2 / 3, random.standard_normal(shape), 0.0)
    return Pair(bank, reference, x, theta, update)


def assert_close(actual: Array, expected: Array, precision: str = "float32") -> None:
    """Require the same shape, and a largest difference within `TOLERANCE` of the largest expected value."""
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= TOLERANCE[precision] * np.abs(expected).max()


def descend(bank: FeatureBank, pair: Pair) -> tuple[Array, Array, Array]:
    """One step of each client's own parameters; every third client is absent. Returns f, norms, new parameters."""
    clients = len(pair.x)
    y, share = np.linspace(-1, 1, clients), (np.arange(clients) % 3 > 0) / clients
    own = pair.theta[:, :, None] * np.linspace(0.5, 1.5, clients)[:, None]
    theta = own.astype(np.float32).astype(bank.precision)
    return bank.descend(pair.x, y, share, theta, 0.3, 0.05)


def follow(bank: FeatureBank, pair: Pair) -> tuple[Array, Array, Array]:
    """What a stream of all clients' samples, one after another, shows and leaves."""
    rounds = len(pair.x)
    theta = pair.theta.astype(bank.precision)
    return bank.follow(pair.x, np.linspace(-1, 1, rounds), np.linspace(0.1, 0.01, rounds), 0.05, theta)


BANKS = [("numba", "float32"), ("numba", "float64"), ("numpy", "float32")]
SIZES = [1, CLIENT_TILE + 1, 600]
PAIRWISE = [
    (*BANKS[(i + j) % len(BANKS)], options, clients)
    for i, options in enumerate(OPTIONS)
    for j, clients in enumerate(SIZES)
]
"""Every pair of a bank, an option and a size is in one case at least."""
RUNS = [(KERNEL_RUN, True), (2 * KERNEL_RUN + 3, False)]
PAIRWISE += [(*BANKS[0], {"kernels": kernels, "shared": shared}, 3) for kernels, shared in RUNS]


@pytest.mark.parametrize(("engine", "precision", "options", "clients"), PAIRWISE, ids=repr)
def test_a_bank_is_the_reference(engine: str, precision: str, options: dict[str, Any], clients: int) -> None:
    """All methods agree for every option, with tiles of clients full, short and several."""
    pair = make_pair(clients, precision=precision, engine=engine, **options)
    assert type(pair.bank) is (CompiledBank if engine == "numba" else FeatureBank)
    assert pair.bank.precision == precision
    found, expected = (
        (
            bank.predict(pair.x, pair.theta),
            bank.accumulate(pair.x, pair.update),
            *descend(bank, pair),
            *follow(bank, pair),
        )
        for bank in (pair.bank, pair.reference)
    )
    for mine, reference in zip(found, expected, strict=True):
        assert_close(mine.astype(np.float64), reference, precision)
    in_doubles = [array.dtype == np.float64 for array in found]
    wide = precision == "float64"
    assert in_doubles == [True, True, True, True, wide, True, True, wide]  # parameters in the bank's own precision


def of_usual_values(clients: int, many: list[int]) -> Array:
    """Samples that differ from a value of their own in up to an eighth of `WIDE` features; the `many` in all."""
    random = np.random.default_rng(clients)
    x = np.repeat(random.random((clients, 1)), WIDE, axis=1)
    for k, row in enumerate(x):
        which = random.choice(WIDE, WIDE if k in many else k % (WIDE // FEW + 1), replace=False)
        row[which] = random.standard_normal(len(which))
    return (x / np.linalg.norm(x, axis=1).max()).astype(np.float32)


@pytest.mark.parametrize("many", [[], [CLIENT_TILE + 1], [*range(CLIENT_TILE + 9)]], ids=len)
@pytest.mark.parametrize(("options", "precision"), [({}, "float64"), ({"map": "cosine", "shared": True}, "float32")])
def test_few_features_may_stand_for_a_sample(precision: str, options: dict[str, Any], many: list[int]) -> None:
    """Samples with few features that are not of their usual value, all of them or some, in one tile or the other.

    Not of a Laplacian's frequencies: their angles are so large that the order of sums is seen in the 12th digit.
    """
    some = make_pair(CLIENT_TILE + 9, precision=precision, features=WIDE, **options)
    pair = replace(some, x=of_usual_values(CLIENT_TILE + 9, many))
    found_usual = usual_values(pair.x)
    assert [*np.flatnonzero(found_usual[1][:, 0] == -1)] == many if found_usual else len(many) == len(pair.x)
    found, expected = (
        (bank.predict(pair.x, pair.theta), bank.accumulate(pair.x, pair.update), *descend(bank, pair))
        for bank in (pair.bank, pair.reference)
    )
    for mine, reference in zip(found, expected, strict=True):
        assert_close(mine.astype(np.float64), reference, precision)


@pytest.mark.parametrize("which", ["bank", "reference"])
def test_a_share_is_what_the_update_was_multiplied_by(which: str) -> None:
    """Accumulating with shares is accumulating share times update, to the bit; absent clients count for nothing."""
    pair = make_pair(CLIENT_TILE + 44)
    share = np.random.default_rng(0).random(CLIENT_TILE + 44) / 300
    share[::3] = 0
    bank: FeatureBank = getattr(pair, which)
    together = bank.accumulate(pair.x, pair.update, share)
    assert together.tobytes() == bank.accumulate(pair.x, share[:, None] * pair.update).tobytes()
    present = share > 0
    alone = bank.accumulate(pair.x[present], pair.update[:, present], share[present])
    assert_close(together, alone)


@pytest.mark.parametrize("which", ["bank", "reference"])
def test_a_step_may_be_each_client_s_own_of_each_kernel(which: str) -> None:
    """One for all is the same step written out, to the bit; 0 leaves the parameters of that client and kernel alone."""
    pair = make_pair(300)
    bank: FeatureBank = getattr(pair, which)
    shape = bank.replicates, 300, bank.kernels
    y, share, theta = np.linspace(-1, 1, 300), np.ones(300), pair.theta[:, :, None] * np.ones((300, 1))

    def after(step: Any, lam: float = 0.05) -> Array:
        return bank.descend(pair.x, y, share, theta.astype(bank.precision), step, lam)[2]

    assert after(0.3).tobytes() == after(np.full(shape, 0.3)).tobytes()
    steps = np.random.default_rng(0).random(shape) * (np.arange(300) % 3 > 0)[:, None]
    found, one = after(steps, 0.0), after(1.0, 0.0)
    assert found[:, :, ::3].tobytes() == theta.astype(bank.precision)[:, :, ::3].tobytes()
    assert_close(found - theta, steps.swapaxes(1, 2)[..., None] * (one - theta))


def all_bytes(pair: Pair) -> list[bytes]:
    arrays = (pair.bank.predict(pair.x, pair.theta), pair.bank.accumulate(pair.x, pair.update))
    return [array.tobytes() for array in (*arrays, *descend(pair.bank, pair))]


@pytest.mark.skipif(available_threads() < 2, reason="one core")
def test_threads_do_not_change_a_bit() -> None:
    """One thread and two make the same bytes."""
    pair, results = make_pair(600, kernels=11, laplacians=2), []
    for threads in (1, 2):
        with at_most(threads):
            results.append(all_bytes(pair))
    assert results[0] == results[1]


def test_features_are_equation_4() -> None:
    """The reference's z is D^-1/2 [sin, cos] of each kernel's frequencies; the cosine map's is (2/D)^1/2 cos(. + b)."""
    x = np.random.default_rng(0).standard_normal((5, 3))
    pairs = Dictionary(N=4, D=6).bank(3, Streams(2, (0, 1)), "float64", "numpy")
    z = pairs.features(x)
    assert z.shape == (2, 4, 5, 12)
    for r, i, k in np.ndindex(2, 4, 5):
        expected = feature_vector(frequencies(pairs.rho[r], pairs.scale)[i], x[k])
        np.testing.assert_allclose(z[r, i, k], expected, atol=1e-14)
    cosine = Dictionary(N=4, D=6, map="cosine", shared=True).bank(3, Streams(2, (0, 1)), "float64", "numpy")
    for r, i, k in np.ndindex(2, 4, 5):
        angle = cosine.scale[i] * (x[k] @ cosine.rho[r, 0]) + cosine.phase[r, 0]
        np.testing.assert_allclose(cosine.features(x)[r, i, k], np.sqrt(2 / 6) * np.cos(angle), atol=1e-14)
