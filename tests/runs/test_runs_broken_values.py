"""Every key with every value that it cannot have; and values at the ends of what it can have."""

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from broken.refusal import give_files, lines
from broken.schema import GROUPS, Key, keys
from broken.values import broken_values, kind_of, refused_on_load
from conftest import Answer
from hydra.core.override_parser.overrides_parser import OverridesParser

from fkl.basics.errors import FklError, key_prefix
from fkl.config.compose import compose
from fkl.config.loading import build, resolved

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SEED = 7
EXTREMES = 30
ENDS: dict[Any, tuple[str, ...]] = {
    int: ("1", "2", "1000000000000", "9223372036854775807"),
    float: ("0", "5e-324", "1e-300", "1e18", "1e300"),
    bool: ("true", "false"),
    str: ("null",),
    dict: ("null",),
    list: ("null", "[1.0]", "[[0.0,0.0],[1.0,1.0]]"),
}
"""What a key's type allows, if its limits do."""
APART = ("dataset", "paths")
LONG = {"iterations", "steps", "passes", "trees", "inner", "features", "centres", "resample", "replicates"}
"""Keys that say how long a run takes: large numbers are allowed, and take as long."""
ERRORS = ("mse", "train_mse", "test_error", "train_error", "test_mse")


@cache
def node(base: tuple[str, ...], group: str) -> dict[str, Any]:
    """A group's plain values in a small run, without those that are still to be given."""
    if not group:
        return {}
    plain: Any = resolved(compose(*base))
    return {key: value for key, value in plain[group].items() if key != "_target_"}


@cache
def parsed(value: str) -> Any:
    """A value as Hydra reads it off a command line."""
    return OverridesParser.create().parse_override(f"key={value}").value()


def refusal(key: Key, value: str) -> str:
    """What `fkl.config.loading.load` says of a value; empty where it takes it."""
    group = key.name.rpartition(".")[0]
    try:
        with key_prefix(group or "top"):
            build(key.owner, {**node(key.base, group), key.field: parsed(value)}, group)
    except FklError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("group", [*GROUPS, "network", "paths", ""])
def test_no_key_takes_what_it_cannot_be(group: str) -> None:
    """All keys of all classes that a YAML names, by their types and documented ranges: each says what is allowed."""
    wrong = []
    for key in keys():
        if key.name.rpartition(".")[0] == group:
            for value in filter(partial(refused_on_load, key), broken_values(key)):
                said = refusal(key, value)
                if not re.search(rf"^\S*{re.escape(key.field)}=.*: must be .+$", said) or len(said) > 1500:
                    wrong.append((key.owner.__name__, key.name, value, said))
    assert wrong == []


@cache
def extremes() -> list[tuple[Key, str]]:
    """Random keys at the ends of what their types allow; some are out of their range."""
    rng = np.random.default_rng(SEED)
    chosen = [key for key in keys() if key.name.partition(".")[0] not in APART and key.field not in LONG]
    places = rng.permutation(len(chosen))[:EXTREMES]
    return [(chosen[place], str(rng.choice(ENDS[kind_of(chosen[place].type)[0]]))) for place in places]


@pytest.mark.drawn
@pytest.mark.parametrize("number", range(EXTREMES))
def test_an_extreme_value_runs_or_is_refused(fkl: Callable[..., Answer], tmp_path: Path, number: int) -> None:
    """Never a traceback, a warning or a number that is none."""
    give_files(tmp_path)
    key, value = extremes()[number]
    answer = fkl("run", *key.base, f"{key.name}={value}")
    true = "steps ended before| is not below the |: as without it|nothing was sent in any round"
    said = [line for line in lines(answer.err) if not re.search(true, line)]
    if answer.code == 0:
        assert said == [], (key, value)
        (summary,) = (tmp_path / "outputs" / "runs").glob("*/summary.csv")
        found = pd.read_csv(summary)
        assert not np.isinf(found).any(axis=None), (key, value)
        assert np.isfinite(found[[name for name in ERRORS if name in found]]).any(axis=None), (key, value)
        return
    assert answer.code == 2 and len(said) == 1 and said[0].startswith("error: "), (key, value, answer)
    outputs = tmp_path / "outputs"
    named = re.search(r"diverged in round|is not finite in round", said[0])
    assert not outputs.exists() or (named and [*outputs.iterdir()] == [outputs / "failed"])
