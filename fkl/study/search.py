"""The search of one method on one data set in one seed: Optuna proposes trials, which run in this process."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from types import FrameType
from typing import Any

from fkl.basics.errors import FklError
from fkl.basics.files import CannotWriteError
from fkl.engines.base import LOOKS, Experiment
from fkl.engines.rounds import Chunk, simulate_run
from fkl.runs.metrics import main_metric
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import rounds_so_far, summary_without_comparison
from fkl.study.plan import Plan
from fkl.study.space import Range

FIRST_LOOKS = 2
"""Number of first looks at which no trial is stopped."""


class LimitError(FklError):
    """A run took longer than `limit_s`."""


class OverBudgetError(FklError):
    """A run sent more than the budget."""


def run_search(plan: Plan, words: tuple[str, ...], spaces: Mapping[str, Range], seed: int) -> list[dict[str, Any]]:
    """Run the trials of one search.

    Half of them are random; the others come from Optuna's tree-structured Parzen estimator. A failed trial counts as a
    trial with an infinite error.

    Parameters
    ----------
    plan : Plan
        Source of the number of trials, and of their limits of traffic and time.
    words : tuple of str
        Words that all trials share.
    spaces : dict of str to Range
    seed : int
        Seed of Optuna's sampler.

    Returns
    -------
    list of dict
        Values, state (finished, stopped early, failed), error, and reason of failure of each trial.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # Half of the trials are random, so the sampler has something to learn from
    blind = max(1, plan.trials_each // 2)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=blind),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=blind, n_warmup_steps=FIRST_LOOKS),
    )
    # Each key's distribution, by its range
    distributions = {key: one.distribution for key, one in spaces.items()}
    trials = []
    for _ in range(plan.trials_each if spaces else 1):  # one trial of a method that is not tuned
        # The next values, rounded as they are written
        trial = study.ask(distributions)
        values = {key: spaces[key].round_value(value) for key, value in trial.params.items()}
        start = time.monotonic()
        note: dict[str, Any] = {"values": values, "state": "finished", "error": None, "reason": ""}
        # Run it; an error is a result of the trial
        try:
            with limited_to(plan.limit_s), print_nothing():
                note["error"] = error_of_trial(plan, (*words, *as_words(values)), trial)
        except optuna.TrialPruned:
            note["state"] = "stopped early"
        except CannotWriteError:  # a machine error is not a failure of the method
            raise
        except FklError as error:
            note |= {"state": "failed", "reason": str(error)}
        # The sampler learns from each end: an error, a stop, or none
        state = optuna.trial.TrialState.PRUNED if note["state"] == "stopped early" else None
        study.tell(trial, None if state else math.inf if note["error"] is None else note["error"], state=state)
        trials.append({**note, "seconds": round(time.monotonic() - start, 3)})
    return trials


def best_of(trials: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Values of the trial with the smallest error; None if all failed."""
    finished = [trial for trial in trials if trial["error"] is not None]
    return min(finished, key=lambda trial: trial["error"])["values"] if finished else None


def error_of_trial(plan: Plan, words: tuple[str, ...], trial: Any = None) -> float:
    """Error of a run with these words, without writing files; Optuna's trial may stop it."""
    experiment = prepare_run(plan.checked_run(words))
    watch = _stopping_report(experiment, trial) if trial is not None and experiment.task.judged_as_it_learns else None
    [chunk] = simulate_run(experiment, watch=watch)
    summary = summary_without_comparison(experiment, chunk)
    require_within(plan.budget, {name: float(values[0]) for name, values in summary.items()})
    error = float(summary[main_metric(summary)][0])
    if not math.isfinite(error):
        raise FklError(f"{main_metric(summary)} is not finite")
    return error


def require_within(budget: Mapping[str, float], summary: Mapping[str, float]) -> None:
    """Raise an error if a run sent more than the budget."""
    for name, most in budget.items():
        if name not in summary:
            raise FklError(f"budget.{name}: no such column of this method's summary.csv")
        if summary[name] > most:
            raise OverBudgetError(f"{name} {summary[name]:.4g} is over the budget of {most:.4g}")


def _stopping_report(experiment: Experiment, trial: Any) -> Callable[[Chunk, int], None]:
    """Report the error so far to Optuna at some rounds, and stop the trial if Optuna decides to."""
    import optuna

    # Errors are reported at a few rounds only, because the pruner compares trials at the same round
    rounds = experiment.problem.rounds
    looks = {rounds * number // LOOKS: number - 1 for number in range(1, LOOKS)}

    def watch(chunk: Chunk, t: int) -> None:
        if t in looks and t:
            so_far = rounds_so_far(experiment, chunk, t, None)
            trial.report(float(so_far[main_metric(so_far)][-1]), looks[t])
            if trial.should_prune():
                raise optuna.TrialPruned

    return watch


def as_words(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Values as words of a command line."""
    return tuple(f"{key}={value}" for key, value in values.items())


@contextmanager
def print_nothing() -> Iterator[None]:
    """Print nothing in this block."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


@contextmanager
def limited_to(seconds: float | None) -> Iterator[None]:
    """End this block with a `LimitError` after this many seconds."""
    if seconds is None:
        yield
        return

    # Python runs the handler after the compiled call in progress
    def stop(signum: int, frame: FrameType | None) -> None:
        raise LimitError(f"it took longer than limit_s={seconds:g}")

    # The handler from before returns, also after an error
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
