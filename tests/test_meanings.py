"""What a run leaves behind is explained: every column, every kind of message, and every key of config.yaml."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from conftest import ALGORITHMS

from fkl.algorithms.vertical.fdskl import LETTERS
from fkl.cli.describe import explained
from fkl.conformance.promises import scenario
from fkl.engines.rounds import simulate
from fkl.runs.prepare import prepare
from fkl.runs.tables import TABLES, make_records
from fkl.screen.columns import COLUMNS, KINDS, kind_meaning, meaning

RUNS = {
    **{algo: (f"algo={algo}",) for algo in ALGORITHMS},
    "noise": ("algo=ofskl", "privacy=local", "privacy.clip=1", "privacy.noise=1"),
    "sums alone": ("algo=ofmkl_avg", "secure=pairwise"),
    "messages lost": ("algo=coke", "network.loss=0.3"),
    "a link's cost": ("algo=pof_mkl", "network.latency_s=0.1", "network.bandwidth_bytes_per_s=1e6"),
    "fresh masks": ("algo=fdskl", "algo.masks=fresh"),
    "made-up samples": ("algo=rf_gp", "algo.rank=2"),
    "drift": ("algo=pof_mkl", "dataset=drift"),
    "followed": ("algo=pof_mkl", "late=updates", "compression=sign", "logger=jsonl"),
}


@cache
def explains(name: str) -> bool:
    """Whether `fkl describe` answers; what it does not know it refuses."""
    return bool(explained(name, 80))


def keys(node: Any, start: str = "") -> Iterator[str]:
    """Names of all keys of a configuration, and of the parts that they are in."""
    for key, value in node.items():
        yield start + key
        if isinstance(value, dict):
            yield from keys(value, f"{start}{key}.")


@pytest.mark.parametrize("name", RUNS)
def test_all_that_a_run_leaves_behind_is_explained(name: str) -> None:
    run = scenario(*RUNS[name])
    experiment = prepare(run)
    chunk = next(iter(simulate(experiment, None, 1, lambda _: None)))
    records = make_records(experiment, [chunk])
    unknown = [column for table in TABLES for column in getattr(records, table) if meaning(column) is None]
    kinds = [f"{direction} {kind}" for direction, kind in chunk.ledger.kinds]
    unknown += [kind for kind in kinds if kind_meaning(kind) is None]
    assert not unknown
    assert all(map(explains, keys(run.resolved)))


def test_letters_of_rare_masks_are_explained() -> None:
    """Split angles are of three parties, which the small data sets have no features for."""
    assert {letter.kind for letter in LETTERS} <= KINDS.keys()


def test_a_name_is_told_of_all_that_has_it() -> None:
    """A kind of message and a part of the configuration; a column and a kind of message."""
    assert "neural network" in explained("network", 80) and "network.loss=0.0" in explained("network", 80)
    assert "the party holds" in explained("features", 80) and "in messages" in explained("features", 80)
    assert not {*COLUMNS} & {"epsilon"}  # a data set


@pytest.mark.parametrize(("name", "said"), [("eta", "algo.eta="), ("dataset.rows", "with dataset=naval")])
def test_a_key_of_several_choices_says_of_which(name: str, said: str) -> None:
    told = explained(name, 80)
    assert said in told and max(map(len, told.splitlines())) <= 80
