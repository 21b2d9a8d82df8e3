"""Composition: a data set brings its partition along, and the command line has the last word."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

CONF = Path(__file__).parents[2] / "conf"
NODES = sorted(path for group in ("dataset", "partition") for path in (CONF / group).glob("*.yaml"))


@pytest.fixture
def composed(tmp_path):
    primary = "defaults: [{kernels: rbf}, {partition: by_site}, {dataset: wave_farm}, _self_]\n"
    (tmp_path / "primary.yaml").write_text(f"hydra: {{searchpath: ['file://{CONF}']}}\n{primary}")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        yield lambda *overrides: compose("primary", list(overrides))


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], {"clients_per_site": 6, "own": 350, "other": 50}),
        (["dataset=naval"], {"clients": 23, "rounds": 500, "order": "consecutive"}),
        (["dataset=uji"], {"clients": 42, "rounds": 500, "order": "consecutive"}),
        (["dataset=air"], {"clients_per_site": 60, "own": 350, "other": 50}),
        (["dataset=wec"], {"clients_per_site": 140, "own": 350, "other": 50}),
        (["dataset=wave_farm"], {"clients_per_site": 6, "own": 350, "other": 50}),
        (["dataset=synthetic"], {"clients": 20, "rounds": 500, "order": "consecutive"}),
        (["dataset=diabetes"], {"clients": 4, "rounds": 100, "order": "shuffled"}),
        (["dataset=airfoil"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=bias"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=concrete"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=energy"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=airquality"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=toms_hardware"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=twitter"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=file"], {}),
        (["dataset=naval", "partition=stream"], {"clients": 1, "rounds": None, "order": "consecutive"}),
        (["dataset=naval", "partition=dirichlet"], {"clients": 20, "rounds": 500, "alpha": 0.5, "quantiles": 10}),
        (["partition=quantity_skew", "dataset=naval"], {"clients": 20, "rounds": 500, "alpha": 2.0}),
        (["dataset=naval", "partition.clients=3"], {"clients": 3, "rounds": 500, "order": "consecutive"}),
    ],
)
def test_partition_that_comes_with_a_data_set(composed, overrides, expected):
    partition = instantiate(composed(*overrides).partition)
    assert vars(partition) == expected


@pytest.mark.parametrize("path", NODES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_node_starts_with_one_comment_and_writes_out_its_class_s_keys(composed, path):
    first, second = path.read_text().splitlines()[:2]
    assert first.startswith("# ")
    assert not second.startswith("#")
    group = path.parent.name
    node = composed(f"{group}={path.stem}")[group]
    schema = OmegaConf.structured(get_class(node._target_))
    assert {key for key in node if key != "_target_"} == set(schema)
    if group == "dataset":
        assert vars(instantiate(node)) == dict(schema)
