"""fkl: federated and online kernel learning, every method on the same data, features and ledger."""

from pathlib import Path

__version__ = "0.3.0"


def conf_folder() -> Path:
    """The configuration that ships with fkl: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent
    inside_wheel = package / "conf"
    return inside_wheel if inside_wheel.is_dir() else package.parent / "conf"
