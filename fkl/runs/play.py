"""One run, from a checked configuration to a folder of records: prepare it, execute it, finish it."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numba.core import event
from tqdm import tqdm

from fkl.basics.errors import count_of, in_one_line, key_prefix, require
from fkl.basics.files import report_write_errors
from fkl.basics.memory import limited_to_free_memory, require_memory
from fkl.config.loading import Run, load_engine
from fkl.contract.world import Wrapped
from fkl.data.baselines import not_beaten
from fkl.data.problem import COMPLETE, Problem, row_order
from fkl.engines.base import DivergedError, Experiment, worse_than_zero
from fkl.engines.checkpoint import CHECKPOINT, Checkpoint
from fkl.engines.rounds import LearnedFunction, simulate_run
from fkl.kernels.dictionary import AroundMedian
from fkl.runs.folder import (
    DIVERGED,
    MODEL,
    SUMS,
    add_file,
    complete_folder,
    forget_failed,
    is_finished,
    is_locked,
    lock_folder,
    read_provenance,
    read_summary,
    recover_folder,
    run_workspace,
    write_failed,
)
from fkl.runs.loggers import Loggers
from fkl.runs.metrics import require_metric
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import LOSSES, Curves, Tables, summary_columns
from fkl.screen.messages import print_lines, show_warning
from fkl.tasks.task import Values

if TYPE_CHECKING:
    from fkl.runs.model import SavedModel
    from fkl.runs.saved_sums import SavedSums

SAMPLES = 1000
"""Number of samples by which a feature is found to hide the others."""
ALL_OF_NORM = 0.99
Drawing = Callable[[Run, Experiment, Curves, Values, Path], None]
"""Draws the figures of a run into its folder: from its means over replicates, its summary, and the folder's tables."""


def execute_run(run: Run, draw: Drawing, progress: bool = True) -> bool:
    """Do the run unless it is finished already; return whether there was anything to do.

    Parameters
    ----------
    run : Run
    draw : callable
        Draws the figures unless figures=none, usually `fkl.report.draw_figures`.
    progress : bool
        Whether a bar on stderr shows the rounds.

    Raises
    ------
    fkl.basics.errors.FklError
        For any error that the user can correct. Then nothing is written, except the rows before a divergence.
    """
    # A search judges by validation samples
    if run.settings.objective is not None and hasattr(run.algo, "fold"):
        allowed = "a fold of the training samples, because a search must not see the test samples"
        require(run.algo.fold is not None, "algo.fold", None, allowed)
    load_engine(run.settings.engine).require_installed()
    done = is_finished(run)
    if not done or is_locked(run.folder):
        with lock_folder(run.folder):
            done = is_finished(run) or recover_folder(run)  # by another process, maybe a killed one
            if not done:
                play_run(run, draw, progress)
    forget_failed(run.failed_folder, run.digest)
    # A finished run without the model or the sums that are asked for is repeated for them
    files = read_provenance(run.folder)["files"]
    lacks_sums = run.settings.save_sums and not _has_sums(run)
    if run.settings.saves_model and (MODEL not in files or lacks_sums):
        with lock_folder(run.folder):
            add_model(run, progress)
    return not done


def play_run(run: Run, draw: Drawing, progress: bool = True) -> None:
    """Execute a new run and write its folder; a bar on stderr shows its progress."""
    settings = run.settings
    # Data that do not fit are refused before the folder exists
    with limited_to_free_memory():
        experiment = prepare_run(run)
    # The objective of a search must be a column of this run
    wanted = settings.objective
    if wanted is not None:
        with key_prefix("algo"):
            columns = summary_columns(experiment)[1:]
        require_metric(wanted, columns, "objective")
    if settings.save_sums:
        from fkl.runs.model_sums import bytes_of_sums

        what, keys = (
            f"the sums of save_sums={settings.save_sums}",
            "replicates, kernels.N, kernels.D or save_sums=total",
        )
        require_memory(bytes_of_sums(run, experiment), what, keys)
    experiment.engine.announce_engine()
    threads = settings.threads or experiment.engine.threads
    rounds = settings.replicates * experiment.problem.rounds
    digest = f"{run.digest}, functions kept" if settings.saves_model else run.digest
    # Rounds, tables and checkpoints go to the workspace; only a complete folder gets the final name
    with run_workspace(run) as folder:
        tables = Tables(folder, experiment, Path(run.paths.cache).expanduser())
        checkpoint = Checkpoint(folder / CHECKPOINT, settings.checkpoint_s, digest, tables)
        with RoundsBar(title_of(run), rounds, progress) as bar, Loggers(run, experiment, tables) as loggers:
            watch = loggers.watch_rounds if run.loggers else None
            how = threads, settings.chunk, bar.advance, checkpoint, watch, settings.saves_model
            try:
                # Write the tables of each chunk of replicates as soon as it is done
                with key_prefix("algo"):
                    for chunk in simulate_run(experiment, *how):
                        tables.append(chunk)
                        loggers.log(chunk, len(chunk.elapsed))
            # A diverged run keeps its rounds before the first infinite number
            except DivergedError as error:
                rows, notes = tables.rounds_before(error), {**run_identity(run), DIVERGED: True}
                error.folder = write_failed(run.failed_folder, run.resolved, str(error), run.digest, rows, notes)
                loggers.log(error.failed, error.t)
                raise
        finish_run(run, experiment, tables, folder, draw)
    loggers.end(run.folder)


def _row_order(run: Run, problem: Any) -> dict[str, str]:
    """What a run on a stream says of its rows, if they are in file order and neighbours are alike."""
    in_order = getattr(run.partition, "in_file_order", False) and isinstance(problem, Problem)
    told = row_order(problem) if in_order else ""
    return {"row_order": told} if told else {}


def finish_run(run: Run, experiment: Experiment, tables: Tables, folder: Path, draw: Drawing) -> None:
    """Complete the folder of a run after its rounds, and move it to its place."""
    summary = read_summary(folder)
    # What was run, and on which data
    # Entries of provenance.json about the run itself
    problem = experiment.problem
    is_own_table = hasattr(run.dataset, "file_format")  # the user's own table
    notes: dict[str, Any] = {
        **run_identity(run),
        "sizes": experiment.task.describe_data(),
        "rounds": tables.curves.mean.shape[1],
        "clients": problem.clients,
        "features": problem.dimension,
        **_row_order(run, problem),
        "rows_left_out": problem.rows_left_out + getattr(problem, "incomplete", COMPLETE).rows,
        "scaling_from": "training rows" if is_own_table and not experiment.task.judged_as_it_learns else "all rows",
        "threads": run.settings.threads,
        "scalars_by_kind": tables.kinds,
    }
    # Facts that follow from the data or the graph
    if isinstance(run.kernels, AroundMedian):
        notes["bandwidths"] = experiment.dictionary.bandwidths.tolist()
    if (graph := experiment.topology) is not None:
        notes["topology"] = {
            "agents": graph.agents,
            "edges": graph.edges,
            "spectral_gap": graph.spectral_gap,
            "links": graph.listed.tolist(),
        }
    notes |= experiment.engine.provenance_notes()
    # Warnings about numbers that are finite but not a valid result
    warnings = [*experiment.algorithm.warnings(summary)] if isinstance(experiment.algorithm, Wrapped) else []
    if "converged" in summary and summary["converged"].min() < 1:
        warnings.append(
            "the steps ended before the duality gap reached the requested size, see the columns converged and gap"
        )
    # Warnings: parts that did nothing, and results that are no better than a constant
    if is_own_table and run.settings.scaling == "unit_ball":
        warnings += _hidden_by_one_feature(experiment)
    idle = [why for one in run.conditions.values() if hasattr(one, "idle") and (why := one.idle(problem))]
    warnings += [f"{why}: as without it" for why in idle]
    if getattr(run.algo, "loss", None) == "huber" and (summary["loss"] == summary["mse"]).all():
        warnings.append(
            f"algo.delta={run.algo.delta:g}: no error was above it, so algo.loss=huber is the squared error"
        )
    ways = [f"{way}_bytes" for way in ("uplink", "broadcast", "link") if f"{way}_bytes" in summary]
    alone = experiment.topology is None or run.settings.learners != "federated"
    if ways and not alone and not any(summary[way].any() for way in ways):
        warnings.append("nothing was sent in any round: each client learned alone")
    error = next((name for name in ("mse", "train_mse", "test_mse") if name in summary), None)
    if error is not None and (worse := worse_than_zero(experiment.task.targets, summary[error])):
        warnings.append(worse)
    elif above := not_beaten(summary):
        warnings.append(above)
    # The model, losses of rows and figures, if they are wanted
    if run.settings.saves_model and len(tables.learned) == run.settings.replicates:
        model, sums = model_of_run(run, experiment, tables.learned, notes["rounds"])
        model.save(folder / MODEL)
        if sums is not None:
            sums.save(folder / SUMS)
        warnings = [*absent_clients(experiment, model), *warnings]
    if tables.row_losses:
        tables.write_row_losses(folder / LOSSES)
    if warnings:
        notes["warning"] = "; ".join(warnings)
    if run.settings.figures != "none":
        with report_write_errors(run.folder):
            draw(run, experiment, tables.curves, summary, folder)
    complete_folder(run, folder, notes)


def _hidden_by_one_feature(experiment: Experiment) -> list[str]:
    """A warning if one feature makes up nearly all of the samples' norm, which hides the others from methods."""
    problem = experiment.problem
    # Squared norms of the features, from all samples or some
    x = problem.x if experiment.task.of_features else experiment.task.sample_rows(SAMPLES)
    squares = np.square(x, dtype=np.float64).sum(axis=0)
    largest, encoder = int(squares.argmax()), problem.encoder
    share = squares[largest] / squares.sum()
    if share <= ALL_OF_NORM or encoder is None or len(squares) < 2:
        return []
    name = in_one_line(encoder.feature_names[largest])
    return [
        f"{name} is {share:.1%} of the features' norm and hides the others; scaling=unit_box gives all the same range"
    ]


def absent_clients(experiment: Experiment, model: "SavedModel") -> Iterator[str]:
    """Warnings about clients that were never present, or absent at the end while the others continued to learn."""
    # Shared models have no client that is missing
    if not model.personal:
        return
    # Clients that never took part, and those that left before the end
    never = [np.flatnonzero(~one.reached) for one in model.learned]
    if any(map(len, never)):
        clients = ", ".join(sorted({str(k) for some in never for k in some}, key=int))
        yield f"clients {in_one_line(clients)} took part in no round: the model has no function for them"
    gone = int((~experiment.problem.present[-1]).sum())
    if gone:
        yield (
            f"{gone} of {count_of(experiment.problem.clients, 'client')} had no sample in the last round: in the "
            "model, their own part is from their last round and the shared part from the run's, so the two may not fit"
        )


def title_of(run: Run) -> str:
    """Title of a run on a terminal and in its figures."""
    return f"{run.algo.label} on {run.dataset.name}"


def run_identity(run: Run) -> dict[str, Any]:
    """Entries of provenance.json that identify a run: its data set, its method, and the user's settings."""
    return {"dataset": run.dataset.name, "algorithm": run.algo.label, "words": [*run.words]}


def model_of_run(
    run: Run, experiment: Experiment, learned: tuple[LearnedFunction, ...], rounds: int
) -> tuple["SavedModel", "SavedSums | None"]:
    """The model that a run learned; with `save_sums`, the model of these sums, and the sums."""
    from fkl.runs.model import SavedModel
    from fkl.runs.saved_sums import SavedSums

    model = SavedModel.from_experiment(experiment, run.dataset, learned)
    if not run.settings.save_sums:
        return model, None
    sums = SavedSums.from_experiment(run, experiment, rounds)
    return replace(model.of_sums(sums), about=model.about), sums


def _has_sums(run: Run) -> bool:
    """Whether a finished run has the sums that are asked for, or those of single clients, which are more."""
    from fkl.runs.saved_sums import read_sums

    saved = read_sums(run.folder)
    return saved is not None and (saved.apart or run.settings.save_sums == "total")


def add_model(run: Run, progress: bool = True) -> None:
    """Repeat a finished run only to save its model; equal digests guarantee that it learns the same."""
    print_lines(f"{run.folder} has no {MODEL}: the run is repeated to save it")
    # The same rounds again, without tables
    settings = run.settings
    with limited_to_free_memory():
        experiment = prepare_run(run)
    title, rounds = title_of(run), settings.replicates * experiment.problem.rounds
    with RoundsBar(title, rounds, progress) as bar, key_prefix("algo"):
        how = settings.threads, settings.chunk, bar.advance
        chunks = simulate_run(experiment, *how, keep_functions=True)
        learned = [one for chunk in chunks for one in chunk.learned]
    if len(learned) == settings.replicates:
        model, sums = model_of_run(run, experiment, tuple(learned), read_provenance(run.folder)["rounds"])
        add_file(run, MODEL, model.save)
        if sums is not None:
            add_file(run, SUMS, sums.save)
        for text in absent_clients(experiment, model):
            show_warning(f"{title}: {text}")


class RoundsBar(event.Listener):  # type: ignore[misc]
    """A bar of rounds, on stderr, that erases itself.

    Compiled code is stored for later runs, so its time does not count for the rounds: the bar's clock restarts after
    each compilation.

    Parameters
    ----------
    title : str
    rounds : int
        Total over all replicates.
    shown : bool
        Whether the bar is shown.
    """

    def __init__(self, title: str, rounds: int, shown: bool = True) -> None:
        pause = 0.2 if sys.stderr.isatty() else 10.0  # a log needs fewer lines than a terminal
        self.title = title
        self.compiling = False
        self.bar: tqdm[NoReturn] = tqdm(
            total=rounds, desc=title, unit="round", leave=False, file=sys.stderr, mininterval=pause, disable=not shown
        )

    def __enter__(self) -> Self:
        event.register("numba:compile", self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        event.unregister("numba:compile", self)
        self.bar.close()

    def on_start(self, _: Any) -> None:
        """Report compilation, which happens once per machine."""
        if not self.compiling:
            self.compiling = True
            self.bar.set_description(f"{self.title}, compiling (once)")

    def on_end(self, _: Any) -> None:
        """Print nothing: more may be compiled before the next round ends."""

    def advance(self, rounds: int) -> None:
        """Advance the bar by this number of rounds."""
        if self.compiling:
            self.compiling = False
            self.bar.set_description(self.title, refresh=False)
            self.bar.unpause()
        self.bar.update(rounds)
