"""Objects as plain data, JSON and arrays, and back, for checkpoints.

Nothing in such data can run. A class is named, never imported. Reading accepts only classes that this process has
already loaded, that are fkl's own or dataclasses or named tuples, and that do nothing when they are deleted.
"""

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
GENERATORS = {name: getattr(np.random, name) for name in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")}


class NotPlainError(TypeError):
    """An object that is not data: a function, an open file, an unknown class."""


class Writer:
    """Turns objects into JSON, with arrays stored separately.

    Parameters
    ----------
    owned : mapping of str to object
        Objects that the reader also has; each is written as its name.

    Attributes
    ----------
    arrays : dict of str to array
    """

    def __init__(self, owned: Mapping[str, Any]) -> None:
        self.arrays: Arrays = {}
        self._owned = {id(value): name for name, value in owned.items() if value is not None}
        self._known: dict[int, tuple[int, Any]] = {}  # number by id, and the object, to keep its id in use

    def to_plain(self, value: Any) -> Any:
        """JSON for a value."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) in self._owned:
            return {"owned": self._owned[id(value)]}
        if id(value) in self._known:
            return {"again": self._known[id(value)][0]}
        kind = type(value)
        if kind in (tuple, set, frozenset, bytes):  # without a number, because none of these can contain itself
            items = list(value)
            return {kind.__name__: items if kind is bytes else list(map(self.to_plain, items))}
        number = len(self._known)
        self._known[id(value)] = number, value
        plain: dict[str, Any]
        if kind is list:
            plain = {"list": list(map(self.to_plain, value))}
        elif kind is dict:
            plain = {"dict": [[self.to_plain(key), self.to_plain(item)] for key, item in value.items()]}
        elif isinstance(value, np.ndarray | np.generic):
            plain = {"scalar" if isinstance(value, np.generic) else "array": self._set_apart(value)}
        elif kind is np.random.Generator:
            bits: Any = value.bit_generator
            if type(bits).__name__ not in GENERATORS or not isinstance(bits.seed_seq, np.random.SeedSequence):
                raise NotPlainError(f"a random generator of {type(bits).__name__}")
            names = ("entropy", "spawn_key", "pool_size", "n_children_spawned")
            plain = {"generator": self.to_plain([bits.state, {name: getattr(bits.seed_seq, name) for name in names}])}
        elif isinstance(value, tuple):
            plain = {"named": name_of(kind), "items": list(map(self.to_plain, value))}
        elif hasattr(kind, "__array__"):  # another library's array, read again as numpy's
            plain = {"array": self._set_apart(value)}
        else:
            plain = {"object": name_of(kind), "state": self.to_plain(_attributes_of(value))}
        return {"number": number, **plain}

    def _set_apart(self, value: Any) -> str:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise NotPlainError("an array of objects")
        name = f"array{len(self.arrays)}"
        self.arrays[name] = array
        return name


class Reader:
    """Turns the output of a `Writer` into objects again.

    Parameters
    ----------
    arrays : dict of str to array
    owner : object
        Object whose attributes have the owned names.
    """

    def __init__(self, arrays: Arrays, owner: Any) -> None:
        self._arrays, self._owner = arrays, owner
        self._known: dict[int, Any] = {}

    def value(self, plain: Any) -> Any:
        """The value that this JSON represents.

        Raises
        ------
        NotPlainError
            For an unknown class; other errors for JSON that no `Writer` made.
        """
        if not isinstance(plain, dict):
            return plain
        if "owned" in plain:
            return getattr(self._owner, plain["owned"])
        if "again" in plain:
            return self._known[plain["again"]]
        for kind in (tuple, set, frozenset):
            if kind.__name__ in plain:
                return kind(map(self.value, plain[kind.__name__]))
        if "bytes" in plain:
            return bytes(plain["bytes"])
        made: Any
        number = plain["number"]
        if "list" in plain:
            made = self._known[number] = []  # registered before its content, which may contain itself
            made.extend(map(self.value, plain["list"]))
        elif "dict" in plain:
            made = self._known[number] = {}
            made.update((self.value(key), self.value(item)) for key, item in plain["dict"])
        elif "array" in plain:
            made = self._known[number] = self._arrays[plain["array"]]
        elif "scalar" in plain:
            made = self._known[number] = self._arrays[plain["scalar"]][()]
        elif "generator" in plain:
            state, seed = self.value(plain["generator"])
            bits = GENERATORS[state["bit_generator"]](np.random.SeedSequence(**seed))
            bits.state = state
            made = self._known[number] = np.random.Generator(bits)
        elif "named" in plain:
            items = list(map(self.value, plain["items"]))
            made = self._known[number] = tuple.__new__(class_of(plain["named"]), items)
        else:
            made = self._known[number] = object.__new__(class_of(plain["object"]))
            for name, item in self.value(plain["state"]).items():
                object.__setattr__(made, name, item)
        return made


def _attributes_of(value: Any) -> dict[str, Any]:
    """Attributes of an object of data."""
    kind = type(value)
    if isinstance(value, type | int | float | str | bytes | list | dict | set | frozenset):
        raise NotPlainError(f"a {kind.__name__}")  # a subclass of a number or container with its own attributes
    class_of(name_of(kind))  # objects that could not be read again are not written
    if getattr(kind, "__getstate__", None) is not getattr(object, "__getstate__", None):
        return dict(value.__getstate__())
    names = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if hasattr(value, name)]
    return {name: getattr(value, name) for name in names} | getattr(value, "__dict__", {})


def name_of(kind: type) -> str:
    """Module and name of a class, by which `class_of` finds it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_of(name: str) -> type:
    """The loaded class with this name.

    Raises
    ------
    NotPlainError
        If this process has not loaded it, or it is more than data.
    """
    module, _, path = name.partition(":")
    place: Any = sys.modules.get(module)
    for part in path.split("."):
        place = getattr(place, part, None)
    if not isinstance(place, type) or name_of(place) != name:
        raise NotPlainError(f"a {path}, which is not at the top level of {module}")
    data = is_dataclass(place) or (issubclass(place, tuple) and hasattr(place, "_fields"))
    if hasattr(place, "__del__") or not (data or module.partition(".")[0] == "fkl"):
        raise NotPlainError(f"a {path} of {module}, which is not a dataclass")
    return place
