"""The ledger counted again, client by client, from the arrays of every message."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance import Conformance
from fkl.conformance.played import method_outcomes
from fkl.engines.base import make_world
from fkl.wire import Channel
from fkl.wire.channel import UNITS
from fkl.wire.coded_payloads import OneCodeForAll, Padding, Quantised, Residues, Sparse
from fkl.wire.payloads import OnLinks, Ragged, SameForAll, Selected, mask_of_payload, on_links, payloads_by_kind


def ledger_books_every_message(conformance: Conformance) -> None:
    """The ledger has all messages of all replicates by round, client and kind."""
    experiment = conformance.experiment
    world, ledger = make_world(experiment, tuple(conformance.everyone))
    recount = Recount(world.channel, experiment.problem.rounds, np.dtype(experiment.precision).itemsize)
    for _ in method_outcomes(experiment.algorithm, replace(world, channel=recount)):
        pass
    for direction, tally in ledger.tallies.items():
        counted = recount.counted.get(direction)
        if counted is None or direction == "lost":  # the channel decides which messages are lost
            continue
        of_kinds = sum(count for (way, _), count in ledger.kinds.items() if way == direction)
        same = (
            np.array_equal(tally.by_round, counted.sum(axis=2)),
            np.array_equal(tally.by_client, counted.sum(axis=0)),
            of_kinds == counted[..., UNITS.index("scalars")].sum(),
        )
        if not all(same):
            books = [name for name, equal in zip(("rounds", "clients", "kinds"), same, strict=True) if not equal]
            raise BrokenPromiseError(f"{direction}: the ledger's {', '.join(books)} are not the messages' sums")


class Recount(Channel):
    """A channel that also counts independently all messages that it passes, one after another.

    Parameters
    ----------
    channel : Channel
    rounds : int
    width : int
        Bytes of a scalar.
    """

    def __init__(self, channel: Channel, rounds: int, width: int) -> None:
        vars(self).update(vars(channel))
        self._bytes = width
        shape = (rounds, *channel.ledger.shape, len(UNITS))
        self.counted = {str(direction): np.zeros(shape, np.int64) for direction in channel.ledger.tallies}

    def down(self, message: Any) -> Any:
        """Count a message of the server to all clients, and pass it."""
        arrived = super().down(message)
        self._count_messages("downlink", message, self._present)
        return arrived

    def up(self, message: Any) -> Any:
        """Count a message of every client to the server, and pass it."""
        arrived = super().up(message)
        self._count_messages("uplink", message, self._present)
        return arrived

    def send_to_neighbours(self, message: Any, sends: NDArray[np.bool_], topology: Any, awake: Any = None) -> Any:
        """Count the messages on each link, and pass them."""
        arrived = super().send_to_neighbours(message, sends, topology, awake)
        passing = sends[:, topology.links[:, 1]] & (True if awake is None else awake.up)
        links = np.stack([np.bincount(topology.links[one, 1], minlength=topology.agents) for one in passing])
        self._count_messages("link", message, links)
        self._count_messages(
            "broadcast", message, links if on_links(message) else sends & ((links > 0) | (awake is None))
        )
        return arrived

    def record_messages(self, kind: str, messages: Any, scalars: Any, size: Any, timed: bool = True) -> None:
        """Count messages between parties, and book them."""
        self.counted["link"][self._t] += np.stack([messages, scalars, size], axis=-1)
        super().record_messages(kind, messages, scalars, size, timed)

    def _count_messages(self, direction: str, message: Any, times: NDArray[Any]) -> None:
        """Count a payload, client by client; `times` is the number of times that each client's message travels."""
        messages = np.broadcast_to(times, self.ledger.shape)
        for _, payloads in payloads_by_kind(message):
            parts = [payload.dense() for payload in payloads]
            for r, k in np.argwhere(messages):
                scalars, size = np.sum([_count_numbers(part, r, k, self._bytes) for part in parts], axis=0)
                if scalars:
                    self.counted[direction][self._t, r, k] += messages[r, k] * np.array([1, scalars, size])


def _count_numbers(part: Any, r: int, k: int, width: int) -> tuple[int, int]:
    """How many numbers of client k travel, and the bytes of these and of the mask with their positions."""
    if isinstance(part, Padding):
        return -(-part.size // width), part.size
    if isinstance(part, Residues):
        return part.values[r, k].size, -(-part.values[r, k].size * part.bits // 8)
    if isinstance(part, OneCodeForAll):
        return _count_numbers(part.code, r, 0, width)
    if isinstance(part, Sparse):
        scalars, entries = int(part.kept[r, k].sum()), part.kept[r, k].size
        positions = min(entries, scalars * int(np.ceil(np.log2(entries)))) if scalars else 0
        return scalars, scalars * width + -(-positions // 8)
    if isinstance(part, Quantised):
        mask = np.ones(1, np.bool_) if part.chosen is None else part.chosen[r, k]
        here = part.codes[r, k] if len(mask) == 1 else part.codes[r, k][mask]
        codes, scales = (here.size, here.size // here.shape[-1]) if mask.any() else (0, 0)
        told = -(-len(mask) // 8) if len(mask) > 1 and codes else 0
        return codes + scales, -(-codes * part.bits // 8) + scales * width + told
    if isinstance(part, SameForAll):
        scalars, mask = part.values[r].size, 0
    elif isinstance(part, Selected):
        sent = part.chosen[r, k]
        scalars, mask = part.values[r][sent].size, -(-len(sent) // 8) if len(sent) > 1 and sent.any() else 0
    elif isinstance(part, OnLinks):
        scalars, mask = part.values[r, 0].size, 0
    elif isinstance(part, Ragged):
        scalars, mask = part.values[r][k if len(part.values[r]) > 1 else 0].size, 0
    elif not hasattr(part, "values"):
        kind = type(part).__name__
        raise BrokenPromiseError(f"{kind}.dense() has no array `values` (R, K, ...) of what travels, as PerClient has")
    elif (mask_of_entries := mask_of_payload(part)) is None:
        scalars, mask = part.values[r, k].size, 0
    else:
        n = mask_of_entries.shape[2]
        chosen = np.broadcast_to(mask_of_entries[r, k], len(part.values[r, k]))
        scalars, mask = part.values[r, k][chosen].size, -(-n // 8) if n > 1 and chosen.any() else 0
    return scalars, scalars * width + mask
