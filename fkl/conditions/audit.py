"""Audit: canaries instead of all messages show how large epsilon is at least, in one run.

A canary is a message along one entry, ten times as long as the clipping norm, which is there or not by a coin. Entries
of clients differ, so no canary changes another one's score. The auditor sees what the adversary of the stated epsilon
sees: the noisy mean with `privacy=central`, every noisy message with `privacy=local`. It never uses the noise
multiplier. Steinke, Nasr and Jagielski, Privacy Auditing with One (1) Training Run (NeurIPS 2023), with bounds of
`fkl.conditions.audit_bounds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, require
from fkl.basics.random_streams import Role
from fkl.conditions import accountant, audit_bounds
from fkl.conditions.privacy import Noise
from fkl.conditions.wrapped import OnMessages, SumOnly
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Array, Common
from fkl.wire.payloads import PerClient, payloads_of, rebuilt, with_axes_of

NORM = 10.0
"""Length of a canary in clipping norms. At 1, an audit could not find a missing clip."""
ALPHA = 0.05
"""Probability with which epsilon_lower is above the true epsilon, at most."""
CONTRADICTION = 1e-4
"""The same for a bound above the stated epsilon that ends the run with an error; a run has many replicates."""
BY_CLIENT = 0.2
"""Part of these probabilities for the bounds of single clients; the rest is for the bound of all together."""
OBJECTION = 0.001
"""p-value of the checks below which the bound is that of guesses."""
PAIR = 2
"""Draws of a client: its coin, and its sign."""
ENTRIES = 1
"""Number of the draw that orders entries; coins and signs are draw 0."""


@dataclass
class Seen:
    """What the auditor has of each exchange so far.

    Parameters
    ----------
    scores : (R, exchanges, K)
        Score of each canary, in clipping norms, with its sign taken away; NaN for none.
    inside : (R, exchanges, K) bool
        Coins.
    """

    scores: NDArray[np.float64]
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Canaries(OnMessages):
    """Every client's message is a canary, in or out by a coin of its own.

    Errors of such a run are of canaries, not of the method. `summary.csv` has `epsilon_upper`, what is stated, and
    `epsilon_lower`, what the canaries show.

    Parameters
    ----------
    level : {"sample", "client"}
        Which of the two epsilons to contradict. A sample has a coin in each round if it is in one message, otherwise
        for the whole run. A client has a coin for the whole run.
    """

    on_a_graph = False
    called_without_messages = False

    level: str = "sample"

    def __post_init__(self) -> None:
        require(self.level in ("sample", "client"), "level", self.level, "sample or client")

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse a run without noise, and whatever is between the canaries and the noise, or after it."""
        privacy = conditions.get("privacy")
        noisy = isinstance(privacy, Noise) and privacy.noise > 0
        require(noisy, "audit", "Canaries", "null without privacy.noise: there is no epsilon to contradict")
        require(accountant.INSTALLED, "audit", "Canaries", f"null: {accountant.MISSING}")
        others = [group for group in conditions if group not in ("audit", "privacy", "participation")]
        require(not others, "audit", "Canaries", f"null with {' and '.join(others)}, whose messages it cannot score")
        allowed = f"null for {method.label}, whose choice of entries tells more than a score"
        require(not method.choices_reveal_data, "audit", "Canaries", allowed)

    def beside(self, method: Any, conditions: Mapping[str, Any]) -> "Placed":
        """The canaries of a run with this method and this privacy."""
        once = self.level == "sample" and bool(getattr(method, "uses_sample_once", False))
        disappears = self.level == "client" or bool(getattr(method, "message_of_one_sample", False))
        return Placed(self.level, conditions["privacy"], method.exchanges, once, disappears)


@dataclass(frozen=True)
class Placed(Canaries):
    """Canaries of a run.

    Parameters
    ----------
    level : see `Canaries`
    privacy : Noise
        What is audited.
    exchanges : int
        Exchanges of a round.
    once : bool
        Whether a coin is for the messages of one round; otherwise it is for the whole run.
    disappears : bool
        Whether a message is 0 where its canary is out; otherwise it moves by 2 C, from one end of the ball of clipped
        messages to the other.
    """

    privacy: Any = None
    exchanges: int = 1
    once: bool = True
    disappears: bool = True

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The canary, or a message that stands for its absence."""
        require(len(turn.clients) == common.clients, "audit", "Canaries", "null where clients are in several processes")
        if message is None:
            return memory, message
        honest = [payload.dense() for payload in payloads_of(message)]
        place = self._places(common, honest)
        inside, sign = self._coins(common, turn)
        factor = np.where(inside, 1.0, 0.0 if self.disappears else -1.0) * np.where(place < 0, 0, sign)
        flat = np.zeros((*place.shape, sum(one.values[0, 0].size for one in honest)))
        length = NORM * self.privacy.clip * factor
        np.put_along_axis(flat, np.maximum(place, 0)[..., None], length[..., None], axis=-1)
        ends = np.cumsum([one.values[0, 0].size for one in honest])[:-1]
        parts = zip(honest, np.split(flat, ends, axis=-1), strict=True)
        sent = [PerClient(part.reshape(one.values.shape).astype(one.values.dtype), one.chosen) for one, part in parts]
        return memory, rebuilt(message, sent)

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """The messages, unchanged; the memory has the scores of this exchange."""
        if message is None or not share.any():
            return memory, message, share
        payloads = payloads_of(message)
        sent = [payload.payload if isinstance(payload, SumOnly) else payload for payload in payloads]
        place = self._places(common, [payload.dense() for payload in sent])
        inside, sign = self._coins(common, turn)
        rows = np.arange(len(place))[:, None]
        if isinstance(payloads[0], SumOnly):  # in units of a client's message in the mean
            mean = np.concatenate([payload.mean(share).reshape(len(place), -1) for payload in payloads], axis=-1)
            read = mean[rows, place] / share.max()
        else:
            flat = [payload.dense().values.reshape(*place.shape, -1) for payload in payloads]
            read = np.concatenate(flat, axis=-1)[rows, np.arange(place.shape[1]), place]
        shape = len(place), common.rounds * self.exchanges, len(share)
        old = Seen(np.full(shape, np.nan), np.zeros(shape, bool)) if memory is None else memory
        scores, coins = old.scores.copy(), old.inside.copy()
        known = (place >= 0) & (share > share.max() * (1 - 1e-9))  # the others weigh less
        number = turn.t * self.exchanges + turn.exchange
        scores[:, number] = np.where(known, sign * read / self.privacy.clip, np.nan)
        coins[:, number] = inside
        return Seen(scores, coins), message, share

    def at_the_end(self, method: Any, problem: Any, memory: Any) -> dict[str, NDArray[np.float64]]:
        """The stated epsilon, and what the canaries of each replicate show.

        Raises
        ------
        fkl.basics.errors.FklError
            If a replicate contradicts the stated epsilon.
        """
        if memory is None:
            return {}
        upper = float(self.privacy.columns(method, problem)[f"epsilon_{self.level}"][-1])
        R, numbers, K = memory.scores.shape
        together = self.exchanges if self.once else numbers
        grouped = memory.scores.reshape(R, -1, together, K)
        counts = (~np.isnan(grouped)).sum(axis=2)
        messages = max(1, int(counts.max()))
        # A client that misses some messages has another distribution: only those with most messages count
        summed = np.where(counts == messages, np.nansum(grouped, axis=2) / np.sqrt(messages), np.nan)
        inside = memory.inside.reshape(grouped.shape).any(axis=2)
        found = [self._of_one(*one, messages, upper) for one in zip(summed, inside, strict=True)]
        return {name: np.array([one[name] for one in found]) for name in found[0]}

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """What the audit has found, one line for all replicates."""
        if "epsilon_lower" not in summary:
            return ("the audit has no score: no client has sent anything",)
        upper, lower, guessed, count, ratio, p = (summary[name] for name in COLUMNS)
        moves = "C" if self.disappears else "2 C"
        lines = [
            f"audit of {self.level}s, delta {self.privacy.delta:g}, a message moves by {moves}: epsilon is at most "
            f"{upper.max():.4g}, and at least {lower.min():.4g} to {lower.max():.4g} (95 % in each replicate), by "
            f"guesses {guessed.min():.4g} to {guessed.max():.4g}",
            f"{count.min():.0f} canaries of norm {NORM:g} C in each replicate; errors in this run are of canaries, not "
            "of the method",
        ]
        if ratio.isna().any():
            lines.append(f"fewer than {audit_bounds.FEWEST} canaries are in, or out: no bound is possible")
        else:
            lines[1] += f"; noise {ratio.mean():.3g} of what is stated"
        if (p < OBJECTION).any():
            lines.append("scores are not those of normal noise where scores_p is small: epsilon_lower is by guesses")
        if (above := int((lower > upper).sum())) > 0:
            chance = "which an honest audit has once in 20: repeat it with another seed"
            lines.append(f"epsilon_lower is above epsilon_upper in {above} of {len(summary)} replicates, {chance}")
        return tuple(lines)

    def _of_one(self, scores: Any, inside: Any, messages: int, upper: float) -> dict[str, float]:
        """The columns of one replicate, from scores (G, K) and coins."""
        delta = self.privacy.delta
        known = ~np.isnan(scores)
        count, coins = int(known.sum()), inside[known]
        stated = np.sqrt(messages) * (1 if self.disappears else 2) / self.privacy.noise  # mu
        one_group = (-1, scores.shape[1] if self.once else 1)  # a client with one score has no mean of its own
        p = audit_bounds.checked(scores.reshape(one_group), inside.reshape(one_group))
        scored = min(coins.sum(), (~coins).sum()) >= audit_bounds.FEWEST
        made = audit_bounds.guesses_to_make(count, float(stated), ALPHA) if scored else 0
        right = audit_bounds.right_of(scores[known], coins, made) if scored else 0

        def guessed(alpha: float) -> float:
            return accountant.epsilon_of(audit_bounds.guesses(count, made, right, alpha), delta) if scored else 0.0

        def at_least(alpha: float) -> tuple[float, str]:
            if p < OBJECTION:
                return guessed(alpha), "all clients"
            by = np.zeros(scores.shape[1])
            if self.once:
                by = audit_bounds.gaussian(scores.T, inside.T, BY_CLIENT * alpha / len(by))
            else:
                by[(known & inside)[0]] = audit_bounds.of_one_alone(scores[known], coins, BY_CLIENT * alpha)
            pooled = float(audit_bounds.gaussian(scores[known], coins, (1 - BY_CLIENT) * alpha))
            who = f"client {int(by.argmax())}" if by.max() > pooled else "all clients"
            return accountant.epsilon_of(max(pooled, float(by.max())), delta), who

        contradicts, who = at_least(CONTRADICTION)
        if contradicts > upper * (1 + 1e-6):
            text = (
                f"audit: CONTRADICTED: epsilon of a {self.level} is at least {contradicts:.4g} (99.99 %), stated is "
                f"{upper:.4g}; seen in {who}. Look for noise that is too small or used twice, for clipping that is "
                "missing or comes after the noise, and for a message that moves by 2 C where C is stated"
            )
            raise FklError(text)
        rest = [scores[known & side] - scores[known & side].mean() for side in (inside, ~inside)] if scored else []
        deviation = np.sqrt(sum((one**2).sum() for one in rest) / (count - 2)) if scored else np.nan
        values = upper, at_least(ALPHA)[0], guessed(ALPHA), count, deviation / self.privacy.noise, p
        return dict(zip(COLUMNS, map(float, values), strict=True))

    def _coins(self, common: Common, turn: Turn) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether canaries are in, and their signs, which add up to 0 over two exchanges, (R, K) each."""
        number, everyone = turn.t * self.exchanges + turn.exchange, range(common.clients)

        def drawn(t: int) -> NDArray[np.float64]:
            return common.streams.vectors(Role.CANARIES, t, everyone, PAIR)

        inside = drawn(turn.t if self.once else 0)[..., 0] < 0.5
        sign = np.where(drawn(number // 2)[..., 1] < 0.5, 1.0, -1.0) * (1 if number % 2 == 0 else -1)
        return inside, sign

    def _places(self, common: Common, dense: list[PerClient]) -> NDArray[np.intp]:
        """The entry of each client's canary, (R, K), among those that the client sends; -1 for none that is free.

        The order in which entries are taken is the same in all exchanges: noise that is used again then reaches the
        same canary.
        """
        allowed = np.concatenate([_travels(one) for one in dense], axis=-1)
        R, K, size = allowed.shape
        order = common.streams.vectors(Role.CANARIES, 0, range(1), size, ENTRIES)[:, 0].argsort(axis=-1)
        rows, free, place = np.arange(R), np.ones((R, size), bool), np.full((R, K), -1)
        for k in range(K):
            fits = np.take_along_axis(allowed[:, k], order, axis=-1) & free
            first = fits.argmax(axis=-1)
            found = fits[rows, first]
            place[:, k] = np.where(found, order[rows, first], -1)
            free[rows[found], first[found]] = False
        return place


COLUMNS = ("epsilon_upper", "epsilon_lower", "epsilon_lower_guesses", "canaries", "noise_ratio", "scores_p")


def _travels(one: PerClient) -> NDArray[np.bool_]:
    """Which entries of a payload travel, (R, K, n)."""
    shape = one.values.shape
    chosen = np.ones(shape, bool) if one.chosen is None else with_axes_of(one.values, one.chosen)
    return np.broadcast_to(chosen, shape).reshape(*shape[:2], -1)
