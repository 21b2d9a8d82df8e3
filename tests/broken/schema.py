"""Every key that `fkl run` knows, read off the YAMLs in conf/ and the dataclasses that they name."""

import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import yaml
from conftest import SMALL, small

from fkl import conf_folder
from fkl.config.choices import CONDITIONS
from fkl.config.settings import Paths, Settings
from fkl.network import Network

GROUPS = ("algo", "dataset", "partition", "kernels", "topology", *CONDITIONS)
AGENTS = small("dkla")
SUITS = {"coke": "dkla", "rbf_single": "ofskl", "omkr": "omkr", "poly_2": "poly_2", "rbf_1": "rbf_1"}
"""Algorithm for a dictionary; POF-MKL suits the others."""


class Key(NamedTuple):
    """One key of the configuration.

    Parameters
    ----------
    base : tuple of str
        Overrides that make a small run in which the key plays its part.
    name : str
        As it is written on the command line, for example ``algo.eta``.
    owner : type
        The dataclass whose field it is.
    type : Any
        Its annotation.
    """

    base: tuple[str, ...]
    name: str
    owner: type
    type: Any

    @property
    def field(self) -> str:
        """Name of the field alone."""
        return self.name.rpartition(".")[2]

    @property
    def place(self) -> tuple[str, str]:
        """What tables of limits are asked by."""
        return self.owner.__name__, self.field


@cache
def keys() -> list[Key]:
    """All keys: of one choice for each class in every group, of the network and outside every group."""
    found = [*_keys(SMALL, "", Settings), *_keys(SMALL, "paths", Paths), *_keys(AGENTS, "network", Network)]
    for group in GROUPS:
        known: set[type] = set()
        for choice in choices(group):
            owner = target(group, choice)
            if owner not in known:
                found += _keys(base(group, choice), group, owner)
            known.add(owner)
    return found


def choices(group: str) -> list[str]:
    """Names that a group may be given."""
    return sorted(file.stem for file in (conf_folder() / group).glob("*.yaml"))


def target(group: str, choice: str) -> type:
    """Dataclass that a choice names, itself or by the choice that it is made from."""
    node = yaml.safe_load((conf_folder() / group / f"{choice}.yaml").read_text(encoding="utf-8"))
    if "_target_" in node:
        module, _, name = node["_target_"].rpartition(".")
        made = getattr(import_module(module), name)
        return made.with_keys(node) if hasattr(made, "with_keys") else made
    return target(group, next(part for part in node["defaults"] if isinstance(part, str) and part != "_self_"))


def base(group: str, choice: str) -> tuple[str, ...]:
    """Overrides of a small run with this choice, in a folder with `own.csv` and `edges.txt`."""
    if group == "algo":
        return small(choice)
    if group == "dataset":
        own = ("dataset.path=own.csv", "dataset.target=price") if choice == "file" else ()
        return (f"dataset={choice}", "kernels.D=8", "replicates=2", *own)
    if group == "topology":
        return (*AGENTS, f"topology={choice}", *(["topology.path=edges.txt"] if choice == "edge_list" else []))
    if group == "kernels":
        return (*small(SUITS.get(choice, "pof_mkl")), f"kernels={choice}")
    if group == "links":
        return (*AGENTS, f"links={choice}")
    if choice == "vertical":
        return small("fdskl")
    own = ("participation.path=trace.csv",) if choice == "trace" else ()
    return (*SMALL, f"{group}={choice}", *own)


def _keys(base: tuple[str, ...], group: str, owner: type) -> Iterator[Key]:
    types = typing.get_type_hints(owner)
    for field in fields(owner):
        if is_dataclass(types[field.name]):  # how a data set's files are read, which no command line sets
            continue
        yield Key(base, f"{group}.{field.name}" if group else field.name, owner, types[field.name])
