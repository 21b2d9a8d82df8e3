"""The arrays of the published data sets, bit by bit, where their files are at hand, and nodes that 1.0.0rc1 saved."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from published_files import real

from fkl.config import identity, instantiate, load
from fkl.config.compose import compose
from fkl.data import registry
from fkl.data.problem import Table
from fkl.data.renamed import CLASSES

HERE = Path(__file__).parent
HASHES = dict(line.split(": ") for line in (HERE / "hashes.txt").read_text().splitlines())
"""By data set and keys, taken from the classes of 1.0.0rc1."""
SAVED = yaml.safe_load((HERE / "saved_nodes.yaml").read_text())
"""The node `dataset` in config.yaml of a run of 1.0.0rc1."""


def digest(table: Table) -> str:
    """Of all arrays, their types, shapes and order in memory, and all names."""
    found = hashlib.sha256(repr((table.feature_names, table.site_names)).encode())
    for array in (table.x, table.y, table.site):
        order = array.flags.c_contiguous, array.flags.f_contiguous
        found.update(repr((array.dtype.str, array.shape, order)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("case", HASHES)
def test_arrays_are_those_of_the_first_version(case: str) -> None:
    name, *words = case.split()
    keys = {key: yaml.safe_load(value) for key, value in (word.split("=") for word in words)}
    published = registry.dataset(name, **keys)
    assert digest(real(published)) == HASHES[case]


def test_every_data_set_that_had_a_class_was_saved() -> None:
    assert {node["_target_"] for node in SAVED} == set(CLASSES)


@pytest.mark.parametrize("node", SAVED, ids=lambda node: node["_target_"])
def test_saved_nodes_go_on_to_load_and_are_found(node: dict) -> None:
    name, keys = CLASSES[node["_target_"]], {key: value for key, value in node.items() if key != "_target_"}
    today = load(compose(f"dataset={name}", *(f"dataset.{key}={_word(value)}" for key, value in keys.items())))
    made = instantiate(dict(node), "dataset")
    assert (made.layout, made.files, made.name) == (today.dataset.layout, today.dataset.files, name)
    assert instantiate({"_target_": node["_target_"]}, "dataset").layout == registry.dataset(name).layout
    old = today.resolved | {"dataset": node}
    assert identity(old) == identity(today.resolved)
    if keys:
        key, value = next(iter(keys.items()))
        other = today.resolved | {"dataset": today.resolved["dataset"] | {key: f"{value}0"}}
        assert identity(old) != identity(other)


def _word(value: object) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value)) if value != 1 else str(value)


def test_titles_and_addresses_do_not_tell_runs_apart() -> None:
    today = load(compose("dataset=naval")).resolved
    node = registry.node("naval")
    node["table"]["title"], node["table"]["files"][0]["url"] = "another", "https://nowhere.invalid/data.txt"
    assert identity(today | {"dataset": node}) == identity(today)
    node["table"]["files"][0]["sha256"] = "another"
    assert identity(today | {"dataset": node}) != identity(today)
