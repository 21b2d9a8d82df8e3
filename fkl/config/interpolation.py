"""Interpolations, ``${KEY}``, and a limit of their size: forty lines can expand to a terabyte."""

import re
from copy import deepcopy
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl.basics.environment import variable
from fkl.basics.errors import FklError
from fkl.data.dealt_rows import parts_of_all

OWN_TABLE = "fkl.data.table_file.TableFile"
MOST = 30_000
"""Limit for all interpolations together: keys, values and hundreds of letters."""
DEEPEST = 50
LETTERS_EACH = 100
INNERMOST = re.compile(r"\$\{([^${}]*)\}")
OF_A_KEY = re.compile(r"\s*(?:oc\.select|oc\.deprecated|oc\.dict\.keys|oc\.dict\.values|hydra)\s*:([^,]*)")

OmegaConf.register_new_resolver(
    "full_or_half",  # the number for rows=all, otherwise half of it, and for a portion a share
    lambda number, *, _root_: number // parts_of_all(_root_.get("rows", "all")),
    replace=True,
)
OmegaConf.register_new_resolver("variable", variable, replace=True)
OmegaConf.register_new_resolver(
    "usual_scaling",  # one factor for all features would hide those of small units
    lambda *, _root_: "unit_box" if OmegaConf.select(_root_, "dataset._target_") == OWN_TABLE else "unit_ball",
    replace=True,
)


def resolved(config: dict[str, Any]) -> dict[str, Any]:
    """A copy of a composed configuration with interpolations replaced by their values.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be replaced, is too large, or a value is missing; names the key.
    """
    written = str(config)
    if "${" not in written and "???" not in written:
        return deepcopy(config)  # in a tenth of the time
    _size_when_replaced(config, (), config, 0, {})
    try:
        plain: Any = OmegaConf.to_container(OmegaConf.create(config), resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise FklError(f"{error.full_key}: {str(error).splitlines()[0]}") from None
    return dict(plain)


def _size_when_replaced(
    config: Any, path: tuple[str, ...], value: Any, depth: int, sizes: dict[tuple[str, ...], int]
) -> int:
    """Size of a value in keys, values and hundreds of letters, once its interpolations are replaced."""
    if path in sizes:
        return sizes[path]
    key = ".".join(path)
    if depth > DEEPEST:
        raise FklError(f"{key}: stands for another key, and so on, for more than {DEEPEST} keys")
    sizes[path] = 0  # OmegaConf refuses an interpolation of itself
    size = 1 + sum(
        _size_when_replaced(config, (*path, name), inner, depth, sizes) for name, inner in _items_by_name(value).items()
    )
    if isinstance(value, str):
        size += len(value) // LETTERS_EACH
        for name in _named_keys(value, key):
            # Relative to an interpolation, .b is a sibling key and ..b a sibling of its parent.
            dots = len(name) - len(name.lstrip("."))
            parts = (part.strip("'\" ") for part in re.split(r"[.\[\]]", name[dots:]))
            wanted = (*path[: len(path) - dots if dots else 0], *filter(None, parts))
            place, found = 0, config
            while place < len(wanted) and isinstance(found, dict | list):
                found = _items_by_name(found).get(wanted[place])
                place += 1
            size += _size_when_replaced(config, wanted[:place], found, depth + 1, sizes)
    if size > MOST:
        raise FklError(f"{key}: stands for more than {MOST} values, interpolations counted")
    sizes[path] = size
    return size


def _items_by_name(value: Any) -> dict[str, Any]:
    """Values inside a mapping or a list, by their names in an interpolation."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {str(name): inner for name, inner in items}


def _named_keys(text: str, key: str) -> list[str]:
    """Keys that the interpolations of a text name, the innermost first; a zero byte replaces each."""
    names = []
    while match := INNERMOST.search(text):
        words = match[1]
        resolver = OF_A_KEY.match(words)
        name = resolver[1] if resolver else None if ":" in words else words
        if words.strip().startswith("oc.create") or (name is not None and "\0" in words):
            break
        if name is not None:
            names.append(name.strip())
        text = f"{text[: match.start()]}\0{text[match.end() :]}"
    if "${" in text:
        raise FklError(f"{key}: an interpolation that makes keys; write out what it stands for")
    return names
