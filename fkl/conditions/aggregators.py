"""Aggregators: robust means of clients' messages, for a server that may receive false messages.

A server asks its aggregator for the mean of its clients' messages. These aggregators return another estimate of
location, which a minority of false messages cannot move far. A message counts as one vector, whatever its parts. A
server that multiplies the mean by the number of clients, to form a sum, multiplies this estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.conditions.wrapped import OnMessages, SumOnly
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.wire.payloads import mask_of_payload, payloads_of, rebuild_message, with_axes_of

DIGITS = 6
"""Decimals of a score."""
LEAST_DISTANCE = 1e-150
"""Smallest distance, by which a message at the median is divided; its square is still above 0."""
ROUNDING = 1e-9
"""Tolerance for rounding: a share times the number of clients may be this much below an integer."""


@dataclass(frozen=True)
class Aggregate(SumOnly):
    """A payload whose mean is the aggregate of the clients' messages.

    Parameters
    ----------
    payload : Payload
        The payload that was sent.
    aggregate : (R, ...)
    """

    refusal: ClassVar[tuple[str, str, str]] = (
        "aggregate", "an aggregator", "null for a method whose server reads what each client sent",
    )  # fmt: skip

    aggregate: Array

    def mean(self, share: Array) -> Array:
        """The aggregate times the sum of all shares."""
        return share.sum() * self.aggregate


@dataclass(frozen=True)
class Aggregator(OnMessages):
    """Base class of aggregators; a subclass defines `combine_messages`.

    Present clients count equally, whatever their shares in a mean.
    """

    on_a_graph = False

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """The aggregate (R, P) of messages (R, n, P); `sent` marks the entries that were sent, None for all."""
        raise NotImplementedError

    def is_mean(self, n: int) -> bool:
        """Whether the aggregate of this number of messages, or of fewer, is their mean."""
        return n <= 2

    def idle(self, problem: Any) -> str:
        """A message if every aggregate is the mean, as without an aggregator; else empty."""
        n = int(problem.clients_present.max())
        return f"aggregate: of {n} messages it is the mean" if self.is_mean(n) else ""

    def require_clients(self, n: int) -> None:
        """Raise BadValue if the aggregator cannot work with this number of present clients."""

    def require_samples(self, problem: Any) -> None:
        """Raise BadValue if a round with clients has too few of them."""
        self.require_clients(
            int(problem.clients_present[problem.clients_present > 0].min(initial=problem.present.shape[1]))
        )

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse servers that need more than means, and conditions that hide or weight single messages."""
        # What the other conditions must not do: hide single messages, weight them, or mix rounds
        given, privacy, late = type(self).__name__, conditions.get("privacy"), conditions.get("late")
        reads = method.draws_for_clients or not method.means_only
        require(not reads, "aggregate", given, f"null for {method.label}, whose server needs more than means")
        hides = "null with secure sums: an aggregator reads each client's message"
        require(conditions.get("secure") is None, "aggregate", given, hides)
        central = type(privacy).__name__ == "Central" and privacy.noise > 0  # type: ignore[union-attr]
        require(not central, "aggregate", given, "null with privacy=central, whose noise is on the mean of all clients")
        if type(late).__name__ == "LateUpdates":
            one_round = "all with an aggregator, which compares the messages of one round"
            require(late.drawn == "all", "late.drawn", late.drawn, one_round)  # type: ignore[union-attr]

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """Payloads whose mean is the aggregate of all present clients' messages."""
        # Only messages of present clients; without any, nothing changes
        here = share > 0
        if message is None or not here.any():
            return memory, message, share
        self.require_clients(int(here.sum()))
        payloads = payloads_of(message)
        dense = [payload.dense() for payload in payloads]
        # All payloads of a message as one vector per client, (R, clients, values)
        parts = [np.ascontiguousarray(part.values[:, here], np.float64) for part in dense]  # sums depend on the order
        flat = [part.reshape(*part.shape[:2], -1) for part in parts]
        sent = None
        masks = list(map(mask_of_payload, dense))
        # Entries that a client does not send must not count as zeros
        if any(mask is not None for mask in masks):
            there = [
                np.broadcast_to(True if mask is None else with_axes_of(part, mask[:, here]), part.shape)
                for part, mask in zip(parts, masks, strict=True)
            ]
            sent = np.concatenate([one.reshape(*one.shape[:2], -1) for one in there], axis=2)
        # One vector for all clients, cut into the payloads again
        combined = self.combine_messages(np.concatenate(flat, axis=2), sent)
        of_each = np.split(combined, np.cumsum([one.shape[2] for one in flat])[:-1], axis=1)
        aggregates = [
            Aggregate(payload, own.reshape(part.shape[0], *part.shape[2:]))
            for payload, own, part in zip(payloads, of_each, parts, strict=True)
        ]
        return memory, rebuild_message(message, aggregates), share


@dataclass(frozen=True)
class Median(Aggregator):
    """The median of every entry over the clients (Yin et al., ICML 2018, Definition 1).

    For an entry that some clients do not send, it is the median of the other clients' values, times the share of
    clients that send it. `TrimmedMean` with nothing trimmed is then the mean.
    """

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """The middle value, or the mean of the two middle values."""
        ordered, count = in_order(messages, sent)
        return trimmed_share(ordered, count, np.maximum(count - 1, 0) // 2)


@dataclass(frozen=True)
class Tolerant(Aggregator):
    """Base class of aggregators that assume a largest share of false messages."""

    byzantine: float = key(
        0.2,
        "Share of the present clients that may send anything, in [0, 0.5); times their number, rounded down, it is f.",
        min=0,
        below=0.5,
    )

    def false_ones(self, n: int) -> int:
        """The number f of false clients among n."""
        return int(self.byzantine * n + ROUNDING)

    def idle(self, problem: Any) -> str:
        """A message if every aggregate is the mean, for example because the share is below one client; else empty."""
        n, f = int(problem.clients_present.max()), self.false_ones(int(problem.clients_present.max()))
        if not self.is_mean(n):
            return ""
        rounded = "rounded down, it is " if self.byzantine else ""
        return super().idle(problem) if f else f"aggregate.byzantine={self.byzantine}: {rounded}0 of {n} clients"

    def require_at_least(self, n: int, times: int) -> None:
        """Raise BadValue if n < `times` f + 3."""
        f = self.false_ones(n)
        allowed = f"a share f/n with n >= {times} f + 3; now {f} of n = {n} present clients may be false"
        require(n >= times * f + 3, "aggregate.byzantine", self.byzantine, allowed)


@dataclass(frozen=True)
class TrimmedMean(Tolerant):
    """The mean of every entry without the f largest and the f smallest values (Yin et al., ICML 2018, Definition 2).

    For an entry that some clients do not send, it is the trimmed mean of the other clients' values, with f for their
    number, times the share of clients that send it.
    """

    def is_mean(self, n: int) -> bool:
        """Whether nothing is trimmed."""
        return not self.false_ones(n)

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """The mean of the values that remain."""
        ordered, count = in_order(messages, sent)
        return trimmed_share(ordered, count, (self.byzantine * count + ROUNDING).astype(np.int64))


@dataclass(frozen=True)
class Krum(Tolerant):
    """The message with the smallest sum of squared distances to its n - f - 2 nearest ones.

    Blanchard et al., Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent (NeurIPS 2017). It needs n
    >= 2 f + 3. An entry that a client leaves out counts as 0.
    """

    def require_clients(self, n: int) -> None:
        """Refuse n < 2 f + 3."""
        self.require_at_least(n, 2)

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """The mean of the chosen messages."""
        n = messages.shape[1]
        f = self.false_ones(n)
        best = relative_scores(krum_scores(squared_distances(messages), f)).argsort(axis=1, kind="stable")[
            :, : self.count_chosen(n, f)
        ]
        return np.take_along_axis(messages, best[..., None], axis=1).mean(axis=1)

    def is_mean(self, n: int) -> bool:
        """Whether all messages are chosen."""
        return self.count_chosen(n, self.false_ones(n)) >= n

    def count_chosen(self, n: int, f: int) -> int:
        """Number of messages that are chosen."""
        return 1


@dataclass(frozen=True)
class MultiKrum(Krum):
    """The mean of the messages with the smallest scores of `Krum`."""

    keep: int | None = key(
        None, "Number of messages in the mean; None for n - f.", min=1, must="an integer >= 1, or null for n - f"
    )

    def count_chosen(self, n: int, f: int) -> int:
        """`keep`, or n - f."""
        return n - f if self.keep is None else min(self.keep, n)


@dataclass(frozen=True)
class Bulyan(Tolerant):
    """For every entry, the mean of the n - 4 f values nearest to the median, among n - 2 f messages chosen by `Krum`.

    El Mhamdi, Guerraoui and Rouault, The Hidden Vulnerability of Distributed Learning in Byzantium (ICML 2018). Krum
    chooses one message after another, among those not yet chosen, until n - 2 f are chosen. It needs n >= 4 f + 3. An
    entry that a client leaves out counts as 0.
    """

    def is_mean(self, n: int) -> bool:
        """Whether no client is assumed to be false; then all messages and values are chosen."""
        return not self.false_ones(n)

    def require_clients(self, n: int) -> None:
        """Refuse n < 4 f + 3."""
        self.require_at_least(n, 4)

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """Choose messages one after another, and return the mean of the values nearest to their median."""
        R, n = messages.shape[:2]
        # As in Bulyan: choose n - 2 f messages by Krum, one after another ...
        f = self.false_ones(n)
        distances, rows = squared_distances(messages), np.arange(R)
        chosen = np.zeros((R, n), np.bool_)
        for taken in range(n - 2 * f):
            best = relative_scores(np.where(chosen, np.inf, krum_scores(distances, f, taken))).argmin(axis=1)
            chosen[rows, best] = True
            distances[rows, best], distances[rows, :, best] = np.inf, np.inf
        # ... and for each entry, take the mean of the n - 4 f values nearest to their median
        values = messages[chosen].reshape(R, n - 2 * f, -1)
        away = np.abs(values - np.median(values, axis=1, keepdims=True))
        near = away.argsort(axis=1, kind="stable")[:, : n - 4 * f]
        return np.take_along_axis(values, near, axis=1).mean(axis=1)


@dataclass(frozen=True)
class GeometricMedian(Aggregator):
    """The vector with the smallest sum of distances to all messages.

    By Weiszfeld's iteration with smoothed distances: Pillutla, Kakade and Harchaoui, Robust Aggregation for
    Federated Learning (IEEE Transactions on Signal Processing, 2022), Algorithm 2. It starts at the median of every
    entry, which a minority of false messages cannot move far, so few steps suffice. An entry that a client leaves out
    counts as 0.
    """

    iterations: int = key(32, "Steps of the iteration.", min=1, max=10000)
    smoothing: float = key(
        1e-6,
        "Smallest distance by which a message is divided, as a share of the messages' median distance to the median.",
        above=0,
    )

    def combine_messages(self, messages: Array, sent: NDArray[np.bool_] | None) -> Array:
        """The mean with weights that are the inverse distances to the last mean."""
        middle = np.median(messages, axis=1)
        typical = np.median(np.linalg.norm(messages - middle[:, None], axis=2), axis=1, keepdims=True)
        least = np.maximum(self.smoothing * typical, LEAST_DISTANCE)
        for _ in range(self.iterations):
            away = np.linalg.norm(messages - middle[:, None], axis=2)
            weight = 1 / np.maximum(away, least)
            middle = np.matmul((weight / weight.sum(axis=1, keepdims=True))[:, None], messages)[:, 0]
        return middle


def in_order(messages: Array, sent: NDArray[np.bool_] | None) -> tuple[Array, NDArray[np.int64]]:
    """The values of every entry in ascending order, with unsent values last, and the number of sent values, (R, P)."""
    R, n, P = messages.shape
    if sent is None:
        return np.sort(messages, axis=1), np.full((R, P), n)
    return np.sort(np.where(sent, messages, np.inf), axis=1), sent.sum(axis=1)


def trimmed_share(ordered: Array, count: NDArray[np.int64], cut: NDArray[np.int64]) -> Array:
    """The mean of the values without `cut` values at either end, (R, P), times the share of clients with a value."""
    place = np.arange(ordered.shape[1])[:, None]
    kept = (place >= cut[:, None]) & (place < (count - cut)[:, None])
    mean = np.where(kept, ordered, 0).sum(axis=1) / np.maximum(count - 2 * cut, 1)
    return mean * (count / ordered.shape[1])


def squared_distances(messages: Array) -> Array:
    """Squared distances between messages, (R, n, n)."""
    return np.stack([((messages - one[:, None]) ** 2).sum(axis=2) for one in messages.swapaxes(0, 1)], axis=1)


def krum_scores(distances: Array, f: int, left_out: int = 0) -> Array:
    """The sum of each message's squared distances to its nearest others; the `left_out` ones are infinitely far."""
    others = distances.shape[1] - left_out - 1
    near = min(max(others - f - 1, 1), others)
    return np.sort(distances, axis=2)[:, :, 1 : near + 1].sum(axis=2)  # without the distance to itself


def relative_scores(score: Array) -> Array:
    """Scores (R, n) divided by the smallest one and rounded, so those that differ only by rounding errors are equal."""
    least = score.min(axis=1, keepdims=True)
    return np.round(score / np.where(least > 0, least, 1), DIGITS)
