"""`fkl plan -m`: forecast of a sweep from the first rounds of one run of each shape."""

import json
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from fkl.basics.errors import count_of
from fkl.config.choices import Choices
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_run
from fkl.runs.forecast import Forecast, forecast_run
from fkl.screen.units import bytes_of, seconds_text
from fkl.sweeps.count import count_jobs, each_job
from fkl.sweeps.hydra import OF_HYDRA, composed_node, job_words

WITHOUT_SHAPE = ("seed", "replicates", "paths", "out", "logger", "objective", "checkpoint_s")
"""Keys that do not change a run's time, or change it only in proportion."""
ROWS = 10
"""Maximum number of shapes that are listed."""


def plan_sweep(words: Sequence[str], folders: Sequence[Path] = ()) -> tuple[list[str], list[tuple[str, str, str, str]]]:
    """Lines with the forecast for ``fkl run -m`` with these words, and rows: shape, runs, time of one and of all.

    Raises
    ------
    fkl.basics.errors.FklError
        The same errors as those of the sweep and of all its runs.
    """
    names = Choices(*folders).names
    _, _, overrides = job_words(words, folders)
    sweeper = composed_node([word for word in words if OF_HYDRA.match(word)]).hydra.sweeper
    jobs = count_jobs(sweeper, overrides, names)
    runs = [load_run(compose_config(*job, folders=folders), job) for job in each_job(overrides, names)]
    by_shape: dict[str, list[Run]] = {}
    for run in runs:
        by_shape.setdefault(_timing_shape(run), []).append(run)
    bar = tqdm(by_shape.values(), "measuring", leave=False, disable=None)
    found = []
    for alike in bar:
        estimate = forecast_run(alike[0])
        found.append((alike, [estimate.for_replicates(run.settings.replicates) for run in alike]))
    found.sort(key=lambda pair: -_sum_totals(pair[1]))
    every = [estimate for _, several in found for estimate in several]
    rows = []
    shared = set.intersection(*({*run.words} for run in runs))
    for alike, several in found[:ROWS]:
        varied = [word for word in alike[0].words if all(word in run.words for run in alike) and word not in shared]
        other = " ".join(word for word in varied if not word.startswith(("algo=", "dataset=")))
        name = f"{several[0].name}  {other}".strip()
        rows.append(
            (
                name,
                f"{len(several)}",
                seconds_text(_sum_totals(several) / len(several)),
                seconds_text(_sum_totals(several)),
            )
        )
    more = len(found) - ROWS
    lines = [
        count_of(jobs, "run"),
        f"  time      about {seconds_text(_sum_totals(every))} one after another, with engine={every[0].engine}",
        f"  disk      about {bytes_of(sum(estimate.disk for estimate in every))}",
        f"  memory    at most {bytes_of(max(estimate.memory for estimate in every))} per replicate, without the data",
    ]
    lines += [f"  the {ROWS} longest of {len(found)}:"] * (more > 0)
    return lines, rows


def _sum_totals(several: Sequence[Forecast]) -> float:
    return sum(one.seconds for one in several)


def _timing_shape(run: Run) -> str:
    """The part of a configuration that decides a run's time, without rates and bandwidths, which are not counts."""
    plain = {key: value for key, value in run.resolved.items() if key not in WITHOUT_SHAPE}
    for group in ("algo", "kernels"):
        plain[group] = {key: value for key, value in (plain.get(group) or {}).items() if not isinstance(value, float)}
    return json.dumps(plain, sort_keys=True, default=str)
