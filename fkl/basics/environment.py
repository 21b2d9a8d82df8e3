"""Variables of the environment."""

import os


def variable(name: str, default: str) -> str:
    """Value of a variable; an empty one counts as unset."""
    return os.environ.get(name) or default
