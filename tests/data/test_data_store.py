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
    assert store.find(FILE) == path
    assert store.read(FILE) == CONTENT


@pytest.mark.parametrize("member", ["numbers.csv", "Folder Of/numbers.csv"])
def test_found_in_the_zip_by_base_name(tmp_path, zipped, member):
    put(tmp_path, "toy/toy+data.zip", zipped({"__MACOSX/._numbers.csv": b"x", "other.csv": b"y", member: CONTENT}))
    assert Store(tmp_path, offline=True).read(FILE) == CONTENT


def test_found_in_a_zip_inside_the_zip(tmp_path, zipped):
    inner = zipped({"Deep/numbers.csv": CONTENT})
    put(tmp_path, "toy+data.zip", zipped({"data.csv": b"x", "first.zip": zipped({"z": b""}), "Inner.zip": inner}))
    assert Store(tmp_path, offline=True).read(FILE) == CONTENT


def test_zips_are_not_followed_without_end(tmp_path, zipped):
    put(tmp_path, "toy+data.zip", zipped({"a.zip": zipped({"b.zip": zipped({"numbers.csv": CONTENT})})}))
    with pytest.raises(FklError, match="holds no file"):
        Store(tmp_path, offline=True).read(FILE)


def test_zip_without_the_file_is_named(tmp_path, zipped):
    path = put(tmp_path, "toy+data.zip", zipped({"other.csv": b"y"}))
    with pytest.raises(FklError, match=r"holds no file numbers.csv") as caught:
        Store(tmp_path).read(FILE)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "member", ["../numbers.csv", "a/../../numbers.csv", "/etc/numbers.csv", "C:\\numbers.csv", "..\\x"]
)
def test_zip_with_a_path_that_escapes_is_refused(tmp_path, zipped, member):
    put(tmp_path, "toy+data.zip", zipped({"numbers.csv": CONTENT, member: b"evil"}))
    with pytest.raises(FklError, match="points outside the archive") as caught:
        Store(tmp_path).read(FILE)
    assert repr(member) in str(caught.value)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
@pytest.mark.parametrize("damage", ["cut", "head"])
def test_damaged_compressed_file_is_refused_by_name(tmp_path, suffix, damage):
    packed = PACK[suffix](CONTENT)
    broken = packed[: len(packed) // 2] if damage == "cut" else b"not packed" + packed
    path = put(tmp_path, "toy/numbers.csv" + suffix, broken)
    with pytest.raises(FklError, match="cut short") as caught:
        Store(tmp_path).read(FILE)
    assert str(path) in str(caught.value)


def test_damaged_zip_is_refused_by_name(tmp_path, zipped):
    whole = zipped({"numbers.csv": CONTENT})
    put(tmp_path, "toy+data.zip", whole[:-40])
    with pytest.raises(FklError, match=r"toy\+data.zip.*cut short"):
        Store(tmp_path).read(FILE)
    flipped = bytearray(whole)
    flipped[200] ^= 255
    put(tmp_path, "toy+data.zip", bytes(flipped))
    with pytest.raises(FklError, match=r"toy\+data.zip.*(cut short|SHA-256|bytes)"):
        Store(tmp_path).read(FILE)


def test_wrong_content_names_both_hashes(tmp_path):
    other = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    put(tmp_path, "numbers.csv", other)
    with pytest.raises(FklError) as caught:
        Store(tmp_path).read(FILE)
    assert SHA in str(caught.value)
    assert hashlib.sha256(other).hexdigest() in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"), [(CONTENT[:-1], "14999 bytes, expected 15000"), (CONTENT + b"x", "longer")]
)
def test_wrong_length_is_refused(tmp_path, content, words):
    put(tmp_path, "numbers.csv", content)
    with pytest.raises(FklError, match=words):
        Store(tmp_path).check(FILE)


def test_offline_without_the_file_is_one_line_that_says_all(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zipped({"numbers.csv": CONTENT})
    with pytest.raises(FklError) as caught:
        Store(tmp_path, offline=True, mirror=web.address).read(FILE)
    assert web.requests == []
    message = str(caught.value)
    assert "\n" not in message
    for part in ("offline", FILE.url, str(tmp_path), "toy/numbers.csv", ".xz", "toy+data.zip", "dataset=wave_farm"):
        assert part in message


UNSERVED = DataFile("toy", "numbers.mat", None, SHA, len(CONTENT))


@pytest.mark.parametrize("suffix", PACK)
def test_file_without_an_address_is_found_in_the_folder(tmp_path, suffix):
    path = put(tmp_path, f"toy/numbers.mat{suffix}", PACK[suffix](CONTENT))
    store = Store(tmp_path)
    assert store.find(UNSERVED) == store.fetch(UNSERVED) == path
    assert store.read(UNSERVED) == CONTENT
    store.check(UNSERVED)


@pytest.mark.parametrize("offline", [True, False])
def test_missing_file_without_an_address_is_not_fetched_and_says_so(tmp_path, web, offline):
    (tmp_path / "toy").mkdir()
    store = Store(tmp_path, offline, mirror=web.address)
    assert store.find(UNSERVED) is None
    for act in (store.read, store.fetch, store.check):
        with pytest.raises(FklError) as caught:
            act(UNSERVED)
        message = str(caught.value)
        for part in (
            "toy: numbers.mat is not in",
            "toy/numbers.mat",
            ".xz",
            "no address is known",
            "dataset=wave_farm",
        ):
            assert part in message
        for part in ("\n", "None", "offline", web.address, "and for"):
            assert part not in message
    assert web.requests == []
    assert list((tmp_path / "toy").iterdir()) == []


def test_message_says_what_to_try_instead(tmp_path):
    file = DataFile("toy", "numbers.mat", None, instead="dataset.input=raw")
    with pytest.raises(FklError, match=r"put a copy there, or try dataset.input=raw$"):
        Store(tmp_path).read(file)


def test_fetch_keeps_the_archive_and_fetches_once(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zipped({"numbers.csv": CONTENT})
    store = Store(tmp_path, mirror=web.address)
    assert store.fetch(FILE) == tmp_path / "toy" / "toy+data.zip"
    assert store.read(FILE) == CONTENT
    assert web.requests == ["/toy+data.zip"]
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["toy+data.zip"]


def refused(tmp_path, web, words):
    with pytest.raises(FklError, match=words) as caught:
        Store(tmp_path, mirror=web.address, retries=0).read(FILE)
    assert f"{web.address}/toy+data.zip" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "toy").exists()


def test_fetched_archive_with_wrong_content_is_not_kept(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zipped({"numbers.csv": CONTENT[::-1]})
    refused(tmp_path, web, f"SHA-256 .*expected {SHA}")


def test_cut_connection_leaves_nothing_behind(tmp_path, web, zipped):
    web.pages["toy+data.zip"], web.cut = zipped({"numbers.csv": CONTENT}), True
    refused(tmp_path, web, "could not fetch")


def test_page_not_found_leaves_nothing_behind(tmp_path, web):
    refused(tmp_path, web, "404")


def test_fetched_archive_with_a_path_that_escapes_is_not_kept(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zipped({"numbers.csv": CONTENT, "../../x": b""})
    refused(tmp_path, web, "points outside")


def test_failed_download_is_tried_again(tmp_path, web):
    with pytest.raises(FklError, match="404"):
        Store(tmp_path, mirror=web.address, retries=1).read(FILE)
    assert web.requests == ["/toy+data.zip"] * 2


def test_folder_that_cannot_be_written(tmp_path, web, zipped):
    web.pages["toy+data.zip"] = zipped({"numbers.csv": CONTENT})
    (tmp_path / "toy").write_bytes(b"a file where the folder should be")
    with pytest.raises(FklError, match="could not fetch"):
        Store(tmp_path, mirror=web.address, retries=0).read(FILE)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_bomb_in_place_of_a_file_of_unknown_size_is_not_unpacked_whole(tmp_path, suffix, monkeypatch):
    pack = {".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    (tmp_path / f"FILE.csv{suffix}").write_bytes(pack(bytes(20 << 20)))
    store = Store(tmp_path, offline=True)
    file = DataFile("own", "FILE.csv", None)
    assert len(store.read(file)) == 20 << 20
    monkeypatch.setattr("fkl.data.store.available_bytes", lambda: 8 << 20)
    with pytest.raises(FklError, match=rf"FILE\.csv\{suffix}: FILE\.csv is longer than 4 MiB, more than there is room"):
        store.read(file)
    taken = []
    monkeypatch.setattr("fkl.data.store.LARGEST", 2 << 20)
    with pytest.raises(FklError, match="is longer than 2 MiB"):
        taken.extend(map(len, store.stream(file)))
    assert sum(taken) <= 2 << 20
    with pytest.raises(FklError, match="is longer than 2 MiB"):
        store.check(file)


def test_a_zip_in_the_zip_is_not_unpacked_where_memory_cannot_hold_it(tmp_path, zipped, monkeypatch):
    (tmp_path / "all.zip").write_bytes(zipped({"in\x1b[2J.zip": zipped({"FILE.csv": b"1"}) + bytes(20 << 20)}))
    store, file = Store(tmp_path, offline=True), DataFile("own", "FILE.csv", "https://nowhere/all.zip")
    monkeypatch.setattr("fkl.data.store.available_bytes", lambda: 8 << 20)
    with pytest.raises(FklError, match=r"all\.zip: its member 'in\\x1b\[2J\.zip' has 20 MiB, but only 8 MiB are free"):
        store.read(file)
    monkeypatch.undo()
    with (tmp_path / "all.zip").open("wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in.zip", bytes(20 << 20))
    with pytest.raises(FklError, match=r"its member 'in\.zip' unpacks from 19\.\d KiB to 20 MiB, more than 100 times"):
        store.read(file)
