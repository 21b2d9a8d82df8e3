"""`engine=disk`: clients run in parts, one after another, with samples and states in files, to save memory.

A part consists of whole tiles of `CLIENT_TILE` clients. The sums of each part are added to those of earlier parts tile
by tile. The order of additions, and therefore every byte, is the same as with all clients together.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.arrays import Array, arrays_of, with_arrays
from fkl.basics.errors import BadValue
from fkl.conditions.wrapped import SumOnly
from fkl.config.loading import Run
from fkl.contract.world import Common, Outcome, all_together
from fkl.data.dealt_rows import is_judged
from fkl.engines.base import Engine, Numba, why_not_a_part_at_a_time
from fkl.engines.checkpoint import CHECKPOINT, Checkpoint, Follower
from fkl.kernels.client_tiles import CLIENT_TILE
from fkl.wire import Channel
from fkl.wire import payloads as wire

CLIENTS_A_PART = 32 * CLIENT_TILE
ALIGNED = 64
"""Arrays begin at multiples of this many bytes."""


class InParts(Channel):
    """The channel of all clients; each part of the clients has its own channel with the same ledger."""

    def open_round(self, t: int, present: NDArray[np.bool_]) -> None:
        """Begin round t; `present` (K,) says which clients take part."""
        self._t, self._here = t, present

    def _nothing_sent(self) -> NDArray[np.int64]:
        return np.zeros((self.ledger.shape[0], 0), np.int64)  # the parts' channels count messages

    def of_clients(self, some: slice) -> Channel:
        """The channel of a part of the clients."""
        precision = np.dtype(f"f{self.width}")
        part = Channel(self.network, self.ledger.of_clients(some), precision, self.algorithm, self.streams)
        part.open_round(self._t, self._here[some])
        return part


@dataclass(frozen=True)
class OfAllParts(SumOnly):
    """A payload of the clients of all parts; the server can compute its mean.

    Parameters
    ----------
    payload : Payload
        The payload of one part.
    sums : sequence of arrays
        Terms of the sum over all clients.
    share : (K,)
        Weights of the clients.
    """

    refusal: ClassVar[tuple[str, str, str]] = (
        "engine", "disk", "numba or numpy for a method whose server reads what each client sent",
    )  # fmt: skip

    sums: Sequence[Array]
    share: Array

    def mean(self, share: Array) -> Array:
        """The sum over all clients, which was computed with these weights."""
        if share is not self.share and not np.array_equal(share, self.share):
            raise BadValue("engine", "disk", "numba or numpy for a method or condition that weights messages later")
        mean: Array = self.payload.of_sums(*self.sums)
        return mean


class Stored:
    """States of the clients of all parts, and their outcomes in this round, in large arrays."""

    def __init__(self, clients: int) -> None:
        self.parts = [*memory.row_blocks(clients, CLIENTS_A_PART)]
        self._states: dict[int, Any] = {}
        self._held: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._shown: dict[str, NDArray[Any]] = {}

    def state(self, number: int, method: Any, common: Common) -> Any:
        """The state of the clients of this part."""
        if number not in self._states:
            some = self.parts[number]
            return method.start(common, some.stop - some.start)[1]
        return self._states[number]

    def keep(self, number: int, state: Any) -> None:
        """Copy the state of a part to its place in the arrays."""
        arrays, places = arrays_of(state), []
        for place, array in enumerate(arrays):
            key = len(arrays), place  # conditions get memory in the first round
            if key not in self._held:  # the last part may have nearly twice as many clients as the others
                size = -(-array.nbytes // ALIGNED) * ALIGNED
                self._held[key] = memory.empty_array((len(self.parts) + 1, size), np.uint8)
            held = self._held[key].reshape(-1)[number * self._held[key].shape[1] :]
            places.append(held[: array.nbytes].view(array.dtype).reshape(array.shape))
        # A method may return one field's array in another field
        moved = len(arrays) > 1 and any(np.may_share_memory(*both) for both in product(arrays, places))
        for place, array in zip(places, [*map(np.array, arrays)] if moved else arrays, strict=True):
            place[...] = array
        self._states[number] = with_arrays(state, places)

    def show(self, some: slice, outcome: Outcome | None) -> None:
        """Copy these clients' outcome, field by field, to its place in the arrays."""
        if outcome is None:
            return
        shown = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
        for name, values in (shown | {"squared_norm": outcome.squared_norm()}).items():
            if values is not None:
                if name not in self._shown:
                    shape = (len(values), self.parts[-1].stop, *values.shape[2:])
                    self._shown[name] = memory.zeros_array(shape, values.dtype)
                self._shown[name][:, some] = values

    def outcome(self) -> Outcome:
        """The outcome of all clients."""
        shown: dict[str, Any] = {"loss": None} | self._shown
        norm = shown.pop("squared_norm")
        return Outcome(**shown, squared_norm=lambda: norm)


class Disk(Numba):
    """One process with some clients in memory at a time, by compiled loops."""

    name: ClassVar[str] = "disk"
    has_all_clients: ClassVar[bool] = False

    def can_play(self, run: Run) -> str | None:
        """Why not: this engine needs a server that uses only means over clients; most conditions are possible."""
        if why := why_not_a_part_at_a_time(run):
            return why
        network, settings = run.network, run.settings
        refused = {
            "late": run.conditions.get("late") is not None,
            "network.uplink_budget": network.uplink_budget is not None,
            "network.latency_s": network.cost is not None,
            "intervals": run.intervals is not None,
            "rows": is_judged(settings.rows),
            "metrics": bool(settings.metrics),
            "learners": settings.learners != "federated",
            "stop_when": settings.stop_when is not None,
            "save_model": settings.save_model,
        }
        found = ", ".join(name for name, there in refused.items() if there)
        return f"with {found}, all clients have to be in memory" if found else None

    @contextmanager
    def opened(self) -> Iterator[Engine]:
        """Keep large arrays in files."""
        with memory.on_disk():
            yield self

    def channel(self, problem: Any, *given: Any) -> Channel:
        """A channel for clients in parts."""
        return InParts(*given)

    def exchange(
        self, method: Any, common: Common, channel: Any, client: Any, down: Any, samples: Any, share: Array, turn: Any
    ) -> tuple[Any, Any, Any]:
        """Run the clients' part of an exchange, one part after another; skip parts without a present client."""
        stored = client if isinstance(client, Stored) else Stored(len(share))
        play = [number for number, some in enumerate(stored.parts) if samples.present[some].any()]
        if method.hides_presence or not play:
            play = [*range(len(stored.parts) if method.hides_presence else 1)]
        up, sums, shows = None, list[list[Array]](), False
        for number in play:
            some = stored.parts[number]
            numbers = range(some.start, some.stop)
            state, up, outcome = all_together(
                method,
                common,
                channel.of_clients(some),
                stored.state(number, method, common),
                wire.for_clients(down, np.array(numbers)),
                replace(samples, x=samples.x[some], y=samples.y[some], present=samples.present[some]),
                share[some],
                replace(turn, clients=numbers),
            )
            stored.show(some, outcome)  # before `keep`, because the outcome may share memory with the old state
            stored.keep(number, state)
            shows = shows or outcome is not None
            payloads = wire.payloads_of(up)
            if not sums:
                sums = [[np.array(total) for total in payload.sums(share[some])] for payload in payloads]
                continue
            for totals, payload in zip(sums, payloads, strict=True):
                for total, terms in zip(totals, payload.tile_sums(share[some]), strict=True):
                    for term in terms:
                        total += term
        if up is not None:
            up = wire.rebuild_message(
                up, [OfAllParts(*both, share) for both in zip(wire.payloads_of(up), sums, strict=True)]
            )
        return stored, up, stored.outcome() if shows else None

    def checkpoint(self, folder: Path, every: float | None, digest: str, follower: Follower | None) -> Checkpoint:
        """A checkpoint that is never saved, because memory cannot hold its arrays; other engines' are not used."""
        return Checkpoint(folder / CHECKPOINT, None, f"{digest}, in parts", follower)

    def forecast(self, experiment: Any, threads: int | None, sampled: Callable[..., float]) -> None:
        """No estimate: rounds take as long as those of numba, and the rest depends on the disk."""
