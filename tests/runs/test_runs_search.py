"""A search for hyper-parameters proposes what Optuna by itself would, and an extra that is missing is named."""

import math
from types import SimpleNamespace

import optuna
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from fkl.sweeps import optuna as search

optuna.logging.set_verbosity(optuna.logging.WARNING)


def parsed(word):
    [override] = OverridesParser.create().parse_overrides([word])
    return override


@pytest.mark.parametrize(
    ("values", "drawn_from"),
    [
        ("interval(0.5,2)", FloatDistribution(0.5, 2)),
        ("tag(log,interval(1e-4,1))", FloatDistribution(1e-4, 1, log=True)),
        ("range(0,10,4)", IntDistribution(0, 8, step=4)),
        ("range(5,0,-2)", IntDistribution(1, 5, step=2)),
        ("range(0,1,0.25)", FloatDistribution(0, 0.75, step=0.25)),
        ("0.1,0.2", CategoricalDistribution([0.1, 0.2])),
        ("choice(a,b)", CategoricalDistribution(["a", "b"])),
    ],
)
def test_what_a_sweep_s_words_are_drawn_from(values, drawn_from):
    assert search.optuna_distribution(parsed(f"algo.x={values}")) == drawn_from


def searched(folder, objective, sampler, n_jobs=1, direction="minimize", n_trials=12, storage=None):
    """Words of the jobs of a search over x and z, and the file with the best, where a job is a function of both."""
    launched = []

    def launch(batch, initial_job_idx):
        assert initial_job_idx == len(launched)
        launched.extend(batch)
        assert all(words[-1] == "algo=dkla" for words in batch)
        pairs = [[word.partition("=")[2] for word in words[:2]] for words in batch]
        return [SimpleNamespace(return_value=objective(float(x), z)) for x, z in pairs]

    sweeper = search.Search(sampler, direction, storage, "one", n_trials, n_jobs, {"x": "interval(0.0,1.0)"})
    keys = {"_target_": f"optuna.samplers.{type(sampler).__name__}", "seed": 5}
    sweeper.config = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}, "sweeper": {"sampler": keys}}})
    sweeper.hydra_context = SimpleNamespace(config_loader=None)
    sweeper.launcher = SimpleNamespace(launch=launch)
    sweeper.sweep(["z=a,b", "algo=dkla"])
    return launched, OmegaConf.load(folder / search.BEST)


def distance(x, z):
    return abs(x - 0.3) + (z == "b")


def test_a_search_is_optuna_s_own(tmp_path):
    """Its `optimize` with the same seed asks for the same values in the same order, and finds the same."""
    sampler = optuna.samplers.TPESampler
    launched, best = searched(tmp_path, distance, sampler(seed=5))
    space = {"x": FloatDistribution(0, 1), "z": CategoricalDistribution(["a", "b"])}
    study = optuna.create_study(sampler=sampler(seed=5))
    for _ in range(12):
        trial = study.ask(space)
        study.tell(trial, distance(**trial.params))
    assert launched == [[f"x={one.params['x']}", f"z={one.params['z']}", "algo=dkla"] for one in study.trials]
    assert best == {"name": "optuna", "best_params": study.best_params, "best_value": study.best_value}


@pytest.mark.parametrize(("direction", "expected"), [("minimize", min), ("maximize", max)])
def test_a_failed_trial_is_never_the_best(tmp_path, direction, expected):
    """A failed job gives infinity, see `fkl.sweeps.job.run_job`, whichever way the search goes."""
    seen = []

    def often_fails(x, z):
        seen.append(math.inf if z == "b" else x)
        return seen[-1]

    _, best = searched(tmp_path, often_fails, optuna.samplers.RandomSampler(seed=1), direction=direction)
    assert math.inf in seen
    assert best.best_value == expected(value for value in seen if value < math.inf)
