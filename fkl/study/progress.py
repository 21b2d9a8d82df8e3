"""Progress and forecast of a study: `fkl study --status` and `--dry-run`."""

from contextlib import suppress
from dataclasses import replace
from time import perf_counter

import numpy as np

from fkl.basics.errors import FklError, count_of, require
from fkl.engines.base import Experiment
from fkl.runs.forecast import Forecast, forecast_run
from fkl.runs.metrics import defining_keys, keys_of_samples, main_metric
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import summary_columns
from fkl.screen.units import bytes_of, seconds_text
from fkl.statistics.power import more_seeds_will_not_tell, seeds_needed, upper_limit
from fkl.study.answer import StudyAnswer
from fkl.study.dealt import how_dealt
from fkl.study.jobs import MOST_WAVES, StudyJob, are_drawn, draws_blocks, portions_of
from fkl.study.plan import SAME_ERROR, Plan, PlannedPart
from fkl.study.results import study_stages
from fkl.study.search import error_of_trial, limited_to, print_nothing

EFFECTS = (0.02, 0.05, 0.10)
MOST_LINES, MOST_REASONS = 8, 3
"""Maximum numbers of data sets and of failures in a status."""
ONE_ERROR = "errors of one kind on a data set; judge these methods in a study each"
HALF = "a run of a study has half of the rows or fewer, because the others are for tuning"
NO_RANGES = "none, so it is not tuned; tune.space, or tune.yaml in its config_dir, gives ranges"
SHORT_S = 5.0
"""A run whose rounds take at most this many seconds is done once for the forecast."""
MANY = 1000
"""Larger numbers of seeds are only shown as more than this."""


def check_study(plan: Plan) -> None:
    """Refuse a study with a run that cannot begin, because its words are not a configuration or do not fit the data.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the method and the data set.
    """
    # Prepare one search and one judged run of each pair, without running them
    for dataset in plan.datasets:
        judged_by: dict[str, str] = {}
        for method in plan.all_methods:
            for job in (StudyJob(plan, dataset, method, 0, 0), StudyJob(plan, dataset, method, 0)):
                if job.note is not None:  # it has ended
                    continue
                try:
                    experiment, columns = _first_columns(plan, (*job.words, *plan.words_of_middles(dataset, method)))
                    metric = main_metric(columns)
                    if job.wave is not None:
                        _require_one_error(job, metric)
                    level = getattr(experiment.algorithm, "level", None) if metric == "pinball" else ""
                    judged_by[method.name] = f"{metric} of level {level}" if level else metric
                    for name in plan.budget:
                        require(name in columns, "budget", name, f"a column of its summary.csv: {', '.join(columns)}")
                except FklError as error:
                    more = [HALF] * (" rows" in str(error) and not are_drawn(plan, dataset))
                    raise FklError(f"{method.name} on {dataset.name}: {error}", help=[*error.help, *more]) from None
        # Pinball losses of different levels cannot be compared
        kinds = {*judged_by.values()}
        said = ", ".join(f"{name}: {kind}" for name, kind in judged_by.items())
        require(len(kinds) < 2 or not any("pinball" in kind for kind in kinds), "methods", said, ONE_ERROR)


def _first_columns(plan: Plan, words: tuple[str, ...]) -> tuple[Experiment, list[str]]:
    """The experiment of these words, and the columns of its summary, from its first round."""
    with print_nothing():
        experiment = prepare_run(plan.checked_run(words))
        return experiment, summary_columns(experiment)


def _require_one_error(job: StudyJob, metric: str) -> None:
    """Refuse a search over a key that decides what the error is: it would choose the smallest by definition."""
    words = (*job.words, *job.plan.words_of_middles(job.dataset, job.method))
    fixed = {*defining_keys(metric, job.plan.config(words)), *keys_of_samples(metric)}
    for key, space in job.spaces.items():
        names = [value for value in space.values if isinstance(value, str)]
        metrics = {main_metric(_first_columns(job.plan, (*words, f"{key}={value}"))[1]) for value in names}
        require(key not in fixed and metrics <= {metric}, f"tune.space.{key}", space, SAME_ERROR)


def dry_run(plan: Plan) -> list[str]:
    """Lines with the forecast of a study: runs, hours and disk space of the jobs that are left, and search ranges."""
    # How many runs there are, and how many of them are done
    methods, seeds = len(plan.all_methods), len(plan.searches)
    pairs = methods * len(plan.datasets)
    left = {
        (dataset, method): jobs for dataset in plan.datasets for method, jobs in _unfinished_jobs(plan, dataset).items()
    }
    searches, runs = (sum(jobs) for jobs in zip(*left.values(), strict=True))
    done = f", {pairs * seeds - searches} of them done" * (searches < pairs * seeds)
    judged = f", {pairs * plan.seeds - runs} of them done" * (runs < pairs * plan.seeds)
    trials = {one: plan.trials_of(*one) for one in left}
    unlike = "" if min(trials.values()) > 1 else " (1 of methods without ranges)"
    lines = [
        f"{plan.file.name}: {seeds * sum(trials.values()) + pairs * plan.seeds:,} runs",
        f"  searches  {pairs * seeds}, each of {plan.trials_each} trials{unlike}{done}: {count_of(methods, 'method')}"
        f" on {count_of(len(plan.datasets), 'data set')}, " + ("one each" if plan.once else f"anew in {seeds} seeds"),
        f"  judged    {pairs * plan.seeds} runs{judged}: {plan.seeds} seeds each",
    ]
    if not searches + runs:
        return [*lines, "  left      nothing: all runs have ended"]
    # Time and disk from a forecast of each pair
    told = {one: _forecast_method(plan, *one) for one, jobs in left.items() if any(jobs)}
    total = sum(one.seconds * (left[of][0] * trials[of] + left[of][1]) for of, one in told.items())
    lines += [
        f"  time      about {seconds_text(total)} one after another"
        f"{' for the rest' * (len(told) < pairs or bool(done))}, and {MOST_WAVES} times that if ranges are too narrow",
        f"  disk      about {bytes_of(sum(one.disk * left[of][1] for of, one in told.items()))}",
    ]
    # Pairs that would exceed the budget
    for (dataset, method), one in told.items():
        lines += [
            f"  budget    {method.name} on {dataset.name} sends about {name}={one.columns[name]:.3g} with the middle of"
            f" its ranges, over the budget of {most:.4g}"
            for name, most in plan.budget.items()
            if one.columns.get(name, 0) > most
        ]
    # How rows are divided, and which ranges are searched
    by_words: dict[str, list[str]] = {}
    for dataset in plan.datasets:
        by_words.setdefault(_rows_in_words(plan, dataset), []).append(dataset.name)
    lines += [f"  rows      {', '.join(names)}: {words}" for words, names in by_words.items()]
    lines.append(f"  dealt     {how_dealt(plan, plan.datasets).removeprefix('Rows were dealt by ').removesuffix('.')}")
    for method in plan.methods:
        spaces = plan.search_space(plan.datasets[0], method)
        ranges = ", ".join(f"{key} {one}" for key, one in spaces.items())
        lines.append(f"  ranges    {method.name}: {ranges or NO_RANGES}")
    return lines


def _unfinished_jobs(plan: Plan, dataset: PlannedPart) -> dict[PlannedPart, tuple[int, int]]:
    """Searches and judged runs of each method that have not ended; none if the data set ended at an early look."""
    if all(job.note for _, jobs in study_stages(plan, dataset) for job in jobs):
        return dict.fromkeys(plan.all_methods, (0, 0))
    left = {}
    for method in plan.all_methods:
        searches = [StudyJob(plan, dataset, method, number, 0) for number in plan.searches]
        runs = [StudyJob(plan, dataset, method, seed) for seed in range(plan.seeds)]
        left[method] = sum(job.note is None for job in searches), sum(job.note is None for job in runs)
    return left


def _forecast_method(plan: Plan, dataset: PlannedPart, method: PlannedPart) -> Forecast:
    """Forecast of a run; a short one is done, because most of its time is spent before and after its rounds."""
    words = (*StudyJob(plan, dataset, method, 0).words, *plan.words_of_middles(dataset, method))
    with print_nothing():
        estimate = forecast_run(plan.checked_run(words))
        if estimate.seconds > SHORT_S:
            return estimate
        begun = perf_counter()
        with suppress(FklError), limited_to(plan.limit_s):
            error_of_trial(plan, words)
    return replace(estimate, seconds=max(estimate.seconds, perf_counter() - begun))


def _rows_in_words(plan: Plan, dataset: PlannedPart) -> str:
    """Rows for tuning and judging, in words."""
    if plan.claim == "time":
        return "the first half for tuning, the second judged, without the block between them"
    if are_drawn(plan, dataset):
        return "drawn anew in each seed, for its search and for its judged run"
    if portions := portions_of(plan, dataset):
        return f"{portions} portions that share no row, half of each for tuning, half judged"
    if draws_blocks(plan, dataset):
        return "drawn blocks, half for tuning, half judged" + ", anew in each seed" * (not plan.once)
    return "half for tuning, half judged" if plan.once else "half for tuning, half judged, split again in each seed"


def seeds_wanted(answer: StudyAnswer) -> list[str]:
    """Lines with the number of seeds that each pair needs, from the upper 80 % limit of the pilot's spread."""
    # For each pair, from the pilot's spread: how many seeds show a difference of 1 %, and so on
    lines = []
    for judged_set in answer.judged:
        for (a, b), difference in judged_set.pairs.items():
            if difference.failed:
                lines.append(f"{judged_set.dataset.name}: {a} and {b}: a run failed, so the spread is unknown")
                continue
            # The upper limit of the spread, because a pilot may have seen too little
            spread = upper_limit(float(np.std(difference.d, ddof=1)), len(difference.d))
            needs = []
            # With judged rows in blocks, more seeds may not be enough
            for effect in EFFECTS:
                if difference.blocks and more_seeds_will_not_tell(difference, effect):
                    needs.append(f"{100 * effect:g} %: more rows or data sets are needed, not seeds")
                else:
                    needed = seeds_needed(spread, effect, pairs=len(judged_set.pairs))
                    needs.append(f"{100 * effect:g} %: {needed if needed <= MANY else f'more than {MANY}'} seeds")
            lines.append(f"{judged_set.dataset.name}: {a} and {b}: {'; '.join(needs)}")
    unit = "seeds of each method that show a difference of this size with a probability of 80 %"
    return [f"{unit}, from a pilot of {answer.plan.seeds}:", *lines, "The pilot's runs are not judged."]


def status_lines(answer: StudyAnswer) -> list[str]:
    """A line for each data set, with its progress or its best method; and failures. It fits a screen of 24 lines."""
    # A line for each data set: what is done, and the best method so far
    plan, lines, judged = answer.plan, [], []
    for dataset in plan.datasets:
        jobs = [job for _, some in study_stages(plan, dataset) for job in some]
        runs = [job for job in jobs if job.wave is None]
        judged += runs
        words = answer.brief_answer(dataset.name)
        if any(job.note is None for job in jobs):
            searches = [job for job in jobs if job.wave is not None]
            done = [f"{sum(job.note is not None for job in some)} of {len(some)}" for some in (searches, runs)]
            words = f"{done[0]} searches, {done[1]} judged runs" + f"; so far {words}" * bool(words)
        lines.append(f"  {dataset.name}  {words}")
    # Only as many lines as fit the screen
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"  ... and {len(lines) - MOST_LINES} data sets more"]
    reasons = answer.failures
    if len(reasons) > MOST_REASONS:
        reasons = [*reasons[:MOST_REASONS], f"... and {len(reasons) - MOST_REASONS} other failures"]
    # What to do next
    left = sum(job.note is None for job in judged)
    more = f"{left} of {len(judged)} judged runs are left: fkl study {plan.file}"
    ended = f"all {len(judged)} judged runs have ended; for the full answer: fkl study {plan.file}"
    return [f"{plan.file.name}: {more if left else ended}", *lines, *reasons]
