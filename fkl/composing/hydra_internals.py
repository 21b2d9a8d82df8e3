"""All that fkl takes of Hydra besides its public modules, and why it has to; no other module does.

The loader and its sources, in `fkl.composing.loader`
    Hydra offers no place between composing a configuration and acting on it, and a file source cannot be replaced
    through its plugins: the first that is registered for a scheme stays.
What is composed of the same files again, in `fkl.composing.known`
    Hydra composes each configuration anew: 50 ms of CPU for each job of a sweep.
The composition of defaults, in `fkl.composing.grid`
    `ConfigLoader.compute_defaults_list`, which is public, always composes Hydra's own part too: the 1186 jobs of the
    papers then take 56 s of CPU in place of 10.
What Hydra does for nothing
    For every file it gathers what interpolations in its list of defaults could name, and hardly any list has one; and
    it reads the numbers of its own version again and again. Without it a composition takes half of the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from hydra import version
from hydra._internal import config_loader_impl, defaults_list
from hydra._internal import hydra as application
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.importlib_resources_config_source import ImportlibResourcesConfigSource
from hydra._internal.core_plugins.structured_config_source import StructuredConfigSource
from hydra._internal.sources_registry import SourcesRegistry

__all__ = [
    "CachingConfigRepository",
    "ConfigLoaderImpl",
    "ConfigSearchPathImpl",
    "FileConfigSource",
    "ImportlibResourcesConfigSource",
    "SourcesRegistry",
    "StructuredConfigSource",
    "application",
    "config_loader_impl",
    "create_defaults_list",
]


def create_defaults_list(*given: Any) -> Any:
    """Hydra's function of this name, without what it does for nothing."""
    with _nothing_in_vain():
        return defaults_list.create_defaults_list(*given)


@contextmanager
def _nothing_in_vain() -> Iterator[None]:
    gather, read = defaults_list._create_interpolation_map, version._get_version

    def gathered(overrides: Any, defaults: Any, self_added: bool) -> Any:
        wanted = any(one.is_interpolation() for one in defaults)
        return gather(overrides, defaults, self_added) if wanted else None

    defaults_list._create_interpolation_map = gathered  # type: ignore[assignment]
    version._get_version = cache(read)
    try:
        yield
    finally:
        defaults_list._create_interpolation_map, version._get_version = gather, read
