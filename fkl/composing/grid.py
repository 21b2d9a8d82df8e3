"""The jobs of a paper's experiment, each with the configuration that `fkl run` would give it, in a tenth of the time.

Which files a job is made of, and in which order, is for Hydra to say, as ever. They are merged here as plain data,
without Hydra's own part, which is most of the work and tells nothing of a run.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any

from hydra import version
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from omegaconf import OmegaConf

from fkl import conf_folder
from fkl.composing import experiments
from fkl.composing.hydra_internals import (
    CachingConfigRepository,
    ConfigLoaderImpl,
    ConfigSearchPathImpl,
    StructuredConfigSource,
    create_defaults_list,
)
from fkl.composing.loader import FileConfigSource

CELL = "cell"
SCHEMAS = StructuredConfigSource("schema", "structured://")
"""Which Hydra wants to be the last of its sources."""


@dataclass(frozen=True)
class Job:
    """One job of an experiment.

    Parameters
    ----------
    words : tuple of str
        Of the command line that would run it.
    config : dict
        Its configuration as plain data, without the folders that it would read and write.
    cell : dict
        Where its run stands in the paper's tables and figures.
    """

    words: tuple[str, ...]
    config: dict[str, Any]
    cell: dict[str, Any]


@cache
def jobs(experiment: str) -> tuple[Job, ...]:
    """All jobs of an experiment, named PAPER/NAME."""
    return tuple(_composer().jobs(experiment))


def count(experiment: str) -> int:
    """How many jobs an experiment has; none is composed."""
    return prod(len(one) for one in _composer().swept(experiment))


@cache
def _composer() -> "_Composer":
    return _Composer()


class _WithCells(FileConfigSource):
    """fkl's own folder, where the papers' choices have their cells."""

    view = staticmethod(experiments.for_tables)


class _Composer:
    """Hydra's composition of fkl's own configuration; a file is read once."""

    def __init__(self) -> None:
        Plugins.instance()
        version.setbase("1.3")
        self.loader = ConfigLoaderImpl(ConfigSearchPathImpl())
        self.loader.repository.sources = [_WithCells("main", f"file://{conf_folder()}"), SCHEMAS]
        self.repository = CachingConfigRepository(self.loader.repository)
        self.read: dict[str, Any] = {}
        self.parser = OverridesParser.create(config_loader=self.loader)
        primary: Any = self.repository.load_config("config")
        del primary.config["hydra"]
        own = [one for one in primary.defaults_list if not str(getattr(one, "group", "")).startswith("hydra")]
        primary.defaults_list = own

    def swept(self, experiment: str) -> list[list[Override]]:
        """What jobs differ in, one override for each value, and what they share."""
        node: Any = experiments.choice(f"{experiments.GROUP}/{experiment}")
        return [self._each(f"{key}={value}") for key, value in node["sweep"].items()]

    def jobs(self, experiment: str) -> Iterator[Job]:
        """All jobs; those that differ in values of keys only are composed once."""
        swept = self.swept(experiment)
        choices, values = ([one for one in swept if self._is_choice(one[0]) is kind] for kind in (True, False))
        for chosen in product(self._each(f"+{experiments.GROUP}={experiment}"), *choices):
            config = self._composed([*chosen])
            for given in product(*values):
                words = tuple(str(override.input_line) for override in (*chosen, *given))
                yield _job(words, _with_values(config, given))

    def _each(self, word: str) -> list[Override]:
        """One override for each value of one that is swept over."""
        [override] = self.parser.parse_overrides([word])
        if not override.is_sweep_override():
            return [override]
        key = override.get_key_element()
        return self.parser.parse_overrides([f"{key}={value}" for value in override.sweep_string_iterator()])

    def _is_choice(self, override: Override) -> bool:
        return self.repository.group_exists(override.key_or_group)

    def _composed(self, overrides: list[Override]) -> dict[str, Any]:
        found = create_defaults_list(self.repository, "config", overrides, False, False)  # without Hydra's own part
        config: dict[str, Any] = {}
        for part in found.defaults:
            _merge(config, self._plain(str(part.config_path)), part.package.split(".") if part.package else ())
        del config["paths"]
        return config

    def _plain(self, path: str) -> dict[str, Any]:
        """What a file holds, read once."""
        if path not in self.read:
            loaded: Any = self.repository.load_config(path)
            self.read[path] = OmegaConf.to_container(loaded.config)
        return self.read[path]


def _merge(config: dict[str, Any], part: dict[str, Any], package: Sequence[str] = ()) -> None:
    """Put a part's keys into a configuration, at the node that its package is."""
    node = config
    for name in package:
        node = node.setdefault(name, {})
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(node.get(key), dict):
            _merge(node[key], value)
        else:
            node[key] = deepcopy(value)


def _with_values(config: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """A configuration in which some keys have other values."""
    changed: Any = deepcopy(config)
    for override in overrides:
        *nodes, key = override.key_or_group.split(".")
        node = changed
        for name in nodes:
            node = node[name]
        node[key] = override.value()
    if "${" in str(changed):
        changed = OmegaConf.to_container(OmegaConf.create(changed), resolve=True)
    return changed


def _job(words: tuple[str, ...], config: dict[str, Any]) -> Job:
    """A job whose cell has the values that it names, for example ``M={algo[M]}``."""
    cell = config.pop(CELL, None) or {}
    named = {key: value.format(**config) if isinstance(value, str) else value for key, value in cell.items()}
    return Job(words, config, named)
