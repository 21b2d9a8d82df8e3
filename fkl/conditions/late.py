"""Late updates, which reach the server some rounds after they are sent, and labels that reach clients late."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.conditions.wrapped import OnMessages
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.kernels import FeatureBank
from fkl.wire.payloads import PerClient, Size, payloads_by_kind

MOST_ROUNDS = 10_000
DRAWN = ("all", "client", "message")


class NoBank:
    """Placeholder for the run's bank in stored updates, so the bank is not stored twice."""


@dataclass(frozen=True)
class SentUpdates:
    """The updates of one round, while some have not yet reached the server.

    Parameters
    ----------
    t : int
        Round in which they were sent.
    message : any
    share : (n,)
        Share of each update in the mean of that round.
    due : (n,) int64
        Round in which each update arrives.
    """

    t: int
    message: Any
    share: Array
    due: NDArray[np.int64]


@dataclass(frozen=True)
class OnTheWay:
    """Updates that have not yet reached the server, oldest first."""

    sent: tuple[SentUpdates, ...]


class LatePart(NamedTuple):
    """A payload of one round, and its number of clients."""

    payload: Any
    clients: int


@dataclass(frozen=True)
class Together:
    """Payloads of several rounds that reach the server in one round; each was sent separately."""

    parts: tuple[LatePart, ...]

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes of all values together; the ledger does not record them."""
        return self.dense().wire_size(width)

    def dense(self) -> PerClient:
        """The values (R, n, ...) of all payloads."""
        dense: list[Any] = [part.payload.dense() for part in self.parts]
        return PerClient(np.concatenate([one.values for one in dense], axis=1))

    def mean(self, share: Array) -> Any:
        """The sum over all payloads, weighted by clients' shares."""
        ends = np.cumsum([part.clients for part in self.parts])[:-1]
        means = [part.payload.mean(own) for part, own in zip(self.parts, np.split(share, ends), strict=True)]
        return sum(means[1:], means[0])


@dataclass(frozen=True)
class LateUpdates(OnMessages):
    """Updates reach the server some rounds after clients send them, and the server continues without them.

    The server takes a step along the mean of the updates that arrive in a round, whatever their age. An update of age a
    has the weight s(a) = (1 + a)^-staleness. This is the polynomial weight of FedAsync (Xie, Koyejo and Gupta,
    Asynchronous Federated Optimization, 2019, section 5.2), where it shrinks the share of a late model. In FedBuff
    (Nguyen et al., AISTATS 2022), with exponent 1/2, it shrinks the step of a late update, as here. The weights are not
    divided by their sum. A round without arrivals does not change the server. Delays belong to the network, like
    participation: they are the same in all replicates.
    """

    on_a_graph = False

    rounds: int = key(5, "Delay of an update in rounds, or the maximum delay if it is drawn.", min=0, max=MOST_ROUNDS)
    drawn: str = key(
        "all",
        "Whether all updates have the same delay, or each client has its own, drawn once from 0 to `rounds`, or each "
        "message has.",
        choices=DRAWN,
    )
    staleness: float = key(0.0, "Exponent of the weights; 0 for equal weights.", min=0, max=100)

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse servers that answer within a round, and conditions that need the messages of a single round."""
        require_one_exchange(self, method)
        at_once = f"labels or null for {method.label}, whose server weights messages by its draws in the same round"
        require(not method.draws_for_clients, "late", "LateUpdates", at_once)
        secure = conditions.get("secure") is None
        require(secure, "late", "LateUpdates", "null with secure sums, which add the updates of one round")
        one_each = conditions.get("privacy") is None or self.drawn != "message"
        noise = "all or client with noise, which hides one message of a client in a round but not two"
        require(one_each, "late.drawn", self.drawn, noise)

    def idle(self, problem: Any) -> str:
        """A message if nothing is late, else empty."""
        return "" if self.rounds else "late.rounds=0: nothing is late"

    def require_enough_rounds(self, rounds: int) -> None:
        """Refuse a run that ends before the first update arrives."""
        require_arrivals(self.rounds if self.drawn == "all" else 0, rounds)

    def server_takes(
        self, common: Common, memory: OnTheWay | None, message: Any, share: Array, turn: Turn
    ) -> tuple[OnTheWay, Any, Array]:
        """The updates of this and earlier rounds that arrive now."""
        # Updates that are still on the way, with those of this round
        sent = () if memory is None else memory.sent
        if message is not None and share.any():
            sent = (*sent, SentUpdates(turn.t, message, share, turn.t + self._delays_of_senders(turn, len(share))))
        # Every gradient contains the run's bank: remove it from stored updates, and restore it in arriving ones.
        late = OnTheWay(
            tuple(
                replace(one, message=_with_replaced(one.message, FeatureBank, NoBank()))
                for one in sent
                if (one.due > turn.t).any()
            )
        )
        # Those that arrive now; without any, the server hears nothing
        arrived = [one for one in sent if (one.due == turn.t).any() and one.share[one.due == turn.t].any()]
        if not arrived:
            return late, None, np.zeros_like(share)
        # Shares: each round's update counts by its number of senders, and less the older it is
        there = [one.share * (one.due == turn.t) for one in arrived]
        count = sum(int((own > 0).sum()) for own in there)
        shares = [
            own * (int((one.share > 0).sum()) / count) * (1.0 + turn.t - one.t) ** -self.staleness
            for one, own in zip(arrived, there, strict=True)
        ]
        messages = [_with_replaced(one.message, NoBank, common) for one in arrived]
        if len(messages) == 1:
            return late, messages[0], shares[0]

        # One message from the messages of several rounds, with their payloads together
        joined = {}
        for name, payloads in payloads_by_kind(messages[0]):
            of_each = [dict(payloads_by_kind(message))[name] for message in messages]
            parts = tuple(
                Together(tuple(LatePart(payload[j], len(own)) for payload, own in zip(of_each, shares, strict=True)))
                for j in range(len(payloads))
            )
            joined[name] = parts if isinstance(getattr(messages[0], name), tuple) else parts[0]
        return late, type(messages[0])(**joined), np.concatenate(shares)

    def _delays_of_senders(self, turn: Turn, clients: int) -> NDArray[np.int64]:
        """Delay of each sender's update in rounds, (n,)."""
        if self.drawn == "all":
            return np.full(clients, self.rounds)
        senders = np.arange(clients) if turn.senders is None else turn.senders
        draw = 0 if self.drawn == "client" else turn.t + 1
        uniform = turn.streams.uniform_for_all(Role.DELAY, draw, int(senders.max()) + 1)[senders]
        return (uniform * (self.rounds + 1)).astype(np.int64)


@dataclass(frozen=True)
class Unlabelled:
    """A client's last samples, whose labels are unknown, oldest first; the first label arrives next."""

    samples: tuple[Samples, ...]


@dataclass(frozen=True)
class LateLabels(OnMessages):
    """Labels arrive d rounds later: a client predicts its sample of round t and learns from that of round t - d.

    Its message is computed from the older sample, with its current parameters and weights. In the first d rounds it has
    no label, and sends nothing to the server.
    """

    on_a_graph = False

    rounds: int = key(5, "Delay d of a label in rounds.", min=0, max=MOST_ROUNDS)

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse methods whose clients send more than one message about a sample."""
        require_one_exchange(self, method)

    def idle(self, problem: Any) -> str:
        """A message if nothing is late, else empty."""
        return "" if self.rounds else "late.rounds=0: nothing is late"

    def require_enough_rounds(self, rounds: int) -> None:
        """Refuse a run that ends before the first label arrives."""
        require_arrivals(self.rounds, rounds)

    def require_samples(self, problem: Any) -> None:
        """Refuse clients that miss rounds, because only some would know a label."""
        everybody = bool(problem.present.all())
        require(everybody, "late", "LateLabels", "null if clients miss rounds")

    def client_learns(
        self, common: Common, memory: Unlabelled | None, samples: Samples, turn: Turn
    ) -> tuple[Unlabelled, Samples | None]:
        """The sample whose label arrives now, if any; the memory keeps the newest samples."""
        queue = (() if memory is None else memory.samples) + (samples,)
        return Unlabelled(queue[-self.rounds :] if self.rounds else ()), queue[0] if len(queue) > self.rounds else None


def require_one_exchange(condition: OnMessages, method: Any) -> None:
    """Refuse a method whose server answers clients' messages within their round."""
    within = f"null for {method.label}, whose server answers within a round"
    require(method.exchanges == 1, "late", type(condition).__name__, within)


def require_arrivals(delay: int, rounds: int) -> None:
    """Refuse a delay as long as the run, in which nothing would be learned."""
    allowed = f"an integer below {rounds}, the number of rounds: otherwise nothing arrives before they end"
    require(delay < rounds, "late.rounds", delay, allowed)


def _with_replaced(value: Any, kind: type, by: Any) -> Any:
    """A copy of a message with objects of this type replaced by `by`, or by its bank if it is a `Common`."""
    if isinstance(value, kind):
        return by.bank if isinstance(by, Common) else by
    if isinstance(value, tuple):
        return tuple(_with_replaced(part, kind, by) for part in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{one.name: _with_replaced(getattr(value, one.name), kind, by) for one in fields(value)})
