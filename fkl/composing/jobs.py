"""The jobs of a sweep, before any is made: none at all is a slip, a billion would fill the memory."""

import math
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, Override, RangeSweep, Sweep
from omegaconf import DictConfig

from fkl.composing.search import TARGET, count, distribution, merged
from fkl.errors import FklError, extra, require

MOST = 100_000


def jobs(config: DictConfig, loader: ConfigLoader) -> int:
    """Jobs that a sweep will have, at most so many in a search.

    Raises
    ------
    fkl.errors.FklError
        If there would be none, or more than anyone waits for, or the sweeper cannot vary what it is told to.
    """
    overrides = _overrides(config, loader)
    sweeper = config.hydra.sweeper
    if sweeper._target_ == TARGET:
        _require_search(config, overrides)
        return int(sweeper.n_trials)
    number = 1
    for override in overrides:
        number *= _values(override)
        if number > MOST:
            raise FklError(f"{override.input_line}: more than {MOST} runs; sweep over less at a time")
    return number


def require_composed(config: DictConfig, loader: ConfigLoader) -> None:
    """Compose one job with each choice of each group, so that a name that there is not is told before any job begins.

    Hydra's own sweeper composes all jobs, but only once the sweep has its folder; others compose none.
    """
    words = [_words(override, loader) for override in _overrides(config, loader)]
    first = [some[0] for some in words]
    loader.load_sweep_config(config, first)
    for place, some in enumerate(words):
        for word in some[1:]:
            loader.load_sweep_config(config, [*first[:place], word, *first[place + 1 :]])


def _overrides(config: DictConfig, loader: ConfigLoader) -> list[Override]:
    return merged(config.hydra.sweeper.params, config.hydra.overrides.task, loader)


def _words(override: Override, loader: ConfigLoader) -> list[str]:
    """Words that a job may be given for this one: every choice of a group, and one value of a key."""
    key, values = override.get_key_element(), override._value
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if isinstance(values, IntervalSweep):
        return [f"{key}={values.start}"]
    if isinstance(values, RangeSweep):
        return [f"{key}={next(iter(values.range()))}"]
    words = [f"{key}={value}" for value in override.sweep_string_iterator()]
    return words if loader.get_group_options(override.key_or_group) else words[:1]


def _values(override: Override) -> int:
    """Values that a sweep over one key takes."""
    if not override.is_sweep_override():
        return 1
    word, values = str(override.input_line), override._value
    if isinstance(values, ChoiceSweep):
        number = len(values.list)
        if any(isinstance(value, Sweep) for value in values.list):
            raise FklError(f"{word}: must be values, not a sweep inside a sweep")
    elif isinstance(values, RangeSweep):
        number = _in_range(values, word)
    elif isinstance(values, Glob):
        number = len(list(override.sweep_iterator()))
    else:
        raise FklError(f"{word}: must be values; an interval is for hydra/sweeper=optuna")
    if not number:
        raise FklError(f"{word}: no values, so there would be no runs")
    return number


def _in_range(values: RangeSweep, word: str) -> int:
    _require_finite(word, values.start, values.stop, values.step)
    if not values.step:
        raise FklError(f"{word}: must have a step other than 0")
    return count(values)


def _require_finite(word: str, *numbers: Any) -> None:
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise FklError(f"{word}: must have finite numbers")


def _require_interval(word: str, values: IntervalSweep) -> None:
    _require_finite(word, values.start, values.end)
    if values.start > values.end:  # type: ignore[operator]
        raise FklError(f"{word}: must have its smaller end first")
    if "log" in values.tags and values.start <= 0:  # type: ignore[operator]
        raise FklError(f"{word}: must be of numbers > 0, since their logarithms are drawn from")


def _require_search(config: DictConfig, overrides: list[Override]) -> None:
    """Make what a search begins with: where it cannot be made, the sweeper has no line to tell."""
    from hydra.utils import instantiate

    with extra("sweeps", "hydra/sweeper=optuna"):
        import optuna
    require(config.objective is not None, "objective", None, "a column of summary.csv, which the search makes small")
    varied = [override for override in overrides if override.is_sweep_override()]
    if not varied:
        raise FklError("hydra/sweeper=optuna: no key to search over, for example algo.eta=interval(0.01,1)")
    for override in varied:
        word, values = str(override.input_line), override._value
        if isinstance(values, IntervalSweep):
            _require_interval(word, values)
        else:
            _values(override)
        try:
            distribution(override)
        except Exception as error:  # whatever it is, it is about this word
            raise FklError(f"{word}: {error}") from None
    sweeper = config.hydra.sweeper
    for key, make in (("sampler", instantiate), ("storage", optuna.storages.get_storage)):
        try:
            make(sweeper[key])
        except Exception as error:  # whatever it is, it is about this key
            raise FklError(f"hydra.sweeper.{key}: {error}") from None
