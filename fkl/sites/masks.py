"""Secure sums at sites: `secure=pairwise` with the messages of `fkl.conditions.secure_protocol`, carried by the server.

A site adds up its clients' messages and masks the sum; the server gets the sum over all sites and nothing else. An
exchange takes four messages to each site: keys, shares, masked sums, and the shares that remove the masks. If a site
fails before the last of these, the round is repeated without it, with new keys and masks. If it fails in the last, the
shares of the other sites are enough if most of these are left.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.conditions.secure import CIPHERTEXT, KEY, NUMBER, SHARE, Pairwise
from fkl.conditions.secure_protocol import ForwardingServer, MaskingClient, neighbour_ring
from fkl.wire.coded_payloads import Padding
from fkl.wire.packets import Packet
from fkl.wire.payloads import from_bits, to_bits

Vector = NDArray[np.uint64]
PHASES = 4
LEAST_OF_SUM = 3
"""Minimum number of sites: of two, each could subtract its own part from the sum."""


@dataclass
class Mask:
    """State with which a site continues an exchange's protocol; it follows from a secret and the letters so far.

    Parameters
    ----------
    vector : (P,) uint64
        The sum of its clients' numbers modulo 2^bits.
    threshold : int
        Number of shares that reveal a secret.
    secret : bytes
        Secret of this exchange.
    letters : list of bytes
        Letters from the server, in the order of the phases.
    """

    vector: Vector
    threshold: int
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(KEY))
    letters: list[bytes] = field(default_factory=list)

    def answer_in_phase(self, site: int, bits: int, phase: int, letter: bytes) -> bytes:
        """The site's letter in a phase.

        Raises
        ------
        fkl.basics.errors.FklError
            For a phase that is not the next one, or letters that no neighbour has written.
        """
        # Letters must come in order; otherwise masks would be used twice
        if phase != len(self.letters):
            raise FklError(f"secure sums: phase {phase + 1}, where phase {len(self.letters) + 1} is the next")
        self.letters.append(letter)
        # The site's part is a function of its secret and of all letters so far, so a restarted site repeats it
        client = MaskingClient(site, bits, self.threshold, _Stream(self.secret).take)
        sent = client.advertise_keys()
        try:
            if phase >= 1:
                sent = client.share(self.letters[1])
            if phase >= 2:
                sent = client.send_masked(self.letters[2], self.vector)
        except (InvalidTag, ValueError, KeyError, IndexError) as error:
            raise FklError(f"secure sums: a message that no neighbour wrote ({type(error).__name__})") from None
        return client.send_unmasking_shares(self.letters[3]) if phase == PHASES - 1 else sent


class Sum:
    """The server's part in one exchange.

    Parameters
    ----------
    condition : Pairwise
    sites : sequence of int
        Sites that take part.
    like : Packet
        A message of one client, for its form.
    """

    def __init__(self, condition: Pairwise, sites: Sequence[int], like: Packet) -> None:
        # A random ring, so no site chooses its neighbours
        order = list(sites)
        secrets.SystemRandom().shuffle(order)
        graph = neighbour_ring(order, condition.neighbours)
        self._like, self._bits = like, condition.bits
        self.threshold, size = min(map(len, graph.values())) // 2 + 1, len(message_residues(like, self._bits))
        # The server adds up, and knows the size of every letter
        self._server = ForwardingServer(graph, self._bits, self.threshold, size)
        degree = {site: len(near) for site, near in graph.items()}
        self._sizes = (
            dict.fromkeys(order, 2 * KEY),
            {site: d * (NUMBER + CIPHERTEXT) for site, d in degree.items()},
            dict.fromkeys(order, -(-size * self._bits // 8)),
            {site: d * SHARE for site, d in degree.items()},
        )

    def require_size(self, site: int, phase: int, letter: bytes) -> None:
        """Raise an error for a letter of the wrong length."""
        if len(letter) != self._sizes[phase][site]:
            raise ValueError(f"{len(letter)} bytes of the secure sum's phase {phase + 1}")

    def pass_on(self, phase: int, letters: Mapping[int, bytes]) -> dict[int, bytes]:
        """The letter of the next phase to each site."""
        return (self._server.forward_keys, self._server.forward_messages, self._server.forward_survivors)[phase](
            letters
        )

    def summed_packets(self, unmasking: Mapping[int, bytes], clients: int) -> list[Packet]:
        """Messages of this many clients with the right sum; the first message has all of it, and the others nothing.

        Raises
        ------
        fkl.basics.errors.FklError
            If too few sites have answered.
        """
        total = self._server.unmasked_total(unmasking)
        nothing = _with_residues(self._like, np.zeros_like(total), self._bits)
        return [_with_residues(self._like, total, self._bits), *[nothing] * (clients - 1)]


def without_padding(packet: Packet) -> Packet:
    """The message without the empty bytes that represent the protocol's letters in a simulation."""
    return packet.with_parts(lambda part: part._replace(body=b"") if part.kind is Padding else part)


def message_residues(packet: Packet, bits: int) -> Vector:
    """All numbers of a client's message in fixed point."""
    parts = _message_of(packet).payload_parts()
    return np.concatenate([from_bits(part.bits, bits, prod(part.known[0])) for part in parts])


def _with_residues(packet: Packet, values: Vector, bits: int) -> Packet:
    """The message with other numbers."""
    message = _message_of(packet)
    ends = np.cumsum([prod(part.known[0]) for part in message.payload_parts()])
    residues_of_parts = iter(np.split(values, ends[:-1]))
    changed = message.with_parts(lambda part: part._replace(bits=to_bits(next(residues_of_parts), bits)))
    return replace(packet, fields={**packet.fields, "message": changed})


def _message_of(packet: Packet) -> Packet:
    """The method's message inside the message of the condition."""
    message = packet.fields["message"]
    assert isinstance(message, Packet)
    return message


class _Stream:
    """A stream of bytes derived from a secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = Cipher(algorithms.ChaCha20(secret, bytes(16)), None).encryptor()

    def take(self, size: int) -> bytes:
        """The next bytes."""
        return self._cipher.update(bytes(size))
