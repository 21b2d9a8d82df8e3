"""The arrays of the published data sets, bit by bit, where their files are at hand, and nodes that 1.0.0rc1 saved."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from published_files import real

from fkl.config.compose import compose_config
from fkl.config.digest import config_identity
from fkl.config.loading import load_run
from fkl.data import registry
from fkl.data.problem import Table

HERE = Path(__file__).parent
HASHES = dict(line.split(": ") for line in (HERE / "hashes.txt").read_text().splitlines())
"""By data set and keys, taken from the classes of 1.0.0rc1."""


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
    published = registry.named_dataset(name, **keys)
    assert digest(real(published)) == HASHES[case]


def test_titles_and_addresses_do_not_tell_runs_apart() -> None:
    today = load_run(compose_config("dataset=naval")).resolved
    node = registry.dataset_node("naval")
    node["table"]["title"], node["table"]["files"][0]["url"] = "another", "https://nowhere.invalid/data.txt"
    assert config_identity(today | {"dataset": node}) == config_identity(today)
    node["table"]["files"][0]["sha256"] = "another"
    assert config_identity(today | {"dataset": node}) != config_identity(today)
