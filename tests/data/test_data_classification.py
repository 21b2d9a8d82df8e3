"""The data sets of two classes: LIBSVM's text format on small files, and the published files where they are at hand."""

import numpy as np
import pytest
from hydra.utils import instantiate
from published_files import real
from scipy.sparse import csr_array
from without_hashes import put, small

from fkl.basics.errors import FklError
from fkl.config.compose import compose_config
from fkl.data import libsvm
from fkl.data.registry import named_dataset
from fkl.data.vertical import FeatureGroups

LIBSVM = {
    "phishing": 68, "a9a": 123, "w8a": 300, "ijcnn1": 22, "cod_rna": 8, "gisette": 5000, "real_sim": 20958,
    "epsilon": 2000,
}  # fmt: skip


def load(one, store):
    return one.load(store, np.random.default_rng(0))


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
    assert isinstance(table.x, csr_array if name == "real_sim" else np.ndarray)
    assert name != "real_sim" or table.x.nnz == 3  # no zero is stored
    x = table.x.toarray() if name == "real_sim" else table.x
    expected = np.zeros((2, LIBSVM[name]))
    expected[0, [0, 2, 7]] = [0.5, -2, 1e-3]
    assert np.array_equal(x, np.tile(expected, (parts, 1)))
    assert table.y.tolist() == [-1, 1] * parts and not table.site.any()
    assert len(set(table.feature_names)) == LIBSVM[name]
    assert (
        instantiate(compose_config(f"dataset={name}")["partition"]) == FeatureGroups()
    )  # parties that share the features


@pytest.mark.parametrize("name", ["phishing", "epsilon"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 1:1 2", r"line 2: '1 1:1 2' is not a label and index:value pairs of ascending indices from 1 to"),
        (b"1 99999999999999999999:1", "line 2: '1 9+:1' is not"),
        (b"", "line 2: '' is not"),
        (b"\xff\x00\xfe" * 99, r"line 2: '\S+\.\.\.' is not"),
        (b"1 1:1 2:nan", "line 2, feature 2: nan is not a finite number"),
        (b"2 1:1", "line 2: label 2 is neither (0|-1) nor 1"),
    ],
)
def test_damaged_lines_are_named(tmp_path, name, line, words):
    low = b"0" if name == "phishing" else b"-1"
    text = samples(low + b" 1:1", line, b"1 1:1", low + b" 2:1")
    with pytest.raises(FklError, match=f"^{named_dataset(name).data_files[0].name}, {words}") as caught:
        load(of_two_rows(name), put(tmp_path, name, [text, text]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "rows"), [("gisette", 6000), ("real_sim", 72309), ("epsilon", 400000)])
def test_files_without_a_hash_must_have_the_published_number_of_rows(tmp_path, name, rows):
    store = put(tmp_path, name, [samples(b"-1 1:1", b"1 1:1")])
    assert named_dataset(name).data_files[0].sha256 is None
    file = named_dataset(name).data_files[0].name
    with pytest.raises(FklError, match=f"^{file}: 2 rows where {rows} are (needed|expected)"):
        load(named_dataset(name), store)


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_text_in_pieces_is_read_as_in_one(monkeypatch, block):
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    signs = np.resize([-1.0, 1.0], 50)
    lines = [
        " ".join([f"{sign:g}", *(f"{index}:{value!r}" for index, value in enumerate(row, 1) if value)])
        for sign, row in zip(signs, expected.tolist(), strict=True)
    ]
    text = "\n".join(lines).encode()

    def pieces(text):
        return (text[start : start + 9] for start in range(0, len(text), 9))

    monkeypatch.setattr(libsvm, "BLOCK", block)
    for x, y in (libsvm.read_dense(pieces(text), "file", 6, 50), libsvm.read_sparse(text, "file", 6)):
        assert np.array_equal(x if isinstance(x, np.ndarray) else x.toarray(), expected)
        assert np.array_equal(y, signs)
    assert len(libsvm.read_dense(pieces(text), "file", 6, 30)[1]) == 30
    damaged = text.replace(lines[39].encode(), b"\n" + lines[39].encode())
    with pytest.raises(FklError, match=r"^file, line 40: '' is not a label"):
        libsvm.read_dense(pieces(damaged), "file", 6, 50)


def test_cod_rna_reads_its_copy_of_another_format(tmp_path):
    copy = b"-1 -766 128 0.140625 0.304688 0.234375 0.140625 0.304688 0\n1 -485 76 0.2 0.25 0.233766 0.197368 0.25 0\n"
    (tmp_path / "cod-rna.train").write_bytes(copy)
    table = load(small("cod_rna"), put(tmp_path, "cod_rna", []))
    assert np.array_equal(np.c_[table.y, table.x], np.loadtxt(copy.splitlines()))


@pytest.mark.parametrize(("name", "shape"), [("gisette", (6000, 5000)), ("real_sim", (72309, 20958))])
def test_published_files_without_a_hash(name, shape):
    """`test_data_hashes.py` knows all numbers of the others."""
    table = real(named_dataset(name))
    assert isinstance(table.x, csr_array if name == "real_sim" else np.ndarray)
    assert table.x.shape == shape and set(np.unique(table.y)) == {-1, 1}
