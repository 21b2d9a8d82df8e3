"""The data sets of two classes: LIBSVM's text format on small files, and the published files where they are at hand."""

import bz2
import hashlib
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf
from published_files import STORE, need, need_data, real
from scipy.sparse import csr_array
from without_hashes import put, small, table_set

from fkl.basics.errors import BadValue, FklError
from fkl.data import libsvm
from fkl.data.registry import dataset
from fkl.data.store import Store
from fkl.data.vertical import FeatureGroups

CONF = Path(__file__).parents[2] / "conf"
LIBSVM = {
    "phishing": 68,
    "a9a": 123,
    "w8a": 300,
    "ijcnn1": 22,
    "cod_rna": 8,
    "gisette": 5000,
    "real_sim": 20958,
    "epsilon": 2000,
}
ALL = (*LIBSVM, "default_credit", "give_me_credit")


def load(one, store):
    return one.load(store, np.random.default_rng(0))


def counts(table):
    return {label: int((table.y == label).sum()) for label in (-1.0, 1.0)}


def pieces(text, size=9):
    return (text[start : start + size] for start in range(0, len(text), size))


def samples(*lines):
    return b"".join(line + b"\n" for line in lines)


def of_two_rows(name):
    """A data set that is content with two samples of its file."""
    fields = {"gisette": {"rows": 2}, "real_sim": {"file_rows": 2}}
    return small(name, fields.get(name), **({"rows": 2} if name == "epsilon" else {}))


@pytest.mark.parametrize("name", LIBSVM)
def test_libsvm_text_keeps_its_indices_and_gets_the_published_number_of_features(tmp_path, name):
    low = b"0" if name == "phishing" else b"-1"
    text = samples(low + b" 1:0.5 3:-2 8:1e-3 ", b"+1 ")
    table = load(of_two_rows(name), put(tmp_path, name, [text, text]))
    parts = 2 if name in ("a9a", "w8a") else 1
    features = LIBSVM[name]
    assert table.x.shape == (2 * parts, features)
    assert isinstance(table.x, csr_array if name == "real_sim" else np.ndarray)
    assert table.x.dtype == table.y.dtype == np.float64
    x = table.x.toarray() if name == "real_sim" else table.x
    expected = np.zeros((2, features))
    expected[0, [0, 2, 7]] = [0.5, -2, 1e-3]
    assert np.array_equal(x, np.tile(expected, (parts, 1)))
    assert table.y.tolist() == [-1, 1] * parts
    assert len(set(table.feature_names)) == features
    assert table.site.tolist() == [0, 0] * parts


def test_real_sim_stores_no_zeros(tmp_path):
    text = samples(b"-1 5:0.25", b"1 20958:1")
    table = load(of_two_rows("real_sim"), put(tmp_path, "real_sim", [text]))
    assert table.x.nnz == 2
    assert table.x[0, 4] == 0.25
    assert table.x[1, 20957] == 1
    assert table.feature_names[4] == "x5"


@pytest.mark.parametrize("name", LIBSVM)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 1:1 2", r"line 2: '1 1:1 2' is not a label and index:value pairs of ascending indices from 1 to"),
        (b"1 2:1 1:1", "line 2: '1 2:1 1:1' is not"),
        (b"1 0:1", "line 2: '1 0:1' is not"),
        (b"1 99999:1", "line 2: '1 99999:1' is not"),
        (b"1 99999999999999999999:1", "line 2: '1 9+:1' is not"),
        (b"1 1:x", "line 2: '1 1:x' is not"),
        (b"one 1:1", "line 2: 'one 1:1' is not"),
        (b"", "line 2: '' is not"),
        (b"# 1 1:1", "line 2: '# 1 1:1' is not"),
        (b"\xff\x00\xfe" * 99, r"line 2: '\S+\.\.\.' is not"),
        (b"1 1:1 2:nan", "line 2, feature 2: nan is not a finite number"),
        (b"1 1:-1e999", "line 2, feature 1: -inf is not a finite number"),
        (b"2 1:1", "line 2: label 2 is neither (0|-1) nor 1"),
        (b"nan 1:1", "line 2: label nan is neither (0|-1) nor 1"),
    ],
)
def test_damaged_lines_are_named(tmp_path, name, line, words):
    low = b"0" if name == "phishing" else b"-1"
    text = samples(low + b" 1:1", line, b"1 1:1", low + b" 2:1")
    store = put(tmp_path, name, [text, text])
    with pytest.raises(FklError, match=f"^{dataset(name).files[0].name}, {words}") as caught:
        load(of_two_rows(name), store)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", LIBSVM)
@pytest.mark.parametrize("last", [b"", b"1"])
def test_one_class_or_none_is_refused(tmp_path, name, last):
    store = put(tmp_path, name, [samples(*[last + b" 1:1"] * 2) if last else b""] * 2)
    words = "no sample has the label (0|-1), where two classes|0 rows where 2 are"
    with pytest.raises(FklError, match=rf"^{dataset(name).files[0].name}: ({words}) (are )?(expected|needed)"):
        load(of_two_rows(name), store)


@pytest.mark.parametrize("name", ALL)
def test_missing_files_say_where_they_are_published(tmp_path, name):
    with pytest.raises(FklError, match=rf"{name}: {dataset(name).files[0].name} is not in ") as caught:
        load(dataset(name), Store(tmp_path, offline=True))
    address = "kaggle.com" if name in ("default_credit", "give_me_credit") else "csie.ntu.edu.tw/~cjlin/libsvmtools"
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "rows"), [("gisette", 6000), ("real_sim", 72309), ("epsilon", 400000)])
def test_files_without_a_hash_must_have_the_published_number_of_rows(tmp_path, name, rows):
    store = put(tmp_path, name, [samples(b"-1 1:1", b"1 1:1")])
    assert dataset(name).files[0].sha256 is None
    with pytest.raises(FklError, match=f"^{dataset(name).files[0].name}: 2 rows where {rows} are (needed|expected)"):
        load(dataset(name), store)


def test_epsilon_takes_its_first_rows(monkeypatch, tmp_path):
    store = put(tmp_path, "epsilon", [samples(b"-1 1:1", b"1 2:1", b"1 2000:1", b"1 1:1")])
    monkeypatch.setattr(libsvm, "BLOCK", 15)
    table = load(small("epsilon", rows=3), store)
    assert table.x.shape == (3, 2000)
    assert np.argwhere(table.x).tolist() == [[0, 0], [1, 1], [2, 1999]]
    for rows in (1, 400001):
        with pytest.raises(BadValue, match=f"rows={rows}: must be an integer from 2 to 400000"):
            dataset("epsilon", rows=rows)


@pytest.mark.parametrize("block", [1, 2, 7, 20, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_text_in_pieces_is_read_as_in_one(monkeypatch, block, end):
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    signs = np.resize([-1.0, 1.0], 50)
    lines = [
        " ".join([f"{sign:g}", *(f"{index}:{value!r}" for index, value in enumerate(row, 1) if value)])
        for sign, row in zip(signs, expected.tolist(), strict=True)
    ]
    text = "\n".join(lines).encode() + end
    monkeypatch.setattr(libsvm, "BLOCK", block)
    x, y = libsvm.read_dense(pieces(text), "file", 6, 50)
    assert np.array_equal(x, expected)
    assert np.array_equal(y, signs)
    sparse, same = libsvm.read_sparse(text, "file", 6)
    assert np.array_equal(sparse.toarray(), expected)
    assert np.array_equal(same, signs)
    assert len(libsvm.read_dense(pieces(text), "file", 6, 30)[1]) == 30
    damaged = text.replace(lines[39].encode(), b"\n" + lines[39].encode())
    with pytest.raises(FklError, match=r"^file, line 40: '' is not a label"):
        libsvm.read_dense(pieces(damaged), "file", 6, 50)


def test_cod_rna_reads_either_file(tmp_path):
    copy = b"-1 -766 128 0.140625 0.304688 0.234375 0.140625 0.304688 0\n1 -485 76 0.2 0.25 0.233766 0.197368 0.25 0\n"
    store = put(tmp_path, "cod_rna", [])
    (tmp_path / "cod-rna.train").write_bytes(copy)
    table = load(small("cod_rna"), store)
    assert table.x.tolist() == [
        [-766, 128, 0.140625, 0.304688, 0.234375, 0.140625, 0.304688, 0],
        [-485, 76, 0.2, 0.25, 0.233766, 0.197368, 0.25, 0],
    ]
    assert table.y.tolist() == [-1, 1]
    for content, words in (
        (copy + b"1 2\n", "line 3: 2 columns where 9 are expected"),
        (copy + copy.replace(b"76 ", b"x "), "line 3, column length: 'x' is not a finite number|line 4, .*'x' is not"),
        (copy.replace(b"1 -485", b"3 -485"), "line 2: label 3 is neither -1 nor 1"),
    ):
        (tmp_path / "cod-rna.train").write_bytes(content)
        with pytest.raises(FklError, match=f"^cod-rna.train, ({words})"):
            load(small("cod_rna"), store)
    (tmp_path / "cod-rna").write_bytes(with_indices(copy))
    again = load(small("cod_rna"), store)
    assert np.array_equal(again.x, table.x)
    assert np.array_equal(again.y, table.y)


def with_indices(text):
    """LIBSVM text of a table whose first column is the label."""
    rows = [line.split() for line in text.splitlines()]
    return samples(
        *(b" ".join([row[0], *(b"%d:%s" % (index, cell) for index, cell in enumerate(row[1:], 1))]) for row in rows)
    )


def test_default_credit_leaves_out_the_number_and_keeps_codes(tmp_path):
    header = ",".join(f'"{name}"' for name in dataset("default_credit").layout.all_columns) + "\n"
    rows = [[1, 1e5, *range(22), 1], [2, 2e4, *range(-2, 20), 0]]
    text = header + f"1,1e+05,{','.join(map(str, rows[0][2:]))}\n" + ",".join(map(str, rows[1])) + "\n"
    store = put(tmp_path, "default_credit", [text.encode()])
    table = load(small("default_credit"), store)
    assert table.x.tolist() == [row[1:-1] for row in rows]
    assert table.y.tolist() == [1, -1]
    assert table.feature_names == dataset("default_credit").layout.features
    path = tmp_path / "UCI_Credit_Card.csv"
    for content, words in (
        (text + text.splitlines()[2][:-1] + "7\n", "line 4: label 7 is neither 0 nor 1"),
        (text.replace("1e+05", "much"), "line 2, column LIMIT_BAL: 'much' is not a finite number"),
        (text.replace('"SEX"', '"sex"'), "line 1: column 3 is 'sex' where 'SEX' is expected"),
    ):
        path.write_text(content)
        with pytest.raises(FklError, match=f"^UCI_Credit_Card.csv, {words}"):
            load(small("default_credit"), store)


def borrowers(*rows):
    lines = ["," + ",".join(["SeriousDlqin2yrs", *dataset("give_me_credit").layout.features])]
    lines += [",".join([str(number), *map(str, row)]) for number, row in enumerate(rows, start=1)]
    return "\r\n".join([*lines, ""]).encode()


def test_give_me_credit_fills_or_drops_what_is_missing(tmp_path):
    rows = [[label, *range(label + start, label + start + 10)] for label, start in ((0, 0), (1, 2), (0, 7), (0, 30))]
    rows[1][5] = rows[3][10] = "NA"
    store = put(tmp_path, "give_me_credit", [borrowers(*rows)])
    table = load(small("give_me_credit"), store)
    rows[1][5], rows[3][10] = np.median([4, 11, 34]), np.median([9, 12, 16])
    assert table.x.tolist() == [row[1:] for row in rows]
    assert table.y.tolist() == [-1, 1, -1, -1]
    assert table.feature_names == dataset("give_me_credit").layout.features
    dropped = load(small("give_me_credit", missing="drop"), store)
    assert np.array_equal(dropped.x, table.x[[0, 2]])
    assert dropped.y.tolist() == [-1, -1]
    with pytest.raises(BadValue, match="missing=mean: must be median or drop"):
        dataset("give_me_credit", missing="mean")
    path = tmp_path / "cs-training.csv"
    for row, words in (
        (["NA", *range(10)], "label nan is neither 0 nor 1"),
        ([2, *range(10)], "label 2 is neither 0 nor 1"),
    ):
        path.write_bytes(borrowers(*rows, row))
        with pytest.raises(FklError, match=f"^cs-training.csv, line 6: {words}"):
            load(small("give_me_credit"), store)
    path.write_bytes(borrowers(*rows, [0, "x", *range(9)]))
    with pytest.raises(FklError, match=r"^cs-training.csv, line 6, column Revolving.*: 'x' is not a finite number"):
        load(small("give_me_credit"), store)


@pytest.mark.parametrize("name", ALL)
def test_parties_that_share_the_features_are_the_partition(tmp_path, name):
    primary = "defaults: [{partition: by_site}, {dataset: wave_farm}, _self_]\n"
    (tmp_path / "primary.yaml").write_text(f"hydra: {{searchpath: ['file://{CONF}']}}\n{primary}")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        node = compose("primary", [f"dataset={name}"])
    assert table_set(OmegaConf.to_container(node.dataset)).table == dataset(name).table
    assert instantiate(node.partition) == FeatureGroups()


@pytest.mark.parametrize(
    ("published", "shape", "expected"),
    [
        (dataset("phishing"), (11055, 68), {-1.0: 4898, 1.0: 6157}),
        (dataset("a9a"), (48842, 123), {-1.0: 24720 + 12435, 1.0: 7841 + 3846}),
        (dataset("w8a"), (64700, 300), {-1.0: 48270 + 14497, 1.0: 1479 + 454}),
        (dataset("ijcnn1"), (49990, 22), {-1.0: 45137, 1.0: 4853}),
        (dataset("cod_rna"), (59535, 8), {-1.0: 39690, 1.0: 19845}),
        (dataset("default_credit"), (30000, 23), {-1.0: 23364, 1.0: 6636}),
        (dataset("give_me_credit"), (150000, 10), {-1.0: 139974, 1.0: 10026}),
        (dataset("give_me_credit", missing="drop"), (120269, 10), {-1.0: 111912, 1.0: 8357}),
        (dataset("gisette"), (6000, 5000), {-1.0: 3000, 1.0: 3000}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_published_shape_and_labels(published, shape, expected):
    table = real(published)
    assert table.x.shape == shape
    assert len(table.feature_names) == shape[1]
    assert counts(table) == expected
    assert np.isfinite(table.x).all()


def test_published_real_sim():
    table = real(dataset("real_sim"))
    assert isinstance(table.x, csr_array)
    assert table.x.shape == (72309, 20958)


def test_published_values():
    table = real(dataset("phishing"))
    assert set(np.unique(table.x)) == {0, 0.18257}
    assert ((table.x > 0).sum(axis=1) == 30).all()
    table = real(dataset("a9a"))
    assert set(np.unique(table.x)) == {0, 1}
    assert np.flatnonzero(table.x[32561]).tolist() == [0, 5, 16, 20, 34, 41, 53, 61, 70, 72, 73, 75, 79, 82]
    table = real(dataset("w8a"))
    assert set(np.unique(table.x)) == {0, 1}
    assert (table.x.sum(axis=1) == 0).sum() == 4203 + 1252
    table = real(dataset("ijcnn1"))
    assert table.x[0, [5, 10, 11, 21]].tolist() == [1, -0.731854, 0.173431, -0.00081]
    table = real(dataset("default_credit"))
    assert table.x[0, :6].tolist() == [20000, 2, 2, 1, 24, 2]
    assert table.y[0] == 1
    table = real(dataset("give_me_credit"))
    assert table.x[0].tolist() == [0.766126609, 45, 2, 0.802982129, 9120, 13, 0, 6, 0, 2]
    assert np.median(table.x, axis=0)[[4, 9]].tolist() == [5400, 0]


def test_cod_rna_with_indices_is_libsvm_s_file(tmp_path):
    table = real(dataset("cod_rna"))
    assert table.x[0, :3].tolist() == [-766, 128, 0.140625]
    official, copy = dataset("cod_rna").files
    need((copy,))
    text = with_indices(STORE.read(copy))
    assert len(text) == official.size
    assert hashlib.sha256(text).hexdigest() == official.sha256
    # What a script that downloads LIBSVM's file expects of it.
    assert hashlib.md5(text).hexdigest() == "cd14eab76f391e288e6e8e592ae658dd"
    (tmp_path / official.name).write_bytes(text)
    again = load(small("cod_rna"), Store(tmp_path, offline=True))
    assert np.array_equal(again.x, table.x)
    assert np.array_equal(again.y, table.y)


@pytest.mark.parametrize("name", ["a9a", "w8a", "ijcnn1", "phishing", "default_credit", "give_me_credit"])
def test_files_at_hand_have_their_hash(name):
    for file in need_data(name).files:
        assert file.sha256 and file.size
        STORE.check(file)


@pytest.mark.parametrize(("name", "pack"), [("a9a", bytes), ("w8a", bytes), ("ijcnn1", bz2.compress)])
def test_plain_and_compressed_files_are_fetched_and_found_again(tmp_path, web, name, pack):
    text = samples(b"-1 1:1", b"1 2:1")
    published = small(name)
    web.pages.update({file.archive: pack(text) for file in published.files})
    table = load(published, Store(tmp_path, mirror=web.address))
    assert np.argwhere(table.x[:2]).tolist() == [[0, 0], [1, 1]]
    assert len(web.requests) == len(published.files)
    again = load(published, Store(tmp_path, offline=True))
    assert np.array_equal(again.x, table.x)
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == [f.archive for f in published.files]
