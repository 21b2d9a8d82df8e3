"""Hydra's loader of configurations, which can be another's files: it reads them with limits, and checks what it made.

Hydra makes its loader itself and offers no other place between composing a configuration and acting on it (it sets up
logging, then makes callbacks), so `guarded` puts this one in its place. Workers of a sweep get it too: it is pickled
with the sweep's context.
"""

import builtins
import pickle
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import hydra
from hydra.core.default_element import InputDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl import conf_folder
from fkl.composing import experiments, hydra_internals, known, resolvers, search  # noqa: F401
from fkl.composing.hydra_node import require_allowed
from fkl.composing.interpolation import require_bounded
from fkl.composing.jobs import jobs, require_composed
from fkl.composing.quoting import quoted
from fkl.composing.yaml_file import read_config, read_text
from fkl.errors import BadValue, FklError

UNFORESEEN = (AssertionError, AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError)
"""What Hydra raises, besides its own errors, where words or files make no sense to it."""


class FileConfigSource(hydra_internals.FileConfigSource):
    """A configuration folder whose files are read with limits; in fkl's own are the papers' choices, too."""

    view = staticmethod(experiments.for_runs)

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider, path)
        self.with_papers = Path(self.path).resolve() == conf_folder()

    def load_config(self, config_path: str) -> ConfigResult:
        """One YAML, or a line about what is wrong with it; or a choice of a paper's."""
        if self.with_papers and (node := experiments.choice(config_path)) is not None:
            whole = OmegaConf.create(self.view(node))
            return ConfigResult(self.provider, f"file://{self.path}", whole, {"package": "_global_"})
        file = Path(self.path) / self._normalize_file_name(config_path)
        text = read_text(file)
        try:
            header = self._get_header_dict(text[:512])
            config = read_config(text, file)
        except (OmegaConfBaseException, ValueError) as error:
            raise FklError(f"{file}: {error}") from None
        return ConfigResult(self.provider, f"file://{self.path}", config, header)

    def is_group(self, config_path: str) -> bool:
        """Whether it is a folder, or a group of a paper's."""
        return super().is_group(config_path) or (self.with_papers and experiments.is_group(config_path))

    def is_config(self, config_path: str) -> bool:
        """Whether it is a file, or a choice of a paper's."""
        return super().is_config(config_path) or (self.with_papers and experiments.choice(config_path) is not None)

    def list(self, config_path: str, results_filter: ObjectType | None) -> "builtins.list[str]":
        """What is in a group."""
        found = super().list(config_path, results_filter) if super().is_group(config_path) else []
        if not self.with_papers:
            return found
        groups = set() if results_filter == ObjectType.CONFIG else experiments.groups_in(config_path)
        names = set() if results_filter == ObjectType.GROUP else set(experiments.choices().get(config_path, ()))
        return sorted({*found, *groups, *names})


class ImportlibResourcesConfigSource(hydra_internals.ImportlibResourcesConfigSource):
    """Hydra's own configuration; reading another package's would import it."""

    read: ClassVar[dict[str, bytes]] = {}

    def __init__(self, provider: str, path: str) -> None:
        _require_hydra_s_own(path, "pkg://hydra.conf")
        super().__init__(provider, path)

    def load_config(self, config_path: str) -> ConfigResult:
        """One of Hydra's own files, read once in a process: they stay as they are."""
        if config_path not in self.read:
            self.read[config_path] = pickle.dumps(super().load_config(config_path))
        found: ConfigResult = pickle.loads(self.read[config_path])
        return found


class StructuredConfigSource(hydra_internals.StructuredConfigSource):
    """What plugins have registered; a module that a path names would be imported."""

    def __init__(self, provider: str, path: str) -> None:
        _require_hydra_s_own(path, "structured://")
        super().__init__(provider, path)

    def __deepcopy__(self, memo: dict[int, Any]) -> "StructuredConfigSource":
        """Itself: Hydra copies its sources for each configuration, and all that is registered with this one."""
        return self


def _require_hydra_s_own(path: str, own: str) -> None:
    if path != own:
        raise FklError(f"{path}: a configuration folder must be a folder, not a Python package")


class ConfigLoader(hydra_internals.ConfigLoaderImpl):
    """Hydra's loader, whose compositions cannot run code or fail without a word."""

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Compose, and refuse what `fkl` does not let a configuration do."""
        sweep = run_mode is RunMode.MULTIRUN
        if not validate_sweep_overrides:  # Hydra asks whether a file wants a sweep; in fkl only -m does
            return OmegaConf.create({"hydra": {"mode": None}})
        try:
            with warnings.catch_warnings(action="ignore"):  # each would be lines besides the one that refuses
                config = super().load_configuration(config_name, overrides, run_mode, from_shell)
        except (HydraException, OmegaConfBaseException):
            raise  # `fkl.compose_errors` has words for these
        except UNFORESEEN as error:
            with suppress(ValueError):  # of words that cannot be read
                self._require_names(overrides)
            if isinstance(error, RecursionError):
                raise FklError(f"{_deepest(error)}: its defaults lead back to itself") from None
            raise FklError(f"this cannot be composed ({type(error).__name__}: {error})") from error
        require_bounded(OmegaConf.to_container(config, resolve=False))  # type: ignore[arg-type]
        require_allowed(config, overrides, sweep=sweep)
        if sweep:
            for key, value in (config.hydra.sweeper.get("params") or {}).items():
                config.hydra.sweeper.params[key] = quoted(f"={value}")[1:]
            jobs(config, self)
            require_composed(config, self)
        return config

    def _compose_config_from_defaults_list(self, defaults: Any, repo: Any) -> DictConfig:
        """Merge files, those that were merged before from memory."""
        return known.config(
            defaults, repo, lambda: super(ConfigLoader, self)._compose_config_from_defaults_list(defaults, repo)
        )

    def _parse_overrides_and_create_caching_repo(self, config_name: str | None, overrides: list[str]) -> Any:
        """Read words, those of a sweep's jobs too, with the quotes that Hydra wants."""
        return super()._parse_overrides_and_create_caching_repo(config_name, [quoted(word) for word in overrides])

    def _require_names(self, overrides: list[str]) -> None:
        """Refuse a group's choice that is no name, for which Hydra has no line that tells which."""
        parsed, _ = self._parse_overrides_and_create_caching_repo(None, overrides)
        for override in parsed:
            group, value = override.key_or_group, override.value()
            if not isinstance(value, str | list) and self.repository.group_exists(group):
                way_out = "; ~topology leaves the group out" if group == "topology" else ""
                raise BadValue(group, value, f"the name of a choice{way_out}")


def _deepest(error: RecursionError) -> str:
    """The file whose defaults Hydra was following when it could not any more; only its own frames know."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "parent" in frame.f_locals]
    parents = [frame.f_locals["parent"] for frame in frames]
    names = [parent.get_config_path() for parent in parents if isinstance(parent, InputDefault)]
    return f"{names[-1]}.yaml" if names else "configuration"


@contextmanager
def guarded() -> Iterator[None]:
    """Let Hydra compose with this module's loader and sources in this block."""
    Plugins.instance()  # registers Hydra's own sources, and others' plugins, so it must come first
    search.register()
    registry, loading = hydra_internals.SourcesRegistry.instance(), hydra_internals.config_loader_impl
    types, loader = registry.types, hydra_internals.application.ConfigLoaderImpl  # type: ignore[attr-defined]
    registry.types = types | {
        "file": FileConfigSource,
        "pkg": ImportlibResourcesConfigSource,
        "structured": StructuredConfigSource,
    }
    hydra_internals.application.ConfigLoaderImpl = ConfigLoader  # type: ignore[attr-defined,misc]
    listing = loading.create_defaults_list  # type: ignore[attr-defined]
    loading.create_defaults_list = known.defaults_list  # type: ignore[attr-defined]
    try:
        yield
    finally:
        registry.types, hydra_internals.application.ConfigLoaderImpl = types, loader  # type: ignore[attr-defined]
        loading.create_defaults_list = listing  # type: ignore[attr-defined]


def compose(*words: str) -> DictConfig:
    """Compose fkl's configuration with these words, as `fkl run` does, without Hydra's own part.

    Raises
    ------
    fkl.errors.FklError, hydra.errors.HydraException, omegaconf.errors.OmegaConfBaseException
    """
    with guarded(), _set_aside(), hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return hydra.compose("config", [*words])


@contextmanager
def _set_aside() -> Iterator[None]:
    """Let this block use Hydra's global state, and leave it as whoever calls fkl from their own program had it."""
    state, version = GlobalHydra.instance(), VersionBase.instance()
    own, base = state.hydra, version.version_base
    state.clear()
    try:
        yield
    finally:
        state.hydra, version.version_base = own, base
        GlobalHydra.set_instance(state)
