"""Which keys decide a run's digest, and which change no number."""

from dataclasses import fields
from typing import Any

import pytest

from fkl.basics.errors import BadValue
from fkl.config import digest
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_run
from fkl.config.settings import Settings
from fkl.contract.world import FEATURE_KEYS


def run(*words: str) -> Run:
    """A checked configuration."""
    return load_run(compose_config(*words))


DECIDE = {
    "seed": "1", "replicates": "3", "precision": "float64", "engine": "numpy", "scaling": "unit_box", "rows": "judge_3",
    "learners": "alone", "stop_when": "mse<0.1", "metrics": "{own: math.hypot}",
}  # fmt: skip
PLACE_OR_SPEED = {
    "threads": "1", "chunk": "1", "checkpoint_s": "1", "objective": "mse", "save_model": "true", "figures": "none",
    "out": "here", "save_sums": "total",
}  # fmt: skip


def test_every_key_of_a_run_decides_its_digest_but_those_of_place_and_speed() -> None:
    assert {*DECIDE, *PLACE_OR_SPEED, "like"} == {field.name for field in fields(Settings)}
    plain = run()
    for key, value in (DECIDE | PLACE_OR_SPEED).items():
        other = run(f"{key}={value}")
        assert (other.digest != plain.digest) == (key in DECIDE), key
        same = digest.config_identity(other.resolved) == digest.config_identity(plain.resolved)
        assert same == (key not in DECIDE), key
    for word in ("paths.outputs=x", "logger=jsonl"):
        assert run(word).digest == plain.digest


def test_a_key_that_is_null_names_a_run_as_before_there_was_the_key() -> None:
    resolved = run().resolved
    before: dict[str, Any] = {
        key: value for key, value in resolved.items() if key not in ("metrics", "stop_when", "like")
    }
    assert digest.decisive_part(resolved) == digest.decisive_part(before)
    assert digest.config_identity(resolved) == digest.config_identity(before)


def test_only_methods_that_use_kernels_have_them() -> None:
    for found in map(run, ("algo=pof_mkl", "algo=libsvm")):
        used = getattr(found.algo, "uses_kernels", True)
        assert (found.kernels is not None) == used == ("kernels" in found.resolved)


@pytest.mark.parametrize(
    ("algo", "decisive"), {"perfedavg": "kernels.N=5", "omkr": "replicates=2", "fdskl": "kernels.smallest=2"}.items()
)
def test_random_features_that_nobody_draws_decide_no_digest(algo: str, decisive: str) -> None:
    one, other = run(f"algo={algo}"), run(f"algo={algo}", "kernels.D=7", "kernels.map=cosine")
    assert one.digest == other.digest
    assert other.resolved["kernels"]["D"] == 7, "which the user may read again"
    assert type(one.algo).idle == FEATURE_KEYS
    assert one.digest != run(f"algo={algo}", decisive).digest


def test_a_method_without_the_kernels_that_it_needs_is_refused() -> None:
    with pytest.raises(BadValue, match="kernels=None: must be kernels for POF-MKL, for example kernels=rbf"):
        run("~kernels")
