"""Interpolations, ``${KEY}``, and how much they may stand for: forty lines can double to a terabyte."""

import re
from copy import deepcopy
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl.basics.environment import variable
from fkl.basics.errors import FklError

MOST = 30_000
"""Keys, values and hundreds of letters that all interpolations together may stand for."""
DEEPEST = 50
LETTERS_EACH = 100
INNERMOST = re.compile(r"\$\{([^${}]*)\}")
OF_A_KEY = re.compile(r"\s*(oc\.select|oc\.deprecated|oc\.dict\.keys|oc\.dict\.values|hydra)\s*:([^,]*)")
TOO_CLEVER = "an interpolation that makes keys; write out what it stands for"
REPLACED = "\0"
"""What stands for an interpolation inside another."""


def _full_or_half(number: int, *, _root_: Any) -> int:
    """The number for rows=all, and half of it for the rows that rows=even and rows=odd choose."""
    return number if _root_.get("rows", "all") == "all" else number // 2


OmegaConf.register_new_resolver("full_or_half", _full_or_half, replace=True)
OmegaConf.register_new_resolver("variable", variable, replace=True)


def resolved(config: dict[str, Any]) -> dict[str, Any]:
    """A copy of a composed configuration in which interpolations are what they stand for.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be replaced, or a value is missing; names the key.
    """
    written = str(config)
    if "${" not in written and "???" not in written:
        return deepcopy(config)  # in a tenth of the time
    require_bounded(config)
    try:
        plain: Any = OmegaConf.to_container(OmegaConf.create(config), resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise FklError(f"{error.full_key}: {str(error).splitlines()[0]}") from None
    return dict(plain)


def require_bounded(plain: dict[str, Any]) -> None:
    """Refuse interpolations that stand for too much, or for what cannot be foreseen.

    Parameters
    ----------
    plain : dict
        A configuration with its interpolations as they are written.

    Raises
    ------
    fkl.basics.errors.FklError
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
            raise FklError(f"{'.'.join(path)}: {TOO_CLEVER}")
        if names_key:
            name = words if resolver is None else resolver[2]
            keys.append(_absolute(name, path))
        text = text[: inner.start()] + REPLACED + text[inner.end() :]
    if "${" in text:  # with braces inside
        raise FklError(f"{'.'.join(path)}: {TOO_CLEVER}")
    return keys


def _absolute(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """Path of a key written as ``a.b``, ``a[b]`` or, from the place of an interpolation, ``.b`` or ``..b``."""
    name = name.strip()
    dots = len(name) - len(name.lstrip("."))
    parts = [part.strip("'\" ") for part in re.split(r"[.\[\]]", name[dots:])]
    return (*path[: len(path) - dots if dots else 0], *(part for part in parts if part))
