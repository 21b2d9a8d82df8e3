"""Allowed configurations of a run with real sites, and what the server and the sites derive from them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from secrets import randbits
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from fkl.basics.errors import FklError, key_prefix, require
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.basics.random_streams import Role, Streams, shared_generator
from fkl.conditions import wrap_method
from fkl.conditions.privacy import Noise
from fkl.config.loading import Run, load_run
from fkl.contract.world import Common
from fkl.data.normalise import normalise_table
from fkl.data.partition import Sites
from fkl.data.problem import Scale, Table
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.engines.base import why_not_at_sites
from fkl.network import Network
from fkl.tasks import task_of
from fkl.tasks.stream import StreamTask

MOST_ROUNDS = 1_000_000


@cache
def run_of(configuration: str) -> Run:
    """The checked run of a resolved configuration, which is YAML."""
    run = load_run(yaml.safe_load(configuration))
    require_fits(run)
    return run


def require_fits(run: Run) -> None:
    """Refuse configurations that sites cannot run, or that depend on all sites' rows."""
    label, settings, why = run.algo.label, run.settings, why_not_at_sites(run.algo)
    words = "a method whose clients all send, in each round, messages that a server adds up"
    require(why is None, "algo", label, f"{words}: {why}")
    # The data: one file per site, read in the same way, without anything that all rows decide
    data = run.dataset
    given = getattr(run.algo, "loss", "square")
    fits = given == "square" or task_of(run.algo) is StreamTask
    require(fits, "algo.loss", given, "square: sites with batches report squared errors")
    # Each site has its own data file; all sites read their files in the same way.
    require(isinstance(data, TableFile), "dataset", type(data).__name__, "file: each site reads its own rows")
    require(data.target != "", "dataset.target", data.target, "the name of the column to predict")
    require(data.site is None, "dataset.site", data.site, "null: a file is a site")
    require(data.test_path is None, "dataset.test_path", data.test_path, "null: all rows are used for training")
    words = "refuse or drop, with values in dataset.fill: a mean depends on the rows of all sites"
    require(data.missing != "mean", "dataset.missing", data.missing, words)
    words = "refuse or drop, or with lists in dataset.words: the set of words depends on the rows of all sites"
    require(data.text in ("refuse", "drop") or bool(data.words), "dataset.text", data.text, words)
    require(data.labels == "refuse", "dataset.labels", data.labels, "refuse: sites could number classes differently")
    # A site is a client, with features that need no common samples
    require(isinstance(run.partition, Sites), "partition", type(run.partition).__name__, "sites: a site is a client")
    fitted = hasattr(run.kernels, "fitted")
    words = "kernels with fixed bandwidths, such as kernels=rbf: sites have no common samples to fit them to"
    require(not fitted, "kernels", type(run.kernels).__name__, words)
    # Settings of simulations that have no meaning here
    require(settings.replicates == 1, "replicates", settings.replicates, "1: real sites learn once")
    require(settings.rows == "all", "rows", settings.rows, "all: each site chooses its rows itself")
    require(settings.stop_when is None, "stop_when", settings.stop_when, "null: sites learn as long as they have rows")
    require(not settings.metrics, "metrics", settings.metrics, "null: predictions stay at the sites")
    given = type(run.intervals).__name__
    require(run.intervals is None, "intervals", given, "null: predictions stay at the sites")
    require(settings.engine in ("numba", "numpy"), "engine", settings.engine, "numba or numpy, at every site")
    require(not settings.save_sums, "save_sums", settings.save_sums, "false: a server of sites has only the total")
    require(settings.like is None, "like", settings.like, "null: a project declares its own ranges")
    require(not settings.save_model, "save_model", True, "false: every site writes its model in any case")
    # Noise protects messages, but not the ranges that a common scale needs
    noisy = noise_of(run) is not None
    told = "none with privacy.noise: for a common scale, sites report the ranges of their rows, which have no noise"
    require(not noisy or settings.scaling == "none", "scaling", settings.scaling, told)
    for name, words in REFUSED.items():
        require(name not in run.conditions, name, type(run.conditions.get(name)).__name__, words)
    require(run.network == Network(), "network", "Network(...)", "unchanged: this network is a real one")


def loss_of(run: Run) -> PointwiseLoss:
    """The loss by which the sites' predictions are judged."""
    return getattr(run.algo, "pointwise", SQUARED) if task_of(run.algo) is StreamTask else SQUARED


def require_two(values: Collection[float], run: Run) -> None:
    """Refuse targets that are no two classes; without a scale, these are -1 and 1."""
    none = run.settings.scaling == "none"
    both = "-1 and 1 only, with scaling=none" if none else "two values, at all sites together"
    values_shown = ", ".join(f"{one:g}" for one in sorted(values)[:3])
    fits = {*values} <= {-1.0, 1.0} if none else len(values) <= 2
    require(fits, "dataset.target", run.dataset.target, f"a column with {both}: it has {values_shown}")


REFUSED = {
    "participation": "null: every connected site takes part",
    "attack": "null: attackers are simulated",
    "audit": "null: canaries are simulated",
    "late": "null: late answers do not count",
    "links": "null: sites have no graph of agents",
}
"""Conditions that are not possible, with the allowed value and the reason."""


def noise_of(run: Run) -> Noise | None:
    """The privacy condition of a run with noise on messages, or on their means."""
    privacy = run.conditions.get("privacy")
    return privacy if isinstance(privacy, Noise) and privacy.noise > 0 else None


def own_table(run: Run, path: str) -> Table:
    """The rows of one site, as they are in its file.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the file and the error.
    """
    # The table as a run would read it, with the site's own path
    dataset: Any = replace(run.dataset, path=path)
    with key_prefix("dataset"):
        table: Table = dataset.load(Store(Path(run.paths.data)), shared_generator(run.settings.seed, Role.DATA))
    return replace(table, where=path)


def in_order(table: Table, names: Sequence[str]) -> Table:
    """A table with the same rows and its features in this order."""
    if tuple(names) == table.feature_names:
        return table
    x, encoder = table.x[:, [table.feature_names.index(name) for name in names]], table.encoder
    if encoder is not None:
        first = {column: replace(encoder, columns=(column,)).feature_names[0] for column in encoder.columns}
        columns = sorted(encoder.columns, key=lambda column: names.index(first[column]))
        encoder = replace(encoder, columns=tuple(columns))
    return replace(table, x=x, feature_names=tuple(names), encoder=encoder)


@dataclass(frozen=True)
class SiteRanges:
    """Facts about a site's rows for a scale that all sites share; empty if nothing is scaled.

    Parameters
    ----------
    columns : tuple of str
        Features in the site's order.
    low, high : tuple of float
        Smallest and largest target; with ``unit_box`` also those of each feature.
    norm : float
        With ``unit_ball``, the largest norm of a row.
    """

    columns: tuple[str, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    norm: float = 0.0

    def require_finite(self) -> None:
        """Refuse ends that are not numbers."""
        finite = bool(np.isfinite([*self.low, *self.high, self.norm]).all())
        require(finite, "ranges", "with NaN or infinity", "finite numbers")

    @classmethod
    def from_table(cls, table: Table, scaling: str, rows: NDArray[np.bool_]) -> "SiteRanges":
        """Facts about a site's training rows, which `rows` (n,) marks."""
        if scaling == "none":
            return cls(table.feature_names)
        x, y = table.x[rows], table.y[rows]
        columns = [y, *(x.T if scaling == "unit_box" else ())]
        norm = float(np.sqrt(np.einsum("nd,nd->n", x, x).max())) if scaling == "unit_ball" else 0.0
        low, high = (tuple(float(getattr(one, end)()) for one in columns) for end in ("min", "max"))
        return cls(table.feature_names, low, high, norm)

    def in_order(self, columns: Sequence[str]) -> "SiteRanges":
        """A copy with its features in this order."""
        order = [0, *(1 + self.columns.index(name) for name in columns)][: len(self.low)]
        low, high = (tuple(end[place] for place in order) for end in (self.low, self.high))
        return replace(self, columns=tuple(columns), low=low, high=high)


def common_scale(ends: Sequence[SiteRanges], run: Run) -> Scale:
    """The scale of all sites' rows, from the ends that sites report. Features are in the first site's order.

    The smallest and largest target become the classes -1 and 1 for a loss of classes.

    Raises
    ------
    fkl.basics.errors.FklError
        The errors of `fkl.data.normalise.normalise_table` with all rows.
    """
    # Without scaling there is nothing to agree on
    scaling = run.settings.scaling
    if scaling == "none":
        return Scale()
    # Columns in one order; lowest and highest values of all sites
    ends = [one.in_order(ends[0].columns) for one in ends]
    low, high = np.min([one.low for one in ends], axis=0), np.max([one.high for one in ends], axis=0)
    dimension = len(ends[0].columns)
    # A table of two rows has the same scale as all rows together, and scaling it has all checks
    x = np.zeros((2, dimension))  # two rows with the same scale as all training rows of all sites
    if scaling == "unit_box":
        x[:] = low[1:], high[1:]
    else:
        x[0, 0] = max(one.norm for one in ends)
    names = tuple(f"feature {number + 1}" for number in range(dimension))
    if loss_of(run).classes:
        require_two({end for one in ends for end in (one.low[0], one.high[0])}, run)
    scale = normalise_table(Table.of_one_site(x, np.array([low[0], high[0]]), names, "all sites"), scaling).scale
    return scale.to_signs(*scale.y(np.array([low[0], high[0]]))) if loss_of(run).classes else scale


class OfSites(Streams):
    """Streams from the seed, which all sites know; only noise does not depend on it, because it must stay secret.

    Noise is never repeated, not even when a round is repeated, because the difference of two sums with the same noise
    has none.
    """

    def replicate(self, r: int) -> "OfSites":
        """Streams of the replicate with index r."""
        return OfSites(self.seed, (self.replicates[r],))

    def _seed_sequence(self, replicate: int, role: Role) -> np.random.SeedSequence:
        secret = role in (Role.PRIVACY, Role.PRIVACY_OF_SERVER)
        return np.random.SeedSequence(randbits(128)) if secret else super()._seed_sequence(replicate, role)


@dataclass(frozen=True)
class SharedFacts:
    """Facts that the server sends to every site: the numbers of sites and rounds, and the common scale.

    Parameters
    ----------
    run : str
        Name of the run.
    sites, clients_per_site : int
        If a site has several clients, they get its rows in turn, so a round uses several of its rows.
    rounds : int
    columns : tuple of str
        Features in the order of site 0.
    scale : Scale
    """

    run: str
    sites: int
    clients_per_site: int
    rounds: int
    columns: tuple[str, ...]
    scale: Scale

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.columns)

    @property
    def clients(self) -> int:
        """Number of clients of all sites."""
        return self.sites * self.clients_per_site

    def common_facts(self, run: Run) -> Common:
        """The facts that all parties of the contract share."""
        drawn = OfSites(run.settings.seed, (0,)), run.settings.precision, run.settings.engine
        return Common(run.kernels, self.dimension, self.rounds, *drawn, self.clients)

    def numbers_of_clients(self, site: int) -> range:
        """Numbers of a site's clients."""
        return range(site * self.clients_per_site, (site + 1) * self.clients_per_site)


def method_of(run: Run) -> Any:
    """The method, wrapped in its conditions."""
    return wrap_method(run.algo, run.conditions)


def require_site(rows: int, columns: Sequence[str], first: Sequence[str], clients_per_site: int) -> None:
    """Refuse a site with too few or too many rows, or other features than the first site's; their order may differ."""
    require(clients_per_site <= rows, "clients-per-site", clients_per_site, f"at most {rows}, the rows of the site")
    most = clients_per_site * MOST_ROUNDS
    require(rows <= most, "rows", rows, f"at most {most}, or a larger clients-per-site")
    if sorted(columns) != sorted(first):
        raise FklError(f"its features are {', '.join(columns)}, where the first site has {', '.join(first)}")
