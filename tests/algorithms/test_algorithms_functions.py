"""What a method says that it has learned predicts what it shows next, also in single precision."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from fkl.conformance import quick_run
from fkl.conformance.models import compare_models
from fkl.runs.prepare import prepare_run

IRIS = (
    "dataset=file dataset.path=iris.csv dataset.target=target partition=iid partition.clients=3 partition.rounds=null"
)
SCENARIOS = [
    "algo=pof_mkl algo.M=2 algo.xi=0.3 algo.eta=2 algo.eta_k=2",
    "algo=em_kofl algo.predictor=copy",
    "algo=rf_gp algo.personal=true",
    "algo=domkl",
    "algo=raker kernels.N=7 kernels.laplacians=3",
    "algo=ada_raker algo.restart=true",
    "algo=omkl_gf kernels.N=11 kernels.laplacians=5 algo.exploring=20",
    "algo=omkl_sfg_r algo.exploring=20 kernels.shared=true kernels.laplacians=0",
    *(f"algo={name} partition.rounds=257" for name in ("omkr", "poly_2", "rbf_1")),
    *(f"algo={name} partition.rounds=90" for name in ("pooled_raker", "pooled_ada_raker", "pooled_omkl_gf")),
    "algo=fedavg kernels=coke algo.eta=0.5 algo.iterations=20",
    "algo=dkla algo.loss=logistic algo.iterations=20 dataset=ellipses dataset.rows=90",
    "algo=coke algo.redraw=true algo.iterations=20",
    "algo=dsg algo.bank=8 kernels=laplacian kernels.N=1 kernels.smallest=1 kernels.largest=1",
    "algo=pp_svmv algo.kernel=linear",
    f"algo=cascade_svm {IRIS}",
    f"algo=parsimonious_federated {IRIS} algo.centres=10 algo.steps=20",
]
"""Keys beside the default ones, for which `fkl.conformance` asks the same; rounds that begin a block of a learner's."""


@pytest.mark.parametrize("words", SCENARIOS)
def test_a_function_predicts_what_its_method_shows(words: str, tmp_path, monkeypatch) -> None:
    load_iris(as_frame=True).frame[::5].to_csv(tmp_path / "iris.csv", index=False)
    monkeypatch.chdir(tmp_path)
    compared = list(compare_models(prepare_run(quick_run(*words.split())), np.random.default_rng(0)))
    for one in compared:
        assert one.model == pytest.approx(one.shown, rel=1e-6 * one.times, abs=1e-6 * one.times, nan_ok=True)
    assert any(np.abs(one.shown).max() > 1e-3 for one in compared)
