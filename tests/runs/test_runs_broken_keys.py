"""Random keys with random values that they cannot have: each is one line, exit code 2, and nothing written."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from broken.refusal import give_files, require_refused
from broken.schema import GROUPS, Key, base, choices, keys
from broken.values import broken_values
from conftest import Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # on a terminal it would be one more line
SEED = 20260
ONE, TWO, UNKNOWN = 60, 10, 10
"""Random runs with one broken key, with two, and with a key or choice that there is not."""


class Case(NamedTuple):
    """Overrides, and a pattern of what refuses them."""

    call: tuple[str, ...]
    said: str


@cache
def drawn() -> list[Case]:
    """The same random runs each time; no key comes twice before each came once.

    That no key takes what it cannot be is looked at without the command, of all keys, in `test_runs_broken_values`.
    """
    rng = np.random.default_rng(SEED)
    order = [int(place) for _ in range(2) for place in rng.permutation(len(keys()))]
    cases = [_broken(keys()[place], rng) for place in order[:ONE]]
    settings = [key for key in keys() if "." not in key.name]
    for place in rng.choice(len(keys()), TWO):
        one, other = _broken(keys()[place], rng), _broken(settings[rng.integers(len(settings))], rng)
        cases.append(Case((*one.call, other.call[-1]), f"{one.said}|{other.said}"))
    return [*cases, *(_unknown(rng) for _ in range(UNKNOWN))]


def _broken(key: Key, rng: np.random.Generator) -> Case:
    value = str(rng.choice(broken_values(key)))
    return Case((*key.base, f"{key.name}={value}"), f"{re.escape(key.name)}=.*: must be ")


def _unknown(rng: np.random.Generator) -> Case:
    group = str(rng.choice(GROUPS))
    upon = base(group, str(rng.choice(choices(group))))
    word = "".join(rng.choice(list("abcxyz"), 8))
    if rng.random() < 0.5:
        return Case((*upon, f"{group}={word}"), f"{group}={word}: no such choice")
    sign = str(rng.choice(["", "+", "++"]))
    return Case((*upon, f"{sign}{group}.{word}=1"), rf"{group}\.{word}: no such key")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the user's own that are as they should be, and no network."""
    give_files(tmp_path)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", _no_network)


def _no_network(*_: object, **__: object) -> None:
    raise OSError("no network")


@pytest.mark.parametrize("number", range(ONE + TWO + UNKNOWN))
def test_a_random_broken_configuration_is_refused(fkl: Callable[..., Answer], tmp_path: Path, number: int) -> None:
    """The line names the key and says what is allowed."""
    call, said = drawn()[number]
    require_refused(fkl("run", *call), tmp_path, said, call)


def test_the_command_refuses_as_its_function_does(tmp_path: Path) -> None:
    """In a process of its own, where warnings would be seen."""
    call, said = drawn()[0]
    command = [sys.executable, "-m", "fkl", "run", *call]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    require_refused(Answer(ended.returncode, ended.stdout, ended.stderr), tmp_path, said, call)
