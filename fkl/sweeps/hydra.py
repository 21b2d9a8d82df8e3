"""A sweep with Hydra's sweepers and launchers, which get the configuration of each job from fkl.

Hydra itself composes only the node `hydra`, from words of the command line. No configuration file can change it, so no
file chooses the classes that Hydra instantiates.
"""

import os
import re
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Never

import hydra
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException
from hydra.types import HydraContext
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fkl.basics.errors import BadValue, FklError, require
from fkl.config.choices import Choices, no_such_key, not_known
from fkl.config.compose import (
    compose_config,
    is_hydras,
    parse_words,
    quote_word,
    quoted_for_sweep,
    read_words,
    sweep_of,
)
from fkl.config.loading import resolve_config
from fkl.runs.metrics import LARGER_IS_BETTER, defining_keys, keys_of_samples
from fkl.sweeps import optuna
from fkl.sweeps.count import count_jobs, first_job
from fkl.sweeps.job import note_results, run_job
from fkl.sweeps.launcher_keys import require_allowed, require_folder
from fkl.sweeps.launchers import Launcher

OF_HYDRA = re.compile(r"[+~]*hydra(?![\w])")
KEYS = re.compile(r"\+{0,2}hydra(/launcher|/sweeper(/sampler)?|\.sweep\.dir|\.launcher\..+|\.sweeper\.(?!params).+)")
ALLOWED = "hydra/launcher, hydra.launcher.KEY, hydra/sweeper, hydra/sweeper/sampler, hydra.sweeper.KEY, hydra.sweep.dir"
NODE = {
    "defaults": [{"override hydra/job_logging": "none"}, {"override hydra/hydra_logging": "none"}],
    "hydra": {
        "run": {"dir": "."},
        "sweep": {"dir": "${paths.outputs}/sweeps/${now:%Y-%m-%d_%H-%M-%S-%f}", "subdir": "."},
        "output_subdir": None,
        "job": {"name": "fkl run", "chdir": False},
    },
    "paths": {"outputs": "outputs"},
}
"""The configuration that Hydra composes. A run stores its configuration and its files itself."""


class JobLoader(ConfigLoader):
    """Gives job configurations to Hydra's sweepers and launchers, which pass it to their workers.

    Parameters
    ----------
    folders : sequence of Path
        Folders with choices, in addition to fkl's own.
    shared : sequence of str
        Words of all jobs that Hydra's sweepers cannot parse.
    """

    def __init__(self, folders: Sequence[Path] = (), shared: Sequence[str] = ()) -> None:
        self.folders, self.shared = tuple(folders), tuple(shared)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Compose a job's configuration, as for a single run, together with Hydra's node."""
        words = [*self.shared, *sweep_overrides]
        config = OmegaConf.create(compose_config(*words, folders=self.folders))
        config["hydra"] = deepcopy(master_config["hydra"])
        OmegaConf.set_readonly(config.hydra, False)
        config.hydra.overrides.task = words
        return config

    def get_group_options(self, group_name: str, *_: Any, **__: Any) -> list[str]:
        """Names of a group, for glob(*)."""
        return Choices(*self.folders).names(group_name)

    def _not_asked(self, *_: Any, **__: Any) -> Never:
        raise NotImplementedError("fkl composes; Hydra only asks for configurations of jobs")

    load_configuration = get_search_path = get_sources = list_groups = compute_defaults_list = _not_asked


class NoCallbacks:
    """Callbacks for the beginning and end of a job, which fkl does not use."""

    def on_job_start(self, **_: Any) -> None:
        """Do nothing."""

    on_job_end = on_job_start


def run_sweep(
    words: Sequence[str],
    folders: Sequence[Path] = (),
    *,
    fail_fast: bool = False,
    quiet: bool = False,
) -> None:
    """Do a run for every combination of the values in these words, or for the proposals of a search.

    Parameters
    ----------
    words : sequence of str
        Words of the command line.
    folders : sequence of Path
        Folders with choices, in addition to fkl's own.
    fail_fast : bool
        Whether to skip the remaining jobs after a failure.
    quiet : bool
        Whether only the closing table is printed.

    Raises
    ------
    fkl.basics.errors.FklError
        Before the first job, without writing anything, if a job cannot be composed.
    SystemExit
        With code 2 if a job failed.
    """
    os.environ["PYTHONSAFEPATH"] = "1"  # otherwise workers would find their modules in the current folder first
    choices = Choices(*folders)
    run_words, params, overrides = job_words(words, folders)
    config = composed_node([word for word in words if OF_HYDRA.match(word)])
    require_allowed(config.hydra)
    sweeper = config.hydra.sweeper
    jobs = count_jobs(sweeper, overrides, choices.names)
    first = first_job(overrides, folders)
    if sweeper._target_ == optuna.TARGET:
        allowed = "a column of summary.csv, which the search minimises"
        objective = first["objective"]
        require(objective is not None, "objective", None, allowed)
        upwards = sweeper.direction == "maximize" or objective not in LARGER_IS_BETTER
        require(upwards, "objective", objective, f"{allowed}, or give hydra.sweeper.direction=maximize")
        searched = [one.get_key_element().lstrip("+") for one in overrides if one.is_sweep_override()]
        other = [one for one in searched if one in (*defining_keys(objective, first), *keys_of_samples(objective))]
        one_each = f"a column that is one function for all values of {' and '.join(other)}, whose best value would be"
        require(not other, "objective", objective, f"{one_each} the one with the smallest numbers")
    try:
        with open_dict(config):
            config.paths = resolve_config(first)["paths"]
            config.hydra.sweep.dir = str(config.hydra.sweep.dir)
    except OmegaConfBaseException as error:
        raise FklError(f"hydra.sweep.dir: {str(error).splitlines()[0]}") from None
    folder = config.hydra.sweep.dir
    require_folder("hydra.sweep.dir", folder)
    sweeper.params = params
    HydraConfig.instance().set_config(config)
    shared = [word for word in run_words if not is_hydras(word)]
    context = HydraContext(config_loader=JobLoader(folders, shared), callbacks=NoCallbacks())  # type: ignore[arg-type]
    alone = config.hydra.launcher._target_.endswith("BasicLauncher")  # progress bars of several workers would mix
    swept = [*params, *(one.get_key_element().lstrip("+") for one in parse_words(run_words) if one.is_sweep_override())]
    plan = {"jobs": jobs, "fail_fast": fail_fast, "swept": swept, "quiet": quiet, "progress": alone and not quiet}
    with note_results(Path(folder), plan, quiet):
        if sweeper._target_ == optuna.TARGET:
            made = instantiate(sweeper)
            made.setup(hydra_context=context, task_function=run_job, config=config)
        else:
            made = Plugins.instance().instantiate_sweeper(hydra_context=context, task_function=run_job, config=config)
        made.launcher = Launcher(made.launcher)
        made.sweep([word for word in run_words if word not in shared])


def job_words(words: Sequence[str], folders: Sequence[Path]) -> tuple[list[str], dict[str, str], list[Override]]:
    """Words of a sweep's jobs: the given words, the sweep of an experiment that they choose, and both merged."""
    given = [word for word in words if not OF_HYDRA.match(word)]
    chosen = [word for word, one in zip(given, parse_words(given), strict=True) if not one.is_sweep_override()]
    swept = sweep_of(read_words(chosen), folders)
    words = quoted_for_sweep([*given, *(f"{key}={value}" for key, value in swept.items())], folders)
    run_words = words[: len(given)]
    params = {key: word.partition("=")[2] for key, word in zip(swept, words[len(given) :], strict=True)}
    return run_words, params, optuna.merge_overrides(params, run_words)


def composed_node(words: Sequence[str]) -> DictConfig:
    """Hydra's node from these words, as Hydra composes it.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the key and its allowed values.
    """
    for word, override in zip(words, parse_words(words), strict=True):
        if not KEYS.fullmatch(override.get_key_element()):
            raise FklError(f"{word}: no such key of Hydra's here; keys are {ALLOWED}")
        if override.is_sweep_override():
            raise FklError(f"{word}: must be one value; a sweep varies keys of a run")
        if "/" in override.key_or_group and not isinstance(override.value(), str):
            raise BadValue(override.key_or_group, override.value(), "the name of a choice")
    ConfigStore.instance().store(name="fkl_sweep", node=NODE, provider="fkl")
    optuna.register_sweeper()
    try:
        with hydra.initialize(version_base="1.3", config_path=None):
            return hydra.compose("fkl_sweep", [quote_word(word) for word in words], return_hydra_config=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise _hydra_refusal(error) from None


def _hydra_refusal(error: Exception) -> FklError:
    """Hydra's error about these words, in one line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return not_known(str(error.missing_cfg_file), error.options or [])
    cause = error.__cause__
    if isinstance(error, ConfigCompositionException) and isinstance(cause, OmegaConfBaseException):
        if not isinstance(cause, ConfigKeyError | ConfigAttributeError):
            return FklError(f"{cause.full_key}: {str(cause).splitlines()[0]}")
        if isinstance(cause.parent_node, DictConfig) and cause.full_key:
            return no_such_key(cause.full_key, cause.parent_node)
    return FklError(" ".join(str(error).split()))
