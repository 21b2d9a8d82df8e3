"""WISDM's raw accelerometer files: windows by time, lines that are broken, participants who lack an activity."""

import numpy as np
import pytest
from published_files import STORE, need

from fkl.basics.errors import BadValue, FklError
from fkl.data.store import DataFile, Store
from fkl.data.wisdm import ACTIVITIES, SECOND, Wisdm, read_accelerometer, window_means


def lines(participant, letter, seconds=20.0, rate=20.0, start=10**14, value=1.0):
    """One recording; x counts its readings, y is `value`, z is its negative."""
    number = np.arange(int(seconds * rate))
    times = (start + (number / rate * SECOND).astype(np.int64)).tolist()
    return "".join(
        f"{participant},{letter},{time},{n}.0,{value!r},{-value!r};\n" for n, time in enumerate(times)
    ).encode()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A store without hashes, and a function that puts a participant's file into it."""
    files = tuple(DataFile(file.dataset, file.name, file.url, instead=file.instead) for file in Wisdm.data_files)
    monkeypatch.setattr(Wisdm, "data_files", files)

    def put(participant, content):
        (tmp_path / f"data_{participant}_accel_phone.txt").write_bytes(content)

    put.store = Store(tmp_path, offline=True)
    return put


def read(dataset, store, seed=0):
    return dataset.read(store, np.random.default_rng(seed))


def test_windows_are_means_of_each_axis_of_each_activity(folder, capsys):
    folder(1604, lines(1604, "B", value=-2.5) + lines(1604, "C") + lines(1604, "A", seconds=12, value=4.0))
    folder(1600, lines(1600, "A") + lines(1600, "B"))
    table = Wisdm().load(folder.store, np.random.default_rng(0))
    assert (table.site_names, table.site.tolist()) == (("1600", "1604"), [0] * 8 + [1] * 6)
    assert table.y.tolist() == [1] * 4 + [-1] * 4 + [1] * 2 + [-1] * 4
    assert table.x[8:, 1].tolist() == [4.0] * 2 + [-2.5] * 4
    assert table.x[:4, 0].tolist() == [49.5, 149.5, 249.5, 349.5]
    told = "wisdm: 2 participants of the 2 available (51 were published), 14 windows, 0 broken lines skipped\n"
    assert capsys.readouterr().out == told


def test_windows_go_by_time_and_do_not_reach_over_a_pause_or_a_step_back():
    time = (np.arange(int(180 * 19.86) - 1) / 19.86 * SECOND).astype(np.int64)
    values = np.stack([time // (5 * SECOND)] * 3, axis=1).astype(np.float64)
    assert window_means(time, values, 5.0)[:, 0].tolist() == list(range(36))
    time, values = (np.arange(0, 10, 0.05) * SECOND).astype(np.int64), np.ones((200, 3))
    for second in (time + 13 * SECOND, time - 20 * SECOND):  # 13 s later by the clock; before
        both = window_means(np.concatenate([time, second]), np.concatenate([values, 2 * values]), 5.0)
        assert both[:, 0].tolist() == [1, 1, 2, 2]
    # A pause of 4 s in the midst of a window: neither half is a whole one, and the count starts anew.
    late = np.where(np.arange(200) < 150, time, time + 4 * SECOND)
    assert len(window_means(late, values, 5.0)) == 1
    assert window_means(time[:0], values[:0], 5.0).shape == (0, 3)


def test_broken_lines_are_skipped_and_counted(folder):
    good = lines(1600, "A") + lines(1600, "B")
    broken = (
        b"1600,A,100000050000000,1.0,2.0\n",  # an axis is missing
        b"1601,A,100000050000000,1.0,2.0,3.0;\n",  # somebody else
        b"1600,N,100000050000000,1.0,2.0,3.0;\n",  # no such letter
        b"1600,A,100000050000000,1.0,2.0,nan;\n",
        b"1600,A,-5,1.0,2.0,3.0;\n",
        b"1600,A,100000050000000,1.0,2.0,3.0;1600,A,100000100000000,1.0,2.0,3.0;\n",
        b"\xff\x00\xfe\n",
        b"1600,A,1000000",  # cut short: it spoils the reading that follows it
    )
    folder(1600, good)
    before, whole = read(Wisdm(), folder.store), good.splitlines(keepends=True)
    folder(1600, b"".join(line + piece for line, piece in zip(whole, broken, strict=False)) + b"".join(whole[8:]))
    after = read(Wisdm(), folder.store)
    assert (before.broken, after.broken) == (0, 8) and "8 broken lines skipped" in after.summary
    assert np.allclose(after.table.x[1:], before.table.x[1:])


def test_a_participant_without_an_activity_has_one_class_and_is_named(folder):
    folder(1600, lines(1600, "A") + lines(1600, "B") + lines(1600, "F") + lines(1600, "Q", value=3.0))
    folder(1607, lines(1607, "B"))
    folder(1611, lines(1611, "F"))
    found = read(Wisdm(), folder.store)
    assert found.table.site_names == ("1600", "1607")
    assert found.lacking == {"walking": ("1607", "1611"), "jogging": ("1611",)}
    assert set(found.table.y[found.table.site == 1]) == {-1}
    assert "2 participants of the 3 available" in found.summary
    assert "no walking: 1607 1611, no jogging: 1611" in found.summary
    other = read(Wisdm("typing", "writing", seconds=10.0), folder.store).table
    assert other.y.tolist()[:4] == [1, 1, -1, -1] and other.x[:4, 1].tolist() == [1, 1, 3, 3]
    with pytest.raises(FklError, match=r"^wisdm: no window of clapping in the 3 files that were read$"):
        read(Wisdm("clapping", "writing"), folder.store)


def test_participants_are_drawn_from_those_at_hand(folder):
    with pytest.raises(FklError, match=r"wisdm: data_1600_accel_phone.txt is not in [^\n]* or try dataset=ellipses"):
        read(Wisdm(), folder.store)
    for participant in range(1600, 1606):
        folder(participant, lines(participant, "A", 5) + lines(participant, "B", 5))
    drawn = {read(Wisdm(participants=3), folder.store, seed).table.site_names for seed in range(9)}
    assert len(drawn) > 3
    assert all(list(names) == sorted(set(names)) and len(names) == 3 for names in drawn)
    with pytest.raises(BadValue, match="participants=7: must be at most 6, the participants whose file exists"):
        read(Wisdm(participants=7), folder.store)


def test_real_files_are_whole_and_of_three_minutes():
    """One of two rates, one without jogging."""
    at_hand = [file for file in Wisdm.data_files if STORE.find_file(file) is not None]
    need(() if at_hand else Wisdm.data_files[:1])
    found = read(Wisdm(participants=min(4, len(at_hand))), STORE)
    assert found.broken == 0 and np.abs(found.table.x).max() < 20
    for participant, of_class in (("1626", [36, 36]), ("1609", [36, 0])):
        file = next(file for file in Wisdm.data_files if file.name.split("_")[1] == participant)
        need((file,))
        readings = read_accelerometer(STORE.read(file), file.name, participant)
        letters = (ACTIVITIES["walking"], ACTIVITIES["jogging"])
        assert [len(window_means(*readings.of_activity(letter), 5.0)) for letter in letters] == of_class
