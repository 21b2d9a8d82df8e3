"""Messages between the server and sites: words and packets in Flower's messages, and their bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from fkl.data.problem import Scale
from fkl.sites.configuration import SharedFacts
from fkl.sites.tables import RoundTraffic
from fkl.wire.packets import Packet, unpack_messages

Words = dict[str, Any]
"""Named values of a message."""
GONE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""Flower's errors if a site ended before its whole answer arrived, or has been silent for a minute."""
ABOUT, MEMORY = "about", "memory"
"""Names of the records with a message's words, and with a site's memory."""


def words_of(known: SharedFacts) -> dict[str, Any]:
    """The common facts as values of a Flower record."""
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


def known_of(about: Mapping[str, Any]) -> SharedFacts:
    """Inverse of `words_of`."""
    low, unit = np.array(about["x_low"]), np.array(about["x_unit"])
    scale = Scale(low, unit, float(about["y_low"]), float(about["y_unit"]))
    sites, per_site, rounds = (int(about[name]) for name in ("sites", "clients-per-site", "rounds"))
    return SharedFacts(str(about["run"]), sites, per_site, rounds, tuple(map(str, about["columns"])), scale)


def push_messages(
    grid: Grid, said: dict[int, Words], kind: str, ttl: float | None, traffic: RoundTraffic, group: str = ""
) -> dict[str, int]:
    """Send each node its message; return nodes by message id."""
    # One message for each node, sent in one call
    messages = []
    for node, words in said.items():
        content = RecordDict({ABOUT: ConfigRecord(words)})
        messages.append(Message(content, dst_node_id=node, message_type=kind, ttl=ttl, group_id=group))
    if not messages:
        return {}
    sent = dict(zip(grid.push_messages(messages), said, strict=True))
    traffic.sent += sum(map(serialised_bytes, messages))
    return sent


def pull_answers(grid: Grid, asked: dict[str, int], traffic: RoundTraffic) -> list[tuple[int, Message]]:
    """Answers that have arrived since the last call, with their nodes."""
    came = []
    for answer in grid.pull_messages(list(asked)) if asked else ():
        node = asked.pop(answer.metadata.reply_to_message_id, None)
        if node is not None:
            traffic.heard += serialised_bytes(answer)
            came.append((node, answer))
    return came


def words_of_answer(answer: Message) -> Words:
    """The words of an answer; if it is not valid, the reason under "refused"."""
    if not answer.has_content():
        return {"refused": str(answer.error.reason).partition(". ")[0]}
    record = answer.content.get(ABOUT)
    return dict(record) if isinstance(record, ConfigRecord) else {"refused": "its answer has no words"}


def serialised_bytes(message: Any) -> int:
    """Bytes of a message as Flower stores and sends it, with equal parts counted once."""
    return sum(_object_bytes(message).values())


def _object_bytes(holder: Any) -> dict[str, int]:
    """Bytes of a Flower object and of its content, by object id."""
    sizes = {holder.object_id: len(holder.deflate())}
    for child in (holder.children or {}).values():
        sizes |= _object_bytes(child)
    return sizes


class MessageNotFiniteError(ValueError):
    """A message has numbers that are NaN or infinite."""


def require_like(packet: Packet | None, like: Packet | None) -> None:
    """Refuse a message whose form differs from an honest client's, or whose numbers are not finite."""
    if packet is None or like is None:
        if packet is not like:
            raise ValueError("it has a message where the method has none, or none where the method has one")
        return
    if packet.form != like.form:
        raise ValueError("the form of its message is not that of the method")
    if not all(np.isfinite(array).all() for array in float_arrays(unpack_messages([packet]))):
        raise MessageNotFiniteError("its message has numbers that are not finite")


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
