"""A hyperparameter search by Optuna, as a sweeper for Hydra: ``hydra/sweeper=optuna``."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import MISSING, DictConfig, OmegaConf

from fkl.config.compose import parse_words
from fkl.screen.messages import show_warning

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

TARGET = "fkl.sweeps.optuna.Search"
BEST = "optimization_results.yaml"


@dataclass
class Sampler:
    """The sampler that proposes values: its class, and its seed, a key that all of Optuna's samplers have."""

    _target_: str = MISSING
    seed: int | None = None


@dataclass
class SearchKeys:
    """Keys of ``hydra.sweeper`` in a search.

    Parameters
    ----------
    sampler : Sampler
        Sampler of optuna.samplers; further keys are added as ``+hydra.sweeper.sampler.multivariate=true``. A search
        that continues a study draws values that depend on the seed and on the study's number of trials.
    direction : str
        ``minimize`` or ``maximize`` the objective.
    storage : str or None
        URL of a database that stores the search, and from which the search resumes.
    study_name : str or None
        Name of the search in the database.
    n_trials, n_jobs : int
        Total number of runs, and number of runs that are proposed and launched at once.
    params : dict
        Search space, and words that all runs share, as in Hydra's own sweeper.
    """

    _target_: str = TARGET
    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    sampler: Sampler = MISSING
    direction: str = "minimize"
    storage: str | None = None
    study_name: str | None = None
    n_trials: int = 20
    n_jobs: int = 2
    params: dict[str, str] | None = None


class Search(Sweeper):
    """Propose values, launch the runs, and pass the results to the sampler, repeatedly; see `SearchKeys`."""

    def __init__(
        self,
        sampler: "BaseSampler",
        direction: str,
        storage: str | None,
        study_name: str | None,
        n_trials: int,
        n_jobs: int,
        params: Mapping[str, str] | None,
    ) -> None:
        self.study = {"sampler": sampler, "direction": direction, "storage": storage, "study_name": study_name}
        self.n_trials, self.n_jobs, self.params = n_trials, n_jobs, params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Receive the launcher from Hydra."""
        self.hydra_context: HydraContext = hydra_context
        self.config: DictConfig = config
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Do the search, and write the best values and their result to the sweep's folder."""
        import optuna

        from fkl.basics.files import write_text

        folder = Path(str(self.config.hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        overrides = merge_overrides(self.params, arguments)
        space = {one.get_key_element(): optuna_distribution(one) for one in overrides if one.is_sweep_override()}
        shared = [
            f"{one.get_key_element()}={one.get_value_element_as_str()}"
            for one in overrides
            if not one.is_sweep_override()
        ]
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(**self.study, load_if_exists=True)  # type: ignore[arg-type]
        self._draw_anew(study)
        worst = math.inf if self.study["direction"] == "minimize" else -math.inf
        for begun in range(0, self.n_trials, self.n_jobs):
            trials = [study.ask(space) for _ in range(min(self.n_jobs, self.n_trials - begun))]
            words = [[*(f"{key}={value}" for key, value in one.params.items()), *shared] for one in trials]
            for trial, ended in zip(trials, self.launcher.launch(words, initial_job_idx=begun), strict=True):
                study.tell(trial, _value_of_run(ended, worst))
        best = {"name": "optuna", "best_params": study.best_trial.params, "best_value": study.best_value}
        write_text(folder / BEST, yaml.safe_dump(best, sort_keys=False))

    def _draw_anew(self, study: "optuna.Study") -> None:
        """Let a seeded sampler draw new values in a study that already has trials."""
        import numpy as np
        from hydra.utils import instantiate
        from optuna.samplers import QMCSampler

        keys, known = self.config.hydra.sweeper.sampler, len(study.trials)
        if known and keys.seed is not None and not isinstance(study.sampler, QMCSampler):  # that counts in the study
            seed = int(np.random.SeedSequence([keys.seed, known]).generate_state(1)[0])
            study.sampler = instantiate(keys, seed=seed)


def _value_of_run(ended: JobReturn, worst: float) -> float:
    """Result of a run; infinitely bad if the run failed, or if a cluster ended it."""
    try:
        value = float(ended.return_value)
    except Exception as error:  # any error: the search continues, as sweeps do
        show_warning(f"{type(error).__name__}: {error}")
        return worst
    return value if math.isfinite(value) else worst


def merge_overrides(params: Mapping[str, str] | None, words: Sequence[str]) -> list[Override]:
    """Overrides of all jobs; as in Hydra, the last word about a key counts."""
    every = parse_words([*(f"{key}={value}" for key, value in (params or {}).items()), *words])
    return list({override.get_key_element(): override for override in every}.values())


def optuna_distribution(override: Override) -> "BaseDistribution":
    """Distribution of a key's values in Optuna: an interval, or the values of a range or a choice.

    Raises
    ------
    ValueError
        If the key has no value to draw.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    values = override.value()
    if isinstance(values, IntervalSweep):
        whole = isinstance(values.start, int) and isinstance(values.end, int)
        kind: Any = IntDistribution if whole else FloatDistribution
        return kind(values.start, values.end, log="log" in values.tags)
    if isinstance(values, RangeSweep) and not values.shuffle:
        start, step = values.start, values.step
        last = start + (count_values(values) - 1) * step  # type: ignore[operator]
        kind = IntDistribution if isinstance(start, int) and isinstance(step, int) else FloatDistribution
        return kind(min(start, last), max(start, last), step=abs(step))  # type: ignore[type-var]
    choices: Any = override.sweep_iterator(transformer=Transformer.encode)
    return CategoricalDistribution([*choices])


def count_values(values: RangeSweep) -> int:
    """Number of values in a range, without its end."""
    return max(0, math.ceil((values.stop - values.start) / values.step))  # type: ignore[operator]


def register_sweeper() -> None:
    """Register ``hydra/sweeper=optuna``, which replaces any other plugin with that name."""
    store = ConfigStore.instance()
    shipped = store.repo.get("hydra", {}).get("sweeper", {}).get("optuna.yaml")
    if shipped is not None and shipped.provider == "fkl":
        return
    store.store(group="hydra/sweeper", name="optuna", node=SearchKeys, provider="fkl")
    for name, sampler in (("tpe", "TPESampler"), ("random", "RandomSampler")):
        node = Sampler(_target_=f"optuna.samplers.{sampler}")
        store.store(group="hydra/sweeper/sampler", name=name, node=node, provider="fkl")
