"""One run, from a checked configuration to a folder of records."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from tqdm import tqdm

from fkl.algorithms.base import Split
from fkl.algorithms.decentralized.consensus import Consensus
from fkl.algorithms.vertical.parties import OverParties
from fkl.config import Run
from fkl.data.normalise import normalise
from fkl.data.problem import Batch, Problem, Repeated, Table
from fkl.data.store import Store
from fkl.data.vertical import FeatureGroups, Vertical
from fkl.diverged import worse_than_zero
from fkl.errors import FklError, inside, require
from fkl.memory import no_more_than_there_is, require_memory
from fkl.network import Topology
from fkl.report.figures import draw_run
from fkl.results.checkpoint import Checkpoint
from fkl.results.folder import (
    CHECKPOINT,
    alone,
    finish,
    finished,
    moved,
    read_summary,
    workspace,
    write_failed,
)
from fkl.results.records import TIMING_COLUMNS, Tables, summary_columns
from fkl.simulation import DivergedError, Experiment, nbytes, simulate
from fkl.streams import Role, Streams, shared_generator


def execute(run: Run) -> bool:
    """Do the run unless it is done, print its closing table, and tell whether there was anything to do.

    Raises
    ------
    fkl.errors.FklError
        Whatever the user can mend; nothing is written then, but for the rows before a divergence.
    """
    done = finished(run)
    if not done:
        with alone(run.folder):
            done = finished(run) or moved(run)  # by the process that was waited for, or one that was killed at the end
            if not done:
                _do(run)
    if done:
        print(f"{run.folder} is finished already")
    print(closing_table(run, read_summary(run.folder)))
    print(f"files: {run.folder}\n")
    return not done


def _do(run: Run) -> None:
    settings = run.settings
    with no_more_than_there_is():
        experiment = prepare(run)
    if settings.objective is not None:
        with inside("algo"):
            columns = summary_columns(experiment)[1:]
        require(settings.objective in columns, "objective", settings.objective, f"one of {', '.join(columns)}")
    title = f"{run.algo.label} on {run.dataset.name}"
    rounds = settings.replicates * experiment.problem.rounds
    with workspace(run) as folder, _progress(title, rounds) as bar:
        tables = Tables(folder, experiment, Path(run.paths.cache).expanduser())
        checkpoint = Checkpoint(folder / CHECKPOINT, settings.checkpoint_s, run.digest, tables)
        try:
            with inside("algo"):
                for chunk in simulate(experiment, settings.threads, settings.chunk, bar.update, checkpoint):
                    tables.append(chunk)
        except DivergedError as error:
            error.folder = write_failed(
                run.failed_folder, run.resolved, str(error), run.digest, tables.rounds_before(error)
            )
            raise
        bar.close()
        summary = read_summary(folder)
        notes = _notes(run, experiment, tables)
        if warnings := list(_warnings(experiment, summary)):
            notes["warning"] = "; ".join(warnings)
            print(*(f"{title}: {warning}" for warning in warnings), sep="\n", file=sys.stderr)
        finish(run, folder, partial(draw_run, curves=tables.curves, summary=summary, title=title), notes)


def _progress(title: str, rounds: int) -> "tqdm[NoReturn]":
    pause = 0.2 if sys.stderr.isatty() else 10.0  # a log needs fewer lines than a terminal
    return tqdm(total=rounds, desc=title, unit="round", leave=False, file=sys.stderr, mininterval=pause)


def _notes(run: Run, experiment: Experiment, tables: Tables) -> dict[str, Any]:
    """What provenance.json tells of the run itself."""
    problem = experiment.problem
    notes: dict[str, Any] = {
        "dataset": run.dataset.name,
        "algorithm": run.algo.label,
        "rounds": problem.rounds,
        "clients": problem.clients,
        "features": problem.dimension,
        "rows_left_out": problem.rows_left_out,
        "threads": run.settings.threads,
        "scalars_by_kind": tables.kinds,
    }
    if experiment.topology is not None:
        graph = experiment.topology
        notes["topology"] = {
            "agents": graph.agents,
            "edges": graph.edges,
            "spectral_gap": graph.spectral_gap,
            "links": graph.links[graph.links[:, 0] < graph.links[:, 1]].tolist(),
        }
    return notes


def _warnings(experiment: Experiment, summary: pd.DataFrame) -> Iterator[str]:
    """What the user should know of numbers that are finite, and yet no result."""
    if "converged" in summary and summary["converged"].min() < 1:
        yield "the steps ended before the duality gap was as small as asked for, see the columns converged and gap"
    error = next((name for name in ("mse", "train_mse", "test_mse") if name in summary), None)
    if error is not None and (worse := worse_than_zero(experiment.problem, summary[error].to_numpy())) is not None:
        yield worse


def prepare(run: Run) -> Experiment:
    """Read, scale, partition and split the data, and draw the graph, where the method needs these.

    One generator serves the data set, the partition and the split, so all follow from the seed alone.
    """
    settings = run.settings
    over_parties = isinstance(run.algo, OverParties)
    wanted = "vertical" if over_parties else "any but vertical"
    fits = over_parties == isinstance(run.partition, FeatureGroups)
    require(fits, "partition", type(run.partition).__name__, f"{wanted} for {run.algo.label}")
    problem: Problem | Batch | Repeated | Vertical
    if isinstance(run.algo, Split) and run.algo.repeated:
        problem = _repeated(run)
    else:
        generator = shared_generator(settings.seed, Role.DATA)
        table = _table(run, generator)
        with inside("partition"):
            given: Any = run.partition.split(table, generator)
        if over_parties:
            problem = replace(given, rounds=run.algo.rounds)
        else:
            problem = _batch(run, given, generator) if isinstance(run.algo, Split) else given
            problem = replace(problem, x=problem.x.astype(settings.precision))
    topology = _topology(run, problem.clients, shared_generator(settings.seed, Role.TOPOLOGY))
    redraw = None
    if isinstance(run.algo, Consensus) and run.algo.redraw:
        redraw = partial(_redrawn, run, None if _drawn(run) else table)
    print(_told(run.dataset.name, problem, topology))
    return Experiment(
        problem,
        run.kernels,
        run.network,
        run.algo,
        settings.seed,
        settings.replicates,
        settings.precision,
        topology,
        redraw,
        settings.engine,
    )


def _table(run: Run, generator: np.random.Generator) -> Table:
    with inside("dataset"):
        table = run.dataset.load(Store(Path(run.paths.data)), generator)
        where = getattr(run.dataset, "path", run.dataset.name)
        return normalise(replace(table, where=where), run.settings.scaling)


def _batch(run: Run, stream: Problem, generator: np.random.Generator) -> Batch:
    with inside("algo"):
        return run.algo.batch(stream, generator)


def _repeated(run: Run) -> Repeated:
    """A split for each replicate; what is simulated, or drawn from the files, is simulated or drawn for each too."""
    shared = None if _drawn(run) else _table(run, shared_generator(run.settings.seed, Role.DATA))
    batches: list[Batch] = []
    for generator in Streams(run.settings.seed, tuple(range(run.settings.replicates))).generators(Role.DATA):
        with redirect_stdout(StringIO()) if batches else nullcontext():  # what it tells is told once
            batches.append(_split(run, shared, generator))
        if batches[-1].clients != batches[0].clients:
            counts = f"{batches[0].clients} and {batches[-1].clients}"
            raise FklError(f"{run.dataset.name}: replicates have {counts} clients, where all must have as many")
        if len(batches) == 1:
            rest = run.settings.replicates - 1
            require_memory(rest * nbytes(batches[0]), f"a split for each of {rest + 1} replicates", "replicates")
    return Repeated(tuple(batches))


def _redrawn(run: Run, shared: Table | None, replicate: int) -> tuple[Batch, Topology]:
    """Split and graph of one replicate; those of replicate 0 are what all replicates share where nothing is redrawn."""
    streams = Streams(run.settings.seed, (replicate,))
    with redirect_stdout(StringIO()):  # what it tells was told
        batch = _split(run, shared, streams.generators(Role.DATA)[0])
    topology = _topology(run, batch.clients, streams.generators(Role.TOPOLOGY)[0])
    assert topology is not None
    return replace(batch, x=batch.x.astype(run.settings.precision)), topology


def _simulated(run: Run) -> bool:
    """Whether the samples are drawn, not read from files."""
    return not run.dataset.files and not hasattr(run.dataset, "fingerprint")


def _drawn(run: Run) -> bool:
    """Whether a data set that is loaded once more has other samples."""
    return _simulated(run) or getattr(run.dataset, "drawn", False)


def _split(run: Run, shared: Table | None, generator: np.random.Generator) -> Batch:
    """One replicate's split of a table that all share, or of its own."""
    table = _table(run, generator) if shared is None else shared
    if shared is None and not _simulated(run):  # whose site it is differs by replicate
        table = replace(table, site_names=tuple(f"drawn{number + 1}" for number in range(len(table.site_names))))
    with inside("partition"):
        stream = run.partition.split(table, generator)
    return _batch(run, stream, generator)


def _topology(run: Run, agents: int, generator: np.random.Generator) -> Topology | None:
    """Graph of a decentralized method; any other has a server, or is alone."""
    decentralized = isinstance(run.algo, Consensus)
    if run.topology is None:
        require(not decentralized, "topology", None, "a graph of agents, for example topology=ring")
        return None
    require(decentralized, "topology", type(run.topology).__name__, f"left out: {run.algo.label} is not decentralized")
    with inside("topology"):
        return run.topology.build(agents, generator)


def _told(name: str, problem: Problem | Batch | Repeated | Vertical, topology: Topology | None) -> str:
    """One line about the data, and the graph, that a run is about to see."""
    if isinstance(problem, Vertical):
        tested = round(problem.test_share * len(problem.y))
        groups = f"{problem.dimension} features of {problem.parties} parties, {len(problem.active)} of them active"
        return f"{name}: {len(problem.y) - tested} training and {tested} test samples, {groups}"
    samples = f"{problem.rounds} rounds"
    if not isinstance(problem, Problem):
        training = int(problem.training.sum())
        samples = f"{training} training and {len(problem.y) - training} test samples"
    words = [f"{problem.clients} clients", samples, f"{problem.dimension} features"]
    words.append(f"{problem.rows_left_out} rows left out")
    if topology is not None:
        words.append(f"{topology.edges} edges, spectral gap {topology.spectral_gap:.3g}")
    return f"{name}: {', '.join(words)}"


def closing_table(run: Run, summary: pd.DataFrame) -> str:
    """Mean and standard deviation over replicates; times have none, since replicates run together."""
    figures = summary.drop(columns="replicate")
    table = pd.DataFrame({"mean": figures.mean(), "sd": figures.std(ddof=1).drop(list(TIMING_COLUMNS))})
    table = table.loc[list(figures)]
    heading = f"{run.algo.label} on {run.dataset.name}, {len(summary)} replicates"
    return heading + "\n" + table.to_string(float_format=lambda value: f"{value:.5g}", na_rep="-")
