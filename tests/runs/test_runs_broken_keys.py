"""Every declared key with values that it cannot have."""

import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from broken.refusal import give_files, require_refused
from conftest import SMALL, Answer, small
from hydra.core.override_parser.overrides_parser import OverridesParser

from fkl import conf_folder
from fkl.basics.errors import FklError, key_prefix
from fkl.basics.keys import declared_keys
from fkl.config.choices import CONDITIONS
from fkl.config.compose import compose_config
from fkl.config.loading import build_object, resolve_config
from fkl.config.settings import Paths, Settings
from fkl.network import Network

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
GROUPS = ("algo", "dataset", "partition", "kernels", "topology", *CONDITIONS)
AGENTS = small("dkla")
SUITS = {"coke": "dkla", "rbf_single": "ofskl", "omkr": "omkr", "poly_2": "poly_2", "rbf_1": "rbf_1"}
"""Algorithm for a dictionary; POF-MKL suits the others."""
OWN = {
    "file": ("dataset.path=own.csv", "dataset.target=price"),
    "edge_list": ("topology.path=edges.txt",),
    "trace": ("participation.path=trace.csv",),
}


class _Key(NamedTuple):
    """One key of the configuration: a small run in which it plays its part, its name, owner and type."""

    base: tuple[str, ...]
    name: str
    owner: type
    type: Any

    @property
    def field(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def place(self) -> tuple[str, str]:
        return self.owner.__name__, self.field


def base(group: str, choice: str) -> tuple[str, ...]:
    """Overrides of a small run with this choice, in a folder with `own.csv`, `edges.txt` and `trace.csv`."""
    if group == "algo":
        return small(choice)
    if choice == "vertical":
        return small("fdskl")
    upon = {
        "dataset": ("kernels.D=8", "replicates=2"),
        "topology": AGENTS,
        "links": AGENTS,
        "kernels": small(SUITS.get(choice, "pof_mkl")),
    }
    return (*upon.get(group, SMALL), f"{group}={choice}", *OWN.get(choice, ()))


def target(group: str, choice: str) -> type:
    """Dataclass that a choice names, itself or by the choice that it is made from."""
    node = yaml.safe_load((conf_folder() / group / f"{choice}.yaml").read_text(encoding="utf-8"))
    if "_target_" not in node:
        return target(group, next(part for part in node["defaults"] if isinstance(part, str) and part != "_self_"))
    module, _, name = node["_target_"].rpartition(".")
    made = getattr(import_module(module), name)
    return made.with_keys(node) if hasattr(made, "with_keys") else made


@cache
def keys() -> list[_Key]:
    """All keys: of one choice for each class in every group, of the network and outside every group."""
    found = [*_keys(SMALL, "", Settings), *_keys(SMALL, "paths", Paths), *_keys(AGENTS, "network", Network)]
    for group in GROUPS:
        known: set[type] = set()
        for choice in sorted(file.stem for file in (conf_folder() / group).glob("*.yaml")):
            owner = target(group, choice)
            if owner not in known:
                found += _keys(base(group, choice), group, owner)
            known.add(owner)
    return found


def _keys(upon: tuple[str, ...], group: str, owner: type) -> Iterator[_Key]:
    types = typing.get_type_hints(owner)
    for field in fields(owner):
        if not is_dataclass(types[field.name]):  # how a data set's files are read, which no command line sets
            yield _Key(upon, f"{group}.{field.name}" if group else field.name, owner, types[field.name])


NO_NUMBER = ("two", "nan", "inf", "[1]", "true")
BY_TYPE: dict[Any, tuple[str, ...]] = {
    int: (*NO_NUMBER, "1.5", "-1", "9" * 30),
    float: (*NO_NUMBER, "-1.0", "9" * 400),
    bool: ("maybe", "2", "nan"),
    str: ("''", "no_such_word", "7", "[a]", "{a: 1}"),
    dict: ("word", "[word]", "{mse: m.f}"),
    list: ("word", "{a: 1}", "[word]", "[nan]", "true"),
}
"""What the command line may say of a key, and none of its type can be."""
ANY_WORD = {("Settings", "out"), ("Settings", "objective"), *(("Paths", key) for key in ("data", "outputs", "cache"))}
TAKES = dict.fromkeys([("TableSet", "no_signal"), ("Centralized", "eps"), ("FederatedParsimonious", "eps")], ("-1.0",))
TAKES |= {
    ("TableFile", "date_format"): ("null", "{a: 1}"),  # the latter is refused as date_format.a
    ("TableFile", "fill"): ("{mse: m.f}",),
    ("TableFile", "files"): ("{mse: m.f}",),  # refused as files.mse
    ("TableFile", "hole"): ("[word]", "[nan]"),
}
"""What a key may be all the same, which others of its type or name cannot."""
AFTER_LOADING = {
    *(("EdgeList", "path"), ("PofMkl", "M"), ("RfGp", "M"), ("FomdOms", "J"), ("NcoOms", "J"), ("Trace", "path")),
    *(("TableFile", key) for key in ("path", "target", "site", "time", "test_path", "drop")),
    *((owner, "kinds") for owner in ("Sign", "TopK", "Uniform")),
    ("Settings", "like"),
}
"""Keys that are compared with files, data, the dictionary or what a method sends, so not before a run begins."""
ODD = {
    "algo.key_bits": ("129",),
    "dataset.decimals": ("16",),
    "dataset.rows": ("0", "1"),
    "dataset.rows_per_site": ("0", "1"),
    "partition.active": ("0", "3"),
    "kernels.laplacians": ("77",),
    "topology.neighbours": ("3",),
    "compression.bits": ("17", "31"),
    "secure.neighbours": ("3",),
}
"""Numbers that keys refuse for another reason than the limits that their fields declare."""


def outside(key: _Key) -> list[str]:
    """The numbers nearest to the limits that a key's field declares, outside them."""
    if key.field not in declared_keys(key.owner):
        return []
    declared, annotation = declared_keys(key.owner)[key.field]
    ends = ((declared.min, -1), (declared.above, 0), (declared.below, 0), (declared.max, 1))
    given = [(end, way) for end, way in ends if end is not None]
    if annotation.startswith("int"):
        return [str(end + way) for end, way in given]
    return [str(math.nextafter(end, way * math.inf) if way else float(end)) for end, way in given]


def broken_values(key: _Key) -> list[str]:
    """Values, as a command line has them, that the key's type or its documented range rules out."""
    kind, optional = kind_of(key.type)
    values = [*BY_TYPE[kind], *(() if optional else ("null",))]
    if key.place in ANY_WORD:
        values = ["''", "[a]", "{a: 1}"]
    values += [*outside(key), *ODD.get(key.name, ())]
    return [value for value in values if value not in TAKES.get(key.place, ())]


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Type without its None, and whether None may be; any list is `list`, anything at all is a word."""
    parts = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    kind = next(part for part in parts if part is not type(None))
    kind = typing.get_origin(kind) or kind
    return (str if kind is Any else kind), type(None) in parts


@cache
def node(upon: tuple[str, ...], group: str) -> dict[str, Any]:
    """A group's plain values in a small run."""
    plain: Any = resolve_config(compose_config(*upon))
    return {key: value for key, value in plain[group].items() if key != "_target_"} if group else {}


@cache
def parsed(value: str) -> Any:
    """A value as Hydra reads it off a command line."""
    return OverridesParser.create().parse_override(f"key={value}").value()


def refusal(key: _Key, value: str) -> str:
    """What `fkl.config.loading.load_run` says of a value; empty where it takes it."""
    group = key.name.rpartition(".")[0]
    try:
        with key_prefix(group or "top"):
            build_object(key.owner, {**node(key.base, group), key.field: parsed(value)}, group)
    except FklError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("group", [*GROUPS, "network", "paths", ""])
def test_no_key_takes_what_it_cannot_be(group: str) -> None:
    """All keys of all classes that a YAML names, by their types and documented ranges: each says what is allowed."""
    wrong = []
    for key in keys():
        if key.name.rpartition(".")[0] == group and key.place not in AFTER_LOADING:
            for value in broken_values(key):
                said = refusal(key, value)
                if not re.search(rf"^\S*{re.escape(key.field)}=.*: must be .+$", said) or len(said) > 1500:
                    wrong.append((key.owner.__name__, key.name, value, said))
    assert wrong == []


@pytest.mark.parametrize("number", range(8))
def test_a_random_value_that_data_rule_out_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """By the command."""
    give_files(tmp_path)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", None)
    random = np.random.default_rng(number)
    late = [key for key in keys() if key.place in AFTER_LOADING]
    key = late[random.integers(len(late))]
    call = (*key.base, f"{key.name}={random.choice(broken_values(key))}")
    require_refused(fkl("run", *call), tmp_path, f"{re.escape(key.name)}=.*: must be ", call)
