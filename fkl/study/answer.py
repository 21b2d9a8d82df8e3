"""Answer of a study: one sentence per data set or over all of them, and the notes that a reader needs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fkl.basics.errors import plural
from fkl.statistics.differences import OF_TRAINING
from fkl.statistics.intervals import wilson
from fkl.statistics.power import LOOKS
from fkl.statistics.verdicts import BETTER, BEYOND, LEAST_DATA_SETS, Verdict, over_data_sets
from fkl.study.jobs import are_drawn, judged_jobs
from fkl.study.plan import Plan
from fkl.study.registered import deviations
from fkl.study.results import Judged, judged

CLAIMS = {
    "rows": "other rows of this source",
    "seeds": "these rows, with other seeds",
    "clients": "other clients like these",
    "time": "the same stream later on",
}


@dataclass
class Answer:
    """Results of a study, finished or not.

    Parameters
    ----------
    plan : Plan
    judged : list of Judged
    verdicts : dict of str to list of Verdict
        Verdicts of all pairs, by data set.
    over : list of Verdict
        Verdicts of pairs over data sets, if there are enough.
    """

    plan: Plan
    judged: list[Judged]
    verdicts: dict[str, list[Verdict]]
    over: list[Verdict] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan) -> "Answer":
        """Compare the runs that have ended."""
        found = judged(plan)
        verdicts = {one.dataset.name: one.verdicts for one in found if one.verdicts}
        differences = {name: {(one.a, one.b): one.difference for one in some} for name, some in verdicts.items()}
        ends = {method: key for one in found for method, key in one.ends.items()}
        sources = {part.name: part.source for part in plan.datasets}
        over = over_data_sets(differences, plan.margin, ends, sources, once=plan.once)
        return cls(plan, found, verdicts, over)

    @property
    def finished(self) -> bool:
        """Whether all judged runs have ended."""
        ended = {one.dataset: one.ended for one in self.judged}
        others = [dataset for dataset in self.plan.datasets if dataset not in ended]
        return all(ended.values()) and all(job.note for one in others for job in judged_jobs(self.plan, one))

    @property
    def sentences(self) -> list[str]:
        """The answer: planned pairs, or the first method against the others and against itself alone and pooled."""
        plan = self.plan
        said = []
        for a, b in plan.pairs if plan.planned else [pair for pair in plan.pairs if pair[0] == plan.methods[0].name]:
            over = next((one for one in self.over if (one.a, one.b) == (a, b)), None)
            each = {name: one for name, some in self.verdicts.items() for one in some if (one.a, one.b) == (a, b)}
            if over is not None:
                said.append(f"Over {plural(over.difference.n, 'data set')}, {over.words}.")
            elif len(each) == 1:
                [(name, one)] = each.items()
                said.append(f"On {name}, {one.words}.")
            elif each:
                said.append(f"{a} against {b}: {_on_each(a, each)}.")
        return said or ["No two methods have been judged yet."]

    @property
    def details(self) -> list[tuple[str, list[str]]]:
        """The verdict of every pair in words, by data set."""
        return [(name, [f"{one.words}." for one in some]) for name, some in self.verdicts.items()]

    @property
    def notes(self) -> list[str]:
        """Notes for the reader: failures, missing comparisons, and missing corrections."""
        said = []
        if not self.finished:
            said.append("The study has not ended: what follows is of the runs that have.")
        if self.plan.once:
            said.append("One search for all seeds: verdicts are about the values it found, not about methods.")
        said += [f"Deviation from the registered plan: {one}." for one in deviations(self.plan)]
        for one in self.judged:
            for method in one.notes:
                for reason, number in one.failures(method).items():
                    low, high = wilson(number, one.seeds)
                    rate = f"{number} of {one.seeds} seeds [{100 * low:.0f} %, {100 * high:.0f} %]"
                    said.append(f"{method} failed on {one.dataset.name} in {rate}: {reason}.")
            said += [f"{one.dataset.name}: {why}." for why in one.refused]
            for method_ in self.plan.all_methods:
                for end in one.at_the_end(method_):
                    said.append(f"{method_.name} on {one.dataset.name}: {end} of its range, widened twice.")
        return said

    @property
    def unit(self) -> str:
        """The unit of replication, and the correction of verdicts, in a sentence for captions."""
        plan, claim = self.plan, CLAIMS[self.plan.claim]
        portions = [one.dataset.name for one in self.judged if one.portions]
        how = {
            "rows": f"seeds share rows: variance {OF_TRAINING:g} V(blocks of rows) + V(seeds)",
            "seeds": "Student's t over seeds",
            "clients": "variance over clients, each counted once, plus V(seeds)",
            "time": "Student's t over 10 blocks of rounds",
        }[plan.claim]
        if factors := factors_of(self):
            how += f", where the first is {factors}"
        if drawn := [one.dataset.name for one in self.judged if are_drawn(plan, one.dataset)]:
            how += f"; on {', '.join(drawn)} each seed draws rows of its own"
        if portions:
            how += f"; on {', '.join(portions)} each seed has a portion of the rows that no other has"
        how += f"; {looks}" if (looks := looks_of(self)) else ""
        many = f"five per cent for the pairs of each data set ({'Bonferroni' if plan.looks else 'Holm'})"
        over = f", and for those over {LEAST_DATA_SETS} or more data sets" if self.over else ""
        search = "one search for all" if plan.once else "each with its own search"
        return f"Claim: {claim}. {plan.seeds} seeds, {search}; {how}. Level: {many}{over}, not for all."


def looks_of(answer: Answer) -> str:
    """When data sets ended, in a study with several looks; otherwise empty."""
    looks = answer.plan.looks
    if not looks:
        return ""
    ended = ", ".join(f"{one.dataset.name} after {one.seeds}" for one in answer.judged)
    levels = ", ".join(f"{100 * LOOKS[look]:g} %" for look in looks)
    when = ", ".join(map(str, looks))
    return f"a data set ends after {when} seeds if all its pairs are decided, at levels {levels} over pairs ({ended})"


def factors_of(answer: Answer) -> str:
    """How large the part of rows in the variance is, for each data set; empty if it has none."""
    said = []
    for name, verdicts in answer.verdicts.items():
        if factors := [one.difference.factor for one in verdicts if one.difference.blocks]:
            ends = dict.fromkeys(f"{end:.1f}" for end in (min(factors), max(factors)))
            said.append(f"{' to '.join(ends)} times that over independent rows on {name}")
    return ", ".join(said)


def _on_each(method: str, verdicts: Mapping[str, Verdict]) -> str:
    """Results of a method on a few data sets: equal verdicts together, each with its interval."""
    on: dict[str, list[str]] = {}
    for name, one in verdicts.items():
        on.setdefault(outcome_of(method, one), []).append(f"{name} ({interval_of(method, one)})")
    return "; ".join(f"{outcome} on {', '.join(names)}" for outcome, names in on.items())


def outcome_of(method: str, verdict: Verdict) -> str:
    """The verdict about one of its methods: better, worse, practically equal, cannot tell, or no verdict."""
    if verdict.why_not:
        return "no verdict"
    if verdict.outcome not in (BETTER, BEYOND):
        return verdict.outcome
    by = " by more than the margin" * (verdict.outcome == BEYOND)
    return ("better" if verdict.better == method else "worse") + by


def interval_of(method: str, verdict: Verdict) -> str:
    """Percentage by which a method's error is above the other's, with its interval; negative if it is smaller."""
    one = verdict.difference
    if one.failed:
        return f"by ranks, p {verdict.p:.2g}"
    side = 1 if verdict.a == method else -1
    low, high = sorted(100 * math.expm1(side * end) for end in one.interval(1 - verdict.level))
    return f"error {100 * math.expm1(side * one.m):+.1f} % [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def lines(answer: Answer) -> Sequence[str]:
    """Output on the terminal."""
    question = answer.plan.question
    said = [question, *(f"  {one}" for one in answer.sentences)] if question else answer.sentences
    pairs = sum(map(len, answer.verdicts.values()))
    for name, some in answer.details if pairs > 1 else []:
        said += ["", f"{name}, claim: {CLAIMS[answer.plan.claim]}", *(f"  {one}" for one in some)]
    return [*said, *([""] if answer.notes else []), *answer.notes]
