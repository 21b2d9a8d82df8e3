"""Products with clients' matrices against numpy's, and what of the matrices they read."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.kernels.losses import TRIANGLE_ROWS, Rows, Symmetric
from fkl.kernels.threads import at_most


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 13), st.integers(0, 2**31))
def test_a_symmetric_product_is_that_of_the_whole_matrix(R: int, K: int, P: int, seed: int) -> None:
    """Whatever the size is a multiple of; four rows' own block apart, what is above the diagonal is not looked at."""
    random = np.random.default_rng(seed)
    half, v = random.standard_normal((R, K, P, P)), random.standard_normal((R, K, P))
    matrix = np.tril(half) + np.tril(half, -1).swapaxes(2, 3)
    lower = np.where(np.tri(P, dtype=bool), matrix, np.nan)
    kept = Symmetric.from_matrices(lambda k: lower[:, k], R, K, P)
    np.testing.assert_allclose(kept.times(v), (matrix @ v[..., None])[..., 0], rtol=0, atol=1e-12 * P)
    np.testing.assert_array_equal(kept.as_arrays, matrix)


def test_threads_do_not_change_a_symmetric_product() -> None:
    """Matrices are shared out among threads whole."""
    random = np.random.default_rng(0)
    matrix, v = random.standard_normal((3, 7, 600, 600)), random.standard_normal((3, 7, 600))
    kept = Symmetric.from_matrices(lambda k: matrix[:, k], 3, 7, 600)
    with at_most(1):
        alone = kept.times(v)
    with at_most(2):
        assert kept.times(v).tobytes() == alone.tobytes()


def test_a_triangular_factor_predicts_as_the_whole_matrix() -> None:
    """The blocks of zeros that are left out; of clients that are not all compressed nothing is left out."""
    bank = Dictionary(N=1, D=60, smallest=1.0, largest=1.0).bank(3, Streams(0, (0, 1)), "float64")
    random = np.random.default_rng(0)
    assert bank.width > 2 * TRIANGLE_ROWS
    for count, triangular in (((150, 130), True), ((150, 100), False)):
        x, y = random.standard_normal((sum(count), 3)), random.standard_normal(sum(count))
        rows = Rows.from_samples(bank, x, y, np.array(count), compressed=True)
        assert rows.triangular == triangular
        assert (np.tril(rows.phi[:, 0], -1) == 0).all()
        theta = random.standard_normal((2, 2, bank.width, 4))
        np.testing.assert_allclose(rows.predict(theta), rows.phi @ theta, rtol=0, atol=1e-12)
