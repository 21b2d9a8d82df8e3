"""One run, from a checked configuration to a folder of records."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from fkl.conditions import Inside, around
from fkl.config import Run
from fkl.data.baselines import not_beaten
from fkl.data.problem import Slice
from fkl.engines.checkpoint import Checkpoint, CommonCheckpoint
from fkl.engines.divergence import worse_than_zero
from fkl.engines.memory_fit import kinds_sent
from fkl.engines.mpi import Ranks, ending_together, started
from fkl.engines.rounds import Chunk, DivergedError, Experiment, simulate
from fkl.errors import counted, extra, inside, require
from fkl.kernels.around_median import AroundMedian
from fkl.kernels.tiles import CLIENT_TILE
from fkl.loggers.following import following
from fkl.memory import no_more_than_there_is
from fkl.report.figures import draw_run
from fkl.results.folder import (
    CHECKPOINT,
    CHECKPOINTS,
    DIVERGED,
    FINISHED,
    add_file,
    alone,
    finish,
    finished,
    moved,
    provenance,
    read_summary,
    workspace,
    write_failed,
)
from fkl.results.model import FILE as MODEL
from fkl.results.model import Model
from fkl.results.records import TIMING_COLUMNS, Tables, summary_columns
from fkl.runs.progress import Progress
from fkl.streams import Role, shared_generator
from fkl.tasks import task_of
from fkl.tasks.samples import graph, told_before
from fkl.tasks.stream import StreamTask
from fkl.tasks.taking_part import require_rounds


def execute(run: Run) -> bool:
    """Do the run unless it is done, print its closing table, and tell whether there was anything to do.

    Raises
    ------
    fkl.errors.FklError
        Whatever the user can mend; nothing is written then, but for the rows before a divergence.
    """
    if run.settings.engine != "mpi":
        return _execute(run)
    ranks = started()
    with ending_together(ranks):
        return _execute(run, ranks) if ranks.first else _play_along(run, ranks)


def _execute(run: Run, ranks: Ranks | None = None) -> bool:
    """As `execute`, on the first of the ranks, which alone writes and prints."""
    done = finished(run)
    if not done:
        with alone(run.folder):
            done = finished(run) or moved(run)  # by the process that was waited for, or one that was killed at the end
            if not done:
                _do(run, ranks)
    if done:
        if ranks is not None:
            ranks.say(FINISHED)
        print(f"{run.folder} is finished already")
    if run.settings.save_model and MODEL not in provenance(run.folder)["files"]:
        with alone(run.folder):
            _add_model(run)
    print(closing_table(f"{run.algo.label} on {run.dataset.name}", read_summary(run.folder)))
    print(f"files: {run.folder}")
    plots = sorted(run.folder.glob("*.png"))  # of a task without panels there is none
    print(f"plots: {', '.join([*map(str, plots[:1]), *(plot.name for plot in plots[1:])])}\n" if plots else "")
    return not done


def _play_along(run: Run, ranks: Ranks) -> bool:
    """What the ranks but the first do of a run."""
    if ranks.say() == FINISHED:
        return False
    with no_more_than_there_is():
        experiment = over(ranks, run)
    if experiment.ranks is not None:
        folder = experiment.ranks.say()
        with inside("algo"):
            for _ in simulate(experiment, *_go_on(run, experiment, lambda _: None, folder)):
                pass
    return True


def over(ranks: Ranks, run: Run) -> Experiment:
    """The experiment with the clients of this rank alone; all data are read for that, and forgotten."""
    whole = prepare(run)
    require(type(whole.task) is StreamTask, "engine", "mpi", f"numba or numpy for {run.algo.label}: it has no streams")
    clients = whole.problem.clients
    some = ranks.with_clients(clients)
    if some is None or some.size < ranks.size:
        tiles, idle = counted(-(-clients // CLIENT_TILE), "tile"), f"{ranks.size - -(-clients // CLIENT_TILE)}"
        of_all = f"{clients} clients are {tiles} of {CLIENT_TILE}, and a rank has whole ones"
        print(f"engine=mpi: {of_all}: {idle} of {ranks.size} ranks have none", file=sys.stderr)
    return replace(whole, problem=Slice.of(whole.problem, (some or ranks).mine(clients)), ranks=some)


def _go_on(
    run: Run, experiment: Experiment, advance: Callable[[int], object], folder: Path, tables: Tables | None = None
) -> tuple[int | None, int | None, Callable[[int], object], Checkpoint]:
    """Threads, chunk, progress and checkpoint of a run whose tables are in this folder."""
    settings, ranks = run.settings, experiment.ranks
    kept = f"{run.digest}, functions kept" if settings.save_model else run.digest
    how = settings.checkpoint_s, kept, tables
    if ranks is None:
        return settings.threads, settings.chunk, advance, Checkpoint(folder / CHECKPOINT, *how)
    return settings.threads or 1, settings.chunk, advance, CommonCheckpoint(folder / CHECKPOINTS, ranks, *how)


def _do(run: Run, ranks: Ranks | None = None) -> None:
    settings = run.settings
    device = _device() if settings.engine == "jax" else None
    if ranks is not None:
        ranks.say()
    with no_more_than_there_is():
        experiment = prepare(run) if ranks is None else over(ranks, run)
    several = experiment.ranks
    whole = cache(partial(_read_again, run)) if several is not None else partial(_as_it_is, experiment)
    if settings.objective is not None:
        with inside("algo"):
            columns = summary_columns(experiment)[1:]
        require(settings.objective in columns, "objective", settings.objective, f"one of {', '.join(columns)}")
    title = f"{run.algo.label} on {run.dataset.name}"
    rounds = settings.replicates * experiment.problem.rounds
    with workspace(run) as folder, Progress(title, rounds) as progress:
        tables = Tables(folder, whole, Path(run.paths.cache).expanduser())
        if several is not None:
            (folder / CHECKPOINTS).mkdir(exist_ok=True)
            several.say(folder)
        with following(run, whole, tables) as loggers:
            try:
                with inside("algo"):
                    go_on = _go_on(run, experiment, progress.advance, folder, tables)
                    watch = loggers.watch if run.loggers and several is None else None
                    for chunk in simulate(experiment, *go_on, watch, settings.save_model):
                        _judge_all(chunk, several, whole)
                        tables.append(chunk)
                        loggers.tell(chunk, experiment.problem.rounds)
            except DivergedError as error:
                _judge_all(error.failed, several, whole)
                error.folder = write_failed(
                    run.failed_folder,
                    run.resolved,
                    str(error),
                    run.digest,
                    tables.rounds_before(error),
                    {**_about(run), DIVERGED: True},
                )
                loggers.tell(error.failed, error.t)
                raise
        progress.bar.close()
        summary = read_summary(folder)
        notes, warnings = _notes(run, whole(), tables), list(_warnings(whole(), summary))
        if several is not None:
            notes |= {"ranks": several.size, "bytes_summed_over_ranks": several.bytes_summed}
        if device is not None:
            notes["device"] = device
        if settings.save_model and len(tables.learned) == settings.replicates:
            model = Model.of(experiment, run.dataset, tables.learned)
            model.save(folder / MODEL)
            warnings += _of_clients_gone(experiment, model)
        if warnings:
            notes["warning"] = "; ".join(warnings)
            print(*(f"{title}: {warning}" for warning in warnings), sep="\n", file=sys.stderr)
        panels = experiment.task.panels()
        draw = partial(draw_run, curves=tables.curves, summary=summary, title=title, panels=panels)
        finish(run, folder, draw, notes)
    loggers.end(run.folder)


def _device() -> str:
    """What engine=jax runs on, which it says."""
    with extra("jax", "engine=jax"):
        from fkl.engines.jax_world import device_name
    device = device_name()
    print(f"engine=jax: on {device}")
    return device


def _as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def _read_again(run: Run) -> Experiment:
    """The experiment with all clients, once ranks have played their parts of it."""
    with told_before():
        return prepare(run)


def _judge_all(chunk: Chunk, ranks: Ranks | None, whole: Callable[[], Experiment]) -> None:
    """Give the judge of what several ranks have played the streams of all clients."""
    if ranks is not None:
        judge: Any = chunk.judge
        judge.problem = whole().problem


def _add_model(run: Run) -> None:
    """Play a finished run again, for nothing but what it learned: its digest says that it learns the same."""
    print(f"{run.folder} has no {MODEL}: it is played again for it")
    settings = run.settings
    with no_more_than_there_is():
        experiment = prepare(run)
    title, rounds = f"{run.algo.label} on {run.dataset.name}", settings.replicates * experiment.problem.rounds
    with Progress(title, rounds) as progress, inside("algo"):
        go_on = (settings.threads, settings.chunk, progress.advance)
        chunks = simulate(experiment, *go_on, keep_functions=True)
        learned = [one for chunk in chunks for one in chunk.learned]
    if len(learned) == settings.replicates:
        model = Model.of(experiment, run.dataset, learned)
        add_file(run, MODEL, model.save)
        for warning in _of_clients_gone(experiment, model):
            print(f"{title}: {warning}", file=sys.stderr)


def _about(run: Run) -> dict[str, Any]:
    """Name a run: its data set, its method, and what the user set."""
    return {"dataset": run.dataset.name, "algorithm": run.algo.label, "words": [*run.words]}


def _notes(run: Run, experiment: Experiment, tables: Tables) -> dict[str, Any]:
    """What provenance.json tells of the run itself."""
    problem = experiment.problem
    notes: dict[str, Any] = {
        **_about(run),
        "rounds": problem.rounds,
        "clients": problem.clients,
        "features": problem.dimension,
        "rows_left_out": problem.rows_left_out,
        "threads": run.settings.threads,
        "scalars_by_kind": tables.kinds,
    }
    if isinstance(run.kernels, AroundMedian):
        notes["bandwidths"] = experiment.dictionary.bandwidths.tolist()
    if experiment.topology is not None:
        graph = experiment.topology
        notes["topology"] = {
            "agents": graph.agents,
            "edges": graph.edges,
            "spectral_gap": graph.spectral_gap,
            "links": graph.listed.tolist(),
        }
    return notes


def _warnings(experiment: Experiment, summary: pd.DataFrame) -> Iterator[str]:
    """What the user should know of numbers that are finite, and yet no result."""
    if isinstance(experiment.algorithm, Inside):
        yield from experiment.algorithm.warnings()
    if "converged" in summary and summary["converged"].min() < 1:
        yield "the steps ended before the duality gap was as small as asked for, see the columns converged and gap"
    error = next((name for name in ("mse", "train_mse", "test_mse") if name in summary), None)
    if error is not None and (worse := worse_than_zero(experiment.task.targets, summary[error].to_numpy())):
        yield worse
    elif above := not_beaten(summary):
        yield above


def _of_clients_gone(experiment: Experiment, model: Model) -> Iterator[str]:
    """What may be wrong with the functions of clients that were not there at the end, while the others learned on."""
    gone = int((~experiment.problem.present[-1]).sum())
    if gone and model.personal:
        yield (
            f"{gone} of {counted(experiment.problem.clients, 'client')} had no sample in the last round: in the model "
            "their own part is of the last round they had, what all share of the run's, and the two may not fit"
        )


def prepare(run: Run) -> Experiment:
    """Read, scale, partition and split the data, and draw the graph, where the method needs these."""
    settings, kind = run.settings, task_of(run.algo)
    wanted = "vertical" if kind.of_features else "any but vertical"
    fits = kind.of_features == getattr(run.partition, "of_features", False)
    require(fits, "partition", type(run.partition).__name__, f"{wanted} for {run.algo.label}")
    require_rounds(run, kind.of_rounds)
    task = kind.of(run)
    topology = graph(run, task.problem.clients, shared_generator(settings.seed, Role.TOPOLOGY))
    changing = run.conditions.get("links")
    fits = topology is not None or changing is None
    require(fits, "links", type(changing).__name__, f"null: {run.algo.label} has no graph of agents")
    links = ""
    if topology is not None:
        fits = topology.both_ways or not getattr(changing, "in_pairs", False)
        require(fits, "links", type(changing).__name__, "null, failing or mobility where links go one way")
        fits = changing is None or not getattr(run.algo, "told_once", False)
        allowed = f"null for {run.algo.label}, whose agents tell once what has to be heard"
        require(fits, "links", type(changing).__name__, allowed)
        what = "edges" if topology.both_ways else "links that go one way"
        links = f", {topology.edges} {what}, spectral gap {topology.spectral_gap:.3g}"
    rows = settings.rows
    half = (
        "" if rows == "all" else f" (rows={rows}: half of the rows, and of the rounds that a partition has by default)"
    )
    print(f"{run.dataset.name}: {task.describe()}{links}{half}")
    kernels = run.kernels
    if isinstance(kernels, AroundMedian):
        kernels = kernels.fitted(task.some_samples(kernels.samples))
        print(f"kernels: bandwidths from {kernels.smallest:.3g} to {kernels.largest:.3g}")
    experiment = Experiment(
        task.problem,
        kernels,
        run.network,
        around(run.algo, run.conditions, run.network.loss, getattr(run.network, "deadline_s", None)),
        settings.seed,
        settings.replicates,
        settings.precision,
        topology,
        task.redraw,
        settings.engine,
        run.conditions.get("links"),
    )
    for group, condition in run.conditions.items():
        _require_kinds(replace(experiment, algorithm=run.algo), group, condition)
    return experiment


def _require_kinds(experiment: Experiment, group: str, condition: Any) -> None:
    """Refuse a condition on kinds of message that its method does not send."""
    if asked := getattr(condition, "kinds", None):
        sent = kinds_sent(experiment)
        there = sorted(set().union(*(sent.get(direction, set()) for direction in condition.directions)))
        known = f"null, or some of those that {experiment.algorithm.label} sends: {', '.join(there)}"
        require(set(asked) <= set(there), f"{group}.kinds", asked, known)


def closing_table(title: str, summary: pd.DataFrame) -> str:
    """Mean and standard deviation over replicates; times have none, since replicates run together."""
    figures = summary.drop(columns="replicate")
    varies = (figures.nunique() != 1) | (len(figures) == 1)  # the deviation of equal numbers may be just above 0
    deviation = figures.std(ddof=1).where(varies, 0.0).drop(list(TIMING_COLUMNS))
    table = pd.DataFrame({"mean": figures.mean(), "sd": deviation})
    table = table.loc[list(figures)]
    heading = f"{title}, {counted(len(summary), 'replicate')}"
    return heading + "\n" + table.to_string(float_format=lambda value: f"{value:.5g}", na_rep="-")
