"""The search: every method of the frontier is tuned by as many trials, on rows and a seed that it is not judged on."""

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fkl.basics.errors import FklError
from fkl.basics.files import write_text
from fkl.conditions import Wrapped
from fkl.conditions.accountant import INSTALLED, MISSING
from fkl.config import load
from fkl.config.compose import compose
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import simulate
from fkl.papers.frontier.measures import error_of
from fkl.papers.frontier.trials import BUDGET, TUNED, Entry, append, best_of, cell_of, entries, read_trials, tuned
from fkl.results.tables import make_records
from fkl.runs.prepare import prepare
from fkl.screen.messages import warning
from fkl.tasks.run_samples import without_output

STARTUP = 6
"""Trials that Optuna's TPE draws blindly before it proposes."""
APART = ("rows=even", "seed=100", "replicates=3")
"""The search has the even rows and this seed; methods are judged on the odd rows and other seeds."""
DIGITS = 3
"""Digits of a value that is tried, so that the file has exactly the value that was tried."""


def main(datasets: Iterable[str]) -> None:
    """Search for every entry that lacks trials, and write the best values to tuned.yaml.

    Parameters
    ----------
    datasets : iterable of str
        Those to search on; none for all.
    """
    wanted = set(datasets)
    mine = [entry for entry in entries() if not wanted or entry.dataset in wanted]
    done = {(dataset, method) for dataset, method, *_ in best_of(read_trials())}
    for number, entry in enumerate(mine):
        if (entry.dataset, entry.setting) not in done:
            begun, rows = time.monotonic(), search(entry)
            append(rows)
            error, seconds = min(row[-1] for row in rows), time.monotonic() - begun
            print(f"[{number + 1}/{len(mine)}] {entry.name}: {error:.4g}, {seconds:.0f} s", flush=True)
    write_text(TUNED, tuned(read_trials()))


def search(entry: Entry) -> list[tuple[Any, ...]]:
    """All trials of one entry, as rows of trials.csv; one that diverges is infinitely bad."""
    import optuna
    from optuna.distributions import FloatDistribution, IntDistribution

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    words = (*(f"+{group}={choice}" for group, choice in entry.choices.items() if group != "privacy"), *APART)
    words += (f"privacy={entry.privacy}",) if entry.privacy else ()
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=STARTUP)
    study, rows = optuna.create_study(sampler=sampler), []
    space: dict[str, Any] = {}
    for key, (low, high) in entry.space.items():
        whole = isinstance(low, int) and isinstance(high, int)
        space[key] = IntDistribution(low, high) if whole else FloatDistribution(low, high, log=True)  # type: ignore[arg-type]
    for number in range(BUDGET):
        trial = study.ask(space)
        values = {
            key: value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")
            for key, value in trial.params.items()
        }
        with without_output():
            error, noise = _error_and_noise((*words, *(f"{key}={value}" for key, value in values.items())), entry)
        study.tell(trial, error)
        tried = "; ".join(f"{key}={value:g}" for key, value in (values | noise).items())
        rows.append((entry.dataset, entry.setting, number, tried, float(f"{error:.6g}")))
    return rows


def _error_and_noise(words: tuple[str, ...], entry: Entry) -> tuple[float, dict[str, float]]:
    """Error of a run of these words, and the noise that its epsilon takes."""
    more: dict[str, float] = {}
    if entry.epsilon is not None:
        more = {"privacy.noise": noise_for(prepare(load(compose(*words, "privacy.noise=1.0"))), entry.epsilon)}
    experiment = prepare(load(compose(*words, *(f"{key}={value}" for key, value in more.items()))))
    try:
        records = make_records(experiment, simulate(experiment, None, None, lambda _: None))
    except (DivergedError, FklError) as failed:
        warning(f"{entry.name}: {failed}")
        return math.inf, more
    error = error_of(records.rounds, records.summary, cell_of(entry.method).get("at_optimum", False)).mean()
    return (float(error) if math.isfinite(error) else math.inf), more


def noise_for(experiment: Experiment, epsilon: float) -> float:
    """The least noise, to a few digits, with which a sample's epsilon at the end does not exceed `epsilon`."""
    if not INSTALLED:
        raise FklError(MISSING)
    method = experiment.algorithm
    assert isinstance(method, Wrapped)

    def told(sigma: float) -> float:
        columns = replace(method.condition, noise=sigma).columns(method.method, experiment.problem)
        return float(columns["epsilon_sample"][-1])

    low, high = 1e-2, 1e6
    while high / low > 1 + 10 ** -(DIGITS + 1):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if told(middle) <= epsilon else (middle, high)
    power = 10 ** (DIGITS - 1 - math.floor(math.log10(high)))
    return math.ceil(high * power) / power
