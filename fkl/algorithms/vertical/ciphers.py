"""Additively homomorphic ciphers: one party encrypts numbers, and others can add them up without reading them."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, require
from fkl.kernels.cached_njit import njit_cached

Integers = NDArray[np.integer]
MOST_KEY_BITS = 16384
SCALAR = 8
"""Bytes of a number that is not encrypted."""
FEW = 1 / 3
"""Up to this share of rows outside the fullest bin of a way, sums over only these rows are faster."""


@dataclass
class Operations:
    """Numbers of values encrypted, pairs of ciphertexts added, and ciphertexts decrypted."""

    encryptions: int = 0
    additions: int = 0
    decryptions: int = 0


@dataclass(frozen=True)
class Sorting:
    """n rows, sorted into bins in d ways.

    Parameters
    ----------
    bins : (d, n) int
        Bin of each row in each way.
    starts : (d + 1,) int
        Position at which the bins of each way begin in a histogram; the last entry is the number of bins.
    fullest : (d,) int
        Position in a histogram of each way's bin with the most rows.
    places : (m,) uint32
        Positions of the rows' other bins, row after row; empty if there are many.
    ends : (n + 1,) int
        Index at which the positions of each row begin in `places`.
    """

    bins: Integers
    starts: Integers
    fullest: Integers
    places: NDArray[np.uint32]
    ends: Integers

    @classmethod
    def from_bins(cls, bins: Integers, starts: Integers) -> "Sorting":
        """Find the bin with the most rows in each way."""
        fullest = np.array([np.bincount(way).argmax() for way in bins], np.int64).reshape(len(bins))
        apart = bins != fullest[:, None]
        if np.count_nonzero(apart) > FEW * apart.size:
            apart = np.zeros_like(apart)
        row, way = np.nonzero(apart.T)
        places = (starts[way] + bins[way, row]).astype(np.uint32)
        ends = np.concatenate([[0], np.cumsum(apart.sum(axis=0))])
        return cls(bins, starts, starts[:-1] + fullest, places, ends)

    def sums(self, pairs: NDArray[np.int64], rows: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sums (starts[-1], 2) of pairs (n, 2) as in `Keys.sums`, and the rows (starts[-1],) in each bin."""
        if len(self.places):
            return _sums_of_few(pairs, rows, self.places, self.ends, self.starts, self.fullest)
        return binned_sums(pairs, rows, self.bins, self.starts)


class KeyPair(Protocol):
    """A fresh pair of keys, with counts of its operations; only the party that made it may decrypt."""

    width: int
    """Bytes of a ciphertext."""
    operations: Operations

    @property
    def public(self) -> bytes:
        """Public key, with which other parties encrypt and add; empty if they need none."""
        ...

    def words(self, ciphertexts: Any) -> NDArray[np.void]:
        """Ciphertexts as they are sent, in words of `width` bytes."""
        ...

    def of_words(self, words: NDArray[np.void]) -> Any:
        """Ciphertexts from received words."""
        ...

    def encrypt(self, values: Integers) -> Any:
        """Ciphertexts of pairs of integers (n, 2), as an array of that shape."""
        ...

    def sums(self, ciphertexts: Any, rows: Integers, sorting: Sorting) -> Any:
        """Sums, without decrypting, over the rows that share a bin; an empty bin gets a fresh ciphertext of 0.

        Parameters
        ----------
        ciphertexts : (n, 2)
        rows : (r,) int
            Rows to sum, without repetition.
        sorting : Sorting

        Returns
        -------
        (sorting.starts[-1], 2)
        """
        ...

    def decrypt(self, ciphertexts: Any) -> NDArray[np.int64]:
        """Whole numbers (n, 2), below 2^63 in magnitude."""
        ...


class Cipher(Protocol):
    """A kind of cipher, with its parameters."""

    def keys(self) -> KeyPair:
        """Make a pair of keys."""
        ...

    def keys_of(self, public: bytes) -> KeyPair:
        """Keys that cannot decrypt, for a party that has received `Keys.public`."""
        ...


@dataclass(frozen=True)
class CountingCipher:
    """No cipher; counts the operations that a cipher would need.

    Parameters
    ----------
    width : int
        Bytes counted for a ciphertext. 8 is the true size; 256 is the size with Paillier and keys of 1024 bits.
    """

    width: int = 8

    def __post_init__(self) -> None:
        require(self.width >= SCALAR, "width", self.width, f"a number of bytes >= {SCALAR}")

    def keys(self) -> KeyPair:
        """Keys that only count operations."""
        return _PlainKeys(self.width)

    def keys_of(self, public: bytes) -> KeyPair:
        """Keys for this public key; they hide nothing."""
        return _PlainKeys(self.width)


@dataclass(frozen=True)
class Paillier:
    """Paillier's cipher (1999) from the package phe; an encryption takes milliseconds.

    Parameters
    ----------
    key_bits : int
        Length of the modulus; a ciphertext is twice as long. Below 1024 it protects nothing; 2048 is recommended.
    """

    key_bits: int = 1024

    def __post_init__(self) -> None:
        require_key_bits(self.key_bits)

    def keys(self) -> KeyPair:
        """Make a pair of keys.

        Raises
        ------
        FklError
            If phe is not installed.
        """
        public, private = _import_phe().generate_paillier_keypair(n_length=self.key_bits)
        return _PaillierKeys(self.key_bits // 4, key=public, private=private)

    def keys_of(self, public: bytes) -> KeyPair:
        """Keys that can only add; without a public key, for a party that has not received it yet."""
        key = _import_phe().PaillierPublicKey(int.from_bytes(public)) if public else None
        return _PaillierKeys(self.key_bits // 4, key=key)


def _import_phe() -> Any:
    try:
        return import_module("phe.paillier")
    except ImportError:
        raise FklError("the cipher Paillier needs the package phe: pip install phe") from None


@dataclass
class _PlainKeys:
    width: int
    operations: Operations = field(default_factory=Operations)
    public: ClassVar[bytes] = b""

    def words(self, ciphertexts: NDArray[np.int64]) -> NDArray[np.void]:
        padded = np.zeros((*ciphertexts.shape, self.width), np.uint8)
        padded[..., :SCALAR] = np.ascontiguousarray(ciphertexts)[..., None].view(np.uint8)
        return padded.view(f"V{self.width}")[..., 0]

    def of_words(self, words: NDArray[np.void]) -> NDArray[np.int64]:
        padded = words.view(np.uint8).reshape(*words.shape, self.width)
        return np.ascontiguousarray(padded[..., :SCALAR]).view(np.int64)[..., 0]

    def encrypt(self, values: Integers) -> NDArray[np.int64]:
        self.operations.encryptions += values.size
        return values.astype(np.int64)

    def sums(self, ciphertexts: NDArray[np.int64], rows: Integers, sorting: Sorting) -> NDArray[np.int64]:
        total, members = sorting.sums(ciphertexts, rows)
        empty = int(np.count_nonzero(members == 0))
        self.operations.encryptions += 2 * empty
        # A bin with m rows needs m - 1 additions.
        self.operations.additions += 2 * (int(members.sum()) - (len(members) - empty))
        return total

    def decrypt(self, ciphertexts: NDArray[np.int64]) -> NDArray[np.int64]:
        self.operations.decryptions += ciphertexts.size
        return ciphertexts


@dataclass
class OneByOne:
    """Keys of a cipher whose ciphertexts are Python objects with a `+`.

    Subclasses encrypt and decrypt single numbers, and convert each ciphertext to a whole number, which is sent.
    """

    width: int
    operations: Operations = field(default_factory=Operations)

    @property
    def public(self) -> bytes:
        """Public key, with which other parties encrypt and add; empty here."""
        return b""

    def number_of_ciphertext(self, ciphertext: Any) -> int:
        """A whole number >= 0 for one ciphertext."""
        raise NotImplementedError

    def read(self, number: int) -> Any:
        """The ciphertext from its whole number."""
        raise NotImplementedError

    def words(self, ciphertexts: NDArray[np.object_]) -> NDArray[np.void]:
        """Ciphertexts as they are sent, each as a whole number in `width` bytes."""
        encoded = np.empty(ciphertexts.shape, f"V{self.width}")
        for place, ciphertext in enumerate(ciphertexts.flat):
            encoded.flat[place] = np.void(self.number_of_ciphertext(ciphertext).to_bytes(self.width))
        return encoded

    def of_words(self, words: NDArray[np.void]) -> NDArray[np.object_]:
        """Ciphertexts from received words, one by one."""
        return self._apply_to_each(words.shape, (self.read(int.from_bytes(word.tobytes())) for word in words.flat))

    def encrypt_number(self, value: int) -> Any:
        """Encrypt one number."""
        raise NotImplementedError

    def open(self, ciphertext: Any) -> int:
        """Decrypt one number."""
        raise NotImplementedError

    def encrypt(self, values: Integers) -> NDArray[np.object_]:
        """Ciphertexts of pairs of integers (n, 2), one by one."""
        return self._apply_to_each(values.shape, (self._encrypt_numbers(int(value)) for value in values.flat))

    def sums(self, ciphertexts: NDArray[np.object_], rows: Integers, sorting: Sorting) -> NDArray[np.object_]:
        """Sums over the rows that share a bin, one addition after another; an empty bin gets a fresh 0."""
        total = np.full((int(sorting.starts[-1]), ciphertexts.shape[1]), None, np.object_)
        for way, start in zip(sorting.bins, sorting.starts[:-1], strict=True):
            for row in rows:
                place = start + way[row]
                for column, term in enumerate(ciphertexts[row]):
                    before = total[place, column]
                    self.operations.additions += before is not None
                    total[place, column] = term if before is None else before + term
        return self._apply_to_each(
            total.shape, (self._encrypt_numbers(0) if entry is None else entry for entry in total.flat)
        )

    def decrypt(self, ciphertexts: NDArray[np.object_]) -> NDArray[np.int64]:
        """Whole numbers (n, 2), one by one."""
        self.operations.decryptions += ciphertexts.size
        return np.array([self.open(ciphertext) for ciphertext in ciphertexts.flat], np.int64).reshape(ciphertexts.shape)

    def _encrypt_numbers(self, value: int) -> Any:
        self.operations.encryptions += 1
        return self.encrypt_number(value)

    @staticmethod
    def _apply_to_each(shape: tuple[int, ...], entries: Any) -> NDArray[np.object_]:
        out = np.empty(shape, np.object_)
        for place, entry in enumerate(entries):
            out.flat[place] = entry
        return out


@dataclass
class _PaillierKeys(OneByOne):
    key: Any = None
    private: Any = None

    @property
    def public(self) -> bytes:
        return int(self.key.n).to_bytes(self.width // 2)

    def encrypt_number(self, value: int) -> Any:
        return self.key.encrypt(value)

    def number_of_ciphertext(self, ciphertext: Any) -> int:
        return int(ciphertext.ciphertext())  # fresh blinding: a sum reveals nothing about its terms

    def read(self, number: int) -> Any:
        return _import_phe().EncryptedNumber(self.key, number)

    def open(self, ciphertext: Any) -> int:
        return int(self.private.decrypt(ciphertext))


@njit_cached(nogil=True)
def binned_sums(
    pairs: NDArray[np.int64], rows: Integers, bins: Integers, starts: Integers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums (starts[-1], 2) of pairs (n, 2) as in `Keys.sums`, and the rows (starts[-1],) in each bin."""
    total = np.zeros((starts[-1], 2), np.int64)
    members = np.zeros(starts[-1], np.int64)
    # Unsigned indices need no test for negative values, which takes longer than the sum. The outer loop is over rows,
    # because sums over the features of one row are independent; sums over rows in one bin are not.
    first = starts.astype(np.uint64)
    for row in rows:
        i = np.uint64(row)
        first_value, second_value = pairs[i, 0], pairs[i, 1]
        for k in range(np.uint64(len(bins))):
            place = first[k] + np.uint64(bins[k, i])
            members[place] += 1
            total[place, 0] += first_value
            total[place, 1] += second_value
    return total, members


@njit_cached(nogil=True)
def _sums_of_few(
    pairs: NDArray[np.int64],
    rows: Integers,
    places: NDArray[np.uint32],
    ends: Integers,
    starts: Integers,
    fullest: Integers,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums and rows of all bins; a feature's fullest bin gets the total minus its other bins.

    This is exact for whole numbers, and reads few rows if most are in one bin.
    """
    # Sums over all bins except each feature's fullest one, which has most of the rows
    total = np.zeros((starts[-1], 2), np.int64)
    members = np.zeros(starts[-1], np.int64)
    of_all = np.zeros(2, np.int64)
    for row in rows:
        i = np.uint64(row)
        first_value, second_value = pairs[i, 0], pairs[i, 1]
        of_all[0] += first_value
        of_all[1] += second_value
        for p in range(np.uint64(ends[i]), np.uint64(ends[i + np.uint64(1)])):
            place = places[p]
            members[place] += 1
            total[place, 0] += first_value
            total[place, 1] += second_value
    # The fullest bin has what the others lack of the total
    for k in range(len(fullest)):
        its = slice(starts[k], starts[k + 1])
        members[fullest[k]] = len(rows) - members[its].sum()
        for column in range(2):
            total[fullest[k], column] = of_all[column] - total[its, column].sum()
    return total, members


def require_key_bits(bits: int) -> None:
    """Refuse invalid lengths of Paillier's modulus, and those for which the search for primes takes minutes."""
    # 63 bits and a sign must fit below a third of the modulus.
    allowed = 128 <= bits <= MOST_KEY_BITS and bits % 2 == 0
    require(allowed, "key_bits", bits, f"an even number from 128 to {MOST_KEY_BITS}")
