"""Attacks: a share of the clients sends the server false messages.

Attackers are drawn once in every replicate, and attack from a given round on. They predict like honest clients, so
errors are of all clients. A false message replaces a clipped and noisy one, and is then compressed like the others.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.conditions.aggregators import ROUNDING
from fkl.conditions.privacy import gaussian_draws
from fkl.conditions.wrapped import OnMessages
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.payloads import PerClient, mask_of_payload, payloads_of, rebuild_message, with_axes_of


@dataclass(frozen=True)
class Attack(OnMessages):
    """Keys of all attacks."""

    called_without_messages = False
    on_a_graph = False

    share: float = key(
        0.2, "Share of all clients that attack, in [0, 1]; times their number it is rounded down.", min=0, max=1
    )
    from_round: int = key(1, "First round with an attack, from 1.", min=1)

    def idle(self, problem: Any) -> str:
        """A message if the attack never happens, else empty."""
        n, T = problem.clients, len(problem.present)
        if not int(self.share * n + ROUNDING):
            return f"attack.share={self.share}: {'rounded down, it is ' if self.share else ''}0 of {n} clients"
        return f"attack.from_round={self.from_round}: the last round is {T}" if self.from_round > T else ""

    def count(self, common: Common, t: int) -> int:
        """Number of attackers in a round."""
        return int(self.share * common.clients + ROUNDING) if t + 1 >= self.from_round else 0

    def are_attackers(self, common: Common, t: int, clients: NDArray[np.int64] | range) -> NDArray[np.bool_]:
        """Whether these clients attack in a round, (R, K)."""
        count = self.count(common, t)
        drawn = [one.permutation(common.clients) < count for one in common.streams.generators(Role.ATTACKERS)]
        return np.array(drawn)[:, np.array(clients)]

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The honest message, or the false one of an attacker."""
        if message is None or self.count(common, turn.t) == 0:
            return memory, message
        attack = self.are_attackers(common, turn.t, turn.clients)
        honest = [payload.dense() for payload in payloads_of(message)]
        sent = [replace_payload(one, attack, self.false_values(one, turn, number)) for number, one in enumerate(honest)]
        return memory, rebuild_message(message, sent)

    def false_values(self, honest: PerClient, turn: Turn, number: int) -> Array:
        """The values that attackers send for the payload with this number in their message, (R, K, ...)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scaled(Attack):
    """Base class of attacks with a size."""

    scale: float = key(1.0, "Above 0.", above=0)


@dataclass(frozen=True)
class SignFlip(Scaled):
    """Attackers send their message times -scale."""

    scale: float = key(1.0, "Above 0.", above=0)

    def false_values(self, honest: PerClient, turn: Turn, number: int) -> Array:
        """The honest values times -scale."""
        return -self.scale * honest.values


@dataclass(frozen=True)
class Zero(Attack):
    """Attackers send zeros."""

    def false_values(self, honest: PerClient, turn: Turn, number: int) -> Array:
        """Send zeros instead of the true values."""
        return np.zeros_like(honest.values)


@dataclass(frozen=True)
class RandomNoise(Scaled):
    """Attackers send only random numbers from N(0, scale^2)."""

    scale: float = key(1.0, "Standard deviation of every entry, above 0.", above=0)

    def false_values(self, honest: PerClient, turn: Turn, number: int) -> Array:
        """Noise from N(0, scale^2) in all entries."""
        shape = honest.values.shape
        return self.scale * gaussian_draws(turn, Role.ATTACK, honest.values[0, 0].size, number).reshape(shape)


@dataclass(frozen=True)
class LabelFlip(Attack):
    """Attackers send the messages that they would send if every target y were -y.

    An attacker keeps two states: one learned from true targets, for its predictions, and one from flipped targets, for
    its messages.
    """

    def client_plays(
        self, common: Common, run_client: Callable[[Any, Any], Any], client: Any, memory: Any, samples: Any, turn: Turn
    ) -> tuple[Any, Any, Any, Any]:
        """The state and the outcome from true targets, and, for attackers, the message from flipped targets."""
        # Two runs of the client: one with true targets, which is judged, and one with flipped targets, which is sent
        other = deepcopy(client) if memory is None else memory  # a method may overwrite its state
        state, message, outcome = run_client(client, samples)
        other, false, _ = run_client(other, samples.flipped() if turn.t + 1 >= self.from_round else samples)
        # Only attackers' messages are replaced
        if message is not None and self.count(common, turn.t) > 0:
            attack = self.are_attackers(common, turn.t, turn.clients)
            pairs = zip(payloads_of(message), payloads_of(false), strict=True)
            message = rebuild_message(
                message, [replace_payload(one.dense(), attack, lie.dense().values) for one, lie in pairs]
            )
        return state, other, message, outcome

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The message, which is already false."""
        return memory, message


@dataclass(frozen=True)
class Alie(Attack):
    """Attackers know all honest messages, and send their mean minus z standard deviations, entry by entry.

    Baruch, Baruch and Goldberg, A Little Is Enough: Circumventing Defenses for Distributed Learning (NeurIPS 2019),
    Algorithm 3. Attackers agree on it outside the network, so the simulation makes their messages on the server's side,
    after compression. Their honest messages decide only which entries they send.
    """

    z: float | None = key(
        None,
        "None for the largest z with which the paper expects more than half of the clients, with the "
        "attackers, on the attackers' side of an honest message. With n clients, m of them attackers, and s = "
        "floor(n/2 + 1) - m, it is the quantile of N(0, 1) at (n - m - s) / (n - m).",
        min=0,
        must="a number >= 0, or null for the paper's choice",
    )

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse conditions that hide a round's messages from the simulated server, or deliver them later."""
        for group, reason in (("secure", "with secure sums"), ("late", "with late updates")):
            given = conditions.get(group)
            fits = given is None or type(given).__name__ == "LateLabels"
            require(fits, "attack", "Alie", f"null {reason}: attackers need the messages of one round")

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The honest message, which has the same size."""
        return memory, message

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """The messages, with false ones for the attackers."""
        if message is None or self.count(common, turn.t) == 0:
            return memory, message, share
        senders = np.arange(len(share)) if turn.senders is None else turn.senders
        attack = self.are_attackers(common, turn.t, senders) & (share > 0)
        honest = (share > 0) & ~attack
        dense = [payload.dense() for payload in payloads_of(message)]
        return memory, rebuild_message(message, [self._with_false(one, attack, honest) for one in dense]), share

    def _with_false(self, sent: PerClient, attack: NDArray[np.bool_], honest: NDArray[np.bool_]) -> PerClient:
        values = np.ascontiguousarray(sent.values, np.float64)
        is_honest = with_axes_of(values, honest)
        if (chosen := mask_of_payload(sent)) is not None:
            is_honest = is_honest & with_axes_of(values, chosen)
        count = np.maximum(is_honest.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_honest, values, 0).sum(axis=1, keepdims=True) / count
        spread = np.sqrt((np.where(is_honest, values - mean, 0) ** 2).sum(axis=1, keepdims=True) / count)
        z = np.array(
            [self._largest_deviation(*one) for one in zip(attack.sum(axis=1), honest.sum(axis=1), strict=True)]
        )
        return replace_payload(sent, attack, np.broadcast_to(mean - with_axes_of(values, z) * spread, values.shape))

    def _largest_deviation(self, attackers: int, honest: int) -> float:
        if self.z is not None or honest == 0:
            return self.z or 0.0
        n = attackers + honest
        supporters = min(max(n // 2 + 1 - attackers, 0), honest)
        return float(norm.ppf(np.clip((honest - supporters) / honest, 1 / (2 * n), 1 - 1 / (2 * n))))


def replace_payload(honest: PerClient, attack: NDArray[np.bool_], false: Array) -> PerClient:
    """A payload with false values for attackers (R, K), in the entries that they send."""
    values = honest.values
    there = with_axes_of(values, attack)
    if (chosen := mask_of_payload(honest)) is not None:
        there = there & with_axes_of(values, chosen)
    # The order in memory is always replicates, then clients, because the rounding of sums depends on it
    return PerClient(np.ascontiguousarray(np.where(there, false.astype(values.dtype), values)), chosen)
