"""Messages between the server and sites: words and packets in Flower's messages, and the bytes of both.

All arrays of a message are one string of bytes, in which equal arrays occur once. Facts that both ends know before
anything is sent, such as shapes and classes, are words. Classes are named and never imported: a message can only name
classes that the method has already loaded.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from fkl.basics.plain_data import NotPlainError, class_of, name_of
from fkl.data.scale import Scale
from fkl.sites.configuration import Known
from fkl.sites.tables import Traffic
from fkl.wire.numbers import Part
from fkl.wire.packets import Packet, unpacked

Form = dict[str, Any]
Words = dict[str, Any]
"""Words of a message."""
GONE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""Of Flower: a site has ended before all of its answer was there, or has not been heard of for a minute."""
ABOUT, MEMORY = "about", "memory"
"""Names of records: of a message's words, and of a site's memory."""


def words_of(known: Known) -> dict[str, Any]:
    """The common knowledge, as in a record of Flower."""
    scale = known.scale
    return {
        "run": known.run,
        "sites": known.sites,
        "clients-per-site": known.clients_per_site,
        "rounds": known.rounds,
        "columns": list(known.columns),
        "x_low": np.ravel(scale.x_low).tolist(),
        "x_unit": np.ravel(scale.x_unit).tolist(),
        "y_low": float(scale.y_low),
        "y_unit": float(scale.y_unit),
    }


def known_of(about: Mapping[str, Any]) -> Known:
    """Inverse of `words_of`."""
    low, unit = np.array(about["x_low"]), np.array(about["x_unit"])
    scale = Scale(low, unit, float(about["y_low"]), float(about["y_unit"]))
    sites, per_site, rounds = (int(about[name]) for name in ("sites", "clients-per-site", "rounds"))
    return Known(str(about["run"]), sites, per_site, rounds, tuple(map(str, about["columns"])), scale)


def push(
    grid: Grid, said: dict[int, Words], kind: str, ttl: float | None, traffic: Traffic, group: str = ""
) -> dict[str, int]:
    """Send each node its message; return nodes by message id."""
    messages = []
    for node, words in said.items():
        content = RecordDict({ABOUT: ConfigRecord(words)})
        messages.append(Message(content, dst_node_id=node, message_type=kind, ttl=ttl, group_id=group))
    if not messages:
        return {}
    sent = dict(zip(grid.push_messages(messages), said, strict=True))
    traffic.sent += sum(map(serialised, messages))
    return sent


def pull(grid: Grid, asked: dict[str, int], traffic: Traffic) -> list[tuple[int, Message]]:
    """Answers that have arrived; they are not requested again."""
    came = []
    for answer in grid.pull_messages(list(asked)) if asked else ():
        node = asked.pop(answer.metadata.reply_to_message_id, None)
        if node is not None:
            traffic.heard += serialised(answer)
            came.append((node, answer))
    return came


def words_of_answer(answer: Message) -> Words:
    """The words of an answer, or under "refused" the reason why it is not valid."""
    if not answer.has_content():
        return {"refused": str(answer.error.reason).partition(". ")[0]}
    found = answer.content.get(ABOUT)
    return dict(found) if isinstance(found, ConfigRecord) else {"refused": "its answer has no words"}


def serialised(message: Any) -> int:
    """Bytes of a message as Flower stores and sends it, with equal parts counted once."""
    return sum(_objects(message).values())


def _objects(holder: Any) -> dict[str, int]:
    """Bytes of a Flower object and of its content, by object id."""
    found = {holder.object_id: len(holder.deflate())}
    for child in (holder.children or {}).values():
        found |= _objects(child)
    return found


def write_packets(packets: Sequence[Packet | None]) -> tuple[bytes, str]:
    """The arrays of the messages of a site's clients, and the words that describe them, as JSON; None is no message."""
    content: dict[bytes, int] = {}  # where each array begins
    forms = [None if packet is None else _write_packet(packet, content) for packet in packets]
    return b"".join(content), json.dumps(forms)


def read_packets(content: bytes, forms: str) -> list[Packet | None]:
    """The messages that `write_packets` was given.

    Raises
    ------
    fkl.basics.plain_data.NotPlainError
        For a class that is not loaded here, or is not data.
    """
    return [None if form is None else _read_packet(form, content) for form in json.loads(forms)]


def _write_packet(packet: Packet, content: dict[bytes, int]) -> Form:
    parts = {
        name: [[_write_part(part, content) for part in several], is_tuple]
        for name, (several, is_tuple) in packet.parts.items()
    }
    within = {name: _write_packet(one, content) for name, one in packet.within.items()}
    return {"class": name_of(packet.kind), "parts": parts, "within": within}


def _write_part(part: Part, content: dict[bytes, int]) -> Form:
    places = []
    for array in (part.body, part.bits):
        last = next(reversed(content), b"")
        begin = content.setdefault(array, content.get(last, 0) + len(last))
        places.append([begin, begin + len(array)])
    return {"class": name_of(part.kind), "known": _known_as_words(part.known), "at": places}


def _read_packet(form: Form, content: bytes) -> Packet:
    parts = {
        name: (tuple(_read_part(one, content) for one in several), bool(is_tuple))
        for name, (several, is_tuple) in form["parts"].items()
    }
    within = {name: _read_packet(one, content) for name, one in form["within"].items()}
    return Packet(class_of(form["class"]), parts, within)


def _read_part(form: Form, content: bytes) -> Part:
    body, bits = (content[begin:end] for begin, end in form["at"])
    return Part(class_of(form["class"]), _known_from_words(form["known"]), body, bits)


def _known_as_words(value: Any) -> Any:
    """Facts that both ends know, as JSON, which has no tuples and no classes."""
    if isinstance(value, tuple):
        return {"tuple": [_known_as_words(item) for item in value]}
    if isinstance(value, type):
        return {"class": name_of(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise NotPlainError(f"a {type(value).__name__} among the known facts of a message")


def _known_from_words(words: Any) -> Any:
    if not isinstance(words, dict):
        return words
    return tuple(map(_known_from_words, words["tuple"])) if "tuple" in words else class_of(words["class"])


class NotFiniteError(ValueError):
    """Numbers of a message that are NaN or infinite."""


def require_like(packet: Packet | None, like: Packet | None) -> None:
    """Refuse a message that has another form than the one of an honest client, or numbers that are not finite."""
    if packet is None or like is None:
        if packet is not like:
            raise ValueError("a message where there should be none, or none where there should be one")
        return
    if packet.form != like.form:
        raise ValueError("its message has another form than the method's")
    if not all(np.isfinite(array).all() for array in float_arrays(unpacked([packet]))):
        raise NotFiniteError("its message has numbers that are not finite")


def float_arrays(value: Any) -> Iterator[np.ndarray]:
    """All arrays of floats in a message."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from float_arrays(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from float_arrays(getattr(value, field.name))
