"""Privacy: clients' messages are clipped, and noise hides any single client's message.

A client's message counts as one vector, whatever its parts, and is clipped to a norm C. Gaussian noise, with a standard
deviation of sigma times the largest change by one client, makes the message or the clients' mean differentially
private. This is McMahan et al., Learning Differentially Private Recurrent Language Models (2018), without sampling of
clients.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, normal_quantile
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.conditions import accountant
from fkl.conditions.wrapped import OnMessages, SumOnly
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.wire.payloads import PerClient, mask_of_payload, payloads_of, rebuild_message, with_axes_of

PAYLOADS = 256
"""Above the number of payloads in a message, so the draws of two exchanges have different numbers."""


@dataclass(frozen=True)
class Noise(OnMessages):
    """Base class with the keys of all noise."""

    called_without_messages = False
    traceable = True

    clip: float | None = key(
        None,
        "C, the largest L2 norm of a client's whole message in an exchange; a longer message is scaled down. None "
        "for no limit, only without noise.",
        above=0,
    )
    noise: float = key(
        0.0,
        "Noise multiplier sigma: standard deviation divided by the largest change by one client; 0 for none.",
        min=0,
    )
    delta: float = key(1e-5, "Delta for which epsilon is reported.", above=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        bounded = self.clip is not None or self.noise == 0
        require(bounded, "clip", None, "a norm > 0 with noise above 0, because noise hides only bounded messages")

    def idle(self, problem: Any) -> str:
        """A message without noise and clipping, else empty."""
        changed = self.noise > 0 or self.clip is not None
        return "" if changed else "privacy.noise=0 with privacy.clip=null: no message is changed"

    def require_small_delta(self, samples: int, clients: int) -> None:
        """Refuse a delta with which each sample, or a client, could be published at random; only with noise."""
        n, what = max((samples, "samples"), (clients, "clients"))
        limit = f"a number below 1/{n} = {1 / max(n, 1):.3g}, one over the number of {what}: with a larger one, "
        allowed = limit + f"a method that publishes one of the {what} at random counts as private"
        require(self.noise == 0 or self.delta * n < 1, "privacy.delta", self.delta, allowed)

    def columns(self, method: Any, problem: Any) -> dict[str, NDArray[np.float64]]:
        """Epsilon for delta up to every round, of a sample and of a client; no columns without noise.

        Neighbours are two data sets that differ by one sample, or one client, which only one of them has. Presence in
        each round is the same in both.

        epsilon_sample
            Epsilon of the sample that affects most messages. A message about one sample is 0 without the sample, so it
            changes by at most C. A message about many samples, such as theta, is still sent and changes by up to 2 C,
            from one end of the ball of clipped messages to the other. If a sample affects only one message, epsilon is
            that of one mechanism for a run of any length, because the other messages depend on other samples.
        epsilon_client
            Epsilon of the client that was present most often. Its messages are 0 in the other data set. This is one
            mechanism of sensitivity C for each exchange so far in which clients send.
        """
        # Without noise there is no epsilon
        if self.noise == 0 or not accountant.INSTALLED:
            return {}
        # A sample is used in one round or in all; a client takes part in every round that it is present in
        rounds = np.cumsum(problem.present, axis=0).max(axis=1)
        exchanges = exchanges_of(method)
        once = np.full(len(rounds), exchanges) if method.uses_sample_once else exchanges * rounds
        # Without its only sample, a message is 0; a message about many samples may move across the whole ball
        moves = 1 if method.message_of_one_sample else 2  # times C
        return {
            "epsilon_sample": accountant.gaussian_epsilons(self.noise / moves, once, self.delta),
            "epsilon_client": accountant.gaussian_epsilons(self.noise, exchanges * rounds, self.delta),
        }

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """A warning if there is noise, but the package that computes epsilon is missing."""
        return (accountant.MISSING,) if self.noise and not accountant.INSTALLED else ()

    def clip_message(self, message: Any) -> Any:
        """The clipped message: g, or C g / |g| if that is shorter."""
        if self.clip is None or message is None:
            return message
        payloads = payloads_of(message)
        squared: Any = sum(payload.squared_norm() for payload in payloads)
        xp = array_namespace(squared)
        norm = xp.sqrt(squared)  # (R, K)
        factor = xp.minimum(1.0, self.clip / xp.where(norm > 0, norm, self.clip))
        return rebuild_message(message, [payload.times(factor) for payload in payloads])


@dataclass(frozen=True)
class Central(Noise):
    """Clients clip; the server, which they trust, adds noise to the mean before it uses it.

    The noise on the mean with shares s_k is N(0, (sigma C max_k s_k)^2) in every entry.
    """

    on_a_graph = False

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse compression: it makes some messages longer than the clipping norm."""
        allowed = "null or local with compression, which comes after clipping and makes some messages longer"
        require("compression" not in conditions, "privacy", type(self).__name__, allowed)

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The clipped message."""
        return memory, self.clip_message(message)

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """Payloads whose mean is noisy."""
        if self.noise == 0 or message is None:
            return memory, message, share
        assert self.clip is not None
        payloads = payloads_of(message)
        scale = self.noise * self.clip
        noisy = [NoisyMean(payload, scale, turn, j, share > 0) for j, payload in enumerate(payloads)]
        return memory, rebuild_message(message, noisy), share


@dataclass(frozen=True)
class Sampled(Central):
    """`Central` with a smaller epsilon, because clients take part by chance, unseen by those who see the downlink.

    Each client takes part in a round with probability q, independently of everything else (`participation=share`). The
    server divides the sum of messages by q K, whatever their number, and adds N(0, (sigma C / (q K))^2), even in a
    round without messages. The usual mean would reveal the number of clients, and q would lower epsilon much less.
    Abadi et al., Deep Learning with Differential Privacy (2016).
    """

    traceable = False
    hides_presence = True

    clip: float | None = 1.0
    noise: float = 1.0

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse clients not drawn independently, and other conditions, because their messages depend on presence."""
        super().require_fits(method, conditions)
        drawn, given = hasattr(conditions.get("participation"), "share"), type(self).__name__
        require(drawn, "privacy", given, "central without participation=share: no client is drawn independently")
        require(self.noise > 0, "privacy.noise", self.noise, "a number > 0")
        others = [group for group in conditions if group not in ("privacy", "participation")]
        require(not others, "privacy", given, f"central, or local, with {' and '.join(others)}")

    def place_beside(self, method: Any, conditions: Mapping[str, Any]) -> Any:
        """The condition with the clients' probability of taking part."""
        return SampledWith(self.clip, self.noise, self.delta, conditions["participation"].share)


@dataclass(frozen=True)
class SampledWith(Sampled):
    """`Sampled` with the clients' probability of taking part."""

    probability: float = 1.0

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """Payloads whose mean is noisy, and the same share for all clients."""
        memory, message, _ = super().server_takes(common, memory, message, share, turn)
        return memory, message, np.full(share.shape, 1 / (self.probability * common.clients))

    def columns(self, method: Any, problem: Any) -> dict[str, NDArray[np.float64]]:
        """Upper bounds of the epsilon of a sample and of a client up to every round, over the draws of clients."""
        if not accountant.INSTALLED:
            return {}
        noise, rounds = self.noise / exchanges_of(method) ** 0.5, np.arange(1, len(problem.present) + 1)
        once = np.ones_like(rounds) if method.uses_sample_once else rounds
        many = not method.message_of_one_sample
        return {
            "epsilon_sample": accountant.sampled_epsilons(noise, self.probability, once, self.delta, many),
            "epsilon_client": accountant.sampled_epsilons(noise, self.probability, rounds, self.delta, False),
        }


@dataclass(frozen=True)
class NoisyMean(SumOnly):
    """A payload whose mean the server receives with noise.

    Parameters
    ----------
    payload : Payload
    scale : float
        Noise multiplier times clipping norm, sigma C.
    turn : Turn
        The server's turn.
    number : int
        Number of the payload in its message.
    heard : (K,) bool
        Clients whose messages are in the sum.
    """

    refusal: ClassVar[tuple[str, str, str]] = (
        "privacy", "Central", "null, or local, for a method whose server reads what each client sent",
    )  # fmt: skip

    scale: float
    turn: Turn
    number: int
    heard: Any

    def mean(self, share: Array) -> NDArray[np.float64]:
        """Sum over the heard clients, weighted by their share (K,), plus noise; call it only once per round."""
        summed: NDArray[np.float64] = self.payload.mean(share * self.heard)
        noise = gaussian_draws(self.turn, Role.PRIVACY_OF_SERVER, summed[0].size, self.number)[:, 0]
        return summed + self.scale * share.max() * noise.reshape(summed.shape)


@dataclass(frozen=True)
class Local(Noise):
    """Every client, or agent, clips its message and adds noise N(0, (sigma C)^2) to every entry before it sends it."""

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse methods with censoring: noise on a message does not hide the decision to send it."""
        known = "by its choice to send, in spite of noise; if it does not, set choices_reveal_data = False in its class"
        allowed = f"null for {method.label}, which may reveal its data {known}"
        require(self.noise == 0 or not method.choices_reveal_data, "privacy", type(self).__name__, allowed)

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The message, clipped, with noise."""
        return memory, self._with_noise(self.clip_message(message), turn)

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """The message, clipped, with noise."""
        return memory, self._with_noise(self.clip_message(message), turn), sends

    def _with_noise(self, message: Any, turn: Turn) -> Any:
        if self.noise == 0 or message is None:
            return message
        assert self.clip is not None
        # One draw for each payload of the message
        scale, noisy = self.noise * self.clip, []
        for j, payload in enumerate(payloads_of(message)):
            dense: Any = payload.dense()
            noise = gaussian_draws(turn, Role.PRIVACY, dense.values[0, 0].size, j).reshape(dense.values.shape)
            chosen = mask_of_payload(dense)
            if chosen is not None:  # entries that are not sent stay 0
                noise *= with_axes_of(noise, chosen)
            noisy.append(PerClient(dense.values + scale * noise, chosen))
        return rebuild_message(message, noisy)


def exchanges_of(method: Any) -> int:
    """Number of exchanges of a round in which clients send."""
    each: int = method.exchanges_up or method.exchanges
    return each


def gaussian_draws(turn: Turn, role: Role, size: int, number: int) -> NDArray[np.float64]:
    """Independent draws from N(0, 1) for each party, (R, K, size), for the payload with this number."""
    uniform = turn.vectors(role, size, PAYLOADS * turn.exchange + number)
    return normal_quantile(
        array_namespace(uniform).maximum(uniform, 2.0**-54)
    )  # 0 has no quantile; its probability is 2^-53
