"""A cipher for tests, that is none."""

from dataclasses import dataclass

import numpy as np

from fkl.algorithms.vertical.ciphers import KeyPair, OneByOne


@dataclass(frozen=True)
class Toy:
    """Stands in for Paillier: a number plus a random multiple of a secret one; sums keep the number."""

    SECRET = 2**90 + 7

    def keys(self) -> KeyPair:
        """Keys without secrets."""
        return ToyKeys(32)

    def keys_of(self, public: bytes) -> KeyPair:
        """The same."""
        return ToyKeys(32)


@dataclass
class ToyCiphertext:
    """All that can be done with it is to add another."""

    hidden: int

    def __add__(self, other: "ToyCiphertext") -> "ToyCiphertext":
        return ToyCiphertext(self.hidden + other.hidden)


@dataclass
class ToyKeys(OneByOne):
    """Keys of `Toy`."""

    def encrypt_number(self, value: int) -> ToyCiphertext:
        """Hide one number."""
        return ToyCiphertext(value + Toy.SECRET * int(np.random.default_rng(self.operations.encryptions).integers(99)))

    def number_of_ciphertext(self, ciphertext: ToyCiphertext) -> int:
        """Made positive."""
        return ciphertext.hidden + 2**200

    def read(self, number: int) -> ToyCiphertext:
        """What was written."""
        return ToyCiphertext(number - 2**200)

    def open(self, ciphertext: ToyCiphertext) -> int:
        """What is hidden."""
        rest = ciphertext.hidden % Toy.SECRET
        return rest if rest < Toy.SECRET // 2 else rest - Toy.SECRET
