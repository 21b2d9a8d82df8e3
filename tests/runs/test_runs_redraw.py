"""`algo.redraw`: every replicate has a split and a graph of its own, and nothing else changes."""

from pathlib import Path

import numpy as np
import pandas as pd

from fkl.conformance import quick_run
from fkl.engines.base import Experiment
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import make_records

SMALL = ("dataset=diabetes", "partition=iid", "partition.clients=5", "partition.rounds=80")
SMALL += ("topology=gnm", "topology.edges=6", "algo.iterations=15", "kernels.D=6", "kernels.N=1", "precision=float64")


def experiment(algo: str, *overrides: str) -> Experiment:
    """A small one, of three replicates."""
    return prepare_run(quick_run(f"algo={algo}", *SMALL, "replicates=3", *overrides))


def summary(given: Experiment, cache: Path) -> pd.DataFrame:
    return make_records(given, simulate_run(given, None, None, lambda _: None), cache).summary


def test_the_first_replicate_is_that_of_a_shared_split_and_the_others_are_not(tmp_path: Path) -> None:
    shared, anew = (summary(experiment("dkla", f"algo.redraw={word}"), tmp_path) for word in ("false", "true"))
    columns = ["train_mse", "test_mse", "distance", "link_messages"]
    assert anew[columns].iloc[0].tolist() == shared[columns].iloc[0].tolist()
    assert (anew["test_mse"].iloc[1:] != shared["test_mse"].iloc[1:]).all()


def test_split_and_graph_differ_between_replicates() -> None:
    given = experiment("dkla", "algo.redraw=true")
    assert given.redraw is not None
    drawn = [given.redraw(replicate) for replicate in range(3)]
    (batch, graph), (other, other_graph), _ = drawn
    assert np.array_equal(batch.x, given.problem.x)
    assert given.topology is not None
    assert np.array_equal(graph.links, given.topology.links)
    assert not np.array_equal(batch.x, other.x)
    assert len(set(map(tuple, batch.x)) & set(map(tuple, other.x))) > 0.8 * len(batch.x), "mostly the same samples"
    assert len({tuple(one.links.ravel()) for _, one in drawn}) > 1
    assert graph.edges == other_graph.edges == 6


def test_numbers_do_not_depend_on_chunk_and_replicates(tmp_path: Path) -> None:
    """The key `chunk` has no effect: a replicate with a split of its own runs alone."""
    few, many = (experiment("coke", "algo.redraw=true", f"replicates={n}") for n in (2, 3))
    chunked = make_records(many, simulate_run(many, 1, 3, lambda _: None), tmp_path).summary
    columns = [name for name in chunked if not name.startswith("runtime")]
    assert summary(few, tmp_path)[columns].equals(chunked[columns].iloc[:2])
