"""Composition: a data set brings its partition along, and the command line has the last word."""

import pytest
from hydra.utils import instantiate

from fkl.config.compose import compose_config
from fkl.config.loading import resolve_config


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ("", {"clients_per_site": 6, "own": 350, "other": 50}),
        ("dataset=naval", {"clients": 23, "rounds": 500}),
        ("dataset=air", {"clients_per_site": 60, "own": 350, "other": 50}),
        ("dataset=diabetes", {"clients": 4, "rounds": 100}),
        ("dataset=airfoil", {"clients": 1, "rounds": None}),
        ("dataset=file", {}),
        ("dataset=naval partition=dirichlet", {"clients": 20, "rounds": 500, "alpha": 0.5, "quantiles": 10}),
        ("partition=quantity_skew dataset=naval", {"clients": 20, "rounds": 500, "alpha": 2.0}),
        ("dataset=naval partition.clients=3", {"clients": 3, "rounds": 500}),
    ],
)
def test_partition_that_comes_with_a_data_set(overrides, expected):
    assert vars(instantiate(resolve_config(compose_config(*overrides.split()))["partition"])) == expected


def test_a_run_says_that_half_of_the_rows_bring_half_of_the_rounds(fkl):
    """What the user asks for stays what it is, and is refused where the rows are too few."""
    words = ("run", "dataset=diabetes", "kernels.D=4", "replicates=1", "rows=odd")
    assert "4 clients, 50 rounds, 10 features, 1 replicate, rows=odd\n" in fkl(*words).out
    answer = fkl(*words, "partition.rounds=100")
    said = "error: partition.clients=4: must be at most 2 (each takes 100 of the data set's 200 rows)\n"
    assert (answer.code, answer.err) == (2, said)
