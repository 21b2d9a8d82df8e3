"""Audit: a run in which canaries replace all messages gives a lower bound of epsilon.

A canary is a message with one non-zero entry, ten times the clipping norm; a coin decides if it is sent. Clients use
different entries, so no canary changes another's score. The auditor sees what the adversary of the stated epsilon sees:
the noisy mean with `privacy=central`, every noisy message with `privacy=local`, only their sum with `secure`. It never
uses the noise multiplier. Steinke, Nasr and Jagielski, Privacy Auditing with One (1) Training Run (NeurIPS 2023), with
bounds of `fkl.conditions.audit_bounds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.conditions import accountant
from fkl.conditions.audit_bounds import FEWEST, OBJECTION, Scores, of_replicates
from fkl.conditions.privacy import Local, Noise
from fkl.conditions.wrapped import OnMessages, SumOnly
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.tasks.task import Panel
from fkl.wire.payloads import PerClient, mask_of_payload, payloads_of, rebuild_message, with_axes_of

NORM = 10.0
"""Length of a canary in clipping norms. With 1, an audit could not detect missing clipping."""
ALPHA = 0.05
"""Largest probability that epsilon_lower is above the true epsilon."""
CONTRADICTION = 1e-4
"""ALPHA of the bound that ends a run with an error; it is smaller because a run has many replicates."""
POINTS = 20
"""Largest number of rounds at which the figure has a bound; they are evenly spaced on a log axis."""
PAIR = 2
"""Random numbers of a client: for its coin, and for its sign."""
ENTRIES = 1
"""Number of the draw that orders entries; coins and signs are draw 0."""

Columns = dict[str, NDArray[np.float64]]


@dataclass
class Seen:
    """The auditor's record of each exchange so far.

    Parameters
    ----------
    scores : (R, K, exchanges)
        Score of each canary, in clipping norms, times its sign; NaN for no score.
    inside : (R, K, exchanges) bool
        Coins of the canaries.
    """

    scores: NDArray[np.float64]
    inside: NDArray[np.bool_]

    @classmethod
    def before_first_score(cls, *shape: int) -> "Seen":
        """No score yet."""
        return cls(np.full(shape, np.nan), np.zeros(shape, bool))

    def put(self, number: Any, scores: Any, inside: NDArray[np.bool_]) -> "Seen":
        """Add the scores (R, K) and coins of an exchange with this number, or with a number for each agent (R, K)."""
        place = np.arange(self.scores.shape[-1]) == np.asarray(number)[..., None]
        scores = np.where(place, scores[..., None], self.scores)
        return Seen(scores, np.where(place, inside[..., None], self.inside))


@dataclass
class OnGraph:
    """Memory of agents on a graph.

    Parameters
    ----------
    seen : Seen
    place, number : (R, K)
        Entry of the canary that an agent sends, and number of the exchange.
    sign : (R, K)
        Sign of the canary.
    inside : (R, K) bool
        Coin of the canary.
    """

    seen: Seen
    place: NDArray[np.intp]
    number: NDArray[np.intp]
    sign: NDArray[np.float64]
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Canaries(OnMessages):
    """Every client's message is a canary, in or out by its own coin.

    Errors of such a run come from canaries, not from the method. `summary.csv` has `epsilon_upper`, the stated epsilon,
    and `epsilon_lower`, the lower bound from the canaries.
    """

    called_without_messages = False
    panels: ClassVar[Mapping[str, Panel]] = MappingProxyType(
        {
            "epsilon": Panel(
                "epsilon so far\n(a low bound is a weak attack)",
                {
                    "epsilon_upper": "stated",
                    "epsilon_lower": "at least (95 % in each round)",
                    "epsilon_lower_guesses": "at least, by guesses",
                },
                log=False,
                between=("epsilon_lower", "epsilon_upper"),
            )
        }
    )

    level: str = key(
        "sample",
        "Which of the two epsilons to test. A sample has a coin in each round if it is in only one message, "
        "otherwise for the whole run. A client has a coin for the whole run.",
        choices=("sample", "client"),
    )

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse a run without noise, and conditions that change the canaries before or after the noise."""
        privacy = conditions.get("privacy")
        noisy = isinstance(privacy, Noise) and privacy.noise > 0
        require(noisy, "audit", "Canaries", "null without privacy.noise: there is no epsilon to test")
        require(accountant.INSTALLED, "audit", "Canaries", f"null: {accountant.MISSING}")
        scored = {"audit", "privacy", "participation"} | ({"secure"} if isinstance(privacy, Local) else set())
        others = [group for group in conditions if group not in scored]
        require(not others, "audit", "Canaries", f"null with {' and '.join(others)}, whose messages it cannot score")
        allowed = f"null for {method.label}, whose choice of entries reveals more than a score"
        require(not method.choices_reveal_data, "audit", "Canaries", allowed)

    def place_beside(self, method: Any, conditions: Mapping[str, Any]) -> "Placed":
        """The canaries for a run with this method and this privacy condition."""
        once = self.level == "sample" and method.uses_sample_once
        disappears = self.level == "client" or method.message_of_one_sample
        privacy, exchanges = conditions["privacy"], method.exchanges
        at_clients = "sums" if "secure" in conditions else "messages"
        view = at_clients if isinstance(privacy, Local) else "models"
        return Placed(self.level, privacy, exchanges, once, disappears, view)


@dataclass(frozen=True)
class Placed(Canaries):
    """Canaries of a run, with the facts about its method and its privacy condition.

    Parameters
    ----------
    level : see `Canaries`
    privacy : Noise
        The condition to audit.
    exchanges : int
        Number of exchanges in a round.
    once : bool
        Whether a coin holds for the messages of one round; otherwise it holds for the whole run.
    disappears : bool
        Whether a message is 0 if its canary is out; otherwise it moves by 2 C, from one end of the ball of clipped
        messages to the other.
    view : {"models", "messages", "sums"}
        What the auditor sees: the noisy mean, each client's noisy message, or only the sum of these (secure sums).
    """

    privacy: Any = None
    exchanges: int = 1
    once: bool = True
    disappears: bool = True
    view: str = "models"

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """The canary, or the message for a canary that is out."""
        return memory, None if message is None else self._canary_messages(common, message, turn)[0]

    def agent_starts(self, common: Common, known: Any, agents: int) -> OnGraph:
        """No score yet."""
        shape = len(payloads_of(known)[0].values), agents
        nowhere, first = np.full(shape, -1), np.zeros(shape, np.intp)
        return OnGraph(
            Seen.before_first_score(*shape, common.rounds), nowhere, first, np.ones(shape), np.zeros(shape, bool)
        )

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """The canary of every agent, as in `client_sends`."""
        canaries, place, inside, sign = self._canary_messages(common, message, turn)
        return OnGraph(memory.seen, place, np.full(place.shape, turn.t), sign, inside), canaries, sends

    def agent_sent(self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_]) -> OnGraph:
        """The memory with the scores of the noisy messages."""
        read = _message_entries(message, memory.place)
        is_known = sends & (memory.place >= 0)
        scores = np.where(is_known, memory.sign * read / self.privacy.clip, np.nan)
        return replace(memory, seen=memory.seen.put(memory.number, scores, memory.inside))

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """The unchanged messages; the memory gets the scores of this exchange."""
        if message is None or not share.any():
            return memory, message, share
        # The auditor reads the entries of the canaries, from single messages or from the mean
        payloads = payloads_of(message)
        sent = [payload.payload if isinstance(payload, SumOnly) else payload for payload in payloads]
        place = self._canary_places(common, [payload.dense() for payload in sent])
        inside, sign = self._canary_coins(common, turn)
        if isinstance(payloads[0], SumOnly):  # in units of a client's message in the mean
            mean = np.concatenate([payload.mean(share).reshape(len(place), -1) for payload in payloads], axis=-1)
            read = np.take_along_axis(mean, np.maximum(place, 0), axis=-1) / share.max()
        else:
            read = _message_entries(message, place)
        # Scores of this exchange in units of the clip, with the sign of the canary; NaN for clients that it does not
        # see
        seen = memory or Seen.before_first_score(*place.shape, common.rounds * self.exchanges)
        is_seen = (place >= 0) & (share > share.max() * (1 - 1e-9))  # other clients have less weight
        if self.view == "sums":  # sums of fewer clients have less noise
            is_seen &= (share > 0).all()
        number = turn.t * self.exchanges + turn.exchange
        scores = np.where(is_seen, sign * read / self.privacy.clip, np.nan)
        return seen.put(number, scores, inside), message, share

    def at_the_end(self, method: Any, problem: Any, memory: Any) -> tuple[Columns, Columns]:
        """The stated epsilon, and the bounds from each replicate's canaries, at the end and after some rounds.

        Raises
        ------
        fkl.basics.errors.FklError
            If a replicate contradicts the stated epsilon.
        """
        if memory is None:
            return {}, {}
        # The scores of all exchanges, and the stated bound of each round
        seen = memory.seen if isinstance(memory, OnGraph) else memory
        uppers = self.privacy.columns(method, problem)[f"epsilon_{self.level}"]
        R, K, numbers = seen.scores.shape
        T = len(uppers)
        # At the end, then at some earlier rounds on a logarithmic scale
        of_all = [self._of_one(one, uppers[-1], K) for one in self._scores_of_replicates(seen, numbers)]
        summary = {name: np.array([one[name] for one in of_all]) for name in of_all[0]}
        by_round = {name: np.zeros((T, R)) for name in CURVES}
        by_round["epsilon_upper"] += uppers[:, None]
        # A bound from earlier rounds is also a bound for all rounds so far
        ends = np.unique(np.rint(np.geomspace(1, T, POINTS)).astype(int))
        for end, following in zip(ends, (*ends[1:], T + 1), strict=True):
            of_some = [] if end == T else self._scores_of_replicates(seen, end * numbers // T)
            bounds = [(one.at_least(ALPHA), one.bound_by_guesses(ALPHA)) for one in of_some]
            bounds_so_far = np.array(bounds).T if bounds else [summary[name] for name in CURVES[1:]]
            for name, values in zip(CURVES[1:], bounds_so_far, strict=True):
                by_round[name][end - 1 : following - 1] = values
        return summary, by_round

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """The audit's results for all replicates."""
        if "epsilon_lower" not in summary:
            return ("the audit has no scores, because no client has sent a message",)
        # The stated bound, the audit's bound, and whether they contradict each other
        columns = {name: summary[name] for name in summary if name in COLUMNS}
        upper, lower, p = (columns[name] for name in ("epsilon_upper", "epsilon_lower", "scores_p"))
        moves = "zero-out (C)" if self.disappears else "omitted (2 C)"
        lines = [
            f"epsilon of a {self.level}, delta {self.privacy.delta:g}, {moves}: at most {_number_span(upper)}; "
            f"audit: at least {_number_span(lower)} (95 % in each replicate), "
            f"by guesses {_number_span(columns['epsilon_lower_guesses'])}"
        ]
        if "epsilon_upper_sums" in columns:
            lines[0] += f"; at most {_number_span(columns['epsilon_upper_sums'])} from sums of all clients"
            upper = columns["epsilon_upper_sums"]
        # How many canaries there were, and what they say about the noise
        canaries, inside = (_number_span(columns[name], ",.0f") for name in ("canaries", "canaries_in"))
        lines.append(
            f"{canaries} canaries of norm {NORM:g} C in each replicate, {inside} in; errors in this run are of "
            f"canaries, not of the method; the auditor sees {self.view}"
        )
        # Without enough canaries on both sides, nothing more can be said
        if np.isnan(columns["noise_ratio"]).any():
            return (*lines, f"no bound is possible: fewer than {FEWEST} canaries are in, or out")
        ratio, low, high, mu = of_replicates([columns[name] for name in MOMENTS], ALPHA)
        lines[1] += f"; noise is {ratio:.3g} times the stated noise ({low:.3g} to {high:.3g})"
        if (p < OBJECTION).any():
            lines[1] += "; scores are not normal if scores_p is small: epsilon_lower is then by guesses"
        else:
            together = accountant.epsilon_of(mu, self.privacy.delta)
            lines[1] += (
                f"; scores normal (p {_number_span(p)}); replicates together: epsilon is at least {together:.4g}"
            )
        # By chance, a bound with 95 % confidence is too high in 1 of 20 audits
        above = int((lower > upper).sum())
        chance = "which happens by chance in 1 of 20 audits: repeat it with another seed"
        lines.append(
            f"epsilon_lower is above epsilon_upper in {above} of {len(lower)} replicates, {chance}"
            if above
            else "nothing contradicts the stated epsilon"
        )
        return tuple(lines)

    def _scores_of_replicates(self, seen: Seen, numbers: int) -> list[Scores]:
        """The scores of each replicate, from this many exchanges."""
        # A client's scores add up while its coin is the same: over the exchanges of a round, or of the whole run
        R, K, _ = seen.scores.shape
        together = self.exchanges if self.once else numbers
        grouped = seen.scores[..., :numbers].swapaxes(1, 2).reshape(R, -1, together, K)
        counts = (~np.isnan(grouped)).sum(axis=2)
        messages = max(1, int(counts.max()))
        # A client with fewer messages has another distribution: only clients with most messages count
        summed: Any = np.where(counts == messages, np.nansum(grouped, axis=2) / np.sqrt(messages), np.nan)
        inside: Any = seen.inside[..., :numbers].swapaxes(1, 2).reshape(grouped.shape).any(axis=2)
        mu = float(np.sqrt(messages) * (1 if self.disappears else 2) / self._noise_of_score(K))
        return [Scores(*one, self.once, mu, self.privacy.delta) for one in zip(summed, inside, strict=True)]

    def _noise_of_score(self, clients: int) -> float:
        """Stated standard deviation of a score with this many clients."""
        return float(self.privacy.noise * (np.sqrt(clients) if self.view == "sums" else 1))

    def _of_one(self, scores: Scores, upper: float, clients: int) -> dict[str, float]:
        """The columns of one replicate."""
        columns = {"epsilon_upper": float(upper)}
        if self.view == "sums":
            upper = columns["epsilon_upper_sums"] = accountant.epsilon_of(scores.mu, self.privacy.delta)
        # A bound with 99.99 % confidence above the stated epsilon is an error of the mechanism, not chance
        contradicts = scores.at_least(CONTRADICTION)
        if contradicts > upper * (1 + 1e-6):
            text = (
                f"audit: CONTRADICTED: epsilon of a {self.level} is at least {contradicts:.4g} (99.99 %), stated as "
                f"{upper:.4g}. Look for noise that is too small or used twice, for clipping that is "
                "missing or comes after the noise, and for a message that moves by 2 C where C is stated"
            )
            raise FklError(text)
        columns |= {"epsilon_lower": scores.at_least(ALPHA), "epsilon_lower_guesses": scores.bound_by_guesses(ALPHA)}
        return (
            columns
            | dict(zip(MOMENTS, scores.moments(self._noise_of_score(clients)), strict=True))
            | {"scores_p": scores.p}
        )

    def _canary_messages(self, common: Common, message: Any, turn: Turn) -> tuple[Any, Any, Any, Any]:
        """Canaries instead of all messages, their entries, their coins and their signs, (R, K) each."""
        # Canaries are drawn for all clients at once
        require(len(turn.clients) == common.clients, "audit", "Canaries", "null where clients are in several processes")
        honest = [payload.dense() for payload in payloads_of(message)]
        every_entry = self.view != "sums" or all(mask_of_payload(payload) is None for payload in honest)
        require(every_entry, "audit", "Canaries", "null with secure for clients that send some of their entries")
        # Entry, coin and sign of each client; a canary is the only entry of its message
        place = self._canary_places(common, honest)
        inside, sign = self._canary_coins(common, turn)
        factor = np.where(inside, 1.0, 0.0 if self.disappears else -1.0) * np.where(place < 0, 0, sign)
        flat = np.zeros((*place.shape, sum(one.values[0, 0].size for one in honest)))
        length = NORM * self.privacy.clip * factor
        np.put_along_axis(flat, np.maximum(place, 0)[..., None], length[..., None], axis=-1)
        # Cut the vector into the payloads of the message
        ends = np.cumsum([one.values[0, 0].size for one in honest])[:-1]
        parts = zip(honest, np.split(flat, ends, axis=-1), strict=True)
        sent = [
            PerClient(part.reshape(one.values.shape).astype(one.values.dtype), mask_of_payload(one))
            for one, part in parts
        ]
        return rebuild_message(message, sent), place, inside, sign

    def _canary_coins(self, common: Common, turn: Turn) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether canaries are in, and their signs, which add up to 0 over two exchanges, (R, K) each."""
        number, everyone = turn.t * self.exchanges + turn.exchange, range(common.clients)

        def drawn(t: int) -> NDArray[np.float64]:
            return common.streams.vectors(Role.CANARIES, t, everyone, PAIR)

        inside = drawn(turn.t if self.once else 0)[..., 0] < 0.5
        sign = np.where(drawn(number // 2)[..., 1] < 0.5, 1.0, -1.0) * (1 if number % 2 == 0 else -1)
        return inside, sign

    def _canary_places(self, common: Common, dense: list[PerClient]) -> NDArray[np.intp]:
        """The entry of each client's canary, (R, K), among those that the client sends; -1 if none is free.

        The order of entries is the same in all exchanges, so noise that is wrongly used twice reaches the same canary.
        """
        # Entries that the client sends at all, in one random order for all clients
        allowed = np.concatenate([_entries_sent(one) for one in dense], axis=-1)
        R, K, size = allowed.shape
        order = common.streams.vectors(Role.CANARIES, 0, range(1), size, ENTRIES)[:, 0].argsort(axis=-1)
        rows, free, place = np.arange(R), np.ones((R, size), bool), np.full((R, K), -1)
        # The first free entry in this order
        for k in range(K):
            may = np.take_along_axis(allowed[:, k], order, axis=-1)
            fits = may & free
            if self.view == "messages":  # the auditor sees messages separately, so clients may share an entry
                fits = np.where(fits.any(axis=-1, keepdims=True), fits, may)
            first = fits.argmax(axis=-1)
            has_place = fits[rows, first]
            place[:, k] = np.where(has_place, order[rows, first], -1)
            free[rows[has_place], first[has_place]] = False
        return place


MOMENTS = ("canaries", "canaries_in", "score_in", "score_out", "noise_ratio")
"""Columns from which the bound from all replicates together is computed."""
CURVES = "epsilon_upper", "epsilon_lower", "epsilon_lower_guesses"
"""Columns of the rounds."""
COLUMNS = (*CURVES, "epsilon_upper_sums", *MOMENTS, "scores_p")
"""Columns of the summary that the messages at the end of an audit use."""


def _number_span(values: NDArray[np.float64], digits: str = ".4g") -> str:
    """The smallest and the largest number, or the only one."""
    low, high = f"{values.min():{digits}}", f"{values.max():{digits}}"
    return low if low == high else f"{low} to {high}"


def _message_entries(message: Any, place: NDArray[np.intp]) -> NDArray[np.float64]:
    """The entry at this place (R, K) of each party's message; an arbitrary entry for -1."""
    flat = [payload.dense().values.reshape(*place.shape, -1) for payload in payloads_of(message)]
    return np.take_along_axis(np.concatenate(flat, axis=-1), place[..., None], axis=-1)[..., 0].astype(np.float64)


def _entries_sent(one: Any) -> NDArray[np.bool_]:
    """Whether each entry of a payload is sent, (R, K, n)."""
    shape, chosen = one.values.shape, mask_of_payload(one)
    chosen = np.ones(shape, bool) if chosen is None else with_axes_of(one.values, chosen)
    return np.broadcast_to(chosen, shape).reshape(*shape[:2], -1)
