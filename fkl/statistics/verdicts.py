"""Verdict on a pair of methods: practically equal, better by more than the margin, better, or undecided.

Holm's correction counts all pairs of one data set, or all pairs that are compared over data sets. A look at an
unfinished study has its own level, which is divided by the number of pairs.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from fkl.basics.errors import count_of
from fkl.statistics.differences import MOST_SEEDS, Difference, from_data_sets
from fkl.statistics.intervals import LEVEL, holm_correction, wilson_interval
from fkl.statistics.power import LOOKS, least_effect, more_seeds_will_not_tell

Pair = tuple[str, str]

MARGIN = 0.02
"""Relative difference that is too small to matter."""
EQUAL, BEYOND, BETTER, CANNOT_TELL = "practically equal", "better by more than the margin", "better", "cannot tell"
ADJUSTED = "p is adjusted for all pairs of a data set (Holm), intervals are not"
LEAST_DATA_SETS = 5
LEAST_WITH_FAILURES = 6
"""Minimum number of data sets if ranks decide, because no p is below 0.05 with fewer."""
LEAST_BESIDE = 9
"""Minimum number of data sets for which Wilcoxon's p is also reported."""
LARGE = 1e5
"""Percentages from this number on are written with a power of ten."""
MOST_NAMED = 3
"""Largest number of methods that a sentence names with their differences."""
UNLIKELY = 0.2
"""If Wilcoxon's p is above this number, a Student's p below `LEVEL` is probably due to one data set."""


@dataclass(frozen=True)
class PairVerdict:
    """Verdict on methods a and b.

    Parameters
    ----------
    a, b : str
    difference : Difference
    p : float
        P value, corrected for the number of pairs.
    pairs : int
    margin : float
        Relative difference.
    level : float
        Level of all pairs together.
    at_end : mapping of str to str
        Key of a method whose chosen value is at the end of its range, by method. Such a method may be called better,
        but not worse.
    wilcoxon : float
        P value of the signed ranks, corrected for the number of pairs; NaN if it is not needed.
    once : bool
        Whether each method was tuned only once; the verdict is then on the settings found, not on the methods.
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
        """Name of the method that the difference favours, possibly by chance; None for neither."""
        return {-1: self.a, 1: self.b, 0: None}[int(self.difference.side)]

    @property
    def worse(self) -> str | None:
        """Name of the other method; None for neither."""
        return {-1: self.b, 1: self.a, 0: None}[int(self.difference.side)]

    @cached_property
    def outcome(self) -> str:
        """`EQUAL`, `BEYOND`, `BETTER` or `CANNOT_TELL`; always the last if a reason prevents the verdict."""
        return CANNOT_TELL if self.why_not else self._found

    @cached_property
    def why_not(self) -> str:
        """Reason not to call the favoured method better, although the difference is significant; empty if none."""
        if self._found not in (BETTER, BEYOND):
            return ""
        better, worse = str(self.better), str(self.worse)
        if worse in self.at_end:
            return f"no verdict against {worse}, whose {self.at_end[worse]} lies at the end of its range"
        failed = _count_failures(self)
        if failed[better] > failed[worse]:
            return f"{better} has the better ranks, but fails more often"
        return ""

    @cached_property
    def _found(self) -> str:
        """The outcome from the numbers only."""
        beyond_chance = self.p < self.level  # false if p is NaN
        if self.difference.failed:
            return BETTER if beyond_chance else CANNOT_TELL
        if np.isnan(self.p):
            return EQUAL if self.difference.m == 0 else CANNOT_TELL
        rho = np.log1p(self.margin)
        low, high = self.difference.confidence_interval(1 - 2 * self.level)
        if -rho < low and high < rho:
            return EQUAL
        low, high = self.difference.confidence_interval(1 - self.level / self.pairs)
        if low > rho or high < -rho:
            return BEYOND
        return BETTER if beyond_chance else CANNOT_TELL

    @property
    def brief(self) -> str:
        """The verdict in a few words: which method is better and by how much, or that both are tied."""
        if self.outcome in (BETTER, BEYOND):
            by = "ranks" if self.difference.failed else self.interval
            return f"{self.better} is better than {self.worse} by {by}"
        return self.why_not or f"{self.a} and {self.b} are {EQUAL if self.outcome == EQUAL else 'tied'}"

    @property
    def decided_by_one_data_set(self) -> bool:
        """Whether Student's p is small, but that of the signed ranks is much larger."""
        one = self.difference
        return one.unit == "data set" and not one.failed and bool(one.p < LEVEL and one.ranks[1] > UNLIKELY)

    @property
    def words(self) -> str:
        """The verdict in full.

        Percentages are relative to the better method's error, and say by how much the other error is larger. Without a
        better method, they are relative to b's error.
        """
        said = self._words_of_ranks if self.difference.failed else self._words_of_mean
        if not np.isnan(self.wilcoxon):
            said += f", Wilcoxon's p {_p_text(self.wilcoxon)}"
        if self.decided_by_one_data_set:
            said += f"; one data set decides this: the signed ranks alone give p {_p_text(self.difference.ranks[1])}"
        if (widened := self.difference.widened) > 1:
            said += f"; variance times {widened:.2g}, because neighbouring {self._neighbours} are correlated"
        return said + "; with the settings found" * self.once

    @property
    def _neighbours(self) -> str:
        return "rounds" if self.difference.unit == "block" else "rows"

    @property
    def _words_of_mean(self) -> str:
        both, of = f"{self.a} and {self.b}", self.difference
        if np.isnan(self.p):
            same = f"the same difference, {percent_of_ratio(of.m)} %," if of.m else "tied, with the same errors"
            doubt = "cannot tell, " if of.m else ""
            return f"{both}: {doubt}{same} in every {of.unit}: what differs between them changed nothing"
        if self.outcome == EQUAL:
            interval = f"{_difference_text(of, 1 - 2 * self.level)} at {100 * (1 - 2 * self.level):g} %"
            return f"{both} are practically equal, within {100 * self.margin:g} %: {interval}"
        if self.outcome != CANNOT_TELL:
            beyond = ", beyond the margin" * (self.outcome == BEYOND)
            return f"{self.better} is better than {self.worse} by {self.interval}{beyond}, p {_p_text(self.p)}"
        interval = _difference_text(of, 1 - self.level)
        if self.why_not:
            return f"{both}: {self.why_not}; {interval}, p {_p_text(self.p)}"
        corrected = f", p {_p_text(self.p)} corrected for {self.pairs} pairs" if of.p < self.level else ""
        return f"{both}: cannot tell, {interval}{corrected}"

    @property
    def interval(self) -> str:
        """Percentage by which the worse method's error is larger than the better one's, with its interval."""
        return _difference_text(self.difference, 1 - self.level, -1 if self.difference.side < 0 else 1)

    @property
    def _words_of_ranks(self) -> str:
        of = self.difference
        rates = []
        for method, k in _count_failures(self).items():
            low, high = wilson_interval(k, of.seeds)
            if k:
                rates.append(f"{method} failed in {k} of {of.runs} [{100 * low:.0f} %, {100 * high:.0f} %]")
        if self.outcome == BETTER:
            said = f"{self.better} is better than {self.worse} by ranks, p {_p_text(self.p)}"
        elif self.why_not:
            said = f"{self.why_not}, p {_p_text(self.p)}"
        else:
            said = f"{self.a} and {self.b}: cannot tell by ranks, p {_p_text(self.p)}"
        return f"{' and '.join(rates)}, so there is no interval; {said}"


def of_data_set(
    differences: Mapping[Pair, Difference],
    margin: float = MARGIN,
    at_end: Mapping[str, str] | None = None,
    look: int | None = None,
    once: bool = False,
) -> list[PairVerdict]:
    """Verdicts of all pairs on one data set.

    Parameters
    ----------
    differences : mapping of pairs of methods to Difference
        All pairs, or the planned ones; the correction is for this number.
    margin : float
        Relative difference; in log ratios it is rho = ln(1 + margin).
    at_end : mapping of str to str, optional
        Key of a method whose chosen value is at the end of its range, by method.
    look : {5, 10, 20, 40}, optional
        Number of seeds at which the study may stop. The level of this look is then divided by the number of pairs, and
        replaces Holm's correction. Decisions are final.
    once : bool
        Whether each method was tuned only once.
    """
    p = np.array([one.p for one in differences.values()], np.float64)
    tested = max(1, int(np.sum(~np.isnan(p))))
    corrected = holm_correction(p) if look is None else np.minimum(1.0, p * tested)
    level = LEVEL if look is None else LOOKS[look]
    return [
        PairVerdict(a, b, one, float(q), tested, margin, level, at_end or {}, once=once)
        for ((a, b), one), q in zip(differences.items(), corrected, strict=True)
    ]


def over_data_sets(
    differences: Mapping[str, Mapping[Pair, Difference]],
    margin: float = MARGIN,
    at_end: Mapping[str, str] | None = None,
    sources: Mapping[str, Hashable] | None = None,
    once: bool = False,
) -> list[PairVerdict]:
    """Verdicts over data sets, from Student's t of one mean log ratio per data set and Holm's correction over pairs.

    Parameters
    ----------
    differences : mapping of data sets to the argument of `of_data_set` margin, at_end, once
        See `of_data_set`.
    sources : mapping of str to hashable, optional
        Source of each data set. Data sets of one source count as one.

    Returns
    -------
    list of Verdict
        Only for pairs with at least `LEAST_DATA_SETS` data sets, or `LEAST_WITH_FAILURES` if a run failed; fewer cannot
        be tested.
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
        PairVerdict(a, b, one, float(q), tested, margin, LEVEL, at_end or {}, np.nan if one.failed else float(w), once)
        for ((a, b), one), q, w in zip(found.items(), holm_correction(p), holm_correction(beside), strict=True)
    ]


def about_best(verdicts: Sequence[PairVerdict], methods: Collection[str] = ()) -> str:
    """A sentence on the best method of a data set, the methods that may be as good, and its lead over the others.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Verdicts of one data set.
    methods : collection of str
        Candidates for the best method, by default all; each two must be compared. The best one fails least often, and
        then has the smaller error in most pairs.
    """
    methods = methods or dict.fromkeys(name for one in verdicts for name in (one.a, one.b))
    failed = {name: k for of in verdicts for name, k in _count_failures(of).items()}
    inner = [one for one in verdicts if one.a in methods and one.b in methods]
    if not inner:
        return "; ".join(one.brief for one in verdicts)
    compared = [name for name in methods if any(name in (one.a, one.b) for one in inner)]
    best = min(compared, key=lambda name: (failed[name], sum(one.worse == name for one in inner)))
    others = {one.a if one.b == best else one.b: one for one in verdicts if best in (one.a, one.b)}
    told = {name: one for name, one in others.items() if one.outcome in (BETTER, BEYOND)}
    better = {name: one for name, one in told.items() if one.better == best}
    worse = {name: one for name, one in told.items() if one.better != best}
    undecided = {name: one for name, one in others.items() if name not in told and not one.why_not}
    equal, unclear = (
        [name for name, one in undecided.items() if not failed[name] and (one.outcome == EQUAL) == alike]
        for alike in (True, False)
    )
    of = count_of(len(compared), "method") if worse or len(compared) < len(methods) else ""
    first = (f"leads among {of}" if of else "leads") if unclear else f"is the best of {of}" if of else "is best"
    said = [
        f"{best} {first}"
        + (f", practically equal to {_list_names(equal)}" if equal else "")
        + (f", but cannot be distinguished from {_list_names(unclear)}" if unclear else "")
        + (f"{'; ' if unclear else ', but '}worse than {_by_how_much(worse)}" if worse else "")
    ]
    said += [f"better than {_by_how_much(better)}"] if better else []
    for name, one in undecided.items():
        if failed[name]:
            said.append(f"no verdict against {name}, which failed in {failed[name]} of {one.difference.runs}")
    return "; ".join([*said, *(one.why_not for one in others.values() if one.why_not)])


def about_power(verdicts: Sequence[PairVerdict]) -> str:
    """A sentence on the differences that the undecided pairs of a data set would have shown; empty if none is open."""
    found = [one.difference for one in verdicts if one.outcome == CANNOT_TELL and not one.why_not]
    undecided = [of for of in found if of.V > 0]
    if not undecided:
        return ""
    of = undecided[0]
    times, said = (
        of.n,
        [f"Errors that differ by {_smallest_detectable(undecided)} would be told apart here in four studies of five"],
    )
    if of.unit == "block":
        said.append(f"with twice as many rounds, by {_smallest_detectable(undecided, 2 * times)}")
    elif not of.blocks or times < MOST_SEEDS:
        times = min(2 * times, MOST_SEEDS) if of.blocks else 2 * times
        units = count_of(times, of.unit) + " as large" * (of.unit == "portion")
        said.append(f"with {units}, by {_smallest_detectable(undecided, times)}")
    margins = [
        max(one.margin, float(np.expm1(abs(one.difference.m)))) for one in verdicts if one.difference in undecided
    ]
    if of.blocks and any(more_seeds_will_not_tell(one, least) for one, least in zip(undecided, margins, strict=True)):
        said.append(
            f"no number of seeds shows less than {_smallest_detectable(undecided, np.inf)}, more rows or data sets may"
        )
    return f"{'; '.join(said)}."


def _smallest_detectable(undecided: Sequence[Difference], units: float | None = None) -> str:
    """The smallest differences that this number of units shows, over pairs, in percent."""
    ends = [min, max]
    effects = [least_effect(of, units) for of in undecided]
    return " to ".join(dict.fromkeys(percent_of_ratio(end(effects)) for end in ends)) + " %"


def as_table(verdicts: Mapping[str, Sequence[PairVerdict]]) -> pd.DataFrame:
    """One row per data set and pair: percentage by which a's error is larger than b's, its interval, and verdict."""
    rows = []
    for name, some in verdicts.items():
        for one in some:
            low, high = one.difference.confidence_interval(1 - one.level)
            with np.errstate(over="ignore"):
                percents = 100 * np.expm1([one.difference.m, low, high]) * (np.nan if one.difference.failed else 1)
            named = dict(zip(("percent", "low", "high"), percents.tolist(), strict=True))
            said = "no verdict" if one.why_not else one.outcome
            tests = {"level": one.level, "p": one.difference.p, "p_adjusted": one.p, "verdict": said}
            rows.append({"data set": name, "a": one.a, "b": one.b, **named, **tests, "better": one.better})
    return pd.DataFrame(rows)


def _count_failures(of: PairVerdict) -> dict[str, int]:
    return {of.a: of.difference.failed_a, of.b: of.difference.failed_b}


def _by_how_much(others: Mapping[str, PairVerdict]) -> str:
    """Other methods, each with its difference; if there are many, their number and the range of differences."""
    finite = sorted(abs(one.difference.m) for one in others.values() if not one.difference.failed)
    if len(others) > MOST_NAMED and finite:
        return f"{len(others)} others by {percent_of_ratio(finite[0])} to {percent_of_ratio(finite[-1])} %"
    ordered = sorted(others.items(), key=lambda item: np.nan_to_num(abs(item[1].difference.m), nan=np.inf))
    return _list_names([f"{name} by {'ranks' if one.difference.failed else one.interval}" for name, one in ordered])


def _list_names(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _difference_text(of: Difference, level: float, side: int = 1) -> str:
    """The difference and its interval, e.g. ``4.1 % [1.9, 6.4]``; with the opposite sign for side -1."""
    low, high = sorted(side * end for end in of.confidence_interval(level))
    return f"{percent_of_ratio(side * of.m)} % [{percent_of_ratio(low)}, {percent_of_ratio(high)}]"


def percent_of_ratio(log_ratio: float) -> str:
    """100 (exp m - 1) as text, with one decimal if it is below 100.

    Examples
    --------
    >>> [percent_of_ratio(np.log(ratio)) for ratio in (1.041, 0.992, 7.81, 2e9)]
    ['4.1', '−0.8', '681', '2.0e+11']
    """
    with np.errstate(over="ignore"):
        value = 100 * float(np.expm1(log_ratio))
    shown = f"{value:{'.1f' if abs(value) < 99.95 else '.0f' if abs(value) < LARGE else '.1e'}}"
    return "0.0" if shown == "-0.0" else shown.replace("-", "−")


def _p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"
