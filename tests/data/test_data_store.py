"""Where files are found, how damage is refused, and fetching from a server on loopback."""

import bz2
import gzip
import hashlib
import lzma
import os
import zipfile

import pytest

from fkl.basics.errors import FklError
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
    assert store.find(FILE) == store.fetch(FILE) == path and store.read(FILE) == CONTENT


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
    for act in (store.read, store.fetch, store.check):
        with pytest.raises(FklError, match=r"^toy: numbers.mat is not in [^\n]*no address is known") as caught:
            act(unserved)
        assert str(caught.value).endswith("put a copy there, or try dataset.input=raw")
        assert web.address not in str(caught.value)
    assert web.requests == [] and store.find(unserved) is None
    path = put(tmp_path, "toy/numbers.mat.gz", gzip.compress(CONTENT))
    assert store.fetch(unserved) == path and store.read(unserved) == CONTENT


def test_fetch_keeps_the_archive_and_fetches_once(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zip_of(zipped)
    store = Store(tmp_path, mirror=web.address)
    assert store.fetch(FILE) == tmp_path / "toy" / "toy+data.zip"
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
    with pytest.raises(FklError, match=rf"FILE\.csv\{suffix}: FILE\.csv is longer than 4 MiB, more than there is room"):
        store.read(file)
    taken = []
    monkeypatch.setattr("fkl.data.store.LARGEST", 2 << 20)
    with pytest.raises(FklError, match="is longer than 2 MiB"):
        taken.extend(map(len, store.stream(file)))
    assert sum(taken) <= 2 << 20


def test_a_zip_in_the_zip_is_not_unpacked_where_memory_cannot_hold_it(tmp_path, zipped, monkeypatch):
    put(tmp_path, "all.zip", zipped({"in\x1b[2J.zip": zipped({"FILE.csv": b"1"}) + bytes(20 << 20)}))
    store, file = Store(tmp_path, offline=True), DataFile("own", "FILE.csv", "https://nowhere/all.zip")
    monkeypatch.setattr("fkl.data.store.available_bytes", lambda: 8 << 20)
    with pytest.raises(FklError, match=r"all\.zip: its member 'in\\x1b\[2J\.zip' has 20 MiB, but only 8 MiB are free"):
        store.read(file)
    monkeypatch.undo()
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in.zip", bytes(20 << 20))
    with pytest.raises(FklError, match=r"its member 'in\.zip' unpacks from 19\.\d KiB to 20 MiB, more than 100 times"):
        store.read(file)
