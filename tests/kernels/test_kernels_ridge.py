"""Kernel ridge regression in hindsight against its closed form."""

from functools import partial

import numpy as np
import pytest
from literal.common import Array

from fkl.basics.pointwise import SQUARED, pointwise_loss
from fkl.kernels import Dictionary, hindsight
from fkl.kernels.hindsight import best_loss, draw_landmarks


def sample(count: int) -> tuple[Array, Array]:
    random = np.random.default_rng(count)
    x = random.uniform(-1, 1, (count, 2))
    return x, np.sin(4 * x[:, 0]) + 0.1 * random.standard_normal(count)


def closed_form(dictionary: Dictionary, i: int, x: Array, y: Array, lam: float) -> Array:
    """Losses of f = K (K + n lam I)^-1 y, with |f|_H^2 = alpha' K alpha."""
    gram = dictionary.gram(i, x, x)
    alpha = np.linalg.solve(gram + len(x) * lam * np.eye(len(x)), y)
    return (gram @ alpha - y) ** 2 + lam * alpha @ gram @ alpha


@pytest.mark.parametrize("lam", [1e-3, 0.1])
def test_exact_where_all_rows_are_landmarks(lam: float) -> None:
    """The loss of every row is that of the closed form, of the kernel whose sum is least; by L-BFGS, too."""
    x, y = sample(80)
    dictionary = Dictionary(N=5, smallest=0.001, largest=10)
    losses = [closed_form(dictionary, i, x, y, lam) for i in range(5)]
    best = int(np.argmin([loss.sum() for loss in losses]))
    assert 0 < best < 4
    for loss in (SQUARED, pointwise_loss("huber", delta=1e9)):
        np.testing.assert_allclose(best_loss(dictionary, x, y, lam, loss), losses[best], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("most", [60, 600])
def test_no_further_from_exact_than_the_landmarks_allow(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """The minimum is at most 1 + e + e^2 times the closed form's, although a hundredth of the rows is far away."""
    x, y = sample(1200)
    x[::100], y[::100] = x[::100] + 5, 4.0
    dictionary, lam = Dictionary(N=1, smallest=0.2, largest=0.2), 1e-2
    monkeypatch.setattr(hindsight, "WORK", len(x) * most**2)
    landmarks = draw_landmarks(partial(dictionary.gram, 0), x, lam, most)
    across = np.linalg.solve(
        np.linalg.cholesky(dictionary.gram(0, landmarks, landmarks)), dictionary.gram(0, landmarks, x)
    )
    e = (1 - np.square(across).sum(axis=0)).mean() / lam
    fitted, exact = best_loss(dictionary, x, y, lam).sum(), closed_form(dictionary, 0, x, y, lam).sum()
    assert -1e-6 < fitted / exact - 1 < e + e**2
    assert len(landmarks) == 60 or (most == 600 and len(landmarks) < 600 and e < 0.02)
