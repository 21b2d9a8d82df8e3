"""Gradients of losses against their own differences."""

from collections.abc import Callable

import numpy as np
import pytest

from fkl.basics.arrays import Array
from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.kernels.losses import LOSSES, Rows

LITERAL: dict[str, Callable[[Array, Array], Array]] = {
    "square": lambda y, f: (y - f) ** 2,
    "logistic": lambda y, f: np.log(1 + np.exp(-y * f)),
}


@pytest.mark.parametrize("loss", LITERAL)
@pytest.mark.parametrize("count", [(3, 4), (9, 11), (30, 25)], ids=["few", "some", "more than features"])
def test_a_gradient_is_the_slope_of_the_mean_loss(loss: str, count: tuple[int, int]) -> None:
    """Of each client by itself, whichever product is less work for so many samples."""
    given, size, step = LOSSES[loss], np.array(count), 1e-5
    bank = Dictionary(N=1, D=8, smallest=1.0, largest=1.0).bank(2, Streams(0, (0, 1)), "float64")
    random = np.random.default_rng(0)
    x, y = random.standard_normal((size.sum(), 2)), np.sign(random.standard_normal(size.sum()))
    rows = Rows.from_samples(bank, x, y, size, given.compressed)
    assert rows.few == (max(count) < bank.width / 2)
    theta, along = random.standard_normal((2, 2, 2, bank.width))

    def mean(at: Array) -> Array:
        parts = np.split(np.arange(size.sum()), size.cumsum()[:-1])
        f = [(bank.features(x[part])[:, 0] @ at[:, k, :, None])[..., 0] for k, part in enumerate(parts)]
        return np.stack([LITERAL[loss](y[part], f[k]).mean(axis=1) for k, part in enumerate(parts)], axis=1)

    slope = (mean(theta + step * along) - mean(theta - step * along)) / (2 * step)
    if loss == "square":
        errors = given.sums_of_errors(rows, rows.predict(theta[..., None]))["mse"][..., 0]
        np.testing.assert_allclose(errors, mean(theta) * size)
    np.testing.assert_allclose((given.gradient(rows, theta) * along).sum(axis=-1), slope, rtol=1e-8, atol=1e-9)
