"""How much a configuration stands for once its interpolations are replaced: forty lines can double to a terabyte."""

import re
from typing import Any

from fkl.errors import FklError

MOST = 30_000
"""Keys, values and hundreds of letters that all interpolations together may stand for."""
DEEPEST = 50
LETTERS_EACH = 100
INNERMOST = re.compile(r"\$\{([^${}]*)\}")
OF_A_KEY = re.compile(r"\s*(oc\.select|oc\.deprecated|oc\.dict\.keys|oc\.dict\.values|hydra)\s*:([^,]*)")
REPLACED = "\0"
"""What stands for an interpolation inside another."""


def require_bounded(plain: dict[str, Any]) -> None:
    """Refuse interpolations that stand for too much, or for what cannot be foreseen.

    Parameters
    ----------
    plain : dict
        A configuration with its interpolations as they are written.

    Raises
    ------
    fkl.errors.FklError
        Names the key.
    """
    _Sizes(plain).of((), plain, 0)


class _Sizes:
    """Sizes of values by their paths, each found once."""

    def __init__(self, plain: dict[str, Any]) -> None:
        self.plain = plain
        self.known: dict[tuple[str, ...], int] = {}

    def of(self, path: tuple[str, ...], value: Any, depth: int) -> int:
        if path in self.known:
            return self.known[path]
        if depth > DEEPEST:
            raise FklError(f"{'.'.join(path)}: stands for another key, and so on, for more than {DEEPEST} keys")
        self.known[path] = 0  # what stands for itself is for OmegaConf to refuse
        size = 1
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            size += sum(self.of((*path, str(key)), item, depth) for key, item in items)
        elif isinstance(value, str):
            size += len(value) // LETTERS_EACH
            for key in _keys(value, path):
                size += self.of(*self.found(key), depth + 1)
        if size > MOST:
            raise FklError(f"{'.'.join(path)}: stands for more than {MOST} values, interpolations counted")
        self.known[path] = size
        return size

    def found(self, key: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
        """Path and value of a key, or of the interpolation on the way to it, of which it is a part."""
        value: Any = self.plain
        for place, name in enumerate(key):
            if isinstance(value, dict):
                value = next((value[known] for known in value if str(known) == name), None)
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                return key[:place], value
        return key, value


def _keys(text: str, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Keys that a text's interpolations name."""
    keys = []
    while inner := INNERMOST.search(text):
        words = inner[1]
        resolver = OF_A_KEY.match(words)
        names_key = resolver is not None or ":" not in words
        if words.strip().startswith("oc.create") or (names_key and REPLACED in words):
            raise FklError(f"{'.'.join(path)}: an interpolation that makes keys; write out what it stands for")
        if names_key:
            name = words if resolver is None else resolver[2]
            keys.append(_absolute(f"hydra.{name}" if resolver is not None and resolver[1] == "hydra" else name, path))
        text = text[: inner.start()] + REPLACED + text[inner.end() :]
    return keys


def _absolute(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """Path of a key written as ``a.b``, ``a[b]`` or, from the place of an interpolation, ``.b`` or ``..b``."""
    name = name.strip()
    dots = len(name) - len(name.lstrip("."))
    parts = [part.strip("'\" ") for part in re.split(r"[.\[\]]", name[dots:])]
    return (*path[: len(path) - dots if dots else 0], *(part for part in parts if part))
