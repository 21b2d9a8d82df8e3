"""What a method says that it has learned predicts what it shows next."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import ALGORITHMS, LOCAL_BATCHES
from hydra.utils import get_class
from sklearn.datasets import load_iris

from fkl import conf_folder
from fkl.algorithms.vertical.dsg import Dsg
from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.conformance import small
from fkl.conformance.models import comparisons
from fkl.engines.base import Experiment
from fkl.runs.prepare import prepare
from fkl.tasks import task_of
from fkl.tasks.batch import BatchTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import overrides_for_keys

IRIS = (
    "dataset=file",
    "dataset.path=iris.csv",
    "dataset.target=target",
    "partition=iid",
    "partition.clients=3",
    "partition.rounds=null",
)
MORE = {
    "pof_mkl, weights": ("algo=pof_mkl", "algo.M=2", "algo.xi=0.3", "algo.eta=2", "algo.eta_k=2"),
    "em_kofl, own copies": ("algo=em_kofl", "algo.predictor=copy"),
    "rf_gp, own weights": ("algo=rf_gp", "algo.personal=true"),
    "raker, mixed families": ("algo=raker", "kernels.N=7", "kernels.laplacians=3"),
    "ada_raker, anew": ("algo=ada_raker", "algo.restart=true"),
    "omkl_gf, mixed families, frozen": ("algo=omkl_gf", "kernels.N=11", "kernels.laplacians=5", "algo.exploring=20"),
    "omkl_sfg_r, one draw": ("algo=omkl_sfg_r", "algo.exploring=20", "kernels.shared=true", "kernels.laplacians=0"),
    "dkla, logistic": ("algo=dkla", "algo.loss=logistic", "algo.iterations=20", "dataset=ellipses", "dataset.rows=90"),
    "coke, drawn anew": ("algo=coke", "algo.redraw=true", "algo.iterations=20"),
    "dsg, a bank, laplacian": (
        "algo=dsg",
        "algo.bank=8",
        "kernels=laplacian",
        "kernels.N=1",
        "kernels.smallest=1",
        "kernels.largest=1",
    ),
    "pp_svmv, linear": ("algo=pp_svmv", "algo.kernel=linear"),
    "cascade, three classes": ("algo=cascade_svm", *IRIS),
    "pf, three classes": ("algo=parsimonious_federated", *IRIS, "algo.centres=10", "algo.steps=20"),
}
OF_CLASSES = ("fed3r",)
"""Their functions are not kept: save_model=true is refused."""
SCENARIOS = {name: (f"algo={name}",) for name in ALGORITHMS if name not in OF_CLASSES} | LOCAL_BATCHES | MORE


@pytest.fixture
def _iris(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with a file of three classes."""
    load_iris(as_frame=True).frame[::5].to_csv(tmp_path / "iris.csv", index=False)
    monkeypatch.chdir(tmp_path)


def experiment_of(overrides: tuple[str, ...]) -> Experiment:
    """A small one in float64, whose last round begins a block of those that learners play at once."""
    node = yaml.safe_load((conf_folder() / "algo" / f"{overrides[0].removeprefix('algo=')}.yaml").read_text())
    algorithm = get_class(node["_target_"])
    own_data = any(word.startswith("dataset=") for word in overrides)
    upon = [word for word in small(algorithm) if not (own_data and word.startswith(("dataset", "scaling")))]
    rounds = [f"partition.rounds={getattr(algorithm, 'block', 32) + 1}"] * (task_of(algorithm) is StreamTask)
    fewer = overrides_for_keys(algorithm, angles=20, trees=3, passes=2, centres=20)
    fewer += overrides_for_keys(algorithm, iterations=20) if task_of(algorithm) is not StreamTask else ()
    return prepare(load(compose(*upon, *rounds, *fewer, *overrides, "precision=float64", "replicates=2")))


def precisions(wide: Experiment) -> Iterator[tuple[Experiment, float]]:
    """An experiment as it is and, where that is another one, in float32; how near a function must come."""
    yield wide, 1e-12
    if isinstance(wide.task, StreamTask | BatchTask):  # others have their samples in float64 whatever it is
        x = wide.problem.x.astype(np.float32)
        yield replace(wide, problem=replace(wide.problem, x=x), precision="float32"), 1e-6
    elif isinstance(wide.algorithm, Dsg):
        yield replace(wide, precision="float32"), 1e-6


@pytest.mark.usefixtures("_iris")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_function_predicts_what_its_method_shows(name: str) -> None:
    for experiment, near in precisions(experiment_of(SCENARIOS[name])):
        compared = list(comparisons(experiment))
        for one in compared:
            assert one.model == pytest.approx(one.shown, rel=near * one.times, abs=near * one.times, nan_ok=True)
        assert any(np.abs(one.shown).max() > 1e-3 for one in compared)
