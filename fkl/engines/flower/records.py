"""Messages as records of Flower, and back: of every payload the bytes that the ledger books, and no more in arrays.

What both ends know before anything is sent, such as shapes and classes, goes beside the arrays, as words. Classes are
named and never imported: a message can name only what the method has loaded already.
"""

import json
from typing import Any

from flwr.app import Array, ArrayRecord

from fkl.basics.plain_data import NotPlainError, class_of, name_of
from fkl.wire.numbers import Part
from fkl.wire.packets import Packet

RAW = "bytes"
"""How arrays are written: as they are, without numpy's header."""
Form = dict[str, Any]


def to_records(packet: Packet | None) -> tuple[ArrayRecord, str]:
    """The arrays of a message, and what its receiver makes it of again, as JSON; None is no message."""
    arrays = ArrayRecord()
    return arrays, json.dumps(None if packet is None else _write_packet(packet, arrays, ""))


def from_records(arrays: ArrayRecord, form: str) -> Packet | None:
    """The message that `to_records` was given.

    Raises
    ------
    fkl.basics.plain_data.NotPlainError
        For a class that is not loaded here, or is no data.
    """
    read = json.loads(form)
    return None if read is None else _read_packet(read, arrays, "")


def size_of(arrays: ArrayRecord) -> int:
    """Bytes of the arrays, as the ledger counts them."""
    return sum(len(array.data) for array in arrays.values())


def _write_packet(packet: Packet, arrays: ArrayRecord, before: str) -> Form:
    parts = {
        name: [[_write_part(part, arrays, f"{before}{name}.{j}") for j, part in enumerate(several)], is_tuple]
        for name, (several, is_tuple) in packet.parts.items()
    }
    within = {name: _write_packet(one, arrays, f"{before}{name}/") for name, one in packet.within.items()}
    return {"class": name_of(packet.kind), "parts": parts, "within": within}


def _write_part(part: Part, arrays: ArrayRecord, name: str) -> Form:
    arrays[name] = _raw_array(part.body)
    if part.bits:
        arrays[f"{name}.bits"] = _raw_array(part.bits)
    return {"class": name_of(part.kind), "known": _known_as_words(part.known)}


def _read_packet(form: Form, arrays: ArrayRecord, before: str) -> Packet:
    parts = {
        name: (tuple(_read_part(one, arrays, f"{before}{name}.{j}") for j, one in enumerate(several)), bool(is_tuple))
        for name, (several, is_tuple) in form["parts"].items()
    }
    within = {name: _read_packet(one, arrays, f"{before}{name}/") for name, one in form["within"].items()}
    return Packet(class_of(form["class"]), parts, within)


def _read_part(form: Form, arrays: ArrayRecord, name: str) -> Part:
    bits = arrays[f"{name}.bits"].data if f"{name}.bits" in arrays else b""
    return Part(class_of(form["class"]), _known_from_words(form["known"]), arrays[name].data, bits)


def _raw_array(content: bytes) -> Array:
    return Array(dtype="uint8", shape=(len(content),), stype=RAW, data=content)


def _known_as_words(value: Any) -> Any:
    """What both ends know, as JSON, which has no tuples and no classes."""
    if isinstance(value, tuple):
        return {"tuple": [_known_as_words(item) for item in value]}
    if isinstance(value, type):
        return {"class": name_of(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise NotPlainError(f"a {type(value).__name__} beside a message's arrays")


def _known_from_words(words: Any) -> Any:
    if not isinstance(words, dict):
        return words
    return tuple(map(_known_from_words, words["tuple"])) if "tuple" in words else class_of(words["class"])
