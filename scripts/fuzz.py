"""Mutate the files and messages that come from outside, and see that each is accepted or refused in one line.

    python scripts/fuzz.py TARGET --minutes M --seed S

This needs atheris, which is no part of `make lock`: `pip install atheris`. Inputs that fail go to build/fuzz/TARGET,
and the exit code is 1 if there are any. An input of at most 1 MB may take 10 seconds and 1 GB.
"""

import argparse
import bz2
import contextlib
import gc
import gzip
import hashlib
import io
import lzma
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from fkl import conf_folder
from fkl.basics.errors import FklError, key_prefix
from fkl.basics.files import SEAL, write_arrays
from fkl.basics.random_streams import Role, shared_generator
from fkl.config.choices import read_mapping, read_text
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.data.encoder import Encoder
from fkl.data.problem import Scale
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.rounds import LearnedFunction
from fkl.kernels.functions import Linear
from fkl.network.graphs import EdgeList
from fkl.network.participation import Trace
from fkl.runs import model
from fkl.study.plan import Plan

SECONDS, MEMORY, LONGEST = 10, 10**9, 10**6
"""Most that an input may take, and the size up to which this is promised."""
FOLLOWED = tuple(
    f"fkl.{name}" for name in ("basics", "config", "data", "engines", "network", "results", "study", "wire")
)
"""Modules whose lines lead the mutations; none has code that numba compiles."""
OUT = Path(__file__).parents[1] / "build" / "fuzz"


class Target(NamedTuple):
    """A reader of something from outside.

    Parameters
    ----------
    seeds : callable
        Valid inputs.
    read : callable
        Reads an input: it is given a folder where it may write, and bytes.
    refusals : callable
        Classes of errors that the reader's caller turns into one line.
    """

    seeds: Callable[[], list[bytes]]
    read: Callable[[Path, bytes], object]
    refusals: Callable[[], tuple[type[Exception], ...]] = lambda: (FklError,)


def _written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


# Tables
TEXT = (
    b"width,height,price\n1.5,2,3\n4,-5e3,6\n7,8.25,9\n",
    b'day;colour;price\n2024-01-31;"red";1\n2024-02-01;blue;2.5\n2024-02-02;NA;3\n',
    b"1 2 3\n4 5 6\n7 8 9\n",
)
KEYS: tuple[dict[str, Any], ...] = (
    {},
    {"text": "code", "missing": "mean", "header": True},
    {"text": "one_hot", "missing": "drop", "labels": "code"},
    {"date_format": "%Y-%m-%d", "text": "drop", "missing": "drop"},
    {"target": "3", "header": False},
)


def _read_table(suffix: str) -> Callable[[Path, bytes], object]:
    def read(folder: Path, content: bytes) -> None:
        path = str(_written(folder, f"table{suffix}", content))
        keys = KEYS[len(content) % len(KEYS)]
        with key_prefix("dataset"):
            TableFile(**{"path": path, "target": "price", **keys}).load(Store(folder), shared_generator(0, Role.DATA))

    return read


def _typed(suffix: str) -> list[bytes]:
    import pandas as pd

    frame = pd.DataFrame({"width": [1.5, 2, 3], "colour": ["red", "blue", "red"], "price": [1, 2, 3]})
    stream = io.BytesIO()
    if suffix == ".npz":
        np.savez(stream, **{name: frame[name].to_numpy() for name in ("width", "price")}, x=np.ones((3, 2)))
        packed = io.BytesIO()
        np.savez_compressed(packed, width=np.arange(3.0), price=np.arange(3))
        return [stream.getvalue(), packed.getvalue()]
    getattr(frame, f"to_{suffix[1:]}")(stream)
    return [stream.getvalue()]


# Configurations
def _read_choice(folder: Path, content: bytes) -> None:
    (folder / "algo").mkdir(exist_ok=True)
    _written(folder, "algo/fuzzed.yaml", content)
    load_run(compose_config("algo=fuzzed", folders=[folder]))


def _read_study(folder: Path, content: bytes) -> None:
    file = _written(folder, "study.yaml", content)
    read_mapping(read_text(file), file)
    Plan.read(file)


STUDY = b"""question: Which is better?
methods: [{name: mine, algo: pof_mkl}, {name: sent, algo: ofmkl_avg, algo.lam: 0.1}]
datasets: [diabetes, {dataset: air, rows: 500}]
claim: rows
pairs: [[mine, sent]]
tune: {trials: 24, once: true, space: {algo.lam: log 1e-3..3, algo.M: [1, 2]}}
budget: {uplink_bytes: 1000000}
beside: [alone, mean]
judge: {seeds: 10, margin: 0.02, looks: [5, 10]}
set: [kernels.D=8]
limit_s: 60
"""


# Arrays
def _arrays(**arrays: Any) -> bytes:
    write_arrays(stream := io.BytesIO(), arrays)
    return stream.getvalue()


def _sealed(content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}\n".encode() + content


def _read_checkpoint(folder: Path, content: bytes) -> None:
    checkpoint = Checkpoint(_written(folder, "checkpoint", _sealed(content)), None, "this run")
    with contextlib.redirect_stderr(io.StringIO()):
        checkpoint.rounds()
        checkpoint.load(None, dict)


def _checkpoints() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint"
        kept = {"theta": np.arange(3.0), "rng": np.random.default_rng(0), "t": 3, "names": ("a", "b")}
        Checkpoint(file, None, "this run").save((0, 1), kept, {})
        return [file.read_bytes()[SEAL:]]


def _models() -> list[bytes]:
    def number(value: float) -> Any:
        return np.array(value)

    scale = Scale(np.zeros(2), np.ones(2), number(0.0), number(1.0))
    learned = LearnedFunction(Linear(np.arange(2.0), number(1.0)), scale, np.ones(1, np.bool_))
    encoder = Encoder(("width", "colour"), {"colour": ("red", "blue")}, dates={})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / model.MODEL
        model.SavedModel((learned,), encoder, model.About("pof_mkl", "file", ("here",), False)).save(file)
        return [file.read_bytes()]


def _read_model(folder: Path, content: bytes) -> None:
    read = model.load_model(_written(folder, model.MODEL, content))
    with np.errstate(all="ignore"):
        read.predict(np.zeros((2, len(read.encoder.feature_names))))


# Messages of sites, and what a site remembers
@cache
def _first_round() -> tuple[Any, Any]:
    """A server, and the message of a site in its first round."""
    from fkl.contract.lone_party import LoneServer
    from fkl.sites.clients import kind_of
    from fkl.sites.configuration import SharedFacts, method_of

    words = ("dataset=file", "dataset.target=y", "algo=ofmkl_avg", "kernels=rbf", "kernels.D=4", "replicates=1")
    run, known = load_run(compose_config(*words)), SharedFacts("run", 1, 1, 10, ("a", "b"), Scale())
    server = LoneServer(method_of(run), known.common_facts(run), 1)
    [down] = server.broadcast(0, 0, [0])
    return server, kind_of(run).example(run, known).play(0, 0, down, 1)[0]


def _packets() -> list[bytes]:
    from fkl.wire.packets import write_packets

    content, forms = write_packets([_first_round()[1]])
    return [forms.encode() + b"\0" + content]


def _read_packets(folder: Path, content: bytes) -> None:
    from fkl.sites.messages import require_like
    from fkl.wire.packets import read_packets

    forms, _, arrays = content.partition(b"\0")
    server, like = _first_round()
    [packet] = read_packets(arrays, forms.decode())
    require_like(packet, like)
    server = copy(server)
    try:
        server.take(0, 0, [packet], np.ones(1), np.zeros(1, np.int64))
    except Exception as error:
        raise RuntimeError("a message that was taken for one of fkl's") from error


def _broken() -> tuple[type[Exception], ...]:
    from fkl.sites.server import BROKEN

    return BROKEN


def _memories() -> list[bytes]:
    from fkl.sites.states import SiteMemory, to_bytes

    return [to_bytes(SiteMemory({0: (1, np.ones(3))}, np.full(4, np.nan), 2, 3, 0, [1], {0: (2, np.ones(3))}, {0: 4}))]


def _read_memory(folder: Path, content: bytes) -> None:
    from fkl.sites.states import SiteMemory, read_state

    read_state(_written(folder, "memory", _sealed(content)), SiteMemory)


TARGETS = {
    "csv": Target(lambda: list(TEXT), _read_table(".csv")),
    "gz": Target(lambda: list(map(gzip.compress, TEXT)), _read_table(".csv.gz")),
    "xz": Target(lambda: list(map(lzma.compress, TEXT)), _read_table(".csv.xz")),
    "bz2": Target(lambda: list(map(bz2.compress, TEXT)), _read_table(".csv.bz2")),
    **{
        suffix[1:]: Target(lambda suffix=suffix: _typed(suffix), _read_table(suffix))  # type: ignore[misc]
        for suffix in (".npz", ".parquet", ".feather")
    },
    "yaml": Target(lambda: [(conf_folder() / "algo" / "pof_mkl.yaml").read_bytes()], _read_choice),
    "study": Target(lambda: [STUDY], _read_study),
    "trace": Target(
        lambda: [b"round,client,present\n1,0,0\n2,3,1\n"],
        lambda folder, content: Trace(str(_written(folder, "trace.csv", content))).present(
            np.ones((5, 4), np.bool_), np.random.default_rng(0)
        ),
    ),
    "edges": Target(
        lambda: [b"# a ring\n0 1\n1 2\n2 3\n3 0\n"],
        lambda folder, content: EdgeList(str(_written(folder, "edges.txt", content))).build(
            4, np.random.default_rng(0)
        ),
    ),
    "checkpoint": Target(_checkpoints, _read_checkpoint),
    "model": Target(_models, _read_model),
    "packets": Target(_packets, _read_packets, _broken),
    "memory": Target(_memories, _read_memory),
}


def verdict(name: str, content: bytes, folder: Path) -> str | None:
    """None if an input is accepted or refused in one line, otherwise the error."""
    target = TARGETS[name]
    try:
        target.read(folder, content)
    except FklError as error:
        return None if len(str(error).splitlines()) == 1 else f"not one line: {error!r}"
    except target.refusals():
        return None
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return None


def fuzz(name: str, minutes: float, seed: int) -> None:
    """Run libFuzzer on a target; it ends the process."""
    import atheris

    found, corpus = OUT / name, tempfile.mkdtemp()
    found.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(TARGETS[name].seeds()):
        _written(Path(corpus), str(number), content)
    places: dict[str, str] = {}
    folder = Path(tempfile.mkdtemp())

    def one(content: bytes) -> None:
        said = verdict(name, content, folder)
        if said is not None and (place := "\n".join(re.findall(r"line \d+, in \w+", said))[-60:]) not in places:
            places[place] = said
            _written(found, f"failure-{len(places)}", content)
            print(f"{name}: failure {len(places)}\n{said}", file=sys.stderr, flush=True)

    limits = f"-timeout={SECONDS} -rss_limit_mb={MEMORY // 2**20 + 400} -max_len=20000 -print_final_stats=1"
    words = [f"-max_total_time={60 * minutes:.0f}", f"-seed={seed}", f"-artifact_prefix={found}/", *limits.split()]
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        if function.__module__ and function.__module__.startswith(FOLLOWED):
            atheris.instrument_func(function)
    atheris.Setup([sys.argv[0], *words, corpus], one)
    atheris.Fuzz()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    fuzz(given.target, given.minutes, given.seed)


if __name__ == "__main__":
    main()
