"""learners=alone and pooled: the method itself, at each client by itself, or at one that has all samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fkl
from fkl.basics.errors import FklError
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.per_world import BY_ITSELF
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import make_records

DIABETES = ("dataset=diabetes", "kernels.D=8", "replicates=2", "figures=none")
BATCH = (*DIABETES, "partition=iid", "partition.clients=4", "partition.rounds=100")


def experiment(*words: str):
    return prepare_run(load_run(compose_config(*words), words))


def summary(folder: Path, *words: str) -> pd.DataFrame:
    return fkl.run(*words, f"paths.outputs={folder}", quiet=True).summary


@pytest.mark.parametrize("method", ["ofmkl_avg", "odkla"])
def test_alone_is_what_each_client_reaches_in_a_run_of_its_own(method: str) -> None:
    words = (f"algo={method}", *DIABETES)
    alone = experiment(*words, "learners=alone")
    found = make_records(alone, simulate_run(alone)).clients
    together = experiment(*words)
    for k in range(together.problem.clients):
        topology = None if together.topology is None else BY_ITSELF
        one = replace(together, problem=together.problem.of_client(k), topology=topology)
        own = make_records(one, simulate_run(one)).clients
        np.testing.assert_allclose(found[found.client == k].mse.to_numpy(), own.mse.to_numpy(), rtol=1e-12)


def test_a_batch_s_learners_are_ridge_regressions_of_their_samples(tmp_path: Path) -> None:
    """COKE, at its optimum, and one-shot ridge are the same: at each client, and at one that has all samples."""
    for learners in ("alone", "pooled"):
        ridge = summary(tmp_path, "algo=one_shot_ridge", *BATCH, f"learners={learners}", "algo.lam=0.001")
        coke = summary(tmp_path, "algo=coke", *BATCH, f"learners={learners}", "algo.lam=0.001", "algo.iterations=400")
        np.testing.assert_allclose(ridge.test_mse, coke.test_mse, rtol=1e-3)


def test_nobody_sends_anything_alone_and_all_samples_are_pooled(tmp_path: Path) -> None:
    for learners in ("alone", "pooled"):
        found = summary(tmp_path, "algo=pof_mkl", *DIABETES, f"learners={learners}")
        assert (found[["uplink_bytes", "downlink_bytes"]] == 0).all(axis=None)
    problem = experiment("algo=pof_mkl", *DIABETES).problem
    one = problem.pooled()
    assert one.x.shape == (problem.present.sum(), 1, problem.dimension)
    assert np.array_equal(one.y[:, 0], problem.y[problem.present])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("algo=fdskl", "dataset=ellipses", "learners=alone"), "no clients that learn from their own rows"),
        (("algo=falkon", *BATCH, "learners=alone"), "made from all clients' samples"),
        (("algo=pof_mkl", *DIABETES, "learners=alone", "save_model=true"), "save_model"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(FklError, match=said):
        experiment(*words)


def test_a_run_alone_that_is_cut_off_goes_on_to_the_same(tmp_path: Path) -> None:
    alone, done = experiment("algo=ofmkl_avg", *DIABETES, "learners=alone"), []

    def records(most: int, kept: Checkpoint | None) -> pd.DataFrame:
        def advance(rounds: int) -> None:
            done.append(rounds)
            if len(done) == most:
                raise KeyboardInterrupt

        return make_records(alone, simulate_run(alone, None, None, advance, kept)).rounds

    with pytest.raises(KeyboardInterrupt):
        records(37, Checkpoint(tmp_path / "file", 0, "mine"))
    again = records(0, Checkpoint(tmp_path / "file", 0, "mine"))
    assert done[37] == alone.replicates * 36, "it did not begin anew"
    pd.testing.assert_frame_equal(again, records(0, None))
