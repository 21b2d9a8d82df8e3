"""All that fkl takes of Hydra besides its public modules, and why it has to; no other module does.

The loader and its sources, in `fkl.composing.loader`
    Hydra offers no place between composing a configuration and acting on it, and a file source cannot be replaced
    through its plugins: the first that is registered for a scheme stays.
What is composed of the same files again, in `fkl.composing.known`
    Hydra composes each configuration anew: 50 ms of CPU for each job of a sweep.
The composition of defaults, in `fkl.composing.grid`
    `ConfigLoader.compute_defaults_list`, which is public, always composes Hydra's own part too: the 1186 jobs of the
    papers then take 56 s of CPU in place of 10.
"""

from hydra._internal import config_loader_impl
from hydra._internal import hydra as application
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.importlib_resources_config_source import ImportlibResourcesConfigSource
from hydra._internal.core_plugins.structured_config_source import StructuredConfigSource
from hydra._internal.defaults_list import create_defaults_list
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
