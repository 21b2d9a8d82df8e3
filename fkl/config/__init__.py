"""From the words of a command line, and a user's YAML files, to a checked `Run` and the digest that names it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fkl.config.digest import NOT_RESULTS as NOT_RESULTS
    from fkl.config.digest import decisive as decisive
    from fkl.config.digest import identity as identity
    from fkl.config.loading import ON_ONE_PROCESS as ON_ONE_PROCESS
    from fkl.config.loading import build as build
    from fkl.config.loading import instantiate as instantiate
    from fkl.config.loading import load as load
    from fkl.config.run import Run as Run
    from fkl.config.settings import CONDITIONS as CONDITIONS
    from fkl.config.settings import ENGINES as ENGINES
    from fkl.config.settings import MOST_REPLICATES as MOST_REPLICATES
    from fkl.config.settings import NODES as NODES
    from fkl.config.settings import Paths as Paths
    from fkl.config.settings import Settings as Settings

_MODULES = ("settings", "digest", "run", "loading")


def __getattr__(name: str) -> Any:
    """A public name of one of the modules, imported when it is first asked for: `fkl list` needs none of them."""
    for module in _MODULES:
        found = import_module(f"fkl.config.{module}")
        if not name.startswith("_") and hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module 'fkl.config' has no attribute {name!r}")
