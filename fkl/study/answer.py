"""Answer of a study: a sentence for each data set and one over all of them, and the notes that a reader needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from fkl.basics.errors import count_of
from fkl.engines.per_world import why_not
from fkl.report.compare.row_order import about_alone
from fkl.screen.units import bytes_of
from fkl.statistics.intervals import wilson_interval
from fkl.statistics.power import LOOKS
from fkl.statistics.verdicts import (
    ADJUSTED,
    CANNOT_TELL,
    LEAST_DATA_SETS,
    PairVerdict,
    about_best,
    about_power,
    over_data_sets,
)
from fkl.study.dealt import how_dealt, row_order_of
from fkl.study.jobs import judged_jobs
from fkl.study.plan import Plan, class_of
from fkl.study.registered import plan_deviations
from fkl.study.results import Judged, judged_results

MOST_PAIRS = 20
"""Maximum number of pairs in a terminal."""
BYTES = re.compile(r"\b(bytes?|[kMG]B|(up|down)links?|sen[dt]s?|traffic|communicat\w*|bandwidth|budgets?|scalars?)\b")
"""Words of a question about bytes."""
CLAIMS = {
    "rows": "other rows of this source",
    "seeds": "these rows, with other seeds",
    "clients": "other clients like these",
    "time": "the same stream later on",
}


@dataclass
class StudyAnswer:
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
    verdicts: dict[str, list[PairVerdict]]
    over: list[PairVerdict] = field(default_factory=list)

    @classmethod
    def compare_ended(cls, plan: Plan) -> "StudyAnswer":
        """Compare the runs that have ended."""
        judged_sets = judged_results(plan)
        verdicts = {one.dataset.name: one.verdicts for one in judged_sets if one.verdicts}
        differences = {name: {(one.a, one.b): one.difference for one in some} for name, some in verdicts.items()}
        ends = {method: key for one in judged_sets for method, key in one.ends.items()}
        sources = {part.name: part.source for part in plan.datasets}
        over = over_data_sets(differences, plan.margin, ends, sources, once=plan.once)
        return cls(plan, judged_sets, verdicts, over)

    @property
    def finished(self) -> bool:
        """Whether all judged runs have ended."""
        ended = {one.dataset: one.ended for one in self.judged}
        others = [dataset for dataset in self.plan.datasets if dataset not in ended]
        return all(ended.values()) and all(job.note for one in others for job in judged_jobs(self.plan, one))

    @property
    def sentences(self) -> list[str]:
        """The best method over all data sets and on each, the methods not distinguished from it, and those it beats.

        For a study with planned pairs, the verdicts of these pairs instead.
        """
        over = (
            [f"Over {count_of(self.over[0].difference.n, 'data set')}, {self._sentences_said(self.over)}."]
            if self.over
            else []
        )
        over = over or self._counted
        lines = [line for one in self.judged if (said := self._said_on(one)) for line in self._sentences_on(one, said)]
        return [*over, *lines, *self.untuned, *self.unlike, *self.limits] or ["No two methods have been judged yet."]

    @property
    def untuned(self) -> list[str]:
        """A sentence on the methods that no search tuned, or an empty list."""
        by_names: dict[str, list[str]] = {}
        for judged_set in self.judged:
            by_names.setdefault(", ".join(self.plan.not_tuned(judged_set.dataset)), []).append(judged_set.dataset.name)
        several = len(by_names) > 1
        return [
            f"Not tuned{(' on ' + ', '.join(datasets)) * several}: {names}."
            for names, datasets in by_names.items()
            if names
        ]

    @property
    def unlike(self) -> list[str]:
        """A sentence for each method whose pooled learner is smaller, because a key of it counts for each client."""
        # The pooled learner is a single client, so a key that counts for each client gives it less in total
        said = []
        for method in self.plan.methods:
            kind = class_of(method, self.plan.folders)
            keys = [f"algo.{name}" for name in getattr(kind, "per_client", ())]
            pooled = [part.name for part in self.plan.baseline_variants(method) if "learners=pooled" in part.words]
            if keys and pooled:
                said.append(
                    f"{pooled[0]} is one client, and {' and '.join(keys)} counts for each client: the federation of"
                    f" {method.name} has as many times more as it has clients."
                )
        return said

    @property
    def ends(self) -> list[tuple[str, str, str, str]]:
        """Data set, method, key and end of each range at whose end values were found."""
        return [
            (one.dataset.name, method.name, key, end)
            for one in self.judged
            for method in self.plan.all_methods
            for key, end in one.at_the_end(method)
        ]

    @property
    def limits(self) -> list[str]:
        """A sentence on the methods whose values were found at an end of a range, or an empty list."""
        by_key: dict[str, list[str]] = {}
        for dataset, method, key, end in self.ends:
            by_key.setdefault(f"{key} of {method} ({end} end", []).append(dataset)
        lines = [f"{words} on {', '.join(datasets)})" for words, datasets in by_key.items()]
        wider = "with wider ranges these methods may be better than here"
        return [f"At the limit of its range: {'; '.join(lines)}; {wider}."] if lines else []

    @property
    def _counted(self) -> list[str]:
        """How many data sets each method leads, if there are too few for a test; empty for one data set."""
        # The best method of each data set that has verdicts
        ended = [judged_set for judged_set in self.judged if judged_set.dataset.name in self.verdicts]
        sources = len({judged_set.dataset.source for judged_set in ended})
        leading: dict[str, int] = {}
        for judged_set in ended:
            levels = {name: judged_set.level(name) for name in judged_set.methods if name in self._names}
            if levels_known := {name: value for name, value in levels.items() if np.isfinite(value)}:
                best = min(levels_known, key=levels_known.__getitem__)
                leading[best] = leading.get(best, 0) + 1
        # With one data set or method, nothing is to be counted
        if sources < 2 or sum(leading.values()) < 2 or len(self._names) < 2:
            return []
        # Why there is no test, and how often each method leads
        few = "no test over them was possible" if sources >= LEAST_DATA_SETS else f"a test needs {LEAST_DATA_SETS}"
        said = ", ".join(f"{name} on {number}" for name, number in sorted(leading.items(), key=lambda item: -item[1]))
        again = f" ({len(ended)} settings)" * (len(ended) > sources)
        return [f"Over {count_of(sources, 'data set')}{again}, smallest errors of the methods: {said}; {few}."]

    @property
    def _names(self) -> list[str]:
        return [method.name for method in self.plan.methods]

    def _sentences_on(self, judged: Judged, said: str) -> list[str]:
        """Sentences on a data set: its rows, its best method, the bold row, and methods that a baseline beats."""
        # How much was judged, and the errors by which methods are compared
        rows, of_all = judged.rows_read
        counted = f" ({rows:,} of {of_all:,} rows judged in a seed)" if rows and of_all else ""
        levels = {name: value for name in judged.methods if np.isfinite(value := judged.level(name))}
        # If the verdict does not name the method with the smallest error, the sentence does
        bold = min(levels, key=levels.__getitem__, default="")
        if bold and not said.startswith((f"{bold} leads", f"{bold} is ", f"only {bold} ")):
            said += f"; the smallest error is that of {bold}"
        # Methods that do not beat every baseline, by the baselines that they do not beat
        above: dict[str, list[str]] = {}
        for name in levels:
            if baselines := judged.not_beaten(name):
                above.setdefault(" and ".join(baselines), []).append(name)
        said += "".join(f"; not better than {words}: {', '.join(names)}" for words, names in above.items())
        lines = [f"On {judged.dataset.name}{counted}, {said}."]
        # At the same number of sent bytes, the order may be another
        if self.about_bytes:
            most, verdicts = judged.at_equal_bytes()
            if verdicts:
                best = about_best(verdicts)
                lines.append(f"At equal bytes on {judged.dataset.name}, {bytes_of(most)} sent by all clients, {best}.")
        if order := row_order_of(judged):
            name = judged.dataset.name
            both = 0 < len(self._alone) < len(self.plan.all_methods)
            lines.append(about_alone(name, order) if both else f"{name}: {order}.")
        return lines

    @property
    def _alone(self) -> list[str]:
        """Names of the methods whose clients learn alone."""
        return [method.name for method in self.plan.all_methods if "learners=alone" in method.words]

    @property
    def about_bytes(self) -> bool:
        """Whether the question is about bytes: it names them, or the budget limits them."""
        limited = any(name.endswith(("_bytes", "_scalars")) for name in self.plan.budget)
        return limited or BYTES.search(self.plan.question) is not None

    def brief_answer(self, dataset: str) -> str:
        """The best method on a data set and those not distinguished from it; empty if nothing is judged yet."""
        verdicts = self.verdicts.get(dataset, [])
        if not self.plan.planned:
            return next((self._said_on(one) for one in self.judged if one.dataset.name == dataset), "").partition("; ")[
                0
            ]
        decided = sum(one.outcome != CANNOT_TELL for one in verdicts)
        return f"{decided} of {count_of(len(verdicts), 'pair')} decided" if verdicts else ""

    def _said_on(self, judged: Judged) -> str:
        """The best method on a data set, or the only one that ended in all seeds; empty if nothing is judged yet."""
        there = [name for name, notes in judged.notes.items() if None not in notes and len(notes)]
        ended = [name for name in there if np.isfinite(judged.errors(name)).all()]
        if len(ended) > 1 or len(there) < len(judged.notes):
            return self._sentences_said(self.verdicts.get(judged.dataset.name, []))
        lost = [f"{name} in {sum(judged.failures_by_reason(name).values())}" for name in there if name not in ended]
        others = f"failed: {', '.join(lost)} of {count_of(judged.seeds, 'seed')}"
        return f"only {ended[0]} ended in all seeds; {others}" if ended else f"no method ended in all seeds; {others}"

    def _sentences_said(self, verdicts: Sequence[PairVerdict]) -> str:
        if self.plan.planned:
            return "; ".join(one.brief for one in verdicts)
        return about_best(verdicts, self._names)

    @property
    def details(self) -> list[tuple[str, list[str]]]:
        """The verdict of every pair in words, by data set."""
        in_order = {one.dataset.name for one in self.judged if row_order_of(one)}
        found = []
        for name, some in self.verdicts.items():
            mixed = [name in in_order and (one.a in self._alone) != (one.b in self._alone) for one in some]
            words = [f"{one.words}{', on rows in file order' * how}." for one, how in zip(some, mixed, strict=True)]
            found.append((name, [*words, *filter(None, [about_power(some)])]))
        return found

    @property
    def notes(self) -> list[str]:
        """Notes for the reader: failures, missing comparisons, and missing corrections."""
        # What a reader must know: what is missing, what deviates from the plan, and what is not compared
        said = []
        if not self.finished:
            said.append("The study has not ended: this is the result of the finished runs.")
        if self.plan.once:
            said.append("One search for all seeds: verdicts are about the values that it found, not about methods.")
        said += [f"Deviation from the registered plan: {one}." for one in plan_deviations(self.plan)]
        for method, learners in product(self.plan.methods, self.plan.beside):
            if learners != "mean" and (why := why_not(learners, class_of(method, self.plan.folders))):
                said.append(f"{method.name} ({learners}) is left out: {why}.")
        for one in self.judged:
            said += [f"{one.dataset.name}: {why}." for why in one.refused]
            said += [
                f"{name} on {one.dataset.name} is judged by {metric}, not by {one.metric}, so it is not compared."
                for name, metric in one.other_metrics.items()
            ]
        return [*said, *self.failures]

    @property
    def failures(self) -> list[str]:
        """A line for each method, data set and reason of failed judged runs."""
        said = []
        for judged_set in self.judged:
            for method in judged_set.notes:
                for reason, number in judged_set.failures_by_reason(method).items():
                    low, high = wilson_interval(number, judged_set.seeds)
                    rate = f"{number} of {judged_set.seeds} seeds [{100 * low:.0f} %, {100 * high:.0f} %]"
                    said.append(f"{method} failed on {judged_set.dataset.name} in {rate}: {reason}.")
        return said

    @property
    def unit(self) -> str:
        """The claim, the seeds, and the correction of verdicts, for captions; methods.tex describes the test."""
        plan = self.plan
        search = "one search for all" if plan.once else "each with its own search"
        looks = f"; {looks_of(self)}" * bool(plan.looks)
        over = f", and for those over {LEAST_DATA_SETS} or more data sets" if self.over else ""
        level = f"Level: five per cent for the pairs of each data set{over}, not for all. {self.adjusted}."
        return f"Claim: {CLAIMS[plan.claim]}. {self.dealt} {plan.seeds} seeds, {search}{looks}. {level}"

    @property
    def dealt(self) -> str:
        """A sentence on how rows were dealt, for captions."""
        return how_dealt(self.plan, [one.dataset for one in self.judged] or self.plan.datasets)

    @property
    def adjusted(self) -> str:
        """The margin, and what is adjusted for the number of pairs."""
        how = ADJUSTED.replace("Holm", "Bonferroni") if self.plan.looks else ADJUSTED
        return f"The margin is {100 * self.plan.margin:g} %; {how}"


def looks_of(answer: StudyAnswer) -> str:
    """A clause on the looks at which data sets ended, in a study with several looks; otherwise empty."""
    looks = answer.plan.looks
    if not looks:
        return ""
    ended = ", ".join(f"{one.dataset.name} after {one.seeds}" for one in answer.judged)
    levels = ", ".join(f"{100 * LOOKS[look]:g} %" for look in looks)
    when = ", ".join(map(str, looks))
    return f"a data set ends after {when} seeds if all its pairs are decided, at levels {levels} over pairs ({ended})"


def factors_of(answer: StudyAnswer) -> str:
    """Size of the rows' part of the variance, for each data set; empty if the variance has no such part."""
    said = []
    for name, verdicts in answer.verdicts.items():
        if factors := [one.difference.factor for one in verdicts if one.difference.blocks]:
            ends = dict.fromkeys(f"{end:.1f}" for end in (min(factors), max(factors)))
            said.append(f"{' to '.join(ends)} ({name})")
    return f"{', '.join(said)} times as large as if rows were independent" if said else ""


def answer_lines(answer: StudyAnswer) -> list[str]:
    """The question and its answer, for a terminal."""
    question = answer.plan.question
    return [question, *(f"  {one}" for one in answer.sentences)] if question else answer.sentences


def pair_lines(answer: StudyAnswer) -> list[str]:
    """The verdicts of all pairs and the notes, for a terminal; if there are many pairs, the name of their file."""
    number = sum(map(len, answer.verdicts.values()))
    said = [f"Every two methods. Claim: {CLAIMS[answer.plan.claim]}. {answer.adjusted}."]
    if number > MOST_PAIRS:
        said = [f"Every two methods: {number} pairs are in differences.csv and on the page."]
    else:
        for name, some in answer.details:
            said += [f"{name}:", *(f"  {one}" for one in some)]
    return [*(said if number else []), *([""] if answer.notes else []), *answer.notes]
