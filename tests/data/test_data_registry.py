"""What `fkl data list`, `fetch` and `verify` are told."""

import hashlib
import lzma
import os
import subprocess
import sys

import pytest

from fkl.basics.errors import FklError
from fkl.data import registry
from fkl.data.registry import dataset, describe, fetch, names, verify
from fkl.data.store import Store


@pytest.fixture
def small_naval(monkeypatch):
    content = b"   1" * 18
    node = registry.node("naval")
    node["table"]["files"][0] |= {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    monkeypatch.setattr(registry, "node", {**{name: registry.node(name) for name in names()}, "naval": node}.get)
    return content


def test_every_data_set_can_be_made_and_every_matlab_file_has_a_hash(tmp_path):
    """What scipy is given must be what was published: it can crash on damage that no exception tells of."""
    assert [dataset(name).name for name in names()] == names()
    files = [file for name in names() for file in dataset(name).files if file.name.endswith(".mat")]
    assert len(files) == 7 and all(file.sha256 and file.size for file in files)
    with pytest.raises(FklError, match="navla: no such data set") as refused:
        list(verify(["naval", "navla"], Store(tmp_path)))
    assert refused.value.help == ("did you mean naval? all: fkl data list",)


def test_describe_says_where_each_data_set_is(tmp_path):
    for name in ("data.txt", "trainingData.csv"):
        (tmp_path / name).write_bytes(b"")
    lines = {line.name: line for line in describe(Store(tmp_path, offline=True))}
    assert list(lines) == names()
    assert [lines[name].files for name in ("naval", "uji", "wec")] == ["✓", "1 of 2", "missing"]
    found = [lines[name].found for name in ("wave_farm", "file", "naval", "uji", "wec")]
    assert found == ["built in", "dataset.path", str(tmp_path), "missing 1 of 2 files", "missing"]


def test_verify_tells_ok_from_corrupted_from_missing(tmp_path, small_naval):
    store = Store(tmp_path)
    assert [line[:3] for line in verify(["naval"], store)] == [("naval", "data.txt", "missing")]
    path = tmp_path / "data.txt.xz"
    path.write_bytes(lzma.compress(small_naval))
    assert [line[2:] for line in verify(["naval"], store)] == [("ok", str(path))]
    path.write_bytes(lzma.compress(small_naval[:-1] + b"2"))
    (line,) = verify(["naval"], store)
    assert line.state == "corrupted" and dataset("naval").files[0].sha256 in line.detail
    (tmp_path / "Perth_Data.csv").write_bytes(b"1")
    states = {line.file: line for line in verify(["wec", "wave_farm"], store)}
    assert (states["Perth_Data.csv"].state, states["Sydney_Data.csv"].state) == ("ok", "missing")
    assert "no SHA-256" in states["Perth_Data.csv"].detail


def test_fetch_reports_each_file(tmp_path, web, zipped, small_naval):
    store = Store(tmp_path, mirror=web.address, retries=0)
    (missing,) = verify(["twitter"], store)
    assert missing[2:] == ("missing", "no address is known that serves it")
    (failed,) = fetch(["twitter"], store)
    assert failed.state == "failed" and "no address is known" in failed.detail and web.requests == []
    (failed,) = fetch(["naval"], store)
    assert failed.state == "failed" and "404" in failed.detail
    archive = dataset("naval").files[0].archive
    web.pages[archive] = zipped({"UCI CBM Dataset/data.txt": small_naval})
    (fetched,) = fetch(["naval"], store)
    assert (fetched.state, fetched.detail) == ("ok", str(tmp_path / "naval" / archive))
    (tmp_path / "naval" / "data.txt").write_bytes(b"what an editor left")
    (damaged,) = fetch(["naval"], store)
    assert damaged.state == "failed" and "19 bytes, expected 72" in damaged.detail


def test_listing_data_sets_imports_nothing_slow(tmp_path):
    code = (
        "import sys, pathlib; from fkl.data.registry import describe; from fkl.data.store import Store;"
        f"import fkl.data.partition, fkl.data.normalise; describe(Store(pathlib.Path({str(tmp_path)!r})));"
        "print([m for m in ('pandas', 'pooch', 'sklearn', 'scipy', 'requests') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.strip() == "[]"
