"""The jobs of a study: a search of one method on one data set in one seed, or the judged run.

Jobs share only the study's folder. A finished job leaves a note there, and is not done again.

For example, a study of 3 methods on 2 data sets in 20 seeds has 3 x 2 x 20 = 120 searches and 120 judged runs. A search
tries values of the method's keys on one half of the rows, and the judged run uses the best ones on the other half. On a
data set with 10,000 rows, in which each seed has its own search, seed 7 gets its own *portion*, 500 rows; 250 of them
are for its search, and 250 for its judged run. If half of a portion has too few rows, all seeds share the rows, which
are dealt anew to the two sides in each seed, as *blocks* of neighbouring rows.

The searches are in *waves*: if more than a third of the searches of wave 0 end at one end of a key's range, wave 1
repeats all searches in a range that is wider there, and wave 2 once more. `Job.words` are the words of a job's run,
`Job.do` does it, `spaces_of` are the ranges of a wave, and `rows_of` names the rows of a side.
"""

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.basics.files import CannotWriteError, write_text
from fkl.config import digest
from fkl.config.loading import Run
from fkl.data.baselines import blown_up
from fkl.data.dealt_rows import in_part, one_in
from fkl.engines.base import worse_than_zero
from fkl.report import draw_figures
from fkl.runs.folder import read_summary
from fkl.runs.metrics import main_metric
from fkl.runs.play import execute_run
from fkl.runs.prepare import prepare_run
from fkl.study.plan import Plan, PlannedPart
from fkl.study.search import as_words, best_of, limited_to, print_nothing, require_within, run_search
from fkl.study.space import Range
from fkl.tasks.task import Values, has_drawn_samples, read_table, whole_table

SEARCH_SEEDS = 1_000_000
"""Added to the seed of a search, so its features and order differ from those of judged runs."""
PILOT_SEEDS = 500_000
"""Added to the seeds of a pilot, so they differ from those of the study."""
PORTIONS = 10
"""Minimum number of seeds for disjoint portions of the data."""
WIDER = 1 / 3
"""A range is widened if more than this share of the searches finds a value at its end."""
MOST_WAVES = 3
"""Maximum number of waves of searches; the later two are in wider ranges."""
NOTES = "jobs"
"""Folder of the notes."""
OUTPUTS = "paths.outputs="
"""Word with a run's folder, which does not affect its numbers."""
ERRORS_AS_MSE = ("mse", "train_mse", "test_mse")

_ends: dict[tuple[Plan, PlannedPart, PlannedPart, int], list[tuple[str, str]]] = {}
"""Results of `ends_of` for finished waves."""


@dataclass(frozen=True)
class StudyJob:
    """One search, or one judged run.

    Parameters
    ----------
    plan : Plan
    dataset, method : Part
    seed : int
    wave : int or None
        Wave of a search: 0, then 1 and 2 in wider ranges. None for the judged run.
    """

    plan: Plan
    dataset: PlannedPart
    method: PlannedPart
    seed: int
    wave: int | None = None

    @property
    def file(self) -> Path:
        """File of its note. Its name does not depend on display names, which may change and contain any letters."""
        # The choices make the name readable, and the hash of the words makes it unique
        stage = "judged" if self.wave is None else f"search{self.wave}"
        words = self.plan.words_of(self.dataset, self.method)
        which = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:10]
        choices = (word.partition("=")[2] for word in words if word.startswith(("algo=", "dataset=")))
        return self.plan.folder / NOTES / f"{file_slug('-'.join(choices))}-{which}-{self.seed}-{stage}.json"

    @property
    def words(self) -> tuple[str, ...]:
        """Its words for `fkl run`, without the searched values."""
        plan, of_search = self.plan, self.wave is not None
        # Seeds of a pilot differ from those of the study; with one search for all, all seeds use its values
        number = PILOT_SEEDS * plan.pilot + (0 if plan.once else self.seed)
        # Rows for this side: by time, drawn anew, or one half of the blocks
        if plan.claim == "time":
            rows = "early" if of_search else "late"
        elif are_drawn(plan, self.dataset):
            rows = "all"  # drawn for this seed only; its search draws other rows
        else:
            rows = rows_of(plan, self.dataset, "tune" if of_search else "judge", number)
        # A run on a portion has as many clients and rounds as one on half of the rows
        sizes = sizes_of_half(plan, self.dataset) if "_of_" in rows or "_one_in_" in rows else ()
        # Search and judged run have different seeds, so nothing is tuned to random features or the order of rows
        seed = self.seed + PILOT_SEEDS * plan.pilot + SEARCH_SEEDS * of_search
        ours = ("replicates=1", f"seed={seed}", f"rows={rows}", "figures=none", f"{OUTPUTS}{plan.folder}")
        return (*plan.words_of(self.dataset, self.method), *sizes, *ours)

    @cached_property
    def spaces(self) -> dict[str, Range]:
        """The search space."""
        return spaces_of(self.plan, self.dataset, self.method, self.wave or 0)

    @property
    def values(self) -> dict[str, Any] | None:
        """Values that the last search of this seed found; None if all its trials failed."""
        # The search of this seed, or the only one
        number = 0 if self.plan.once else self.seed
        wave = last_wave(self.plan, self.dataset, self.method)
        note = StudyJob(self.plan, self.dataset, self.method, number, wave).note
        return None if note is None else note["best"]

    @property
    def _usual_reason(self) -> str:
        """The most frequent reason why trials of its last search failed, after a colon."""
        number = 0 if self.plan.once else self.seed
        note = StudyJob(
            self.plan, self.dataset, self.method, number, last_wave(self.plan, self.dataset, self.method)
        ).note
        reasons = [trial["reason"] for trial in (note["trials"] if note else []) if trial["reason"]]
        return f": {max(dict.fromkeys(reasons), key=reasons.count)}" if reasons else ""

    @property
    def key(self) -> str:
        """Hash of everything that decides its result."""
        # Code, data, words, budget and time limit; then what the search found, or where it searches
        code = *code_and_data(self.plan, self.dataset, self.method), digest.of_files("study/search.py")
        words = (word for word in self.words if not word.startswith(OUTPUTS))
        decisive: list[Any] = [*code, *words, self.plan.budget, self.plan.limit_s]
        if self.wave is None:
            decisive.append(self.values)
        else:
            decisive += [{key: str(one) for key, one in self.spaces.items()}, self.plan.trials_each]
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:12]

    @property
    def note(self) -> dict[str, Any] | None:
        """The note of the finished job; None if it has not ended, or if the note is not its own."""
        try:
            note = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return note if isinstance(note, dict) and note.get("key") == self.key else None

    def do_job(self) -> None:
        """Do the job, and write its note."""
        # The note is written once at the end, so a job that was interrupted is done again
        start = time.time()
        result = self._judge_run() if self.wave is None else self._search_keys()
        about = {"dataset": self.dataset.name, "method": self.method.name, "seed": self.seed, "key": self.key}
        note = {**about, **result, "seconds": round(time.time() - start, 3)}
        write_text(self.file, json.dumps(note, indent=1) + "\n")

    def _search_keys(self) -> dict[str, Any]:
        plan = self.plan
        trials = run_search(plan, self.words, self.spaces, self.seed)
        best = best_of(trials)
        space = {key: str(one) for key, one in self.spaces.items()}
        return {"stage": "search", "wave": self.wave, "space": space, "best": best, "trials": trials}

    def _judge_run(self) -> dict[str, Any]:
        values, plan = self.values, self.plan
        result: dict[str, Any] = {"stage": "judged", "values": values, "error": None, "state": "failed", "reason": ""}
        # The search failed, so there is nothing to judge
        if values is None:
            return {**result, "reason": f"all trials of its search failed{self._usual_reason}"}
        # Run with the values that were found; an error of the method is a result
        words = (*self.words, *as_words(values))
        run = self.plan.checked_run(words)
        try:
            with limited_to(plan.limit_s), print_nothing():
                execute_run(run, draw_figures, progress=False)
        except CannotWriteError:  # a machine error is not a failure of the method
            raise
        except FklError as error:
            return {**result, "reason": str(error)}
        # The error and the other columns of the run's summary
        summary = read_summary(run.folder)
        metric = main_metric(summary)
        columns = {name: float(values[0]) for name, values in summary.items() if name != "replicate"}
        result |= {"metric": metric, "folder": run.folder.name, "digest": run.digest, "summary": columns}
        # A run over the budget, or one that diverged, counts as failed
        try:
            require_within(plan.budget, columns)
            _require_learned(run, summary, metric)
        except FklError as error:
            return {**result, "reason": str(error)}
        return {**result, "state": "finished", "error": float(columns[metric])}


def _require_learned(run: Run, summary: Values, metric: str) -> None:
    """Raise an error for a finite error that is as large as that of a diverged run."""
    if not math.isfinite(summary[metric][0]) or blown_up(summary).any():
        raise FklError(f"it diverged: {metric} {summary[metric][0]:.3g}")
    if metric in ERRORS_AS_MSE:
        with print_nothing():
            targets = prepare_run(run).task.targets
        if why := worse_than_zero(targets, summary[metric]):
            raise FklError(f"it diverged: {why}")


def file_slug(name: str) -> str:
    """A name as part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def spaces_of(plan: Plan, dataset: PlannedPart, method: PlannedPart, wave: int) -> dict[str, Range]:
    """Ranges of a wave of searches: wider at an end, if possible, at which more than a third of the last wave ended."""
    spaces = {**plan.search_space(dataset, method)}
    for earlier in range(wave):
        for key, end in ends_of(plan, dataset, method, earlier):
            spaces[key] = plan.widen_range(dataset, method, key, spaces[key], end) or spaces[key]
    return spaces


def ends_of(plan: Plan, dataset: PlannedPart, method: PlannedPart, wave: int) -> list[tuple[str, str]]:
    """Keys, with the ends of their ranges at which more than a third of the searches of a wave ended.

    An end that is the key's own limit, such as 1 for a share, is none.
    """
    known = plan, dataset, method, wave
    if known not in _ends:
        # Where the searches of this wave ended, counted by key and end
        searches = plan.searches[: plan.stops[0]]  # later seeds use the ranges found by these
        notes = [StudyJob(plan, dataset, method, number, wave).note for number in searches]
        spaces = spaces_of(plan, dataset, method, wave)
        best = [value for note in notes if note is not None for value in (note["best"] or {}).items()]
        ends = [(key, end) for key, value in best if (end := spaces[key].end_of(value))]
        # Ends that are frequent, and that can be moved
        moved_ends = [
            (key, end)
            for key, end in dict.fromkeys(ends)
            if ends.count((key, end)) > WIDER * len(searches)
            and (spaces[key].values or plan.widen_range(dataset, method, key, spaces[key], end) is not None)
        ]
        # A wave that is not complete may still change, so it is not remembered
        if None in notes:
            return moved_ends
        _ends[known] = moved_ends
    return _ends[known]


def last_wave(plan: Plan, dataset: PlannedPart, method: PlannedPart) -> int:
    """Number of the wave whose values are judged: the first wave after which no range is widened."""
    for wave in range(MOST_WAVES - 1):
        if spaces_of(plan, dataset, method, wave + 1) == spaces_of(plan, dataset, method, wave):
            return wave
    return MOST_WAVES - 1


def searched_space(plan: Plan, dataset: PlannedPart, method: PlannedPart) -> dict[str, Range]:
    """Ranges whose values are judged, those of the last wave."""
    return spaces_of(plan, dataset, method, last_wave(plan, dataset, method))


def judged_jobs(plan: Plan, dataset: PlannedPart, seeds: Iterable[int] | None = None) -> list[StudyJob]:
    """Jobs for the judged runs on a data set, in these seeds or in all."""
    seeds = range(plan.seeds) if seeds is None else seeds
    return [StudyJob(plan, dataset, method, seed) for seed in seeds for method in plan.all_methods]


def words_to_try(plan: Plan, dataset: PlannedPart) -> tuple[str, ...]:
    """Words of a run on a data set, for inspecting the data."""
    method = plan.methods[0]
    return (*plan.words_of(dataset, method), *plan.words_of_middles(dataset, method))


@cache
def code_and_data(plan: Plan, dataset: PlannedPart, method: PlannedPart) -> tuple[str, ...]:
    """Hashes of the code (fkl's and the user's) and of the data files of a method's runs on a data set."""
    return tuple(
        plan.checked_run((*plan.words_of(dataset, method), *plan.words_of_middles(dataset, method))).parts.values()
    )


@cache
def are_drawn(plan: Plan, dataset: PlannedPart) -> bool:
    """Whether each seed draws its own rows, as for simulated data, so seeds share no rows."""
    run = plan.checked_run((*words_to_try(plan, dataset), "rows=all"))
    if not has_drawn_samples(run):
        return False
    with print_nothing():
        first_table, second_table = (read_table(run, np.random.default_rng(seed)) for seed in (0, 1))
    return not np.array_equal(first_table.y, second_table.y)


@cache
def rows_of_all(plan: Plan, dataset: PlannedPart) -> int:
    """Number of rows of a data set; 0 if each seed draws its own."""
    if are_drawn(plan, dataset):
        return 0
    with print_nothing():
        return len(whole_table(plan.checked_run(words_to_try(plan, dataset)), np.random.default_rng(0)).y)


@cache
def portions_of(plan: Plan, dataset: PlannedPart) -> int:
    """Number of disjoint portions of a data set, one for each seed; 0 if seeds share rows.

    The data are divided into portions if the claim is about rows, each seed has its own search, and half of a portion
    has enough rows for a run.
    """
    # Seeds share rows in other claims, with one search, or where each seed draws its rows
    if plan.claim != "rows" or plan.once or plan.seeds < PORTIONS or are_drawn(plan, dataset):
        return 0
    # Portions are possible if a seed's share of the rows has as many rows as a run reads from half of them all
    run = plan.checked_run((*words_to_try(plan, dataset), "replicates=1", "rows=judge_0"))
    with print_nothing():
        left_out = getattr(prepare_run(run).problem, "rows_left_out", 0)
        rows = len(read_table(run, np.random.default_rng(0)).y)
    return plan.seeds if left_out and rows // plan.seeds >= rows - left_out else 0


def rows_of(plan: Plan, dataset: PlannedPart, side: str, number: int) -> str:
    """Name of the rows that a seed uses for a side, "tune" or "judge".

    If the partition would read the same part of these rows in every seed, the rows are blocks drawn from all of them.
    """
    portion = f"{number}_of_{portions}" if (portions := portions_of(plan, dataset)) else f"{number}"
    rows = f"{side}_{portion}"
    return rows if (read := _rows_always_read(plan, dataset)) is None else one_in(rows, *read)


def draws_blocks(plan: Plan, dataset: PlannedPart) -> bool:
    """Whether a run reads blocks drawn from all of its rows."""
    return plan.claim != "time" and not are_drawn(plan, dataset) and "_one_in_" in rows_of(plan, dataset, "judge", 0)


@cache
def _rows_always_read(plan: Plan, dataset: PlannedPart) -> tuple[NDArray[np.int64], int | NDArray[np.int64]] | None:
    """Group of each row, and number of rows that a run reads; None if seeds read different rows of a part.

    A partition such as iid reads the first of the rows that it gets, in every seed; by_site the first of each group.
    """
    # Two seeds show whether all of them read the same rows of a part
    read = []
    for seed in (0, 1):
        words = (*words_to_try(plan, dataset), "replicates=1", f"seed={seed}", "rows=judge_0")
        run = plan.checked_run(words)
        with print_nothing():
            problem = prepare_run(run).problem
        if not getattr(problem, "rows_left_out", 0):
            return None
        read.append(np.unique(problem.row[problem.present] if problem.row.ndim == 2 else problem.row))
    if not np.array_equal(read[0], read[1]):
        return None
    # Either the first rows of the part, or the first rows of each group
    group = whole_table(run, np.random.default_rng(0)).group
    if read[0][-1] == np.flatnonzero(in_part(run.settings.rows, group))[len(read[0]) - 1]:
        return group, len(read[0])
    return group, np.bincount(group[read[0]], minlength=group.max() + 1)


@cache
def sizes_of_half(plan: Plan, dataset: PlannedPart) -> tuple[str, ...]:
    """Words that give a run on a portion the same clients and rounds as a run on half of the rows."""
    words = words_to_try(plan, dataset)
    partition = plan.config(words)["partition"]
    half = plan.checked_run((*words, "rows=judge_0")).resolved["partition"]
    return tuple(f"partition.{key}={half[key]}" for key, value in partition.items() if "full_or_half" in str(value))
