"""Secure aggregation, message by message: the server sees only the sum of the clients' vectors.

Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning (CCS 2017), figure 4, without the
signatures against a server that deviates from the protocol. On a complete graph it is their protocol. On a sparse graph
it is SecAgg+, Bell et al., Secure Single-Server Aggregation with (Poly)Logarithmic Overhead (CCS 2020), algorithm 2,
where the server draws the neighbours. Every party is a class, and every message is bytes.

Use it only for experiments: side channels were not examined, and no public-key infrastructure proves identities.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.conditions.secure import CIPHERTEXT, KEY, NUMBER, SHARE
from fkl.wire.payloads import from_bits, to_bits

Words = NDArray[np.uint64]
PRIME = 2**256 + 297
"""The smallest prime above all seeds and keys of 256 bits; a share is a number below it."""


def shamir_shares(
    secret: bytes, places: Sequence[int], threshold: int, random: Callable[[int], bytes]
) -> dict[int, bytes]:
    """Shares of a 32-byte secret, at these places > 0: any `threshold` shares determine it, and fewer reveal nothing.

    Shamir, How to Share a Secret (1979): a random polynomial of degree threshold - 1 whose value at 0 is the secret.
    """
    polynomial = [int.from_bytes(secret, "big")]
    polynomial += [int.from_bytes(random(SHARE + 16), "big") % PRIME for _ in range(threshold - 1)]
    return {x: (sum(a * x**j for j, a in enumerate(polynomial)) % PRIME).to_bytes(SHARE, "big") for x in places}


def recovered_secret(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret, by Lagrange interpolation at 0.

    Raises
    ------
    fkl.basics.errors.FklError
        If there are fewer shares than the threshold.
    """
    # Any `threshold` shares determine the secret; fewer say nothing about it
    if len(shares) < threshold:
        raise FklError(f"a secret needs {threshold} shares, but {len(shares)} arrived: too many clients have left")
    some, secret = list(shares.items())[:threshold], 0
    # Lagrange's basis polynomial at 0, modulo the prime
    for x, share in some:
        above = below = 1
        for other, _ in some:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        secret += int.from_bytes(share, "big") * above * pow(below, -1, PRIME)
    return (secret % PRIME).to_bytes(KEY, "big")


def agreed_seed(own: X25519PrivateKey, other: bytes, use: bytes) -> bytes:
    """The common seed of two parties, for one use."""
    both = own.exchange(X25519PublicKey.from_public_bytes(other))
    return HKDF(SHA256(), KEY, None, use).derive(both)


def pseudorandom_words(seed: bytes, size: int) -> Words:
    """Pseudorandom 64-bit words from a seed, by ChaCha20."""
    cipher = Cipher(algorithms.ChaCha20(seed, bytes(16)), None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), "<u8").astype(np.uint64)


def neighbour_ring(order: Sequence[int], neighbours: int | None) -> dict[int, list[int]]:
    """Neighbours of each client: all others, or the nearest clients on a ring in this order, half on either side."""
    n = len(order)
    reach = n - 1 if neighbours is None else min(neighbours, n - 1)
    if reach >= n - 1:
        return {one: sorted(set(order) - {one}) for one in order}
    near = [step for step in range(-reach // 2, reach // 2 + 1) if step]
    return {one: sorted(order[(place + step) % n] for step in near) for place, one in enumerate(order)}


@dataclass
class MaskingClient:
    """A client, which takes part in four rounds.

    Parameters
    ----------
    number : int
        Number of the client, from 0.
    bits : int
        Bits k: sums are modulo 2^k.
    threshold : int
        Number t of shares that determine a secret.
    random : callable
        Returns a given number of random bytes.
    """

    number: int
    bits: int
    threshold: int
    random: Callable[[int], bytes] = os.urandom
    _neighbours: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    _shares: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """For each neighbour, a share of the key of its pair masks, and a share of the seed of its own mask."""

    def advertise_keys(self) -> bytes:
        """Round 0: send two public keys, one for messages between neighbours, one for masks."""
        self._talk, self._mask = (X25519PrivateKey.from_private_bytes(self.random(KEY)) for _ in range(2))
        return self._talk.public_key().public_bytes_raw() + self._mask.public_key().public_bytes_raw()

    def share(self, keys: bytes) -> bytes:
        """Round 1, with the neighbours' keys: send each encrypted shares of the mask key and of the seed b."""
        # Keys of the neighbours, and a seed for this client's own mask
        for record in records_of_message(keys, NUMBER + 2 * KEY):
            self._neighbours[leading_number(record)] = record[NUMBER : NUMBER + KEY], record[NUMBER + KEY :]
        self._seed = self.random(KEY)
        # Shares of the mask key and of the seed; the server gets only one of the two for each client
        places = [one + 1 for one in self._neighbours]
        of_key = shamir_shares(self._mask.private_bytes_raw(), places, self.threshold, self.random)
        of_seed = shamir_shares(self._seed, places, self.threshold, self.random)
        # Encrypted for each neighbour, since they travel through the server
        return b"".join(
            number_in_bytes(one)
            + self._cipher_with(one).encrypt(nonce_of_sender(self.number), of_key[one + 1] + of_seed[one + 1], None)
            for one in self._neighbours
        )

    def send_masked(self, shares: bytes, vector: Words) -> bytes:
        """Round 2, with the neighbours' shares: send x + PRG(b) + sum over v of +-PRG(s_uv), modulo 2^k."""
        for record in records_of_message(shares, NUMBER + CIPHERTEXT):
            peer = leading_number(record)
            both = self._cipher_with(peer).decrypt(nonce_of_sender(peer), record[NUMBER:], None)
            self._shares[peer] = both[:SHARE], both[SHARE:]
        if len(self._shares) < self.threshold:
            raise FklError(f"client {self.number} has shares of {len(self._shares)} neighbours, needs {self.threshold}")
        return to_bits(vector + self.mask_of_vector(len(vector)), self.bits)

    def mask_of_vector(self, size: int) -> Words:
        """The mask of a vector; the pair masks of all remaining clients cancel."""
        total = pseudorandom_words(self._seed, size)
        for peer in self._shares:
            total += signed_mask(
                pseudorandom_words(agreed_seed(self._mask, self._neighbours[peer][1], b"mask"), size), self.number, peer
            )
        return total

    def send_unmasking_shares(self, survivors: bytes) -> bytes:
        """Round 3, with the list of masked vectors that arrived: send one share for each neighbour, never both.

        It is the share of the seed b for a neighbour that is present, and of the mask key for one that has left.
        """
        there = np.unpackbits(np.frombuffer(survivors, np.uint8), count=len(self._shares))
        return b"".join(self._shares[one][int(here)] for one, here in zip(sorted(self._shares), there, strict=True))

    def _cipher_with(self, one: int) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(agreed_seed(self._talk, self._neighbours[one][0], b"talk"))


@dataclass
class ForwardingServer:
    """The server, which forwards encrypted messages, and adds up masked vectors.

    Parameters
    ----------
    graph : dict of int to list of int
        Each client's neighbours.
    bits, threshold : int
        As in `MaskingClient`.
    size : int
        Number of entries of a vector.
    """

    graph: Mapping[int, Sequence[int]]
    bits: int
    threshold: int
    size: int

    def forward_keys(self, advertised: Mapping[int, bytes]) -> dict[int, bytes]:
        """Send each client the keys of its neighbours."""
        self._public = dict(advertised)
        return {
            one: b"".join(
                number_in_bytes(other) + advertised[other] for other in self.graph[one] if other in advertised
            )
            for one in advertised
        }

    def forward_messages(self, shares: Mapping[int, bytes]) -> dict[int, bytes]:
        """Send each client its neighbours' messages."""
        letters: dict[int, list[bytes]] = {one: [] for one in shares}
        for sender in sorted(shares):
            for record in records_of_message(shares[sender], NUMBER + CIPHERTEXT):
                if (to := leading_number(record)) in letters:
                    letters[to].append(number_in_bytes(sender) + record[NUMBER:])
        self._shared = sorted(shares)
        return {one: b"".join(found) for one, found in letters.items()}

    def forward_survivors(self, masked: Mapping[int, bytes]) -> dict[int, bytes]:
        """Send each client one bit per neighbour: whether the neighbour's masked vector arrived."""
        self._masked = dict(masked)
        return {
            one: np.packbits([other in masked for other in self._neighbours_heard(one)]).tobytes()
            for one in sorted(masked)
        }

    def unmasked_total(self, unmasking: Mapping[int, bytes]) -> Words:
        """The sum of the vectors that arrived, modulo 2^k, after removing the masks that do not cancel."""
        # Add what arrived; masks of pairs that both arrived have cancelled
        total = np.zeros(self.size, np.uint64)
        for vector in self._masked.values():
            total += from_bits(vector, self.bits, self.size)
        # Remove the rest: own masks of clients that arrived, and pair masks of those that did not
        for client in self._shared:
            secret = recovered_secret(self._shares_of_secret(client, unmasking), self.threshold)
            if client in self._masked:  # the secret is the seed of its own mask, otherwise the key of its pair masks
                total -= pseudorandom_words(secret, self.size)
                continue
            key = X25519PrivateKey.from_private_bytes(secret)
            for other in set(self._neighbours_heard(client)) & set(self._masked):
                pair = pseudorandom_words(agreed_seed(key, self._public[other][KEY:], b"mask"), self.size)
                total -= signed_mask(pair, other, client)
        return total & np.uint64(2**self.bits - 1)

    def _neighbours_heard(self, one: int) -> list[int]:
        """Neighbours whose shares a client has."""
        return [other for other in self.graph[one] if other in self._shared]

    def _shares_of_secret(self, one: int, unmasking: Mapping[int, bytes]) -> dict[int, bytes]:
        """Shares of a client's secret that arrived, by place."""
        parts = {}
        for other in self._neighbours_heard(one):
            if other in unmasking:
                parts[other + 1] = records_of_message(unmasking[other], SHARE)[self._neighbours_heard(other).index(one)]
        return parts


def run_protocol(
    clients: Sequence[MaskingClient],
    server: ForwardingServer,
    vectors: Sequence[Words],
    gone: Mapping[int, int] | None = None,
) -> tuple[Words, dict[str, dict[int, int]]]:
    """Run all rounds of the protocol.

    Parameters
    ----------
    clients : list of Client
        Clients in the order of their numbers.
    server : Server
    vectors : list of (size,) uint64
    gone : dict of int to int
        Round, 0 to 3, before which a client leaves.

    Returns
    -------
    (size,) uint64
        Sum over the clients that were present in round 2.
    dict of str to dict
        Bytes by kind of message, for each client that sent or received it.
    """
    # The last round of each client: a client that is gone sends nothing in later ones
    last = {client.number: (gone or {}).get(client.number, 4) for client in clients}
    sizes: dict[str, dict[int, int]] = {}

    def sent(kind: str, messages: dict[int, bytes]) -> dict[int, bytes]:
        sizes[kind] = {one: len(message) for one, message in messages.items()}
        return messages

    # 1. Keys. 2. Shares of secrets. 3. Masked vectors. 4. What unmasks their sum
    up = sent("keys up", {one.number: one.advertise_keys() for one in clients if last[one.number] > 0})
    down = sent("keys down", server.forward_keys(up))
    up = sent("shares up", {one: clients[one].share(down[one]) for one in down if last[one] > 1})
    down = sent("shares down", server.forward_messages(up))
    up = sent("masked up", {one: clients[one].send_masked(down[one], vectors[one]) for one in down if last[one] > 2})
    down = sent("survivors down", server.forward_survivors(up))
    up = sent("unmasking up", {one: clients[one].send_unmasking_shares(down[one]) for one in down if last[one] > 3})
    return server.unmasked_total(up), sizes


def signed_mask(mask: Words, one: int, other: int) -> Words:
    """The mask of a pair as client `one` adds it; client `other` adds its negative."""
    return mask if one > other else np.zeros_like(mask) - mask


def records_of_message(message: bytes, length: int) -> list[bytes]:
    """The parts of a message, of equal length."""
    return [message[start : start + length] for start in range(0, len(message), length)]


def number_in_bytes(one: int) -> bytes:
    """A client's number as bytes."""
    return one.to_bytes(NUMBER, "big")


def leading_number(record: bytes) -> int:
    """The number at the beginning of a record."""
    return int.from_bytes(record[:NUMBER], "big")


def nonce_of_sender(sender: int) -> bytes:
    """The nonce for one direction of a pair; the pair uses its key once in each direction."""
    return number_in_bytes(sender).rjust(12, b"\0")
