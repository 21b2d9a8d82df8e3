"""Compositions of fkl's own files, made once in a process: who makes the same choices again has a copy.

Which files a configuration is made of, and what they come to, follows from its choices of groups alone; values of keys
are put in afterwards. So the jobs of a sweep that differ in values share it, and so do the runs of a program.
"""

import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.default_element import ResultDefault
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from fkl import conf_folder
from fkl.composing import hydra_internals

MOST = 128
"""Compositions that are kept, the last that were asked for; each has some 20 kB."""
OWN_BESIDE = ("hydra.conf", "")
"""Paths of the sources beside fkl's own folder: Hydra's files, and what plugins have registered."""


class _Kept:
    """What was made of fkl's own files, as long as they are what they were then."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()

    def get(self, key: Hashable, state: Callable[[Any], Any], make: Callable[[], Any]) -> Any:
        """What was made for a key; made now, where `state` of it has changed."""
        if key in self._made:
            made, then = self._made[key]
            if state(made) == then:
                self._made.move_to_end(key)
                return made
        made = make()
        self._made[key] = made, state(made)
        self._made.move_to_end(key)
        if len(self._made) > MOST:
            self._made.popitem(last=False)
        return made


_LISTS, _CONFIGS = _Kept(), _Kept()


def defaults_list(
    repo: Any, config_name: str | None, overrides_list: list[Override], prepend_hydra: bool, skip_missing: bool
) -> Any:
    """Hydra's list of defaults, that of the same choices before where all files are fkl's own."""

    def make() -> Any:
        return hydra_internals.create_defaults_list(repo, config_name, overrides_list, prepend_hydra, skip_missing)

    if not _all_own(repo):
        return make()
    chosen: list[Override] = []
    values: list[Override] = []
    for one in overrides_list:
        if not one.is_sweep_override():
            is_choice = repo.group_exists(one.key_or_group) and not isinstance(one.value(), dict)
            (chosen if is_choice else values).append(one)
    key = (config_name, prepend_hydra, skip_missing, *(one.input_line for one in chosen))
    return replace(_LISTS.get(key, lambda made: _state(made.defaults), make), config_overrides=values)


def config(defaults: list[ResultDefault], repo: Any, make: Callable[[], DictConfig]) -> DictConfig:
    """What files come to: a copy of what they came to before, where all are fkl's own."""
    if not _all_own(repo):
        return make()
    key = tuple((one.config_path, one.package, one.is_self, one.primary) for one in defaults)
    state = _state(defaults)
    try:
        copied: DictConfig = pickle.loads(_CONFIGS.get(key, lambda _: state, lambda: pickle.dumps(make())))
    except pickle.PicklingError:  # of a launcher's class, which Hydra has made again in a worker of the launcher
        return make()
    return copied


def _all_own(repo: Any) -> bool:
    """Whether a configuration is looked for in Hydra's own files, in fkl's, and among what is registered alone."""
    return {source.path for source in repo.get_sources()} == {str(conf_folder()), *OWN_BESIDE}


def _state(defaults: Iterable[ResultDefault]) -> Any:
    """What changes where one of these files does, or what is registered beside them."""
    folder = conf_folder()
    written = [_written(folder / f"{one.config_path}.yaml") for one in defaults]
    return written, _registered(ConfigStore.instance().repo)


def _written(file: Path) -> tuple[int, int] | None:
    """When a file was written, and its size; None where it is none of fkl's own folder."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _registered(node: Any) -> Any:
    """All that is registered, by name."""
    return {name: _registered(inner) for name, inner in node.items()} if isinstance(node, dict) else node.node
