"""Secure sums: the server receives only the sum of the clients' messages.

The sum is bit for bit the result of the protocol in `fkl.conditions.secure_protocol`: in fixed point, modulo 2^k. Masks
cancel in it, so a simulation draws no masks. It counts the bytes of vectors, keys, shares and unmasking.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.basics.keys import key
from fkl.conditions.wrapped import OnMessages, SumOnly
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.coded_payloads import Padding, Residues
from fkl.wire.payloads import payloads_of, rebuild_message

KEY = 32
"""Bytes of a key of X25519, or of a seed."""
NUMBER = 4
"""Bytes of a client's number."""
SHARE = 33
"""Bytes of a share of a 32-byte secret: a number below a prime just above 2^256."""
CIPHERTEXT = 2 * SHARE + 16
"""Bytes of two encrypted shares and their authentication tag."""


@dataclass(frozen=True)
class MaskedUp:
    """A client's message, in fixed point and masked, and its protocol messages about masks."""

    message: Any
    keys: Padding
    shares: Padding
    unmasking: Padding


@dataclass(frozen=True)
class WithKeysDown:
    """The server's message, and the neighbours' keys, shares and survivors that the server forwards."""

    message: Any
    keys: Padding
    shares: Padding
    survivors: Padding


@dataclass(frozen=True)
class Pairwise(OnMessages):
    """Pairs of clients add and subtract a common mask, which cancels in the sum; the protocol runs in each exchange.

    Every entry is rounded to a multiple of 2^-fraction. All entries are sent, even those that the method would not
    send, because the choice of entries would reveal data. A value that could make a sum overflow is refused.
    """

    on_a_graph = False

    bits: int = key(32, "Bits k: sums are modulo 2^k, and every entry takes k bits on the wire.", min=8, max=62)
    fraction: int = key(16, "Number of bits after the point.", min=0, must="an integer >= 0, below bits")
    neighbours: int | None = key(
        None,
        "Number of other clients with which a client shares masks: an even number, as in SecAgg+ of Bell et al. "
        "(2020), or null for all others, as in Bonawitz et al. (2017).",
        min=2,
        must="an even integer >= 2, or null for all",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.fraction < self.bits, "fraction")
        self.require(self.neighbours is None or self.neighbours % 2 == 0, "neighbours")

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse compression, because a masked entry needs all its bits."""
        super().require_fits(method, conditions)
        allowed = "null with secure sums: a masked entry takes secure.bits; lower secure.bits instead"
        coded = conditions.get("compression")
        require(coded is None, "compression", type(coded).__name__, allowed)

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The message in fixed point, and the other bytes of the protocol."""
        if message is None:
            return memory, None
        coded = [
            self.encode_values(one.dense().values, samples.present, turn.clients_present)
            for one in payloads_of(message)
        ]
        R, sizes = len(turn.streams.replicates), secure_overhead(turn.clients_present, self.neighbours)
        paddings = (Padding(R, size) for size in (sizes.keys_up, sizes.shares_up, sizes.unmasking_up))
        return memory, MaskedUp(rebuild_message(message, coded), *paddings)

    def server_sends(self, common: Common, memory: Any, message: Any, turn: Turn) -> tuple[Any, Any]:
        """The message, and the parts that the server forwards."""
        if message is None:
            return memory, None
        R, sizes = len(turn.streams.replicates), secure_overhead(turn.clients_present, self.neighbours)
        passed = (Padding(R, size) for size in (sizes.keys_down, sizes.shares_down, sizes.survivors_down))
        return memory, WithKeysDown(message, *passed)

    def client_takes(self, common: Common, message: Any, turn: Turn) -> Any:
        """The server's message alone."""
        return None if message is None else message.message

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """Payloads whose mean is the only readable value."""
        if message is None:
            return memory, None, share
        sums = [SumAlone(payload, self.fraction) for payload in payloads_of(message.message)]
        return memory, rebuild_message(message.message, sums), share

    def encode_values(self, values: Array, present: NDArray[np.bool_], clients: int) -> Residues:
        """Multiples of 2^-fraction, modulo 2^bits, of values (R, K, ...).

        Raises
        ------
        fkl.basics.errors.FklError
            If the sum would overflow if all clients sent such a value.
        """
        # The sum of all clients must fit in `bits` bits, otherwise it would wrap around unnoticed
        here = values.astype(np.float64)[:, present]
        most = np.abs(here).max(initial=0.0)
        if not most * 2.0**self.fraction + 0.5 < 2.0 ** (self.bits - 1) / max(clients, 1):
            raise FklError(
                f"secure.bits={self.bits}: a client would send {most:.4g}, and a sum of {clients} such values needs "
                f"more bits, with secure.fraction={self.fraction} of them after the point; raise bits or lower fraction"
            )
        # Whole multiples of 2^-fraction; negative numbers in two's complement
        codes = np.zeros(values.shape, np.uint64)
        codes[:, present] = np.rint(here * 2.0**self.fraction).astype(np.int64).view(np.uint64)
        return Residues(codes & np.uint64(2**self.bits - 1), self.bits)


@dataclass(frozen=True)
class SumAlone(SumOnly):
    """A payload that gives the server only the sum over clients."""

    refusal: ClassVar[tuple[str, str, str]] = (
        "secure", "Pairwise", "null for a method whose server reads what each client sent",
    )  # fmt: skip

    payload: Residues
    fraction: int

    def mean(self, share: Array) -> NDArray[np.float64]:
        """The sum over clients with a share (K,) above 0, divided by their number: (R, ...).

        Raises
        ------
        fkl.basics.errors.BadValue
            If shares differ.
        """
        # The sum is only a mean if all weights are equal
        here = share > 0
        n = int(here.sum())
        even = np.allclose(share[here], 1 / n, rtol=1e-12)
        require(even, "secure", "Pairwise", "null if clients have different weights: it reveals only their sum")
        return decode_sum(self.payload.values[:, here].sum(axis=1), self.payload.bits, self.fraction) / n


def decode_sum(total: NDArray[np.uint64], bits: int, fraction: int) -> NDArray[np.float64]:
    """The number that a sum modulo 2^bits represents, at least -2^(bits - 1)."""
    residue = (total & np.uint64(2**bits - 1)).astype(np.int64)
    signed = np.where(residue >= 2 ** (bits - 1), residue - 2**bits, residue)
    return signed / 2.0**fraction


class Overhead(NamedTuple):
    """Bytes that a client sends and receives in addition to its vector, by kind, if no client drops out."""

    keys_up: int
    keys_down: int
    shares_up: int
    shares_down: int
    survivors_down: int
    unmasking_up: int


def count_neighbours(clients: int, neighbours: int | None) -> int:
    """Number of neighbours of each of this many clients: all others, or the number for SecAgg+."""
    others = max(clients - 1, 0)
    return others if neighbours is None else min(neighbours, others)


def secure_overhead(clients: int, neighbours: int | None) -> Overhead:
    """Additional bytes of each client, for this number of clients."""
    d = count_neighbours(clients, neighbours)
    letters = d * (NUMBER + CIPHERTEXT)
    return Overhead(2 * KEY, d * (NUMBER + 2 * KEY), letters, letters, -(-d // 8), d * SHARE)
