"""Progress and forecast of a study: `fkl study --status` and `--dry-run`."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fkl.basics.errors import FklError, plural, require
from fkl.runs.forecast import Forecast, forecast
from fkl.runs.prepare import prepare
from fkl.runs.tables import summary_columns
from fkl.screen.units import bytes_of, seconds
from fkl.statistics.power import more_seeds_will_not_tell, seeds_needed, upper_limit
from fkl.study.answer import Answer
from fkl.study.jobs import MOST_WAVES, Job, are_drawn, draws_blocks, portions_of
from fkl.study.plan import Part, Plan
from fkl.study.results import stages
from fkl.study.search import quiet

EFFECTS = (0.02, 0.05, 0.10)
MANY = 1000
"""Seeds that are never played."""


def check(plan: Plan) -> None:
    """Refuse a study with a run that could not begin: its words are not a configuration, or do not fit the data.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the method and the data set.
    """
    for dataset in plan.datasets:
        for method in plan.all_methods:
            for job in (Job(plan, dataset, method, 0, 0), Job(plan, dataset, method, 0)):
                try:
                    with quiet():
                        experiment = prepare(plan.run((*job.words, *plan.middles(dataset, method))))
                        columns = summary_columns(experiment)  # of its first round
                    for name in plan.budget:
                        require(name in columns, "budget", name, f"a column of its summary.csv: {', '.join(columns)}")
                except FklError as error:
                    raise FklError(f"{method.name} on {dataset.name}: {error}", help=error.help) from None


def dry_run(plan: Plan) -> list[str]:
    """Lines with the forecast of a study: its runs, hours and disk, and its search space."""
    found = [_forecast(plan, dataset, method) for dataset in plan.datasets for method in plan.all_methods]
    searches, judged = len(plan.searches), plan.seeds
    trials = searches * plan.trials_each
    pairs = len(plan.all_methods) * len(plan.datasets)
    total = sum(one.seconds * (trials + judged) for one in found)
    lines = [
        f"{plan.file.name}: {pairs * (trials + judged):,} runs",
        f"  searches  {pairs * searches} of {plan.trials_each} trials: {len(plan.all_methods)} methods on"
        f" {plural(len(plan.datasets), 'data set')}, " + ("one each" if plan.once else f"anew in {searches} seeds"),
        f"  judged    {pairs * judged} runs, {plan.seeds} seeds each",
        f"  time      about {seconds(total)} one after another, {MOST_WAVES} times that where ranges are too narrow",
        f"  disk      about {bytes_of(sum(one.disk * judged for one in found))}",
        *(f"  rows      {dataset.name}: {_rows(plan, dataset)}" for dataset in plan.datasets),
    ]  # fmt: skip
    for method in plan.methods:
        spaces = plan.spaces(plan.datasets[0], method)
        lines.append(f"  ranges    {method.name}: {', '.join(f'{key} {one}' for key, one in spaces.items()) or 'none'}")
    return lines


def _forecast(plan: Plan, dataset: Part, method: Part) -> Forecast:
    with quiet():
        return forecast(plan.run((*Job(plan, dataset, method, 0).words, *plan.middles(dataset, method))))


def _rows(plan: Plan, dataset: Part) -> str:
    """Rows for tuning and judging, in words."""
    if plan.claim == "time":
        return "the first half is tuned on, the second judged, a block between them left out"
    if are_drawn(plan, dataset):
        return "drawn anew in each seed, for its search and for the run that is judged"
    if portions := portions_of(plan, dataset):
        return f"{portions} portions that share no row, half of each tuned on and half judged"
    if draws_blocks(plan, dataset):
        return "drawn blocks, half tuned on, half judged" + ", anew in each seed" * (not plan.once)
    return "one half tuned on, one judged" if plan.once else "half tuned on and half judged, dealt anew in each seed"


def seeds_wanted(answer: Answer) -> list[str]:
    """Lines with the seeds that each pair needs, from the upper 80 % limit of a pilot's spread."""
    lines = []
    for one in answer.judged:
        for (a, b), difference in one.pairs.items():
            if difference.failed:
                lines.append(f"{one.dataset.name}: {a} and {b}: a run failed; no spread is known")
                continue
            spread = upper_limit(float(np.std(difference.d, ddof=1)), len(difference.d))
            told = []
            for effect in EFFECTS:
                if difference.blocks and more_seeds_will_not_tell(difference, effect):
                    told.append(f"{100 * effect:g} %: more rows or data sets are needed, not seeds")
                else:
                    needed = seeds_needed(spread, effect, pairs=len(one.pairs))
                    told.append(f"{100 * effect:g} %: {needed if needed <= MANY else f'more than {MANY}'} seeds")
            lines.append(f"{one.dataset.name}: {a} and {b}: {'; '.join(told)}")
    unit = "seeds of each method, to see so large a difference with a probability of 80 %"
    return [f"{unit}, by a pilot of {answer.plan.seeds}:", *lines, "The pilot's runs are not judged."]


def status(plan: Plan) -> list[str]:
    """Lines with the finished jobs."""
    lines, judged = [], []
    for dataset in plan.datasets:
        parts = []
        for about, jobs in stages(plan, dataset):
            notes = [job.note for job in jobs]
            judged += [job for job in jobs if job.wave is None]
            ended = [note for note in notes if note is not None]
            failed = sum(note.get("state") == "failed" for note in ended)
            parts.append(f"{len(ended)} of {len(jobs)} {about}" + (f" ({failed} failed)" if failed else ""))
        lines.append(f"{dataset.name}: {', '.join(parts)}")
    left = sum(job.note is None for job in judged)
    more = f"{left} of {len(judged)} judged runs are left: fkl study {plan.file}"
    lines.append(more if left else "all runs have ended")
    return [*lines, *failures(judged)]


def failures(jobs: Sequence[Job]) -> list[str]:
    """One line for each reason of failed judged runs."""
    noted = [(job, note) for job in jobs if (note := job.note) is not None and note["state"] == "failed"]
    reasons = Counter((job.dataset.name, job.method.name, note["reason"]) for job, note in noted)
    return [
        f"{method} on {dataset} failed in {plural(number, 'seed')}: {reason}"
        for (dataset, method, reason), number in reasons.most_common()
    ]
