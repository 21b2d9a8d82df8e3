"""Sites for tests: their files, the simulation of the same, and a grid that plays them in this process."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.conformance.played import PlayedReplicate, play_together
from fkl.contract.lone_party import shown_arrays
from fkl.engines.base import make_world
from fkl.runs.prepare import prepare_run

WORDS = ("dataset=file", "dataset.target=y", "kernels=rbf", "kernels.D=4", "replicates=1", "precision=float64")
"""What every run of sites has."""
ROWS = (20, 17, 20)
"""Of each site's file: the second one's are used up first."""
PER_SITE = 5
"""Clients of each site that is deployed: a round learns from so many of its rows."""


def write_files(folder: Path, rows: Iterable[int] = ROWS) -> list[Path]:
    """A CSV a site, of three features and a target that their sine makes."""
    rng, files = np.random.default_rng(7), []
    for k, n in enumerate(rows):
        x = rng.normal(size=(n, 3)) + 0.3 * k
        table = pd.DataFrame(x, columns=["a", "b", "c"])
        table["y"] = 10 + np.sin(x.sum(axis=1)) + 0.1 * rng.normal(size=n)
        files.append(folder / f"site{k}.csv")
        table.to_csv(files[-1], index=False)
    return files


def simulated(
    words: Iterable[str], files: list[Path], there: np.ndarray, per_site: int = 1
) -> tuple[PlayedReplicate, np.ndarray, Any]:
    """All clients of all sites at once, as `fkl run` plays them.

    Parameters
    ----------
    words : iterable of str
    files : list of Path
    there : (T, sites) bool
        Which sites take part in each round.
    per_site : int
        Clients of a site, which have its rows in turn.

    Returns
    -------
    Played
    (T, K) bool
        Which clients took part.
    Scale
        Of the rows.
    """
    tables = [pd.read_csv(file, dtype=str) for file in files]
    tables = [one.assign(site=[f"{k}-{i % per_site}" for i in range(len(one))]) for k, one in enumerate(tables)]
    whole = files[0].with_name("whole.csv")
    pd.concat(tables).to_csv(whole, index=False)
    experiment = prepare_run(load_run(compose_config(*words, f"dataset.path={whole}", "dataset.site=site")))
    problem = experiment.problem
    present = np.repeat(there, per_site, axis=1) & problem.present
    world, _ = make_world(replace(experiment, problem=problem.thinned(present)), (0,))
    return play_together(experiment.algorithm, world, shown_arrays), present, problem.scale


def compared(
    words: Iterable[str], files: list[Path], folder: Path, run_id: str, per_site: int = 1
) -> tuple[float, bool, np.ndarray]:
    """What a server and its sites have left, beside the simulation with the same sites absent.

    Returns
    -------
    float
        The largest difference between predictions.
    bool
        Whether all bytes are those of the ledger, of rounds and of sites, up and down.
    (T, sites) bool
        Which sites took part.
    """
    rounds, sites = (pd.read_csv(folder / f"{name}.csv", dtype={"sites": str}) for name in ("rounds", "sites"))
    there = np.array([[str(k) in str(one).split() for k in range(len(files))] for one in rounds["sites"]])
    expected, present, scale = simulated(words, files, there, per_site)
    largest = 0.0
    for k, file in enumerate(files):
        rows = pd.read_csv(file.with_name(f"{file.stem}.site{k}.{run_id}") / "predictions.csv")
        t, j = np.divmod(rows["row"].to_numpy() - 1, per_site)
        clients = k * per_site + j
        assert len(rows) == present[:, k * per_site : (k + 1) * per_site].sum() == present[t, clients].sum()
        found = scale.y(rows["prediction"].to_numpy())
        one = np.array([expected.shown[now]["y_hat"][client] for now, client in zip(t, clients, strict=True)])
        largest = max(largest, float(np.abs(found - one).max(initial=0.0)))
    same = []
    for direction in ("uplink", "downlink"):
        of_sites = expected.by_client[direction].reshape(-1, per_site).sum(axis=1)
        same += [rounds[f"{direction}_bytes"].tolist() == expected.by_round[direction].tolist()]
        same += [sites[f"{direction}_bytes"].tolist() == of_sites.tolist()]
    return largest, all(same), there


RUN = 7
"""Number of the run, in this process."""


class InProcess:
    """A grid whose nodes are played here, each message after the other.

    Parameters
    ----------
    app : ClientApp
    configuration : dict
        Of the project.
    files : list of Path
        Of node 100, 101, ...; each is site 0, 1, ...
    fails : callable
        Told the node and the message, whether no answer comes.
    """

    def __init__(
        self,
        app: ClientApp,
        configuration: dict[str, Any],
        files: list[Path],
        fails: Callable[[int, Message], bool],
    ) -> None:
        self.app, self.configuration, self.fails = app, configuration, fails
        self.nodes = {100 + k: self.context(100 + k, k, file) for k, file in enumerate(files)}
        self.answers: dict[str, Message] = {}
        self._number = itertools.count()
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 1  # as in a process of Flower's

    def context(self, node: int, site: int, file: Path, session: str = "") -> Context:
        """What a node has before the first message."""
        own = {"site": site, "path": str(file), "session": session}
        return Context(RUN, node, own, RecordDict(), self.configuration)

    def get_node_ids(self) -> list[int]:
        """Nodes that are there, or were."""
        return list(self.nodes)

    def push_messages(self, messages: list[Message]) -> list[str]:
        """Play the nodes' parts at once."""
        sent = []
        for message in messages:
            name, node = f"m{next(self._number)}", message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = name
            sent.append(name)
            if not self.fails(node, message):
                self.answers[name] = self.app(message, self.nodes[node])
        return sent

    def pull_messages(self, names: list[str]) -> list[Message]:
        """Answers that are there."""
        return [self.answers.pop(name) for name in names if name in self.answers]
