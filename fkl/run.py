"""One run, from a checked configuration to a folder of records."""

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from fkl.config import Run
from fkl.data.normalise import normalise
from fkl.data.problem import Problem
from fkl.data.store import Store
from fkl.errors import inside
from fkl.report.figures import draw_run
from fkl.results.folder import finished, read_summary, write_run
from fkl.results.records import TIMING_COLUMNS, make_records
from fkl.simulation import Chunk, Experiment, simulate
from fkl.streams import data_generator


def execute(run: Run) -> Path:
    """Do the run unless it is done, print its closing table, and return its folder.

    Raises
    ------
    fkl.errors.FklError
        Whatever the user can mend; nothing is written then.
    """
    if finished(run):
        print(f"{run.folder} is finished already")
    else:
        _do(run)
    print(closing_table(run, read_summary(run.folder)))
    print(f"files: {run.folder}\n")
    return run.folder


def _do(run: Run) -> None:
    settings = run.settings
    problem = load_problem(run)
    experiment = Experiment(
        problem, run.kernels, run.network, run.algo, settings.seed, settings.replicates, settings.precision
    )
    title = f"{run.algo.label} on {run.dataset.name}"
    rounds = settings.replicates * problem.rounds
    pause = 0.2 if sys.stderr.isatty() else 10.0  # a log needs fewer lines than a terminal
    with (
        tqdm(total=rounds, desc=title, unit="round", leave=False, file=sys.stderr, mininterval=pause) as bar,
        inside("algo"),
    ):
        chunks = simulate(experiment, settings.threads, settings.chunk, bar.update)
    notes: dict[str, Any] = {
        "dataset": run.dataset.name,
        "algorithm": run.algo.label,
        "rounds": problem.rounds,
        "clients": problem.clients,
        "features": problem.dimension,
        "rows_left_out": problem.rows_left_out,
        "threads": settings.threads,
        "scalars_by_kind": _scalars_by_kind(chunks),
    }
    records = make_records(experiment, chunks, Path(run.paths.cache).expanduser())
    write_run(run, records, partial(draw_run, records=records, title=title), notes)


def _scalars_by_kind(chunks: list[Chunk]) -> dict[str, int]:
    """Scalars of each kind of message in the whole run, all replicates together."""
    total: Counter[str] = Counter()
    for chunk in chunks:
        total.update({f"{direction} {kind}": count for (direction, kind), count in chunk.ledger.kinds.items()})
    return dict(total)


def load_problem(run: Run) -> Problem:
    """Read, normalise and partition the data, in the run's precision.

    One generator serves the data set and then the partition, so both follow from the seed alone.
    """
    generator = data_generator(run.settings.seed)
    with inside("dataset"):
        table = normalise(run.dataset.load(Store(Path(run.paths.data)), generator))
    with inside("partition"):
        problem: Problem = run.partition.split(table, generator)
    print(
        f"{run.dataset.name}: {problem.clients} clients, {problem.rounds} rounds, {problem.dimension} features, "
        f"{problem.rows_left_out} rows left out"
    )
    return replace(problem, x=problem.x.astype(run.settings.precision))


def closing_table(run: Run, summary: pd.DataFrame) -> str:
    """Mean and standard deviation over replicates; times have none, since replicates run together."""
    figures = summary.drop(columns="replicate")
    table = pd.DataFrame({"mean": figures.mean(), "sd": figures.std(ddof=1).drop(list(TIMING_COLUMNS))})
    table = table.loc[list(figures)]
    heading = f"{run.algo.label} on {run.dataset.name}, {len(summary)} replicates"
    return heading + "\n" + table.to_string(float_format=lambda value: f"{value:.5g}", na_rep="-")
