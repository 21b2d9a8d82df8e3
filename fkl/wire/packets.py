"""Messages as bytes, as they are sent to a party on another machine, and words that describe the bytes.

The words hold facts that both ends know before anything is sent, such as shapes and classes. Classes are named and
never imported: words can only name classes that are already loaded.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Union

from fkl.basics.plain_data import NotPlainError, class_of, name_of
from fkl.wire.payloads import PayloadPart, is_message, payloads_of

Field = Union[PayloadPart, tuple[PayloadPart, ...], "Packet"]


@dataclass(frozen=True)
class Packet:
    """A message on a wire, from or to one client.

    Parameters
    ----------
    kind : type
        Class of the message.
    fields : dict of str to Part, tuple of Part, or Packet
        The payloads of each field as bytes; a nested message is a packet.
    """

    kind: type
    fields: Mapping[str, Field]

    def payload_parts(self) -> Iterator[PayloadPart]:
        """All payloads as bytes, in the order of `fkl.wire.payloads.payloads_by_kind`."""
        for field in self.fields.values():
            if isinstance(field, Packet):
                yield from field.payload_parts()
            else:
                yield from [field] if isinstance(field, PayloadPart) else field

    def with_parts(self, changed: Callable[[PayloadPart], PayloadPart]) -> "Packet":
        """Change each payload of the message by a function."""

        def of_field(field: Field) -> Field:
            if isinstance(field, Packet):
                return field.with_parts(changed)
            return changed(field) if isinstance(field, PayloadPart) else tuple(map(changed, field))

        return replace(self, fields={name: of_field(field) for name, field in self.fields.items()})

    @property
    def form(self) -> "Packet":
        """The message without its bytes: both ends know this form before anything is sent."""
        return self.with_parts(lambda part: part._replace(body=b"", bits=b""))

    @property
    def size(self) -> int:
        """Number of bytes of the arrays."""
        return sum(len(part.body) + len(part.bits) for part in self.payload_parts())


def pack_message(message: Any, k: int, width: int) -> Packet | None:
    """The message that client k, an index into its arrays, sends or receives in one replicate; None for no message.

    For a message with one array per link, k is the link's index.
    """
    if message is None:
        return None
    # Payloads in the order of the fields, packed for this client
    parts = iter([payload.dense().packed(k, width) for payload in payloads_of(message)])

    def packet_of(message: Any) -> Packet:
        return Packet(type(message), {one.name: of_field(getattr(message, one.name)) for one in fields(message)})

    def of_field(value: Any) -> Field:
        if is_message(value):
            return packet_of(value)
        return tuple(next(parts) for _ in value) if isinstance(value, tuple) else next(parts)

    return packet_of(message)


def unpack_messages(packets: Sequence[Packet]) -> Any:
    """One message from the messages of several clients, client after client."""

    # Field by field, since all clients have the same kind of message
    def joined(several: Sequence[Any]) -> Any:
        first = several[0]
        if isinstance(first, Packet):
            return first.kind(**{name: joined([one.fields[name] for one in several]) for name in first.fields})
        if isinstance(first, PayloadPart):
            return first.kind.from_parts(several)
        return tuple(map(joined, zip(*several, strict=True)))

    return joined(packets)


def write_packets(packets: Sequence[Packet | None]) -> tuple[bytes, str]:
    """The arrays of several clients' messages as one byte string, and the words as JSON; None is no message.

    Equal arrays occur once in the string.
    """
    # Equal arrays are stored once
    content: dict[bytes, int] = {}  # where each array begins

    def place(array: bytes) -> list[int]:
        last = next(reversed(content), b"")
        begin = content.setdefault(array, content.get(last, 0) + len(last))
        return [begin, begin + len(array)]

    # Everything but the arrays as JSON
    def words(value: Any) -> Any:
        if isinstance(value, Packet):
            of_fields = {name: words(field) for name, field in value.fields.items()}
            return {"message": name_of(value.kind), "fields": of_fields}
        if isinstance(value, PayloadPart):
            places = [place(value.body), place(value.bits)]
            return {"payload": name_of(value.kind), "known": words(value.known), "at": places}
        if isinstance(value, tuple):
            return {"tuple": list(map(words, value))}
        if isinstance(value, type):
            return {"class": name_of(value)}
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise NotPlainError(f"the known facts of a message include a {type(value).__name__}, which JSON cannot hold")

    forms = json.dumps(list(map(words, packets)))
    return b"".join(content), forms


def read_packets(content: bytes, forms: str) -> list[Packet | None]:
    """The messages that `write_packets` was given.

    Raises
    ------
    fkl.basics.plain_data.NotPlainError
        For a class that is not loaded here, or is not a data class; words not from `write_packets` raise other errors.
    """

    # The reverse, with classes looked up by name
    def value(words: Any) -> Any:
        if not isinstance(words, dict):
            return words
        if "message" in words:
            return Packet(class_of(words["message"]), {name: value(one) for name, one in words["fields"].items()})
        if "payload" in words:
            body, bits = (content[begin:end] for begin, end in words["at"])
            return PayloadPart(class_of(words["payload"]), value(words["known"]), body, bits)
        return tuple(map(value, words["tuple"])) if "tuple" in words else class_of(words["class"])

    return list(map(value, json.loads(forms)))
