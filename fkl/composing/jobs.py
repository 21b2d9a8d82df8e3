"""How many jobs a sweep has, before any is made: none at all is a slip, and a billion would fill the memory."""

import math
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, RangeSweep
from omegaconf import DictConfig

from fkl.errors import FklError, require

MOST = 100_000
OPTUNA = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"


def jobs(config: DictConfig, loader: ConfigLoader) -> int:
    """Jobs that a sweep will have, at most so many in a search.

    Raises
    ------
    fkl.errors.FklError
        If there would be none, or more than anyone waits for, or the sweeper cannot vary what it is told to.
    """
    sweeper = config.hydra.sweeper
    words = [f"{key}={value}" for key, value in (sweeper.params or {}).items()] + list(config.hydra.overrides.task)
    overrides = OverridesParser.create(config_loader=loader).parse_overrides(words)
    if sweeper._target_ == OPTUNA:
        return _trials(config, overrides)
    last = {override.get_key_element(): override for override in overrides}  # as Hydra has it
    number = math.prod(_values(override) for override in last.values())
    if number > MOST:
        raise FklError(f"{number} runs: must be at most {MOST}; sweep over less at a time")
    return number


def _values(override: Override) -> int:
    """Values that a sweep over one key takes."""
    if not override.is_sweep_override():
        return 1
    word = override.input_line
    values: Any = override._value
    if isinstance(values, ChoiceSweep):
        number = len(values.list)
    elif isinstance(values, RangeSweep):
        number = _in_range(values, str(word))
    elif isinstance(values, Glob):
        number = len(list(override.sweep_iterator()))
    else:
        raise FklError(f"{word}: an interval is for hydra/sweeper=optuna; write values, or range(FROM,TO,STEP)")
    if not number:
        raise FklError(f"{word}: no values, so there would be no runs")
    return number


def _in_range(values: RangeSweep, word: str) -> int:
    ends = (values.start, values.stop, values.step)
    numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    if not numbers or not values.step:
        raise FklError(f"{word}: must be range(FROM,TO,STEP) of finite numbers, with a step other than 0")
    return max(0, math.ceil((values.stop - values.start) / values.step))  # type: ignore[operator]


def _trials(config: DictConfig, overrides: list[Override]) -> int:
    """Runs of a search, whose sweeper is asked whether it knows what to vary."""
    from hydra_plugins.hydra_optuna_sweeper._impl import create_optuna_distribution_from_override

    require(config.objective is not None, "objective", None, "a column of summary.csv, which the search makes small")
    for override in overrides:
        try:
            create_optuna_distribution_from_override(override)
        except (AssertionError, NotImplementedError, TypeError, ValueError) as error:
            raise FklError(f"{override.input_line}: {error}") from None
    if not any(override.is_sweep_override() for override in overrides):
        raise FklError("hydra/sweeper=optuna: no key to search over, for example algo.eta=interval(0.01,1)")
    return int(config.hydra.sweeper.n_trials)
