"""Keys that change no number are refused by name, or decide no digest."""

import pytest
from conftest import ALGORITHMS
from hydra import compose, initialize_config_dir

from fkl import conf_folder
from fkl.basics.errors import BadValue
from fkl.config.loading import Run, load
from fkl.contract.world import FEATURE_KEYS


def run(*words: str) -> Run:
    """A checked configuration."""
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return load(compose("config", list(words)))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_only_methods_that_use_kernels_have_them(algo: str) -> None:
    found = run(f"algo={algo}")
    used = getattr(found.algo, "uses_kernels", True)
    assert (found.kernels is not None) == used == ("kernels" in found.resolved)


@pytest.mark.parametrize("algo", ["perfedavg", "omkr", "poly_2", "rbf_1", "dsg", "fdskl"])
def test_random_features_that_nobody_draws_decide_no_digest(algo: str) -> None:
    one, other = run(f"algo={algo}"), run(f"algo={algo}", "kernels.D=7", "kernels.map=cosine")
    assert one.digest == other.digest
    assert other.resolved["kernels"]["D"] == 7, "which the user may read again"
    assert type(one.algo).idle == FEATURE_KEYS
    decisive = {"perfedavg": "algo.lam=0.5", "dsg": "kernels.smallest=2", "fdskl": "kernels.smallest=2"}
    assert one.digest != run(f"algo={algo}", decisive.get(algo, "replicates=2")).digest


def test_kernels_in_hindsight_are_those_of_every_stream() -> None:
    """PerFedAvg has none, but its regret is against them."""
    assert run("algo=perfedavg").digest != run("algo=perfedavg", "kernels.N=5").digest
    assert run("algo=pof_mkl").digest != run("algo=pof_mkl", "kernels.D=7").digest


def test_a_method_without_the_kernels_that_it_needs_is_refused() -> None:
    with pytest.raises(BadValue, match="kernels=None: must be kernels for POF-MKL, for example kernels=rbf"):
        run("~kernels")
