"""Compression: messages of any method, sent with fewer bits.

With a server, biased rounding has error feedback (Seide et al., 1-Bit Stochastic Gradient Descent, Interspeech 2014;
Karimireddy et al., Error Feedback Fixes SignSGD, ICML 2019, Algorithm 1): the rounding error of a message is added to
the sender's next message, so the sum of all sent messages plus the remaining error equals the sum of the original
messages. On a graph, an agent sends the difference from its neighbours' copy, which is the sum of its earlier messages.
The next difference then includes the rounding error, for every kind of rounding (as in CHOCO-SGD, Koloskova et al.,
ICML 2019).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, stable_order
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.conditions.wrapped import OnMessages
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.channel import Direction
from fkl.wire.coded_payloads import OneCodeForAll, Quantised, Sparse
from fkl.wire.payloads import PerClient, SameForAll, mask_of_payload, payloads_by_kind, with_axes_of

ROUNDINGS = ("stochastic", "nearest")
FULL = 32
"""Value of the key `bits` that means full precision."""
ANOTHER_EXCHANGE = 2**32
"""Offset between the draws of two exchanges in a round, above the number of payloads in a message."""


@dataclass
class CompressionMemory:
    """Arrays (R, K, ...) by kind and place: with a server remaining errors, on a graph the neighbours' copies."""

    held: Mapping[str, Array]


@dataclass(frozen=True)
class Compression(OnMessages):
    """Base class of all kinds of rounding.

    Integers, such as a kernel's number, and single scalars are sent uncompressed.
    """

    called_without_messages = False
    traceable = True

    up: bool = key(
        True,
        "Whether to compress clients' messages, to the server or, as agents, to neighbours; and the server's "
        "messages to all clients.",
        must="true where down is false",
    )
    down: bool = key(
        False,
        "Whether to compress clients' messages, to the server or, as agents, to neighbours; and the server's "
        "messages to all clients.",
    )
    kinds: list[str] | None = key(
        None, "Kinds of message to compress, such as theta or losses; None for all, [] for none."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.up or self.down, "up")

    @property
    def on_a_graph(self) -> bool:  # type: ignore[override]
        """Whether it works on a graph, where an agent's messages count as a client's: if clients' are compressed."""
        return self.up

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions of the messages that are compressed."""
        return ("uplink", "broadcast") * self.up + ("downlink",) * self.down

    def idle(self, problem: Any) -> str:
        """A message if everything is sent uncompressed, else empty."""
        if self.kinds == []:
            return "compression.kinds=[]: nothing is compressed"
        name = "bits" if hasattr(self, "bits") else "share"
        return f"compression.{name}={getattr(self, name)}: nothing is compressed" if self.full else ""

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse a server with a separate message for each client: errors are stored only for common messages."""
        alike = not self.down or self.full or not getattr(method, "draws_for_clients", False)
        require(alike, "compression.down", self.down, f"false for {method.label}: its server sends each its own")

    @property
    def full(self) -> bool:
        """Whether everything is sent uncompressed."""
        return False

    @property
    def on_lossy_links(self) -> bool:  # type: ignore[override]
        """Whether messages may be lost: only in full precision, because a lost difference is never corrected."""
        return self.full

    @property
    def unbiased(self) -> bool:
        """Whether the rounding is unbiased."""
        return False

    def code(
        self, values: Array, chosen: NDArray[np.bool_] | None, adds: bool, draw: Callable[[], Array]
    ) -> Quantised | Sparse:
        """The code that is sent for values (R, K, ...); `draw` returns a number in [0, 1) for each scalar."""
        raise NotImplementedError

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """Compress a client's message with error feedback; an absent client sends nothing and keeps its errors."""
        if not self.up:
            return memory, message
        return self._with_error_feedback(common, memory, message, samples.present, turn, Role.COMPRESSION)

    def server_sends(self, common: Common, memory: Any, message: Any, turn: Turn) -> tuple[Any, Any]:
        """Compress the server's message to all clients."""
        if not self.down:
            return memory, message
        return self._with_error_feedback(common, memory, message, np.ones(1, np.bool_), turn, Role.COMPRESSION_DOWN)

    def agent_starts(self, common: Common, known: Any, agents: int) -> Any:
        """The copy of each agent's message that all its neighbours hold."""
        shared: dict[str, Any] = {kind: payload for kind, (payload,) in payloads_by_kind(known)}
        return CompressionMemory(
            {f"{kind} 0": np.repeat(one.values[:, None], agents, axis=1) for kind, one in shared.items()}
        )

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Send the difference from the neighbours' copy."""
        # Code the change since the copy that neighbours hold, and move this copy by what they receive
        held = dict(memory.held)

        def coded(name: str, values: Array, chosen: Any, draw: Callable[[], Array]) -> Quantised | Sparse:
            change = self._code_received(common, values - held[name], None, True, draw)
            held[name] = array_namespace(values).where(
                with_axes_of(values, sends), change.added_to(held[name]), held[name]
            )
            return change

        return CompressionMemory(held), self._coded_message(message, turn, Role.COMPRESSION, coded, ""), sends

    def _code_received(
        self, common: Common, values: Array, chosen: NDArray[np.bool_] | None, adds: bool, draw: Callable[[], Array]
    ) -> Quantised | Sparse:
        """The code as it arrives, from which the sender computes the error."""
        axes = dict(zip("RK", values.shape, strict=False))
        return self.code(values, chosen, adds, draw).as_received(axes, np.dtype(common.precision).itemsize)

    def _with_error_feedback(
        self,
        common: Common,
        memory: CompressionMemory | None,
        message: Any,
        present: NDArray[np.bool_],
        turn: Turn,
        role: Role,
    ) -> tuple[CompressionMemory | None, Any]:
        """A message from the present parties (K,), and the remaining errors."""
        # The errors that remain from earlier messages, by payload
        held = {} if memory is None else dict(memory.held)

        def coded(
            name: str, values: Array, chosen: NDArray[np.bool_] | None, draw: Callable[[], Array]
        ) -> Quantised | Sparse:
            # An unbiased code needs no feedback
            if self.unbiased:
                return self._code_received(common, values, chosen, False, draw)
            # p is what should be sent: the values and the remaining error
            xp = array_namespace(values)
            left = held.get(name, xp.zeros_like(values))
            sent = with_axes_of(values, xp.broadcast_to(present, values.shape[:2]))
            travels = xp.ones_like(sent) if chosen is None else with_axes_of(values, chosen)
            p = xp.where(travels, values + left, 0)  # Algorithm 1, line 4; the server applies the step gamma
            code = self._code_received(common, p, chosen, False, draw)  # line 5
            held[name] = xp.where(travels & sent, p - code.values, left)  # line 7
            return code

        message = self._coded_message(message, turn, role, coded, f"{turn.exchange} ")
        return (CompressionMemory(held) if held else memory), message

    def _coded_message(self, message: Any, turn: Turn, role: Role, coded: Any, prefix: str) -> Any:
        """The message with codes instead of the payloads to compress."""
        # Nothing to compress
        if self.full or message is None:
            return message

        def numbers(shape: tuple[int, ...], draw: int) -> Array:
            return turn.vectors(role, int(np.prod(shape[2:])), draw).reshape(shape)

        # Each payload gets its own random numbers, by its place in the message and the exchange
        short: dict[str, Any] = {}
        draw = turn.exchange * ANOTHER_EXCHANGE - 1
        for kind, payloads in payloads_by_kind(message):
            new = []
            for j, payload in enumerate(payloads):
                draw += 1  # counts uncompressed payloads too, so each has its own random numbers
                new.append(payload)
                # Only the kinds that a key names, and only arrays of real numbers with a value for each client
                if self.kinds is not None and kind not in self.kinds:
                    continue
                dense = payload.dense()
                if not isinstance(dense, SameForAll if role == Role.COMPRESSION_DOWN else PerClient):
                    continue
                values = dense.values[:, None] if isinstance(dense, SameForAll) else dense.values
                if values.dtype.kind != "f" or values.ndim < 3:
                    continue
                # Code it, with the same draws at all parties
                draws = partial(numbers, values.shape, draw)
                code = coded(f"{prefix}{kind} {j}", values, mask_of_payload(dense), draws)
                new[-1] = OneCodeForAll(code) if isinstance(dense, SameForAll) else code
            short[kind] = tuple(new) if isinstance(getattr(message, kind), tuple) else new[0]
        return replace(message, **short)


@dataclass(frozen=True)
class Uniform(Compression):
    """Each scalar is rounded to the step below or above, among even steps over its vector's range, which include 0.

    With s = 2^(bits - 1) - 1 steps on either side of 0, it is Q_s of QSGD (Alistarh et al., NeurIPS 2017, section 3.1),
    with max |v_i| instead of |v|_2, as in their experiments: Q_s is still unbiased, Lemma 3.1 holds, and no step is
    longer. A vector is the last axis of an array, such as a kernel's theta, and has its own unit, one scalar.
    """

    bits: int = key(
        8,
        "Bits per scalar, from 2 to 16; 32 for full precision.",
        min=2,
        max=FULL,
        must="an integer from 2 to 16, or 32 for full precision",
    )
    rounding: str = key(
        "stochastic",
        "Round at random to the step below or above, without bias, or to the nearest step.",
        choices=ROUNDINGS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.bits <= 16 or self.bits == FULL, "bits")

    @property
    def full(self) -> bool:
        """Whether scalars have all their bits."""
        return self.bits == FULL

    @property
    def unbiased(self) -> bool:
        """Whether rounding is random."""
        return self.rounding == "stochastic"

    def code(self, values: Array, chosen: NDArray[np.bool_] | None, adds: bool, draw: Callable[[], Array]) -> Quantised:
        """Integer numbers of steps, and a unit for each vector."""
        if self.unbiased:
            return Quantised.round_at_random(values, self.bits, draw(), chosen, adds)
        return Quantised.round_to_nearest(values, self.bits, chosen, adds)


@dataclass(frozen=True)
class TopK(Compression):
    """The largest entries of each payload of a party, uncompressed, with error feedback.

    Their positions are sent as a mask, one bit per entry, or as numbers of ceil(log2 entries) bits each, whichever is
    shorter. Both ends know the format from the number of entries.
    """

    share: float = key(0.1, "Share of the entries to send, in (0, 1], rounded up; 1 for all.", above=0, max=1)

    @property
    def full(self) -> bool:
        """Whether all entries are sent."""
        return self.share == 1

    def code(self, values: Array, chosen: NDArray[np.bool_] | None, adds: bool, draw: Callable[[], Array]) -> Sparse:
        """The largest of the entries that the method sends."""
        xp, (R, K) = array_namespace(values), values.shape[:2]
        travels = xp.broadcast_to(True if chosen is None else with_axes_of(values, chosen), values.shape)
        travels = travels.reshape(R, K, -1)
        k = xp.ceil(self.share * travels.sum(axis=2, keepdims=True) - 1e-9)  # 0.1 * 30 is a little above 3
        size = xp.where(travels, xp.abs(values.reshape(R, K, -1)), -1)
        rank = stable_order(stable_order(-size))
        kept = (rank < k).reshape(values.shape)
        return Sparse(xp.where(kept, values, 0), kept, adds)


@dataclass(frozen=True)
class Sign(Compression):
    """The sign of each scalar, one bit, and the mean magnitude of each vector, with error feedback.

    As in EF-SignSGD (Karimireddy et al., 2019, Algorithm 1): sign(p) |p|_1 / d for each vector p of d scalars. A vector
    is the last axis of an array, such as a kernel's theta. The sign of 0 is 1.
    """

    def code(self, values: Array, chosen: NDArray[np.bool_] | None, adds: bool, draw: Callable[[], Array]) -> Quantised:
        """The signs, and the mean magnitude of each vector."""
        xp = array_namespace(values)
        travels = xp.broadcast_to(True if chosen is None else with_axes_of(values, chosen), values.shape)
        codes = (xp.where(values >= 0, 1, -1) * travels).astype(np.int16)
        d = xp.maximum(travels.sum(axis=-1, keepdims=True), 1)
        unit = (xp.abs(values).sum(axis=-1, keepdims=True) / d).astype(values.dtype)
        return Quantised(codes, unit, 1, chosen, adds)
