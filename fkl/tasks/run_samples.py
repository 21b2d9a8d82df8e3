"""Samples and graph of a run, from data set, scaling, partition and topology, and the clients that take part."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BadValue, FklError, in_one_line, key_prefix, require
from fkl.basics.large_arrays import by_block
from fkl.basics.random_streams import Role, Streams
from fkl.config import Run
from fkl.data.dealt_rows import is_judged
from fkl.data.encoder import WORDS_SHOWN, Encoder
from fkl.data.normalise import normalise
from fkl.data.problem import Table
from fkl.data.store import Store
from fkl.network import Topology


def differs_by_replicate(run: Run) -> bool:
    """Whether the clients that take part, or answer in time, differ by replicate."""
    return "participation" in run.conditions or getattr(run.network, "timed", False)


def present_in_replicate(run: Run, present: NDArray[np.bool_], replicate: int) -> NDArray[np.bool_]:
    """The present clients, (T, K), that take part in a replicate.

    Raises
    ------
    fkl.basics.errors.FklError
        If no client takes part in any round.
    """
    participation = run.conditions.get("participation")
    if participation is None:
        return present
    [generator] = Streams(run.settings.seed, (replicate,)).generators(Role.PARTICIPATION)
    with key_prefix("participation"):
        taking_part: NDArray[np.bool_] = present & participation.present(present, generator)
    if not taking_part.any():
        raise FklError(f"participation: no client takes part in any round of replicate {replicate}")
    return taking_part


def require_rounds(run: Run, of_rounds: bool) -> None:
    """Refuse participation and deadlines for a method in which no client can miss a round.

    Parameters
    ----------
    run : Run
    of_rounds : bool
        Whether the method's task has rounds that clients can miss.
    """
    method = run.algo
    several = of_rounds and not (getattr(method, "alone", False) or getattr(method, "in_turn", False))
    allowed = f"null for {method.label}, whose rounds no client can miss"
    given = type(run.conditions.get("participation")).__name__
    require("participation" not in run.conditions or several, "participation", given, allowed)
    for key in ("compute_s", "link_spread", "deadline_s"):
        value = getattr(run.network, key, None)
        words = f"null or 0 for {method.label}, whose rounds wait for no clients"
        require(not value or several, f"network.{key}", value, words)
    deadline, compute = (getattr(run.network, key, None) for key in ("deadline_s", "compute_s"))
    fits = deadline is None or compute is not None or not getattr(method, "on_a_graph", False)
    words = f"null without compute_s for {method.label}, whose agents it gives time to compute"
    require(fits, "network.deadline_s", deadline, words)


def read_table(run: Run, generator: np.random.Generator) -> Table:
    """The requested part of the data set's table, scaled."""
    table = whole_table(run, generator)
    if is_judged(run.settings.rows):
        table = replace(table, row=np.arange(len(table.y)))
    table = table.part(run.settings.rows)
    return scaled_by(run, table, ~table.tested if table.cells is not None and table.tested is not None else None)


def scaled_by(run: Run, table: Table, rows: NDArray[np.bool_] | None = None) -> Table:
    """The table, encoded and scaled as these rows (n,) say: those that are learned from; None for all.

    A published table is scaled by all its rows, as in the papers.
    """
    with key_prefix("dataset"):
        if table.cells is None or rows is None:
            return normalise(table, run.settings.scaling)
        return normalise(table.learned_from(rows), run.settings.scaling, rows)


def require_number(run: Run, encoder: Encoder | None) -> None:
    """Refuse a target of several classes for a method that would regress on their numbers."""
    name, several = run.dataset.name, getattr(run.dataset, "several_classes", False)
    learns = f"for {run.algo.label}; algo=fed3r, or algo.loss=softmax, learns"
    require(not several, "dataset", name, f"one with a numeric target {learns} its classes")
    if encoder is not None and (count := len(encoder.labels)) > 2:
        words = in_one_line(", ".join(encoder.labels[:WORDS_SHOWN]))
        raise BadValue(
            "dataset.target", run.dataset.target, f"numbers or two classes {learns} the {count} classes {words}"
        )


def whole_table(run: Run, generator: np.random.Generator) -> Table:
    """The complete table of the data set."""
    with key_prefix("dataset"):
        store = Store(Path(run.paths.data), cache=Path(run.paths.cache).expanduser())
        table = run.dataset.load(store, generator)
        where = getattr(run.dataset, "path", run.dataset.name)
        return replace(table, where=where, encoder=table.encoder or Encoder(table.feature_names))


def split_table(run: Run, table: Table, generator: np.random.Generator) -> Any:
    """The partition of a table."""
    with key_prefix("partition"):
        return run.partition.split(table, generator)


def read_table_anew(run: Run, generator: np.random.Generator) -> Table:
    """One replicate's own table."""
    table = read_table(run, generator)
    if _simulated(run):
        return table
    return replace(table, site_names=tuple(f"drawn{number + 1}" for number in range(len(table.site_names))))


def in_precision(problem: Any, run: Run) -> Any:
    """The same data with features in the run's precision."""
    samples = problem.x.reshape(-1, problem.x.shape[-1])
    narrowed = by_block(lambda some: some.astype(run.settings.precision), samples)
    return replace(problem, x=narrowed.reshape(problem.x.shape))


def has_drawn_samples(run: Run) -> bool:
    """Whether loading a data set again gives other samples."""
    return _simulated(run) or getattr(run.dataset, "drawn", False)


def _simulated(run: Run) -> bool:
    """Whether the samples are drawn, not read from files."""
    return not run.dataset.files and not hasattr(run.dataset, "fingerprint")


def require_topology(run: Run) -> None:
    """Check that decentralized methods, and only these, have a graph of agents."""
    decentralized = getattr(run.algo, "on_a_graph", False)
    if run.topology is None:
        require(not decentralized, "topology", None, "a graph of agents, for example topology=ring")
    else:
        given = type(run.topology).__name__
        require(decentralized, "topology", given, f"left out: {run.algo.label} is not decentralized")


def topology_of_run(run: Run, agents: int, generator: np.random.Generator) -> Topology | None:
    """Graph of a decentralized method; others have a server or a single learner."""
    if run.topology is None:
        return None
    with key_prefix("topology"):
        topology: Topology = run.topology.build(agents, generator)
    fits = topology.both_ways or getattr(run.algo, "one_way", False)
    require(fits, "topology", type(run.topology).__name__, f"a graph whose links go both ways for {run.algo.label}")
    return topology
