"""Where files are found, how damage is refused, fetching from a server on loopback, and what the commands are told."""

import bz2
import gzip
import hashlib
import lzma
import os

import pytest

from fkl.basics.errors import FklError
from fkl.data import registry
from fkl.data.registry import dataset_names, fetch_datasets, named_dataset, verify_datasets
from fkl.data.store import DataFile, Store

CONTENT = os.urandom(5000) * 3
SHA = hashlib.sha256(CONTENT).hexdigest()
FILE = DataFile("toy", "numbers.csv", "https://nowhere.invalid/a/toy+data.zip", SHA, len(CONTENT))
PACK = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}
OTHER = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("place", ["toy/", ""])
def test_found_plain_or_compressed_in_either_folder(tmp_path, suffix, place):
    path = put(tmp_path, f"{place}numbers.csv{suffix}", PACK[suffix](CONTENT))
    store = Store(tmp_path, offline=True)
    assert store.find_file(FILE) == store.fetch_file(FILE) == path and store.read(FILE) == CONTENT


def test_found_in_the_zip_or_in_a_zip_inside_it_by_base_name_and_no_deeper(tmp_path, zipped):
    store = Store(tmp_path, offline=True)
    inner = zipped({"Deep/numbers.csv": CONTENT})
    put(tmp_path, "toy+data.zip", zipped({"__MACOSX/._numbers.csv": b"x", "Folder Of/numbers.csv": CONTENT}))
    assert store.read(FILE) == CONTENT
    put(tmp_path, "toy+data.zip", zipped({"data.csv": b"x", "first.zip": zipped({"z": b""}), "Inner.zip": inner}))
    assert store.read(FILE) == CONTENT
    put(tmp_path, "toy+data.zip", zipped({"a.zip": zipped({"b.zip": inner})}))
    with pytest.raises(FklError, match=r"toy\+data.zip.* holds no file numbers.csv"):
        store.read(FILE)


def zip_of(zipped, **members):
    return zipped({"numbers.csv": CONTENT, **members})


DAMAGED = {
    "other content": ("numbers.csv", lambda _: OTHER, rf"SHA-256 {hashlib.sha256(OTHER).hexdigest()}, expected {SHA}"),
    "too short": ("numbers.csv", lambda _: CONTENT[:-1], "14999 bytes, expected 15000"),
    "too long": ("numbers.csv", lambda _: CONTENT + b"x", "longer"),
    **{f"{suffix} cut": (f"toy/numbers.csv{suffix}", lambda _, pack=PACK[suffix]: pack(CONTENT)[:900], "cut short")
       for suffix in (".xz", ".gz", ".bz2")},
    "zip cut": ("toy+data.zip", lambda zipped: zip_of(zipped)[:-40], "cut short"),
    **{f"zip with {member}": ("toy+data.zip", lambda zipped, member=member: zip_of(zipped, **{member: b""}),
                              "points outside the archive")
       for member in ("../numbers.csv", "a/../../numbers.csv", "/etc/numbers.csv", "C:\\numbers.csv", "..\\x")},
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_is_damaged_or_another_is_refused_by_name(tmp_path, zipped, kind):
    name, content, said = DAMAGED[kind]
    path = put(tmp_path, name, content(zipped))
    with pytest.raises(FklError, match=said) as caught:
        Store(tmp_path).read(FILE)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("offline", [True, False])
def test_a_file_without_an_address_is_found_in_the_folder_or_not_at_all(tmp_path, web, offline):
    unserved = DataFile("toy", "numbers.mat", None, SHA, len(CONTENT), instead="dataset.input=raw")
    store = Store(tmp_path, offline, mirror=web.address)
    for act in (store.read, store.fetch_file, store.check_file):
        with pytest.raises(FklError, match=r"^toy: numbers.mat is not in [^\n]*no address is known") as caught:
            act(unserved)
        assert str(caught.value).endswith("put a copy there, or try dataset.input=raw")
        assert web.address not in str(caught.value)
    assert web.requests == [] and store.find_file(unserved) is None
    path = put(tmp_path, "toy/numbers.mat.gz", gzip.compress(CONTENT))
    assert store.fetch_file(unserved) == path and store.read(unserved) == CONTENT


def test_fetch_keeps_the_archive_and_fetches_once(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zip_of(zipped)
    store = Store(tmp_path, mirror=web.address)
    assert store.fetch_file(FILE) == tmp_path / "toy" / "toy+data.zip"
    assert store.read(FILE) == CONTENT and web.requests == ["/toy+data.zip"]
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["toy+data.zip"]
    file = DataFile("toy", "other.csv", "https://nowhere.invalid/other.csv.bz2", SHA, len(CONTENT))
    web.pages = {"other.csv.bz2": bz2.compress(CONTENT)}  # served packed
    assert store.read(file) == CONTENT


@pytest.mark.parametrize("fault", ["content", "cut", "nowhere", "escape", "folder"])
def test_a_failed_download_leaves_nothing_behind(tmp_path, web, zipped, fault):
    members = {"content": {"numbers.csv": CONTENT[::-1]}, "escape": {"numbers.csv": CONTENT, "../../x": b""}}
    if fault != "nowhere":
        web.pages["toy+data.zip"] = zipped(members.get(fault, {"numbers.csv": CONTENT}))
    web.cut = fault == "cut"
    if fault == "folder":
        (tmp_path / "toy").write_bytes(b"a file where the folder should be")
    said = {"content": f"SHA-256 .*expected {SHA}", "nowhere": "404", "escape": "points outside"}
    with pytest.raises(FklError, match=said.get(fault, "could not fetch")) as caught:
        Store(tmp_path, mirror=web.address, retries=int(fault == "nowhere")).read(FILE)
    assert f"{web.address}/toy+data.zip" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "toy").is_dir()
    assert web.requests == ["/toy+data.zip"] * {"nowhere": 2, "folder": 0}.get(fault, 1) or fault == "folder"


@pytest.mark.parametrize("suffix", [".xz"])
def test_a_bomb_in_place_of_a_file_of_unknown_size_is_not_unpacked_whole(tmp_path, suffix, monkeypatch):
    put(tmp_path, f"FILE.csv{suffix}", PACK[suffix](bytes(20 << 20)))
    store, file = Store(tmp_path, offline=True), DataFile("own", "FILE.csv", None)
    assert len(store.read(file)) == 20 << 20
    monkeypatch.setattr("fkl.data.store.available_bytes", lambda: 8 << 20)
    with pytest.raises(FklError, match=rf"FILE\.csv\{suffix}: FILE\.csv is longer than 4 MiB, more than can be read"):
        store.read(file)
    taken = []
    monkeypatch.setattr("fkl.data.store.LARGEST", 2 << 20)
    with pytest.raises(FklError, match="is longer than 2 MiB"):
        taken.extend(map(len, store.stream_file(file)))
    assert sum(taken) <= 2 << 20


@pytest.fixture
def small_naval(monkeypatch):
    content = b"   1" * 18
    node = registry.dataset_node("naval")
    node["table"]["files"][0] |= {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    monkeypatch.setattr(
        registry, "dataset_node", {**{name: registry.dataset_node(name) for name in dataset_names()}, "naval": node}.get
    )
    return content


def test_every_data_set_can_be_made_and_every_matlab_file_has_a_hash(tmp_path):
    """What scipy is given must be what was published: it can crash on damage that no exception tells of."""
    assert [named_dataset(name).name for name in dataset_names()] == dataset_names()
    files = [file for name in dataset_names() for file in named_dataset(name).data_files if file.name.endswith(".mat")]
    assert len(files) == 7 and all(file.sha256 and file.size for file in files)
    with pytest.raises(FklError, match="navla: no such data set") as refused:
        list(verify_datasets(["naval", "navla"], Store(tmp_path)))
    assert refused.value.help == ("did you mean naval? all: fkl data list",)


def test_verify_tells_ok_from_corrupted_from_missing(tmp_path, small_naval):
    store = Store(tmp_path)
    assert [line[:3] for line in verify_datasets(["naval"], store)] == [("naval", "data.txt", "missing")]
    path = tmp_path / "data.txt.xz"
    path.write_bytes(lzma.compress(small_naval))
    assert [line[2:] for line in verify_datasets(["naval"], store)] == [("ok", str(path))]
    path.write_bytes(lzma.compress(small_naval[:-1] + b"2"))
    (line,) = verify_datasets(["naval"], store)
    assert line.state == "corrupted" and named_dataset("naval").data_files[0].sha256 in line.detail
    (tmp_path / "Perth_Data.csv").write_bytes(b"1")
    states = {line.file: line for line in verify_datasets(["wec", "wave_farm"], store)}
    assert (states["Perth_Data.csv"].state, states["Sydney_Data.csv"].state) == ("ok", "missing")
    assert "no SHA-256" in states["Perth_Data.csv"].detail


def test_fetch_reports_each_file(tmp_path, web, zipped, small_naval):
    store = Store(tmp_path, mirror=web.address, retries=0)
    (missing,) = verify_datasets(["twitter"], store)
    assert missing[2:] == ("missing", "no address is known that serves it")
    (failed,) = fetch_datasets(["twitter"], store)
    assert failed.state == "failed" and "no address is known" in failed.detail and web.requests == []
    (failed,) = fetch_datasets(["naval"], store)
    assert failed.state == "failed" and "404" in failed.detail
    archive = named_dataset("naval").data_files[0].archive
    web.pages[archive] = zipped({"UCI CBM Dataset/data.txt": small_naval})
    (fetched,) = fetch_datasets(["naval"], store)
    assert (fetched.state, fetched.detail) == ("ok", str(tmp_path / "naval" / archive))
    (tmp_path / "naval" / "data.txt").write_bytes(b"what an editor left")
    (damaged,) = fetch_datasets(["naval"], store)
    assert damaged.state == "failed" and "19 bytes, expected 72" in damaged.detail
