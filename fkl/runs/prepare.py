"""A checked run becomes an experiment: data are read, scaled and partitioned, and a graph is drawn."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any, ClassVar

from fkl.basics.environment import environment_variable
from fkl.basics.errors import BadValue, FklError, did_you_mean, require
from fkl.basics.random_streams import Role, shared_generator
from fkl.conditions import OnMessages, wrap_method
from fkl.conditions.privacy import Noise
from fkl.config.loading import Run, load_engine, load_run
from fkl.config.settings import STOP_WHEN
from fkl.contract.world import Algorithm, World
from fkl.engines.base import Experiment, Numba
from fkl.engines.per_world import BY_ITSELF, OneAgainstRest, WithoutFederation, pooled_task, why_not
from fkl.engines.rounds import Chunk, kinds_sent
from fkl.kernels.dictionary import AroundMedian
from fkl.runs.finished_runs import FinishedRun
from fkl.runs.tables import TIMING_COLUMNS, find_comparison, rounds_so_far
from fkl.tasks import task_of
from fkl.tasks.task import require_rounds, require_topology, topology_of_run


def to_play_again(finished: FinishedRun, outputs: str | None = None, **keys: Any) -> Run:
    """A finished run's configuration with these keys changed; data are read from FKL_DATA, or from the run's folder."""
    paths = dict(finished.config.get("paths", {}))
    paths["data"] = environment_variable("FKL_DATA", str(paths.get("data", "data")))
    paths |= {"outputs": outputs} if outputs else {}
    return load_run({**finished.config, **keys, "paths": paths})


def prepare_run(run: Run) -> Experiment:
    """Read, scale, partition and split the data, and draw the graph, if the method needs these."""
    if run.settings.save_sums:
        from fkl.runs.model_sums import require_sums  # most runs need neither sums nor models

        require_sums(run)
    if run.settings.like is not None:
        from fkl.runs.model import load_model

        load_model(run.settings.like)  # refuses a model that has changed
    # What the method needs of the partition, the learners, the rounds and the graph
    settings, kind = run.settings, task_of(run.algo)
    wanted = "vertical" if kind.of_features else "one of rows, such as iid,"
    fits = kind.of_features == getattr(run.partition, "of_features", False)
    require(fits, "partition", type(run.partition).__name__, f"{wanted} for {run.algo.label}")
    if why := why_not(settings.learners, type(run.algo)):
        raise BadValue("learners", settings.learners, f"federated: {why}")
    require_rounds(run, kind.of_rounds)
    require_topology(run)
    changing = run.conditions.get("links")
    if changing is not None:
        given = type(changing).__name__
        require(run.topology is not None, "links", given, f"null: {run.algo.label} has no graph of agents")
        allowed = f"null for {run.algo.label}, whose agents send some messages only once"
        require(not getattr(run.algo, "told_once", False), "links", given, allowed)
    # Intervals must suit how the method is judged
    intervals, wanted = run.intervals, "adaptive" if kind.judged_as_it_learns else "split"
    fits = intervals is None or intervals.on_streams == kind.judged_as_it_learns
    require(fits, "intervals", type(intervals).__name__, f"{wanted} or null for {run.algo.label}")
    # The data as a task, and a graph with as many agents as clients
    task = kind.from_run(run)
    fits = intervals is None or not (task.of_classes or task.signs or task.class_by_class)
    require(fits, "intervals", type(intervals).__name__, f"null for {run.algo.label}, which predicts a class")
    topology = topology_of_run(run, task.problem.clients, shared_generator(settings.seed, Role.TOPOLOGY))
    loss, allowed = run.network.loss, f"0 for {run.algo.label}, which has no messages between agents"
    require(loss == 0 or topology is not None, "network.loss", loss, allowed)
    if settings.learners == "pooled":
        task, topology = pooled_task(task), None if topology is None else BY_ITSELF
    if topology is not None:
        fits = topology.both_ways or not getattr(changing, "in_pairs", False)
        require(fits, "links", type(changing).__name__, "null, failing or mobility for a graph with one-way links")
    # Kernels whose bandwidths follow from samples
    kernels = run.kernels
    if isinstance(kernels, AroundMedian):
        kernels = kernels.fitted(task.sample_rows(kernels.samples))
    # The method inside its conditions, or alone for comparison
    method: Any = run.algo
    if settings.learners == "federated":
        if isinstance(privacy := run.conditions.get("privacy"), Noise):
            example = getattr(task.problem, "batches", [task.problem])[0]  # a stream, or a batch
            privacy.require_small_delta(int(getattr(example, "training", example.present).sum()), example.clients)
        method = wrap_method(run.algo, run.conditions, run.network.loss, getattr(run.network, "deadline_s", None))
        for condition in run.conditions.values():
            if isinstance(condition, OnMessages):
                condition.require_enough_rounds(task.problem.rounds)
    if task.class_by_class:
        method = OneAgainstRest(method)
    if settings.learners != "federated":
        method = WithoutFederation(method)
    experiment = Experiment(
        problem=task.problem,
        dictionary=kernels,
        network=run.network,
        algorithm=method,
        seed=settings.seed,
        replicates=settings.replicates,
        precision=settings.precision,
        topology=topology,
        redraw=task.redraw,
        engine=load_engine(settings.engine),
        links=run.conditions.get("links"),
        metrics=settings.metrics or {},
        intervals=run.intervals,
    )
    # Check that conditions name kinds of message that the method sends.
    for group, condition in run.conditions.items():
        if asked := getattr(condition, "kinds", None):
            sent = kinds_sent(replace(experiment, algorithm=run.algo))
            there = sorted(set().union(*(sent.get(direction, set()) for direction in condition.directions)))
            known = f"null, or some of the kinds that {run.algo.label} sends: {', '.join(there)}"
            require(set(asked) <= set(there), f"{group}.kinds", asked, known)
    # Stop by a condition on a column
    if settings.stop_when is not None:
        stopping = Stopping(experiment, settings.stop_when, Path(run.paths.cache).expanduser())
        experiment = replace(experiment, engine=stopping)
    return experiment


class Stopping(Numba):
    """An experiment's engine that stops after the round in which a condition holds.

    The condition depends only on data in the checkpoint, so a resumed run ends at the same round.

    Parameters
    ----------
    experiment : Experiment
        Experiment with the engine that runs its rounds, in this process.
    when : str
        Value of the key `stop_when`.
    cache : Path
        As in `fkl.runs.tables.Tables`.
    """

    needs_all_replicates: ClassVar[bool] = True
    at_once: ClassVar[bool] = False

    def __init__(self, experiment: Experiment, when: str, cache: Path) -> None:
        self.name, self.bank = experiment.engine.name, experiment.engine.bank  # type: ignore[misc]
        self._experiment, self._when, self._cache = experiment, when, cache
        self.stopped_at = nan

    def rounds(self, algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
        """Execute the remaining rounds until the condition holds, and pause after each."""
        self.stopped_at, judge = nan, in_progress.judge
        if not hasattr(judge, "end"):
            raise FklError(f"stop_when: {type(judge).__name__}, the judge of {algorithm.label}, has no end(t)")
        with closing(super().rounds(algorithm, world, in_progress, watched)) as playing:
            while not self._condition_holds(in_progress):
                done = next(playing, None)
                if done is None:  # it was the last one
                    return
                yield done
        self.stopped_at = in_progress.t
        in_progress.elapsed = in_progress.elapsed[: in_progress.t]
        judge.end(in_progress.t)
        judge.close()

    def _condition_holds(self, in_progress: Any) -> bool:
        if not in_progress.t:
            return False
        if getattr(in_progress.judge, "pending", None):  # without a condition, these rounds are judged together
            in_progress.judge.judge_pending()
        chunk = Chunk(in_progress.judge, in_progress.ledger, in_progress.elapsed, 0)
        # Means so far, without times
        means = rounds_so_far(self._experiment, chunk, in_progress.t, self._comparison)
        # Runs would end at different rounds by their times
        means = {name: values for name, values in means.items() if name not in TIMING_COLUMNS}
        column, sign, number = STOP_WHEN.fullmatch(self._when).groups()  # type: ignore[union-attr]
        if column not in means:
            there = f"must be of a column of rounds.csv: {', '.join(means)}"
            raise FklError(f"stop_when={self._when}: {there}", help=did_you_mean(column, means))
        mean, bound = float(means[column][-1]), float(number)
        return mean < bound if sign == "<" else mean > bound

    @cached_property
    def _comparison(self) -> Any:
        return find_comparison(self._experiment, self._cache)
