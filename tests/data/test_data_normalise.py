"""Scaling: what methods see of raw numbers, the way back, and that problems keep both with the encoder."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fkl.basics.errors import FklError
from fkl.data.encoder import Encoder
from fkl.data.normalise import SCALINGS, normalise_table
from fkl.data.partition import Blocks
from fkl.data.problem import Batch, Table
from fkl.data.vertical import FeatureGroups

CELLS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3))
RNG = np.random.default_rng(1)
X = RNG.normal(size=(24, 4)) * [1, 20, 300, 4]


def table(x, y):
    return Table.of_one_site(np.asarray(x, float), np.asarray(y, float), tuple(f"f{i}" for i in range(np.shape(x)[1])))


@pytest.mark.parametrize("scaling", SCALINGS)
@given(x=arrays(float, (6, 3), elements=CELLS), y=arrays(float, 6, elements=CELLS))
def test_the_scale_is_what_the_table_went_through(scaling, x, y):
    """The largest norm is 1, or each feature fills [0, 1], or nothing changes; the target fills [0, 1]."""
    if not x.any() or np.ptp(y) == 0:
        return
    raw = table(x, y)
    scaled = normalise_table(raw, scaling)
    if scaling == "none":
        assert np.array_equal(scaled.x, x) and np.array_equal(scaled.y, y)
    else:
        assert (scaled.y.min(), scaled.y.max()) == (0.0, 1.0)
    if scaling == "unit_ball":
        assert np.linalg.norm(scaled.x, axis=1).max() == pytest.approx(1.0)
        assert np.allclose(scaled.x * np.linalg.norm(x, axis=1).max(), x)  # one scalar for everything
    if scaling == "unit_box":
        assert np.allclose(scaled.x * np.ptp(x, axis=0), x - x.min(axis=0), atol=1e-9)
        assert (scaled.x.min(axis=0) == 0).all() and ((scaled.x.max(axis=0) == 1) | (np.ptp(x, axis=0) == 0)).all()
    assert np.array_equal(scaled.scale.x(x), scaled.x) and np.array_equal(scaled.scale.y(y), scaled.y)
    assert scaled.scale.y_back(scaled.y) == pytest.approx(y, rel=1e-12, abs=1e-12 * np.ptp(y))


@pytest.mark.parametrize(
    ("x", "y", "scaling", "said"),
    [
        ([[1.0], [2.0]], [7, 7], "unit_ball", r"target is 7\.0 in every row"),
        ([[1.0], [2.0]], [0, np.nan], "unit_ball", "row 2, column the target: nan is not a finite number"),
        ([[1.0], [np.inf]], [0, 1], "unit_ball", "row 2, column f0: inf is not a finite number"),
        ([[1.0], [1e200]], [0, 1], "unit_ball", "row 2: its features are so large"),
        ([[5e-324], [0.0]], [0, 1], "unit_ball", "all features of all rows are 0"),
        ([[-1.7e308], [1.7e308]], [0, 1], "unit_box", ""),
        ([[1.0], [2.0]], [-1.7e308, 1.7e308], "unit_ball", ""),
        ([[1.0], [2.0]], [0, 1e31], "none", ""),
        ([[1.0], [1e31]], [0, 1], "none", "row 2, column f0: .* too large"),
    ],
)
def test_what_cannot_be_scaled_is_refused_with_the_file_s_name(x, y, scaling, said):
    with pytest.raises(FklError, match=rf"^mine\.csv[:,] .*{said}"):
        normalise_table(replace(table(x, y), where="mine.csv"), scaling)


def test_every_kind_of_problem_has_its_scale_and_its_encoder():
    raw = replace(table(X, np.where(X[:, 0] > 0, 5.0, 2.0)), encoder=Encoder(("f0", "f1", "f2", "f3")))
    scaled = normalise_table(raw)
    stream = Blocks(clients=4, rounds=None).split(scaled, RNG)
    assert np.array_equal(stream.scale.x(X).reshape(4, 6, 4).swapaxes(0, 1), stream.x)
    assert stream.scale.y_back(stream.y).T.ravel().tolist() == raw.y.tolist()
    classes = Batch.from_problem(stream, 3, 0.25, None, RNG).of_two_classes()
    for problem in (classes, FeatureGroups(parties=2).split(scaled, RNG)):
        assert set(problem.y) == {-1.0, 1.0}
        assert problem.scale.y([2.0, 5.0]).tolist() == [-1.0, 1.0]
        assert problem.scale.y_back(np.array([-1.0, 1.0])).tolist() == [2.0, 5.0]
        assert np.array_equal(problem.scale.x(X), scaled.x) and problem.encoder == raw.encoder
