"""Messages of the server through Flower's grid: words to sites, their answers, and the bytes of both."""

from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from fkl.engines.flower.tables import Traffic
from fkl.engines.flower.words import ABOUT

Words = dict[str, Any]
"""Words of a message."""
GONE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""Of Flower: a site has ended before all of its answer was there, or has not been heard of for a minute."""


class Post:
    """Sends messages to nodes through a grid of Flower, and collects their answers."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def nodes(self) -> list[int]:
        """Nodes that are connected."""
        return list(self._grid.get_node_ids())

    def push(
        self, said: dict[int, Words], kind: str, ttl: float | None, traffic: Traffic, group: str = ""
    ) -> dict[str, int]:
        """Send each node its message; return nodes by message id."""
        messages = []
        for node, words in said.items():
            content = RecordDict({ABOUT: ConfigRecord(words)})
            messages.append(Message(content, dst_node_id=node, message_type=kind, ttl=ttl, group_id=group))
        if not messages:
            return {}
        sent = dict(zip(self._grid.push_messages(messages), said, strict=True))
        traffic.sent += sum(map(serialised, messages))
        return sent

    def pull(self, asked: dict[str, int], traffic: Traffic) -> list[tuple[int, Message]]:
        """Answers that have arrived; they are not requested again."""
        came = []
        for answer in self._grid.pull_messages(list(asked)) if asked else ():
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
