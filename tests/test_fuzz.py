"""Mutated files and messages from outside are accepted or refused in one line; scripts/fuzz.py looks for longer."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import script
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[1] / "scripts" / "fuzz.py"
pytest.importorskip("flwr", reason="needs the extra flower")
pytest.importorskip("pyarrow", reason="needs the extra files")
fuzz = script("fuzz")

ODD = (b"\0", b"\n", b'"', b"[" * 200, b"${", b"*a", b"nan", b"1e999", b"9" * 400, b"\xff\xff\xff\xff", b"-1")
BEYOND = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000000000000,)}"
ONE_FOLDER = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 12) | st.floats() | st.sampled_from(["", "rows", "mine", "a=b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "algo", "looks"]), inner),
    max_leaves=5,
)


@st.composite
def mutated(draw: Callable[..., Any], name: str) -> bytes:
    """A valid input with up to four places overwritten."""
    content = bytearray(draw(st.sampled_from(fuzz.TARGETS[name].seeds())))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        content[start : start + draw(st.integers(0, 20))] = draw(st.binary(max_size=8) | st.sampled_from(ODD))
    return bytes(content)


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_a_mutated_input_is_accepted_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    @ONE_FOLDER
    @given(mutated(name))
    def check(content: bytes) -> None:
        assert fuzz.verdict(name, content, tmp_path) is None

    check()


@ONE_FOLDER
@given(st.sampled_from(sorted(yaml.safe_load(fuzz.STUDY))), VALUES)
def test_any_value_of_a_study_is_accepted_or_refused_in_one_line(tmp_path: Path, key: str, value: object) -> None:
    content = yaml.safe_dump(yaml.safe_load(fuzz.STUDY) | {key: value}).encode()
    assert fuzz.verdict("study", content, tmp_path) is None


def _npz(header: str) -> bytes:
    """An npz of one array whose header says this."""
    stream, words = io.BytesIO(), header.ljust(117).encode() + b"\n"
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("price.npy", b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words)
    return stream.getvalue()


def _in_directory(npz: bytes, place: int, value: int) -> bytes:
    """Another byte in each entry of an npz's directory, at this place in the entry."""
    made = bytearray(npz)
    for entry in re.finditer(b"PK\1\2", npz):
        made[entry.start() + place] = value
    return bytes(made)


FOUND: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "an encrypted array": ("npz", lambda seed: _in_directory(seed, 8, 1)),
    "an array of another zip": ("memory", lambda seed: _in_directory(seed, 6, 255)),
    "an open bracket of npz": ("npz", lambda _: _npz("{'descr': (")),
    "an open bracket of model": ("model", lambda _: _npz("{'descr': (")),
    "an open bracket of memory": ("memory", lambda _: _npz("{'descr': (")),
    "an array beyond 64 bits of npz": ("npz", lambda _: _npz(BEYOND)),
    "an array beyond 64 bits of model": ("model", lambda _: _npz(BEYOND)),
    "an array beyond 64 bits of memory": ("memory", lambda _: _npz(BEYOND)),
    "a message of no entry": ("packets", lambda seed: seed.replace(b"[1632, 1632]]", b"[1632, 1633]]") + b"\0"),
    "a nested memory": ("memory", lambda _: fuzz._arrays(text=np.frombuffer(b"[" * 100_000, np.uint8))),
    "a number in base 60": ("yaml", lambda seed: seed.replace(b"M: 1\n", b"M: 1" + b":59" * 9999 + b"\n")),
    "a word of parquet that is no UTF-8": ("parquet", lambda seed: seed.replace(b"ed", b"\xff\xff")),
    "a word of feather that is no UTF-8": ("feather", lambda seed: seed.replace(b"ed", b"\xff\xff")),
}
"""What was found, and ended in a traceback: the target, and what its first seed becomes."""


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_is_refused(what: str, tmp_path: Path) -> None:
    name, make = FOUND[what]
    target = fuzz.TARGETS[name]
    with pytest.raises(target.refusals()):
        target.read(tmp_path, make(target.seeds()[0]))


CHILD = """
import resource, sys, tempfile
from pathlib import Path
import fuzz
before = resource.getrusage(resource.RUSAGE_SELF)
resource.setrlimit(resource.RLIMIT_CPU, (int(before.ru_utime + before.ru_stime) + 1 + fuzz.SECONDS,) * 2)
with tempfile.TemporaryDirectory() as folder:
    said = fuzz.verdict(sys.argv[1], Path(sys.argv[2]).read_bytes(), Path(folder))
more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss)
sys.exit(said or (more > fuzz.MEMORY and f"{more} bytes"))
"""


def _packed_table(write: str, **values: Any) -> bytes:
    import pyarrow
    from pyarrow import feather, parquet

    stream, table = io.BytesIO(), pyarrow.table(values)
    {"parquet": parquet.write_table, "feather": feather.write_feather}[write](table, stream, compression="zstd")
    return stream.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "rows of text": ("gz", lambda: gzip.compress(b"a,price\n" + b"0,1\n1,2\n" * 10_000_000, 1)),
    "rows of Feather": ("feather", lambda: _packed_table("feather", price=np.zeros(80_000_000))),
    "columns": ("gz", lambda: gzip.compress((b"1," * 3_000_000 + b"2\n") * 2, 1)),
    # A length that is read with text=one_hot
    "words": ("csv", lambda: b"a,price\n" + b"".join(b"w%06d,2\n" % i for i in range(90_000)) + b"w,000012\n"),
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_small_input_takes_neither_long_nor_much_memory(what: str, tmp_path: Path) -> None:
    """Ten seconds of a processor, and 1 GB, whatever it unpacks to."""
    name, make = BOMBS[what]
    (tmp_path / "bomb").write_bytes(make())
    assert (tmp_path / "bomb").stat().st_size <= fuzz.LONGEST
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), *sys.path])}
    subprocess.run([sys.executable, "-c", CHILD, name, str(tmp_path / "bomb")], env=environment, check=True)
