"""Verdict about a pair of methods: practically equal, better by more than the margin, better, or undecided.

Holm's correction counts the pairs of one data set, or those over data sets. A look at an unfinished study has its own
level, which is divided by the number of pairs.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fkl.basics.errors import plural
from fkl.report.compare.statistics import holm
from fkl.study.differences import MOST_SEEDS, Difference, from_data_sets
from fkl.study.power import LEVEL, LOOKS, least_effect, more_seeds_will_not_tell, wilson

Pair = tuple[str, str]

MARGIN = 0.02
"""Relative difference that does not matter."""
EQUAL, BEYOND, BETTER, CANNOT_TELL = "practically equal", "better by more than the margin", "better", "cannot tell"
LEAST_DATA_SETS = 5
LEAST_WITH_FAILURES = 6
"""Minimum number of data sets if ranks decide: with fewer no p is below 0.05."""
LEAST_BESIDE = 9
"""Number of data sets from which Wilcoxon's p is also reported."""
UNLIKELY = 0.2
"""Above this Wilcoxon's p, a Student's p below `LEVEL` is probably due to one data set."""


@dataclass(frozen=True)
class Verdict:
    """Verdict about methods a and b.

    Parameters
    ----------
    a, b : str
    difference : Difference
    p : float
        Corrected for the number of pairs.
    pairs : int
    margin : float
        Relative.
    level : float
        Level of the whole family of pairs.
    at_end : mapping of str to str
        For a method, the key whose chosen value is at the end of its range: the method may be called better, but not
        worse.
    wilcoxon : float
        P value of the signed ranks, corrected for the number of pairs; NaN if it is not needed.
    once : bool
        Whether each method was tuned once: the verdict is then about the settings found, not about methods.
    """

    a: str
    b: str
    difference: Difference
    p: float
    pairs: int = 1
    margin: float = MARGIN
    level: float = LEVEL
    at_end: Mapping[str, str] = field(default_factory=dict)
    wilcoxon: float = np.nan
    once: bool = False

    @property
    def better(self) -> str | None:
        """The method that the difference favours, possibly by chance; None for neither."""
        return {-1: self.a, 1: self.b, 0: None}[int(self.difference.side)]

    @property
    def worse(self) -> str | None:
        """The other method."""
        return {-1: self.b, 1: self.a, 0: None}[int(self.difference.side)]

    @cached_property
    def outcome(self) -> str:
        """`EQUAL`, `BEYOND`, `BETTER` or `CANNOT_TELL`, if nothing prevents the verdict."""
        return CANNOT_TELL if self.why_not else self._found

    @cached_property
    def why_not(self) -> str:
        """Why the better method is not called better, although its difference is significant; otherwise empty."""
        if self._found not in (BETTER, BEYOND):
            return ""
        better, worse = str(self.better), str(self.worse)
        if worse in self.at_end:
            return f"no verdict against {worse}, whose {self.at_end[worse]} lies at the end of its range"
        failed = {self.a: self.difference.failed_a, self.b: self.difference.failed_b}
        if failed[better] > failed[worse]:
            return f"{better} has the better ranks, but fails more often"
        return ""

    @cached_property
    def _found(self) -> str:
        """The outcome from the numbers only: table of section 3."""
        beyond_chance = self.p < self.level  # false if p is NaN
        if self.difference.failed:
            return BETTER if beyond_chance else CANNOT_TELL
        if np.isnan(self.p):
            return CANNOT_TELL
        rho = np.log1p(self.margin)
        low, high = self.difference.interval(1 - 2 * self.level)
        if -rho < low and high < rho:
            return EQUAL
        low, high = self.difference.interval(1 - self.level / self.pairs)
        if low > rho or high < -rho:
            return BEYOND
        return BETTER if beyond_chance else CANNOT_TELL

    @property
    def decided_by_one_data_set(self) -> bool:
        """Whether only Student's p is small, and that of the signed ranks is much larger."""
        one = self.difference
        return one.unit == "data set" and not one.failed and bool(one.p < LEVEL and one.ranks[1] > UNLIKELY)

    @property
    def words(self) -> str:
        """The verdict for the reader.

        If one method is called better, percentages are relative to its error: the other's is larger by this much.
        Otherwise they are relative to b's error.
        """
        said = self._words_of_ranks if self.difference.failed else self._words_of_mean
        if not np.isnan(self.wilcoxon):
            said += f", Wilcoxon's {self._named(self.wilcoxon)}"
        if self.decided_by_one_data_set:
            said += f"; one data set decides this: of the signed ranks alone, p is {_p(self.difference.ranks[1])}"
        return said + "; with the settings found" * self.once

    @property
    def _p(self) -> str:
        return self._named(self.p)

    def _named(self, p: float) -> str:
        name = "" if self.pairs == 1 else "Holm " if self.level == LEVEL else "Bonferroni "
        return f"{name}p {_p(p)}"

    @property
    def _words_of_mean(self) -> str:
        both, of = f"{self.a} and {self.b}", self.difference
        if self.outcome == EQUAL:
            interval = f"{_percents(of, 1 - 2 * self.level)} at {100 * (1 - 2 * self.level):g} %"
            return f"{both} are practically equal, within {100 * self.margin:g} %: {interval}"
        if self.outcome != CANNOT_TELL:
            how = f" by more than {100 * self.margin:g} %:" if self.outcome == BEYOND else " by"
            side = -1 if of.side < 0 else 1
            return f"{self.better} is better than {self.worse}{how} {_percents(of, 1 - self.level, side)}, {self._p}"
        if np.isnan(self.p):
            same = "the same errors" if of.m == 0 else f"the same difference, {_percent(of.m)} %,"
            return f"{both}: cannot tell, {same} in every {of.unit}: no chance had a part in it"
        interval = _percents(of, 1 - self.level)
        if self.why_not:
            return f"{both}: {self.why_not}; {interval}, {self._p}"
        corrected = f", {self._p}" if of.p < self.level else ""
        return f"{both}: cannot tell, {interval}{corrected}; {self._could_be_seen}"

    @property
    def _could_be_seen(self) -> str:
        """The difference that would be detected, with equally many units and with more."""
        of = self.difference
        more: list[str] = []
        if of.unit == "block":
            more = [f"with twice as many rounds {_percent(least_effect(of) / np.sqrt(2))} %"]
        elif not of.blocks:
            units = plural(2 * of.n, of.unit) + " as large" * (of.unit == "portion")
            more = [f"with {units} {_percent(least_effect(of, 2 * of.n))} %"]
        else:
            if of.n < MOST_SEEDS:
                seeds = min(2 * of.n, MOST_SEEDS)
                more = [f"with {seeds} seeds {_percent(least_effect(of, seeds))} %"]
            more += [f"with any number of seeds {_percent(least_effect(of, np.inf))} %"]
        said = ", ".join([f"{_percent(least_effect(of))} % would have been seen", *more])
        if of.blocks and more_seeds_will_not_tell(of, max(self.margin, float(np.expm1(abs(of.m))))):
            said += "; more seeds will not tell: more rows or data sets would"
        return said

    @property
    def _words_of_ranks(self) -> str:
        of = self.difference
        rates = []
        for method, k in ((self.a, of.failed_a), (self.b, of.failed_b)):
            low, high = wilson(k, of.seeds)
            if k:
                rates.append(
                    f"{method} failed in {k} of {plural(of.seeds, 'seed')} [{100 * low:.0f} %, {100 * high:.0f} %]"
                )
        if self.outcome == BETTER:
            said = f"{self.better} is better than {self.worse} by ranks, {self._p}"
        elif self.why_not:
            said = f"{self.why_not}, {self._p}"
        else:
            said = f"{self.a} and {self.b}: cannot tell by ranks, {self._p}"
        return f"{' and '.join(rates)}, so there is no interval; {said}"


def of_data_set(
    differences: Mapping[Pair, Difference],
    margin: float = MARGIN,
    at_end: Mapping[str, str] | None = None,
    look: int | None = None,
    once: bool = False,
) -> list[Verdict]:
    """Verdicts of all pairs on one data set.

    Parameters
    ----------
    differences : mapping of pairs of methods to Difference
        All pairs, or the planned ones; the correction is for this number.
    margin : float
        rho = ln(1 + margin).
    at_end : mapping of str to str, optional
        For a method, the key whose chosen value is at the end of its range.
    look : {5, 10, 20, 40}, optional
        Seeds at which the study may stop: the level is this look's, divided by the number of pairs, without Holm.
        Decisions are final.
    once : bool
        Whether each method was tuned once.
    """
    p = np.array([one.p for one in differences.values()], np.float64)
    tested = max(1, int(np.sum(~np.isnan(p))))
    corrected = holm(p) if look is None else np.minimum(1.0, p * tested)
    level = LEVEL if look is None else LOOKS[look]
    return [
        Verdict(a, b, one, float(q), tested, margin, level, at_end or {}, once=once)
        for ((a, b), one), q in zip(differences.items(), corrected, strict=True)
    ]


def over_data_sets(
    differences: Mapping[str, Mapping[Pair, Difference]],
    margin: float = MARGIN,
    at_end: Mapping[str, str] | None = None,
    sources: Mapping[str, Hashable] | None = None,
    once: bool = False,
) -> list[Verdict]:
    """Verdicts over data sets: Student's t of one mean log ratio each, Holm over pairs.

    Parameters
    ----------
    differences : mapping of data sets to the argument of `of_data_set` margin, at_end, once
        As there.
    sources : mapping of str to hashable, optional
        Source of each data set: those of one source count once together.

    Returns
    -------
    list of Verdict
        Without pairs that have fewer than `LEAST_DATA_SETS`, or than `LEAST_WITH_FAILURES` if a run failed: these have
        no test.
    """
    found: dict[Pair, Difference] = {}
    for pair in dict.fromkeys(pair for of_one in differences.values() for pair in of_one):
        names = [name for name, of_one in differences.items() if pair in of_one]
        groups = [(sources or {}).get(name, name) for name in names]
        if len(set(groups)) < LEAST_DATA_SETS:
            continue
        over = from_data_sets([differences[name][pair] for name in names], groups)
        if not over.failed or over.n >= LEAST_WITH_FAILURES:
            found[pair] = over
    p = np.array([one.p for one in found.values()], np.float64)
    beside = np.array([one.ranks[1] if one.n >= LEAST_BESIDE else np.nan for one in found.values()], np.float64)
    tested = max(1, int(np.sum(~np.isnan(p))))
    return [
        Verdict(a, b, one, float(q), tested, margin, LEVEL, at_end or {}, np.nan if one.failed else float(w), once)
        for ((a, b), one), q, w in zip(found.items(), holm(p), holm(beside), strict=True)
    ]


def _percents(of: Difference, level: float, side: int = 1) -> str:
    """The difference with its interval, e.g. ``4.1 % [1.9, 6.4]``; with the opposite sign for side -1."""
    low, high = sorted(side * end for end in of.interval(level))
    return f"{_percent(side * of.m)} % [{_percent(low)}, {_percent(high)}]"


def _percent(log_ratio: float) -> str:
    """100 (exp m - 1), in one decimal."""
    with np.errstate(over="ignore"):
        value = round(100 * float(np.expm1(log_ratio)), 1) + 0.0
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.1e}"


def _p(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"
