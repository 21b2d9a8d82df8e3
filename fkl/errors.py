"""What the user did wrong, said in one line; `fkl` prints it and exits with 2."""

from collections.abc import Iterator
from contextlib import contextmanager


class FklError(Exception):
    """Anything the user can mend: a configuration key, a file, a row, a missing network."""


class BadValue(FklError):
    """A configuration value that cannot be.

    Parameters
    ----------
    key : str
        The key inside its own group, for example ``"M"``; `inside` puts the group before it.
    value : object
        What was given.
    allowed : str
        What may be given, for example ``"a whole number from 1 to 51"``.
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(key, value, allowed)
        self.key, self.value, self.allowed = key, value, allowed

    def __str__(self) -> str:
        return f"{self.key}={self.value}: must be {self.allowed}"


@contextmanager
def inside(group: str) -> Iterator[None]:
    """Name the configuration group that a `BadValue` raised in this block belongs to."""
    try:
        yield
    except BadValue as error:
        raise BadValue(f"{group}.{error.key}", error.value, error.allowed) from None


def require(condition: bool, key: str, value: object, allowed: str) -> None:
    """Raise `BadValue` unless the condition holds."""
    if not condition:
        raise BadValue(key, value, allowed)
