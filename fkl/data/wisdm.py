"""UCI 507: activities of participants, from the accelerometer of a phone in the pocket."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, require
from fkl.basics.keys import Keys, key
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.screen.messages import print_lines

URL = (
    "https://archive.ics.uci.edu/static/public/507/wisdm+smartphone+and+smartwatch+activity+and+biometrics+dataset.zip"
)
ACTIVITIES = {
    "walking": "A", "jogging": "B", "stairs": "C", "sitting": "D", "standing": "E", "typing": "F", "teeth": "G",
    "soup": "H", "chips": "I", "pasta": "J", "drinking": "K", "sandwich": "L", "kicking": "M", "catch": "O",
    "dribbling": "P", "writing": "Q", "clapping": "R", "folding": "S",
}  # fmt: skip
"""Letters of the file activity_key.txt; there is no N."""
ALL = "all"
PARTICIPANTS = range(1600, 1651)
FEATURES = ("x_mean", "y_mean", "z_mean")
KNOWN = {
    1600: (3451789, "40b7f60880b495ccb3c345b9ab11216dfa6bbb2bb887bcb45fb55020278fc22f"),
    1604: (3362095, "d048ca31d99304552a54cc9937dc63f3c6de5d3c3f0d80247e4d28bde9db9edb"),
    1606: (3577672, "8462d90df8a888a8146ff5f8545b7321303737e41ff7d1e8049b431ec5824e29"),
    1607: (4186427, "48a3266aca41524a57b83f64385b6dca19793efaeda9c0702e918c8f76842f68"),
    1609: (3298442, "856282d51cf4376d1e4842cd91eb715edeedd77622b459a359165d6c2b1af069"),
    1611: (3412659, "387238a6d6570158d9e9de6529bcb0a8c30e51c075d24e3f40310eedd6a2f60b"),
    1612: (3403603, "d598b04b01b5b09e73fc4b45fbdf5c9df548bb2a99ed240912f654940ee8f47b"),
    1615: (3540585, "93abaf48e0afdc6f22c30e46c09c35ccb8cb373a6e3f8c46c532136e0fed0200"),
    1617: (3537072, "a4f63fca35ed0c2b30c51c05fed74cbd1b5c4d5b8f009dc83a108cf824bc458a"),
    1618: (3356688, "e72077011679c9f590b891852e7f5e8e561d2f8a6cf550405530d88ac9194073"),
    1622: (3560038, "e009fedae69bfab32207d4d4003c69fe06ae3700b18e0311df227b6deb5da34c"),
    1624: (3516538, "4c87ef1924acc7f2cd544dad4e968dac4adcbd3d011996b9cfe06580b4447c8e"),
    1626: (4093799, "811cc73b3cac53b411a3f4d5e19aab7767ea16118602618257c81087b0d53a14"),
    1630: (3508824, "0cf52b81e421827d55574ebce4f2af7be8770df19becf2cf879e3eb92362284e"),
    1631: (3519110, "2ba0da7bbffc3a893fc5c67f2ed874535d83104e6a6ae7630db8947563e421b1"),
    1632: (3414060, "d72515b6aeac6b5195fff3446600c91b95aec3a0eb2962973cdac2a2bb8e3d82"),
    1634: (3467824, "b9adafcaada6400c71db756f669456c6f65ce7fa6f9b9c0401ae926e480d4eef"),
    1636: (3523713, "afc5bcfd7691308b2b62672f8c1ce0ee31dc0edf8d7b156a8f3bbd9fe267f963"),
    1637: (3462864, "11d94f39ef27104ab6f24702b1e9e5785c9a318820629e1746d3caab3ea4afa0"),
    1638: (3632477, "b700efc3d9712d13cad75931fba00d7323ff78334fc68c6b62cceb638928cb18"),
    1639: (3546313, "e3e77402818999a21ad142fb0f746316441abb0346f64869e4084a058c2ee4d0"),
    1640: (3564060, "82c167f28cbb9aa4e12e3d6d481f2475daf7015e6bb2ecec51bc21f31d9a4ea8"),
}
"""Bytes and SHA-256 of the participants' files that were available to us."""

SECOND = 1_000_000_000
"""Timestamps count nanoseconds."""
GAP_SECONDS = 1
"""A pause longer than this ends a recording; no window extends across it."""
FULL = 0.9
"""Share of a window that its readings must cover; recordings end one or two readings before three minutes."""
NUMBER = rb"-?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,4})?"
"""A number with no more digits than a float can need, since arrays of text are as wide as the longest entry."""


def _file_of(participant: int) -> DataFile:
    size, sha256 = KNOWN.get(participant, (None, None))
    name = f"data_{participant}_accel_phone.txt"
    return DataFile("wisdm", name, URL, sha256, size, instead="dataset=ellipses, which needs no file")


@dataclass(frozen=True)
class Recordings:
    """The table, and facts about the reading.

    Parameters
    ----------
    table : Table
    at_hand, used : int
        Numbers of participants with a file, and in the table.
    broken : int
        Lines that were skipped: they are not ``participant,letter,timestamp,x,y,z;`` with the file's participant.
    lacking : dict of str to tuple of str
        Participants without a whole window of an activity, by its name. They are in the table if they have a
        window of the other activity.
    """

    table: Table
    at_hand: int
    used: int
    broken: int
    lacking: dict[str, tuple[str, ...]]

    @property
    def summary(self) -> str:
        """The facts in one line."""
        parts = [f"{self.used} participants of the {self.at_hand} available ({len(PARTICIPANTS)} were published)"]
        parts.append(f"{len(self.table.y)} windows")
        parts += [f"no {activity}: {' '.join(names)}" for activity, names in self.lacking.items() if names]
        parts.append(f"{self.broken} broken lines skipped")
        return f"wisdm: {', '.join(parts)}"


@dataclass(frozen=True)
class Wisdm(Keys):
    """WISDM smartphone and smartwatch activity and biometrics (UCI 507, doi:10.24432/C5HK59): one of two activities.

    51 participants did 18 activities for three minutes each. The three features are the mean of the phone's raw
    accelerometer readings on each axis over windows of some seconds, as in Peifer and Ribeiro's Federated
    Classification using Parsimonious Functions in RKHS. Windows are cut by timestamp and do not overlap: most phones
    give 20 readings a second, but some give 25 or 50, and one participant's readings have both rates.

    Every participant is a site; only those with a file are used. A participant without one of the activities has only
    windows of the other.
    """

    name: ClassVar[str] = "wisdm"
    title: ClassVar[str] = "two activities from a phone's accelerometer, two classes, 51 participants"
    data_files: ClassVar[tuple[DataFile, ...]] = tuple(_file_of(participant) for participant in PARTICIPANTS)
    licence: ClassVar[str] = "CC BY 4.0"
    shape: ClassVar[str] = "about 72 a participant x 3"

    activity: str = key(
        "walking",
        "Activity of the class 1; the paper has walking against jogging, and typing against writing. "
        "Or activity=all, against=null: the 18 activities are classes 0 to 17, in the order of their letters.",
        choices=(ALL, *ACTIVITIES),
    )
    against: str | None = key(
        "jogging",
        "Activity of the class -1; the paper has walking against jogging, and typing against writing. "
        "Or activity=all, against=null: the 18 activities are classes 0 to 17, in the order of their letters.",
        choices=ACTIVITIES,
    )
    seconds: float = key(5.0, "Length of a window.", min=0.5, max=60)
    participants: int | None = key(
        None,
        "Number of participants, drawn at random from those available; a method with a split for each replicate "
        "draws them in every replicate. None for all.",
        min=1,
        max=51,
    )

    @property
    def several_classes(self) -> bool:
        """Whether the target is the number of one of 18 activities."""
        return self.activity == ALL

    def __post_init__(self) -> None:
        super().__post_init__()
        others = ", ".join(name for name in ACTIVITIES if name != self.activity)
        differs = self.against in ACTIVITIES and self.against != self.activity
        if self.activity == ALL:
            require(self.against is None, "against", self.against, "null where activity=all")
        else:
            require(differs, "against", self.against, f"one of {others}")

    @property
    def drawn(self) -> bool:
        """Whether loading again can give other participants."""
        return self.participants is not None

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the available files, and print one line about them.

        Returns
        -------
        Table
            x of shape (windows, 3), y of -1 and 1; participant after participant, the activity of class 1 first, in
            the order of time.

        Raises
        ------
        FklError
            The errors of `read`.
        """
        recordings = self.read(store, rng)
        print_lines(recordings.summary)
        return recordings.table

    def _files_available(self, store: Store) -> dict[DataFile, Path]:
        """The available files."""
        return {file: place for file in self.data_files if (place := store.find_file(file)) is not None}

    def read(self, store: Store, rng: np.random.Generator) -> Recordings:
        """Read the available files; `rng` draws participants if not all are used.

        Raises
        ------
        FklError
            If no file is available and none can be fetched, one is damaged or holds no reading at all, there are fewer
            participants than requested, or no window of one of the activities.
        """
        # Which files there are; the first download brings all of them
        places = self._files_available(store)
        if not places:
            store.fetch_file(self.data_files[0])  # its archive has all the others, too
            places = self._files_available(store)
        # Some participants only, in their usual order
        at_hand = list(places)
        chosen = at_hand
        if self.participants is not None:
            allowed = f"at most {len(at_hand)}, the participants whose file exists"
            require(self.participants <= len(at_hand), "participants", self.participants, allowed)
            drawn = rng.choice(len(at_hand), self.participants, replace=False)
            chosen = [at_hand[number] for number in np.sort(drawn)]  # in the order of participants
        # Windows of each participant and activity; their means are the samples
        x, y, site, names, broken = [], [], [], [], 0
        lacking: dict[str, list[str]] = {activity: [] for activity in self.classes}
        for file in chosen:
            participant = file.name.split("_")[1]
            status = places[file].stat()
            kept = store, file, participant, status.st_mtime_ns, status.st_size
            broken += _readings_of_file(*kept).broken
            for activity, label in self.classes.items():
                means = _means_of_windows(*kept, ACTIVITIES[activity], self.seconds)
                if not len(means):
                    lacking[activity].append(participant)
                    continue
                if participant not in names:
                    names.append(participant)
                x.append(means)
                y.append(np.full(len(means), label))
                site.append(np.full(len(means), len(names) - 1))
        # An activity without a window cannot be learned
        for activity, without in lacking.items():
            if len(without) == len(chosen):
                raise FklError(f"wisdm: no window of {activity} in the {len(chosen)} files that were read")
        table = Table(np.concatenate(x), np.concatenate(y), np.concatenate(site), FEATURES, tuple(names))
        participants_without = {activity: tuple(without) for activity, without in lacking.items()}
        return Recordings(table, len(at_hand), len(names), broken, participants_without)

    @property
    def classes(self) -> dict[str, float]:
        """Activities and their labels."""
        if self.against is None:
            return {activity: float(label) for label, activity in enumerate(ACTIVITIES)}
        return {self.activity: 1.0, self.against: -1.0}


@dataclass(frozen=True)
class Readings:
    """The lines of one file.

    Parameters
    ----------
    letter : (n,) bytes
    time : (n,) int64
        Nanoseconds since the phone's start.
    values : (n, 3) float64
    broken : int
        Lines that were skipped.
    """

    letter: NDArray[np.bytes_]
    time: NDArray[np.int64]
    values: NDArray[np.float64]
    broken: int

    def of_activity(self, letter: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Times (m,) and values (m, 3) of one activity, in the order of the file."""
        chosen = self.letter == letter.encode()
        return self.time[chosen], self.values[chosen]


@lru_cache(maxsize=len(PARTICIPANTS))
def _readings_of_file(store: Store, file: DataFile, participant: str, changed: int, size: int) -> Readings:
    """Readings of a file of this age and size, cached, because each run of a sweep needs them again."""
    return read_accelerometer(store.read(file), file.name, participant)


@lru_cache(maxsize=len(PARTICIPANTS) * len(ACTIVITIES))
def _means_of_windows(
    store: Store, file: DataFile, participant: str, changed: int, size: int, letter: str, seconds: float
) -> NDArray[np.float64]:
    """Means of an activity's windows, cached, because each replicate that draws its participants needs them again."""
    return window_means(*_readings_of_file(store, file, participant, changed, size).of_activity(letter), seconds)


def read_accelerometer(raw: bytes, where: str, participant: str) -> Readings:
    """Parse lines ``participant,letter,timestamp,x,y,z;`` and skip all other lines.

    Parameters
    ----------
    raw : bytes
        The file.
    where : str
        Its name, for messages.
    participant : str
        The participant in the lines.

    Raises
    ------
    FklError
        If no line is valid.
    """
    # Lines in the documented form; others are skipped and counted
    head = participant.encode()
    line = rb"^%b,([A-MO-S]),(\d{1,18}),(%b),(%b),(%b);?[ \t\r]*$" % (head, NUMBER, NUMBER, NUMBER)
    matches = re.findall(line, raw, re.MULTILINE)
    lines = len(re.findall(rb"^.*\S", raw, re.MULTILINE))
    if not matches:
        raise FklError(f"{where}: none of its {lines} lines is '{participant},letter,timestamp,x,y,z;'")
    # Columns as numbers, without readings that are not finite
    letter, time, *axes = zip(*matches, strict=True)
    values = np.array(axes, dtype=np.bytes_).astype(np.float64).T
    finite = np.isfinite(values).all(axis=1)  # 1e999 is not
    return Readings(
        np.array(letter, np.bytes_)[finite],
        np.array(time, np.bytes_).astype(np.int64)[finite],
        values[finite],
        lines - int(finite.sum()),
    )


def window_means(time: NDArray[np.int64], values: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    """Means of the readings in windows that follow each other.

    A recording has no pause and no step back in time; its windows are counted from its first reading. Incomplete
    windows are dropped.

    Parameters
    ----------
    time : (n,) int64
        Nanoseconds.
    values : (n, 3)
    seconds : float

    Returns
    -------
    (windows, 3)
    """
    if not len(time):
        return np.empty((0, values.shape[1]))
    # A new recording begins after a gap, or where time jumps back
    length = round(seconds * SECOND)
    step = np.diff(time)
    recording = np.concatenate([[0], np.cumsum((step < 0) | (step > GAP_SECONDS * SECOND))])
    # Windows of equal length from the beginning of each recording
    start = time[np.searchsorted(recording, np.arange(recording[-1] + 1))][recording]
    number = (time - start) // length
    # Means of windows that are nearly full
    first = np.flatnonzero(np.concatenate([[True], (np.diff(number) != 0) | (np.diff(recording) != 0)]))
    last = np.concatenate([first[1:], [len(time)]]) - 1
    means = np.add.reduceat(values, first) / (last - first + 1)[:, None]
    full: NDArray[np.float64] = means[time[last] - time[first] >= FULL * length]
    return full
