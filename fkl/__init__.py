"""fkl: federated and online kernel learning, every method on the same data, features and ledger."""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "1.0.0rc1"

_ELSEWHERE = {
    "Result": "fkl.report.api",
    "compare": "fkl.report.compare",
    "estimators": "fkl.estimators",
    "load": "fkl.report.api",
    "load_model": "fkl.report.api",
    "rounds": "fkl.report.compare",
    "run": "fkl.report.api",
}
"""Public names and their modules, which are imported at the first use; for types, see __init__.pyi."""


def conf_folder() -> Path:
    """The configuration that ships with fkl: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent
    inside_wheel = package / "conf"
    return inside_wheel if inside_wheel.is_dir() else package.parent / "conf"


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'fkl' has no attribute {name!r}")
    module = import_module(_ELSEWHERE[name])
    return getattr(module, name, module)  # not cached, so the name always has its module's value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
