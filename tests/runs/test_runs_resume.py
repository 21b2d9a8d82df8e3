"""A run that is killed at any moment goes on from its last checkpoint to the same files, byte for byte."""

import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import SMALL

from fkl.basics.files import write_sealed
from fkl.conformance import quick_run
from fkl.engines.base import Numba
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import TIMING_COLUMNS, make_records

PLACE = (1, 2)


@pytest.mark.parametrize(("at_once", "cut"), [(False, 37), (True, 3)])
def test_a_run_that_is_cut_off_goes_on_with_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool, cut: int
) -> None:
    """In this process: no round is played twice in what is judged, and none is left out, alone or in a block."""
    monkeypatch.setattr(Numba, "at_once", at_once)
    given = prepare_run(quick_run("algo=pof_mkl", *SMALL))
    done: list[int] = []

    def cut_off(rounds: int) -> None:
        done.append(rounds)
        if len(done) == cut:
            raise KeyboardInterrupt

    def records(advance: Callable[[int], object], kept: Checkpoint | None) -> dict[str, str]:
        tables = vars(make_records(given, simulate_run(given, None, None, advance, kept)))
        return {name: table.drop(columns=[*TIMING_COLUMNS], errors="ignore").to_csv() for name, table in tables.items()}

    with pytest.raises(KeyboardInterrupt):
        records(cut_off, checkpoint(tmp_path))
    assert records(done.append, checkpoint(tmp_path)) == records(lambda _: None, None)
    assert done[cut] == sum(done[: cut - 1])  # the last rounds were played, and not kept
    assert sum(done[cut:]) == given.replicates * given.problem.rounds


@dataclass
class State:
    """What a method may keep."""

    theta: np.ndarray
    parts: list[Any] = field(default_factory=list)


class Pair(NamedTuple):
    """Two things."""

    one: Any
    other: Any


def checkpoint(folder: Path, digest: str = "mine") -> Checkpoint:
    return Checkpoint(folder / "file", 0, digest)


def test_whatever_a_method_may_keep_comes_back_as_it_was(tmp_path: Path) -> None:
    """Arrays to the bit, of any type; generators where they were; what is one object stays one."""
    shared, generator = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4))), np.random.default_rng(5)
    spawned = np.random.Generator(np.random.Philox(7)).spawn(1)[0]
    parts = [shared, generator, spawned, {("a", 1): {2.5}, b"key": [np.nan, None]}, Pair(True, "word"), np.float32(0.1)]
    state = State(shared, [*parts, np.zeros(0), np.array(["é", "b"]), 2**70, -np.inf, ()])
    state.parts.append(state)
    checkpoint(tmp_path).save(PLACE, state, {})
    found = checkpoint(tmp_path).load(None, State)
    assert found is not None and checkpoint(tmp_path).place() == PLACE
    assert found.theta is found.parts[0] and found.parts[-1] is found
    assert found.theta.flags.f_contiguous and found.theta.tobytes() == shared.tobytes()
    for drawn, expected in zip(found.parts[1:3], (generator, spawned), strict=True):
        assert drawn.random(5).tolist() == expected.random(5).tolist()
        assert drawn.spawn(1)[0].random() == expected.spawn(1)[0].random()
    assert repr(found.parts[3]) == repr(parts[3]) and type(found.parts[4]) is Pair and found.parts[4] == parts[4]
    assert (found.parts[5], found.parts[5].dtype) == (np.float32(0.1), np.float32)
    assert [found.parts[7].tolist(), *found.parts[8:11]] == [["é", "b"], 2**70, -np.inf, ()]


def test_another_run_s_checkpoint_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checkpoint(tmp_path).place() is None
    assert capsys.readouterr().err == ""
    checkpoint(tmp_path).save(PLACE, State(np.ones(3)), {})
    assert checkpoint(tmp_path, "another").place() is None
    assert "not used, so the run starts from the beginning (it belongs to another run)" in capsys.readouterr().err
    checkpoint(tmp_path).delete_file()
    assert list(tmp_path.iterdir()) == []


def flipped(whole: bytes, place: int) -> bytes:
    """A file with one bit of one byte turned over."""
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def test_no_flipped_bit_and_no_cut_is_overlooked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the seal, the text and the arrays: each is told, and the run begins anew."""
    checkpoint(tmp_path).save(PLACE, State(np.ones(3)), {})
    whole = (tmp_path / "file").read_bytes()
    damaged = [flipped(whole, place) for place in range(len(whole))] + [whole[:end] for end in range(0, len(whole), 7)]
    for content in [*damaged, b"", b"garbage", whole + b"\0", pickle.dumps(("mine", (0, 1)))]:
        (tmp_path / "file").write_bytes(content)
        assert checkpoint(tmp_path).place() is None
        assert checkpoint(tmp_path).load(None, State) is None
        assert capsys.readouterr().err.count("starts from the beginning (its SHA-256") == 2


def planted(done: Any, place: Any = PLACE, **more: Any) -> dict[str, Any]:
    """JSON of a checkpoint by hand."""
    return {"digest": "mine", "place": place, "done": done, "position": None} | more


def an_object(kind: str, **state: Any) -> dict[str, Any]:
    pairs = [[key, value] for key, value in state.items()]
    return {"number": 0, "object": kind, "state": {"number": 1, "dict": pairs}}


NESTED: Any = 0
for _ in range(400):
    NESTED = {"number": 2, "list": [NESTED]}
PLANTED = {
    "a class that runs when it is dropped": planted(an_object("tempfile:_TemporaryFileCloser", name="own.csv")),
    "a module that is not loaded": planted(an_object("evil:Evil")),
    "an attribute of the owner that there is not": planted({"owned": "secret"}),
    "a generator of no kind": planted({"number": 0, "generator": {"number": 1, "list": ["os", 1]}}),
    "very deep": planted(NESTED),
    "a place below 0": planted(None, place=[-1, 2]),
}
"""What somebody who can write files may plant, its SHA-256 right."""


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_neither_runs_nor_counts(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is imported, called or deleted; the run begins anew and says so."""
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("mine")
    Path("evil.py").write_text("open('owned', 'w')")
    monkeypatch.syspath_prepend(str(tmp_path))
    write_sealed(tmp_path / "file", {"text": np.frombuffer(json.dumps(PLANTED[what]).encode(), np.uint8)})
    assert checkpoint(tmp_path).load(SimpleNamespace(), State) is None or checkpoint(tmp_path).place() is None
    assert "starts from the beginning" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.py", "file", "own.csv"]
    assert not {"evil", "antigravity"} & set(sys.modules)


@pytest.mark.parametrize("state", [print, np.array([1, None]), Path("file"), type("Mine", (), {})()])
def test_a_state_that_is_no_data_is_told_once_and_costs_the_run_nothing(
    state: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = checkpoint(tmp_path)
    kept.save(PLACE, State(np.ones(1), [state]), {})
    assert not kept.due
    assert "no checkpoints are saved: the method's state holds " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
