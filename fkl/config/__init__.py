"""From the words of a command line, and a user's YAML files, to a checked `Run` and its digest."""

from importlib import import_module
from typing import Any

_MODULES = {
    "digest": ("NOT_RESULTS", "WITHOUT_NULL", "decisive", "identity"),
    "loading": ("Run", "build", "engine", "instantiate", "load"),
    "settings": ("ENGINES", "MOST_REPLICATES", "NODES", "Paths", "Settings"),
}
"""Public names by module; a module is imported at the first use of a name, since `fkl list` needs none of them."""
_ELSEWHERE = {name: f"fkl.config.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'fkl.config' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)
