"""Results of a study's judged runs: errors, failures, and the difference between every two methods."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError
from fkl.basics.files import read_arrays
from fkl.data.baselines import CONSTANTS
from fkl.runs.finished_runs import read_run
from fkl.runs.folder import find_damage
from fkl.runs.tables import LOSSES
from fkl.statistics.differences import LEAST_CLIENTS, Difference, from_clients, from_rows, from_seeds, from_time
from fkl.statistics.verdicts import CANNOT_TELL, Pair, PairVerdict, of_data_set
from fkl.study.jobs import MOST_WAVES, StudyJob, are_drawn, ends_of, judged_jobs, last_wave, portions_of, rows_of_all
from fkl.study.plan import Plan, PlannedPart

SENT = ("uplink_bytes", "link_bytes")
"""Columns of bytes sent: to a server, or from agent to agent and from party to party."""
BASELINES = (
    "mse_running_mean",
    "error_majority",
    "pinball_running_quantile",
    "test_mse_training_mean",
    "test_error_majority",
)
"""Columns of the baselines that are called "the mean"."""


@dataclass
class Judged:
    """The judged runs of one data set.

    Parameters
    ----------
    plan : Plan
    dataset : Part
    metric : str
        Column of summary.csv by which all its methods are judged.
    notes : dict of str to list
        For each method, the note of each seed's run; None for a run that has not ended.
    portions : int
        As in `fkl.study.jobs.portions_of`.
    """

    plan: Plan
    dataset: PlannedPart
    metric: str
    notes: dict[str, list[dict[str, Any] | None]]
    portions: int
    refused: list[str] = field(default_factory=list)
    """Reasons why methods could not be compared."""

    @property
    def seeds(self) -> int:
        """Number of seeds that were requested."""
        return min(map(len, self.notes.values()))

    @property
    def ended(self) -> bool:
        """Whether all runs that were requested have ended."""
        return all(None not in notes for notes in self.notes.values())

    def after(self, seeds: int) -> "Judged":
        """A copy with the runs of the first seeds only."""
        return replace(self, notes={method: notes[:seeds] for method, notes in self.notes.items()}, refused=[])

    def until_decided(self) -> "Judged":
        """A copy with the seeds requested so far; more seeds are requested until all pairs are decided."""
        for seeds in self.plan.stops:
            now = self.after(seeds)
            if not now.ended or all(one.outcome != CANNOT_TELL for one in now.verdicts):
                break
        return now

    @cached_property
    def verdicts(self) -> list[PairVerdict]:
        """Verdict on each pair; with several looks, that of the first look that decides it."""
        # At each look the errors of the seeds so far; a decision is never taken back
        verdict_of: dict[Pair, PairVerdict] = {}
        for seeds in self.plan.stops:
            look = seeds if self.plan.looks else None
            now = self.after(seeds) if seeds < self.seeds else self
            for verdict in of_data_set(now.pairs, self.plan.margin, self.ends, look, self.plan.once):
                earlier = verdict_of.get((verdict.a, verdict.b))
                if earlier is None or earlier.outcome == CANNOT_TELL:
                    verdict_of[verdict.a, verdict.b] = verdict
            if seeds >= self.seeds:
                break
        return [*verdict_of.values()]

    @property
    def ends(self) -> dict[str, str]:
        """Methods with a key whose value is at the end of its range, and that key."""
        return {method.name: key for method in self.plan.all_methods for key, _ in self.at_the_end(method)[:1]}

    @property
    def methods(self) -> list[str]:
        """Methods that are judged by the metric and whose runs have ended in every seed."""
        return [
            name
            for name, notes in self.notes.items()
            if None not in notes and all(note["metric"] == self.metric for note in notes if note and note["error"])
        ]

    @property
    def other_metrics(self) -> dict[str, str]:
        """Methods that are judged by another metric, and that metric."""
        named = {
            name: {note["metric"] for note in notes if note and note["error"]} for name, notes in self.notes.items()
        }
        return {name: metrics.pop() for name, metrics in named.items() if metrics and self.metric not in metrics}

    def errors(self, method: str) -> Array:
        """(S,) Error of each seed's run, infinite if it failed."""
        notes = [note for note in self.notes[method] if note is not None]
        return np.array([np.inf if note["error"] is None else note["error"] for note in notes])

    def failures_by_reason(self, method: str) -> dict[str, int]:
        """Number of failed runs, by reason."""
        reasons: dict[str, int] = {}
        for note in self.notes[method]:
            if note is not None and note["error"] is None:
                reasons[note["reason"]] = reasons.get(note["reason"], 0) + 1
        return reasons

    def level(self, method: str) -> float:
        """The error of a method, as verdicts compare it: the log ratio of two levels is the difference of a pair.

        It is a mean over seeds. For claims about clients, and for seeds that share no rows, it is a geometric mean.
        """
        # Without all errors there is no level
        errors = self.errors(method)
        if not len(errors) or not np.isfinite(errors).all():
            return np.nan
        # The mean that fits the test: of errors, of their logarithms, or of clients' logarithms
        if self.averaged == "mean" or (errors <= 0).any():
            return float(errors.mean())
        if self.averaged == "geometric mean over clients":
            errors = self._by_site(method).mean(axis=0)
        return float(np.exp(np.log(errors).mean()))

    @cached_property
    def averaged(self) -> str:
        """Kind of mean over seeds."""
        claim = self.plan.claim
        if self.by_seed:
            return "geometric mean"
        return "geometric mean over clients" if claim == "clients" and not self._few_clients else "mean"

    @cached_property
    def _few_clients(self) -> bool:
        """Whether there are too few clients to compare methods over them."""
        ended = [name for name in self.methods if np.isfinite(self.errors(name)).all()]
        return not ended or self._by_site(ended[0]).shape[1] < LEAST_CLIENTS

    @property
    def by_seed(self) -> bool:
        """Whether errors are compared seed by seed, since seeds share no rows or the claim is about these rows."""
        claim = self.plan.claim
        return claim == "seeds" or bool(self.portions) or (claim == "rows" and are_drawn(self.plan, self.dataset))

    def first_of(self, method: str, columns: Sequence[str]) -> tuple[str, float]:
        """The first of these columns that a method's summary has, and its mean; NaN if there is none."""
        values = ((name, self.mean(method, name)) for name in columns)
        return next(((name, value) for name, value in values if not np.isnan(value)), ("", np.nan))

    def below_baseline(self, method: str) -> float:
        """Share by which a method's mean error is below that of predicting the mean; NaN if it is unknown."""
        baseline = self.first_of(method, BASELINES)[1]
        return 1 - float(self.errors(method).mean()) / baseline if baseline else np.nan

    def not_beaten(self, method: str) -> list[str]:
        """Predictions without learning whose error a method's is not below, in words."""
        error = float(self.errors(method).mean())
        return [words for name, words in CONSTANTS.get(self.metric, {}).items() if self.mean(method, name) <= error]

    @cached_property
    def rows_read(self) -> tuple[int, int]:
        """Number of judged rows of a seed, and of all rows; 0 if it is unknown."""
        for method in self.methods:
            for note in self.notes[method]:
                if note is not None and note["error"] is not None:
                    file = self.plan.folder / "runs" / note["folder"] / LOSSES
                    return len(read_arrays(file)["row"]) if file.exists() else 0, rows_of_all(self.plan, self.dataset)
        return 0, 0

    def at_equal_bytes(self) -> tuple[float, list[PairVerdict]]:
        """Verdicts on the errors so far when each method had sent as many bytes as the most frugal one sends in all.

        Only for methods that send bytes; none if fewer than two do, or all send the same.
        """
        # Methods that have ended, and the bytes that each has sent
        ended = [name for name in self.methods if np.isfinite(self.errors(name)).all()]
        sent = {name: self.first_of(name, SENT) for name in ended}
        column = {name: found for name, (found, value) in sent.items() if value > 0}
        if len(column) < 2 or len({sent[name][1] for name in column}) < 2:
            return 0.0, []
        # The smallest total; the others are read at this point of their runs
        most = min(sent[name][1] for name in column)
        errors = {}
        for name, which in column.items():
            so_far = []
            for folder in self._folders_of_runs(name):
                assert folder is not None
                table = pd.read_csv(folder / "rounds.csv")
                within = table[table[which] <= most] if self.metric in table and which in table else table[:0]
                so_far.append(float(within[self.metric].iloc[-1]) if len(within) else np.nan)
            if np.isfinite(so_far).all():
                errors[name] = np.array(so_far)
        # Pairs with an error at that point in all seeds
        pairs = {(a, b): from_seeds(errors[a], errors[b]) for a, b in combinations(errors, 2) if len(self.notes[a]) > 1}
        return most, of_data_set(pairs, self.plan.margin, self.ends, once=self.plan.once)

    def mean(self, method: str, column: str) -> float:
        """Mean of a column of the summaries over all seeds; NaN if a run failed, because the others are biased."""
        values = [
            np.nan if note["error"] is None else note["summary"].get(column, np.nan)
            for note in self.notes[method]
            if note is not None
        ]
        return float(np.mean(values)) if values else np.nan

    def at_the_end(self, method: PlannedPart) -> list[tuple[str, str]]:
        """Keys whose values are still at an end of their range, "low" or "high", after it was widened if possible."""
        return ends_of(self.plan, self.dataset, method, last_wave(self.plan, self.dataset, method))

    @cached_property
    def pairs(self) -> dict[tuple[str, str], Difference]:
        """The difference between every two methods."""
        # Pairs that were planned; a pair that cannot be compared is noted
        difference_of = {}
        ended = self.methods
        for a, b in self.plan.pairs:
            if a not in ended or b not in ended:
                continue
            try:
                difference_of[a, b] = self._difference_between(a, b)
            except FklError as error:
                self.refused.append(f"{a} and {b} are not compared: {error}")
        return difference_of

    def _difference_between(self, a: str, b: str) -> Difference:
        # How the errors are paired: by seed, client, round or row
        claim = self.plan.claim
        errors_a, errors_b = self.errors(a), self.errors(b)
        failed = not np.isfinite([errors_a, errors_b]).all()  # if so, ranks over seeds decide
        if self.by_seed or failed:
            return from_seeds(errors_a, errors_b, "portion" if self.portions else "seed")
        if claim == "clients":
            return from_clients(self._by_site(a), self._by_site(b))
        if claim == "time":
            return from_time(self._by_round(a), self._by_round(b))
        # Both must have judged the same rows
        (losses_a, rows), (losses_b, others) = self._losses_of_rows(a), self._losses_of_rows(b)
        if rows.shape != others.shape or not np.array_equal(rows, others):
            raise FklError("they were judged on different rows")
        return from_rows(losses_a, losses_b, rows)

    def _losses_of_rows(self, method: str) -> tuple[Array, NDArray[np.int64]]:
        """(S, J) The loss of each judged row in the order of row numbers, and these numbers."""
        # Rows and losses of each seed, in the order of row numbers
        found = []
        for folder in self._folders_of_runs(method):
            if folder is None:
                found.append((np.zeros(0, np.int64), np.zeros(0)))
                continue
            arrays = read_arrays(folder / LOSSES)
            order = np.argsort(arrays["row"])
            found.append((arrays["row"][order], arrays["loss"][order]))
        # Seeds may have different numbers of rows, so the arrays are padded
        most = max((len(rows) for rows, _ in found), default=0)
        losses, numbers = np.full((len(found), most), np.nan), np.zeros((len(found), most), np.int64)
        for seed, (rows, values) in enumerate(found):
            numbers[seed, : len(rows)], losses[seed, : len(rows)] = rows, values
        return losses, numbers

    def _by_site(self, method: str) -> Array:
        """(S, K) Mean error of each site's clients."""
        return self._of_tables(method, "clients", lambda table: table.groupby("site")[self.metric].mean())

    def _by_round(self, method: str) -> Array:
        """(S, T) Mean loss of each round's predictions, from the means of all predictions so far."""
        # Means so far to sums so far, and their differences to single rounds
        clients = iter([folder for folder in self._folders_of_runs(method) if folder is not None])

        def of_round(table: pd.DataFrame) -> "pd.Series[float]":
            folder = next(clients)
            config = read_run(folder, ("config.yaml",)).config
            if config.get("participation") or (config.get("network") or {}).get("deadline_s"):
                raise FklError("the claim is about time, but clients miss rounds, so the error of a round is unknown")
            rounds = pd.read_csv(folder / "clients.csv")["rounds"].to_numpy()
            made = (rounds >= table["round"].to_numpy()[:, None]).sum(axis=1)  # ended clients stay absent
            so_far = table[self.metric].to_numpy() * np.cumsum(made)
            return pd.Series(np.diff(so_far, prepend=0.0) / made)

        return self._of_tables(method, "rounds", of_round)

    def _of_tables(self, method: str, name: str, read: Callable[[pd.DataFrame], "pd.Series[float]"]) -> Array:
        rows = [
            None if folder is None else read(pd.read_csv(folder / f"{name}.csv")).to_numpy(np.float64)
            for folder in self._folders_of_runs(method)
        ]
        length = max((len(row) for row in rows if row is not None), default=0)
        return np.array([np.full(length, np.inf) if row is None else row for row in rows])

    def _folders_of_runs(self, method: str) -> list[Path | None]:
        """Folder of each seed's finished run; None if it failed."""
        # A failed run has no folder; a damaged one must be run again
        folders: list[Path | None] = []
        part = next(one for one in self.plan.all_methods if one.name == method)
        for note in self.notes[method]:
            assert note is not None
            if note["error"] is None:
                folders.append(None)
                continue
            folder = self.plan.folder / "runs" / note["folder"]
            if (why := find_damage(folder)) is not None:
                file = StudyJob(self.plan, self.dataset, part, note["seed"]).file
                raise FklError(f"{folder}: {why}; delete {file} to run it again")
            folders.append(folder)
        return folders


def judged_results(plan: Plan) -> list[Judged]:
    """Results so far, in the order of data sets, without data sets that have no finished run."""
    return [one for dataset in plan.datasets if (one := judged_on(plan, dataset)) is not None]


def judged_on(plan: Plan, dataset: PlannedPart) -> Judged | None:
    """Results so far on a data set; None if no run has ended."""
    notes: dict[str, list[dict[str, Any] | None]] = {method.name: [] for method in plan.all_methods}
    for job in judged_jobs(plan, dataset):
        notes[job.method.name].append(job.note)
    ended = [note for some in notes.values() for note in some if note]
    if not ended:
        return None
    metrics = [note["metric"] for note in ended if "metric" in note] or ["error"]
    metric = max(dict.fromkeys(metrics), key=metrics.count)
    return Judged(plan, dataset, metric, notes, portions_of(plan, dataset)).until_decided()


def study_stages(plan: Plan, dataset: PlannedPart) -> Iterator[tuple[str, list[StudyJob]]]:
    """The jobs on one data set, in stages; each stage needs the notes of the previous one."""
    # Between two looks: all waves of searches, then the judged runs, then the decision to go on
    begin = 0
    for end in plan.stops:
        searches = plan.searches[begin:end]
        for wave in range(MOST_WAVES):
            # Later seeds are searched only once, in the ranges found by the first seeds
            last = {one: last_wave(plan, dataset, one) for one in plan.all_methods}
            methods = [one for one, its in last.items() if (its == wave if begin else wave == 0 or its >= wave)]
            if methods and searches:
                about = "searches" if wave == 0 else "searches in wider ranges"
                yield about, [StudyJob(plan, dataset, one, number, wave) for number in searches for one in methods]
        yield "judged runs", judged_jobs(plan, dataset, range(begin, end))
        now = judged_on(plan, dataset)
        if now is None or now.seeds <= end:
            return
        begin = end
