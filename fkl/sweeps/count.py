"""Number of jobs in a sweep, before any job exists: zero is a mistake, and a billion would fill the memory."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, Override, RangeSweep, Sweep
from omegaconf import DictConfig

from fkl.basics.errors import FklError, requires_extra
from fkl.config.choices import Choices
from fkl.config.compose import compose_config, each_value
from fkl.sweeps.optuna import TARGET, count_values, optuna_distribution

MOST = 100_000


def count_jobs(sweeper: DictConfig, overrides: list[Override], names: Callable[[str], list[str]]) -> int:
    """Number of jobs in a sweep; for a search, the maximum.

    Parameters
    ----------
    sweeper : DictConfig
        Hydra's node.
    overrides : list of Override
        Words in which jobs differ, and words that they share.
    names : callable
        Returns the choices of a group.

    Raises
    ------
    fkl.basics.errors.FklError
        If the sweep has no jobs or too many, or the sweeper cannot vary a key.
    """
    if sweeper._target_ == TARGET:
        _require_search(sweeper, overrides, names)
        return int(sweeper.n_trials)
    number = 1
    for override in overrides:
        number *= _count_values(override, names)
        if number > MOST:
            raise FklError(f"{override.input_line}: more than {MOST} runs; split it into several sweeps")
    return number


def each_job(overrides: list[Override], names: Callable[[str], list[str]]) -> list[tuple[str, ...]]:
    """Words of every job of a sweep that tries all combinations."""
    return [*product(*(each_value(str(override.input_line), names) for override in overrides))]


def first_job(overrides: list[Override], folders: Sequence[Path]) -> dict[str, Any]:
    """The first job's configuration; each choice of each group is composed once, too.

    An unknown name is therefore reported before any job begins and before the sweep's folder exists.
    """
    choices = Choices(*folders)
    # Words to compose from each override: every choice of a group, but one value of a key
    words = []
    for override in overrides:
        key, values = override.get_key_element(), override.value()
        if isinstance(values, IntervalSweep):
            words.append([f"{key}={values.start}"])
        elif isinstance(values, RangeSweep):
            words.append([f"{key}={next(iter(values.range()))}"])
        else:
            each = each_value(str(override.input_line), choices.names)
            words.append(each if choices.is_group(override.key_or_group) else each[:1])
    first = [some[0] for some in words]
    config = compose_config(*first, folders=folders)
    for place, some in enumerate(words):
        for word in some[1:]:
            compose_config(*first[:place], word, *first[place + 1 :], folders=folders)
    return config


def _count_values(override: Override, names: Callable[[str], list[str]]) -> int:
    """Number of values of one key in a sweep."""
    if not override.is_sweep_override():
        return 1
    word, values = str(override.input_line), override.value()
    if isinstance(values, ChoiceSweep):
        number = len(values.list)
        if any(isinstance(value, Sweep) for value in values.list):
            raise FklError(f"{word}: must be values, not a sweep inside a sweep")
    elif isinstance(values, RangeSweep):
        _require_finite(word, values.start, values.stop, values.step)
        if not values.step:
            raise FklError(f"{word}: must have a step other than 0")
        number = count_values(values)
    elif isinstance(values, Glob):
        number = len(values.filter(names(override.key_or_group)))
    else:
        raise FklError(f"{word}: must be values; an interval needs hydra/sweeper=optuna")
    if not number:
        raise FklError(f"{word}: no values, so there would be no runs")
    return number


def _require_finite(word: str, *numbers: Any) -> None:
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise FklError(f"{word}: must have finite numbers")


def _require_search(sweeper: DictConfig, overrides: list[Override], names: Callable[[str], list[str]]) -> None:
    """Refuse a search that cannot begin, by trying its setup, because the sweeper's own errors take many lines."""
    from hydra.utils import instantiate

    with requires_extra("sweeps", "hydra/sweeper=optuna"):
        import optuna
    varied = [override for override in overrides if override.is_sweep_override()]
    if not varied:
        raise FklError("hydra/sweeper=optuna: no key to search over, for example algo.eta=interval(0.01,1)")
    for override in varied:
        word, values = str(override.input_line), override.value()
        if isinstance(values, IntervalSweep):
            _require_finite(word, values.start, values.end)
            if values.start > values.end:  # type: ignore[operator]
                raise FklError(f"{word}: must have its smaller end first")
            if "log" in values.tags and values.start <= 0:  # type: ignore[operator]
                raise FklError(f"{word}: must have numbers > 0, because their logarithms are drawn")
        else:
            _count_values(override, names)
        try:
            optuna_distribution(override)
        except Exception as error:  # any error here is about this word
            raise FklError(f"{word}: {error}") from None
    for key, make in (("sampler", instantiate), ("storage", optuna.storages.get_storage)):
        try:
            make(sweeper[key])
        except Exception as error:  # any error here is about this key
            raise FklError(f"hydra.sweeper.{key}: {error}") from None
