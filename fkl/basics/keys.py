"""Keys of the configuration: a dataclass field declares a key's default, its meaning and its limits, once.

Checks, `fkl describe`, the schema, the pages of the site and the tests of limits all read the field.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from math import inf
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fkl.basics.errors import BadValue, require

NO_DEFAULT: Any = ...
"""Default of a key that has none and must be given."""


@dataclass(frozen=True)
class KeyDeclaration:
    """Declaration of a key; see `key`."""

    default: Any
    meaning: str = ""
    above: float | None = None
    min: float | None = None
    below: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    must: str = ""

    def is_within_limits(self, value: Any) -> bool:
        """Whether a value other than None is within the limits; a number that has limits is finite."""
        if self.choices:
            return value in self.choices
        if not self.bounds:
            return True
        low = -inf if self.above is None else self.above
        high = inf if self.below is None else self.below
        least = -inf if self.min is None else self.min
        most = inf if self.max is None else self.max
        return bool(low < value < high and least <= value <= most)

    @property
    def bounds(self) -> dict[str, float]:
        """The limits of a number, under the keywords of JSON Schema."""
        limits = {
            "minimum": self.min,
            "exclusiveMinimum": self.above,
            "maximum": self.max,
            "exclusiveMaximum": self.below,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}

    def allowed_values(self, annotation: str) -> str:
        """The allowed values of a field of this type, in words; empty if anything is allowed."""
        if self.must or not (self.choices or self.bounds):
            return self.must
        whole = annotation.startswith("int")
        most = self.below - 1 if whole and self.below is not None else self.max
        if len(self.choices) == 2:
            words = " or ".join(self.choices)
        elif self.choices:
            words = f"one of {', '.join(self.choices)}"
        elif self.min is not None and most is not None:
            words = f"from {_limit_text(self.min)} to {_limit_text(most)}"
        else:
            ends = {"> ": self.above, ">= ": self.min, "below ": self.below, "at most ": self.max}
            words = ", ".join(f"{sign}{_limit_text(end)}" for sign, end in ends.items() if end is not None)
            words = words.replace(", below", " and <")
        noun = "" if self.choices else "an integer " if whole else "a number "
        return noun + words + ", or null" * ("None" in annotation)


def key(
    default: Any,
    meaning: str,
    *,
    above: float | None = None,
    min: float | None = None,
    below: float | None = None,
    max: float | None = None,
    choices: Iterable[str] = (),
    must: str = "",
) -> Any:
    """A field of a dataclass that extends `Keys`. `fkl describe` reads the arguments as text: literals or constants.

    Parameters
    ----------
    default : Any
        `NO_DEFAULT` for a key without a default.
    meaning : str
    above, min, below, max : float or None
        The value is more than, at least, less than, or at most this number.
    choices : iterable of str
        The value is one of these words.
    must : str
        What a value must be in words, if the limits do not say it, for example because it depends on other keys.
    """
    declared = KeyDeclaration(default, meaning, above, min, below, max, tuple(choices), must)
    metadata = {"fkl": declared}
    if default is NO_DEFAULT:
        return field(metadata=metadata)
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


class Keys:
    """Base of the dataclasses whose fields are keys: a new object checks each field's limits."""

    def __post_init__(self) -> None:
        """Refuse values outside their limits, and numbers instead of words, with a `BadValue`."""
        cls: Any = type(self)
        for name, kind in _types_of_words(cls).items():
            require_words(name, getattr(self, name), kind)
        for name, (declared, _) in declared_keys(cls).items():
            value = getattr(self, name)
            self.require(value is None or declared.is_within_limits(value), name)

    def require(self, condition: bool, name: str) -> None:
        """Refuse the value of a key unless the condition holds; the message states the field's limits."""
        cls: Any = type(self)
        one, annotation = declared_keys(cls)[name]
        require(condition, name, getattr(self, name), one.allowed_values(annotation))


@cache
def declared_keys(cls: Any) -> dict[str, tuple[KeyDeclaration, str]]:
    """Declaration of each key of a class, and its type as text; a subclass may change only a default."""
    declared: dict[str, tuple[KeyDeclaration, str]] = {}
    for base in reversed(cls.__mro__):
        for name, one in vars(base).get("__dataclass_fields__", {}).items():
            if "fkl" in one.metadata:
                declared[name] = one.metadata["fkl"], one.type.__name__ if isinstance(one.type, type) else str(one.type)
    return declared


def union_members(kind: Any) -> tuple[Any, ...]:
    """The types of a union; a single other type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def holds_words(kind: Any) -> bool:
    """Whether a value of this type is a name or a word, or has such in its lists and mappings."""
    inside = union_members(kind) if len(union_members(kind)) > 1 else get_args(kind)[-1:]
    return kind is str or any(map(holds_words, inside))


def require_words(place: str, value: Any, kind: Any) -> None:
    """Refuse a number, true or false, and null in a list, where a type allows only names and words.

    YAML reads 250.80 as 250.8, 01 as 1 and yes as true, so the text of such a value is lost.
    """
    kinds = union_members(kind)
    if isinstance(value, dict):
        for inner in (get_args(entry)[-1] for entry in kinds if get_origin(entry) is dict):
            for name, entry in value.items():
                if not isinstance(name, str):
                    raise _not_a_word(place, name)
                require_words(f".{place.removeprefix('.')}.{name}", entry, inner)
    elif isinstance(value, list | tuple):
        for inner in (get_args(entry)[0] for entry in kinds if get_origin(entry) is list):
            for entry in value:
                if entry is None and str in union_members(inner) and type(None) not in union_members(inner):
                    raise _not_a_word(place, entry)
                require_words(place, entry, inner)
    elif isinstance(value, int | float) and str in kinds and (bool if isinstance(value, bool) else float) not in kinds:
        raise _not_a_word(place, value)


def _not_a_word(place: str, value: Any) -> BadValue:
    written = "null" if value is None else str(value).lower()
    return BadValue(place, written, f'text in quotes, written as in the file, such as "{written}"')


@cache
def _types_of_words(cls: Any) -> dict[str, Any]:
    """Types of the keys of a class that hold names or words."""
    return {
        name: kind for name, kind in get_type_hints(cls).items() if name in declared_keys(cls) and holds_words(kind)
    }


def _limit_text(limit: float) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)
