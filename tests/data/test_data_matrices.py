"""Tables in text and in MATLAB files: what is read, and which row is blamed."""

import numpy as np
import pytest
from without_hashes import mat

from fkl.basics.errors import FklError
from fkl.data.matrices import read_cells, read_mat, read_table

ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("raw", "keys", "words"),
    [
        (b"1,2,3\n4,5\n", {}, "f.csv, line 2: 2 columns where 3 are expected"),
        (b"", {}, "f.csv, line 1: 0 columns where 3 are expected"),
        (b"1,2,3\n4,x,6\n", {}, "f.csv, line 2, column b: 'x' is not a finite number"),
        (b"1,2,3\n\n4,5,-inf\n", {}, "f.csv, line 3, column c: '-inf' is not a finite number"),
        (b'1,2,3\n"4,5,6\n', {}, "f.csv, line 2"),
        (b"a,x,c\n1,2,3\n", {"header": True}, "f.csv, line 1: column 2 is 'x' where 'b' is expected"),
        (b"a,b,c\nNA,2,3\nN/A,2,3\n", {"header": True, "missing": "NA"}, "f.csv, line 3, column a: 'N/A'"),
    ],
)
def test_first_wrong_row_is_named(raw, keys, words):
    with pytest.raises(FklError) as caught:
        read_table(raw, "f.csv", ABC, **keys)
    assert str(caught.value).startswith(words)


def cells(*arrays):
    made = np.empty((1, len(arrays)), object)
    made[0] = arrays
    return made


X, Y = np.arange(6.0).reshape(3, 2) / 8, np.array([[0.5], [1.5]])
HOLE = np.where(X == 0.25, np.nan, X)


def test_mat_with_cells_has_a_site_in_each():
    x, y = np.arange(10).reshape(5, 2), np.arange(5)[:, None]
    raw = mat(samples=cells(x[:2], x[2:]), label=cells(y[:2], y[2:]))
    first, second = read_cells(raw, "f.mat", ("a", "b"), x="samples", y="label")
    assert (first[0] == x[:2]).all() and (second[0] == x[2:]).all() and second[1].tolist() == [2, 3, 4]
    with pytest.raises(FklError, match=r"f.mat, cell 2: samples is 3 x 2"):
        read_cells(
            mat(samples=cells(x[:2], x[2:]), label=cells(y[:2], y[4:])), "f.mat", ("a", "b"), x="samples", y="label"
        )


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"X": X}, "f.mat: has no variable y"),
        ({"X": X.T, "y": Y}, "f.mat: X is 2 x 3 and y is 2 x 1 where 3 x n and n x 1 are expected"),
        ({"X": X + 1j, "y": Y}, "f.mat: variable X is not a matrix of numbers"),
        ({"X": HOLE, "y": Y}, "f.mat, sample 1, column b: nan is not a finite number"),
        ({"X": X, "y": Y * np.inf}, "f.mat, sample 1, column of the target: inf is not a finite number"),
    ],
)
def test_mat_with_other_variables_is_refused(variables, words):
    with pytest.raises(FklError) as caught:
        read_mat(mat(**variables), "f.mat", ABC)
    assert str(caught.value).startswith(words)


def test_damaged_mat_is_refused_in_one_line_wherever_it_is_cut():
    raw = mat(X=X, y=Y)
    for content in (*(raw[:length] for length in range(len(raw))), b"no matrix" * 40, b"\x89HDF" * 200):
        with pytest.raises(FklError, match=r"^f.mat: [^\n]*$"):
            read_mat(content, "f.mat", ABC)
