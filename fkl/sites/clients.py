"""The clients of a site and their training rows, for a stream and for a batch method."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.config.loading import Run
from fkl.contract.lone_party import LoneClient
from fkl.contract.star import Samples, StarState
from fkl.contract.world import ClientRows, World
from fkl.data.baselines import CONSTANTS, baseline_errors
from fkl.data.problem import Problem, Scale, Table
from fkl.kernels.functions import SavedFunction
from fkl.sites.configuration import SharedFacts, SiteRanges, loss_of, method_of, require_two
from fkl.tasks import task_of
from fkl.wire import Channel

Numbers = NDArray[np.floating]


class StreamClients:
    """Clients that see one row in every round, predict it, and then learn from it.

    Parameters
    ----------
    run : Run
    known : Known
    table : Table
        Rows of the site, which its clients get in turn: row 1 belongs to the first client, row 2 to the second, ...
    site : int
    """

    def __init__(self, run: Run, known: SharedFacts, table: Table, site: int) -> None:
        n, B = len(table.y), known.clients_per_site
        places = np.arange(-(-n // B) * B).reshape(-1, B)
        row, present = np.minimum(places, n - 1), places < n
        x, y = known.scale.x(table.x).astype(run.settings.precision), known.scale.y(table.y)
        arrays = x[row], y[row], present, np.zeros(B, np.int64)
        loss = loss_of(run)
        self.problem = Problem(*arrays, scale=known.scale, encoder=table.encoder, row=row, loss=loss)
        self._known, self._common, self._method = known, known.common_facts(run), method_of(run)

    @staticmethod
    def columns(run: Run) -> tuple[str, str]:
        """Columns of the error by which methods are compared, and of a constant's."""
        error = loss_of(run).columns[0]
        return error, next(iter(CONSTANTS[error]))

    @property
    def learned_from(self) -> NDArray[np.bool_]:
        """Whether each row of the site (n,) is a training row."""
        return np.ones(int(self.problem.present.sum()), np.bool_)

    @staticmethod
    def rounds(run: Run, rows: int, clients_per_site: int) -> int:
        """Number of rounds if the largest site has this many rows."""
        return -(-rows // clients_per_site)

    @staticmethod
    def present(known: SharedFacts, site: int, rows: int, t: int) -> list[int]:
        """Clients that have a row left in round t, of a site with this many rows."""
        left = rows - t * known.clients_per_site
        return list(known.numbers_of_clients(site)[: max(left, 0)])

    def row(self, number: int, t: int) -> int:
        """Number, in the file of its site, of the row that a client has in round t."""
        return t * self._known.clients_per_site + number % self._known.clients_per_site

    @staticmethod
    def example(run: Run, known: SharedFacts) -> LoneClient:
        """Client 0 with rows of zeros; its messages have the form of every client's messages."""
        T, d = known.rounds, known.dimension
        x, y = (np.broadcast_to(np.zeros((), run.settings.precision), shape) for shape in ((T, 1, d), (T, 1)))
        samples = Samples(x, y, np.broadcast_to(np.True_, (T, 1)))
        return LoneClient(method_of(run), known.common_facts(run), 0, samples)

    def client(self, number: int) -> LoneClient:
        """A client with its own rows, before the first round."""
        client_column = slice(j := number % self._known.clients_per_site, j + 1)
        problem = self.problem
        samples = Samples(problem.x[:, client_column], problem.y[:, client_column], problem.present[:, client_column])
        return LoneClient(self._method, self._common, number, samples)

    def functions(self, server: Any, states: Mapping[int, Any], t: int) -> SavedFunction:
        """The clients' functions for predictions in round t, from the states of the server and of each client."""
        common, nothing = self._common, cast(Channel, None)  # nothing is sent through it
        world = World(self.problem, common.dictionary, nothing, common.streams, common.precision, engine=common.engine)
        vars(world).update(common=common)  # that of all sites, not only of this site's rows
        functions = [
            self._method.functions(world, StarState(server, state), t)[0] for _, state in sorted(states.items())
        ]
        return _join_functions(functions)

    def predicted(self, y_hat: Numbers, function: SavedFunction | None) -> Numbers:
        """Predictions of the site's rows (n,), made before their targets were known; NaN for rows without one."""
        return y_hat

    def baseline_errors(self, y_hat: Numbers) -> Numbers:
        """Errors of each client's constant of its targets so far, on the rows with predictions."""
        there = self.problem.present & ~np.isnan(y_hat)[self.problem.row]
        return next(iter(baseline_errors(replace(self.problem, present=there)).values()))[there]


class BatchClients(StreamClients):
    """Clients with all rows from the start, divided into training and test rows."""

    def __init__(self, run: Run, known: SharedFacts, table: Table, site: int) -> None:
        super().__init__(run, known, table, site)
        self._batch = run.algo.batch(self.problem, np.random.default_rng((run.settings.seed, site)))

    @staticmethod
    def columns(run: Run) -> tuple[str, str]:
        """Columns of the test error, and of the mean training target's."""
        return "test_mse", "test_mse_training_mean"

    @property
    def learned_from(self) -> NDArray[np.bool_]:
        """Whether each row of the site (n,) is a training row."""
        return np.isin(np.arange(int(self.problem.present.sum())), self._row[self._batch.training])

    @staticmethod
    def rounds(run: Run, rows: int, clients_per_site: int) -> int:
        """Number of rounds of the method."""
        return int(run.algo.rounds)

    @staticmethod
    def present(known: SharedFacts, site: int, rows: int, t: int) -> list[int]:
        """All clients of the site."""
        return list(known.numbers_of_clients(site))

    @staticmethod
    def example(run: Run, known: SharedFacts) -> LoneClient:
        """Client 0 with a few random rows; its messages have the form of every client's messages."""
        x = np.random.default_rng(0).normal(size=(16, known.dimension)).astype(run.settings.precision)
        samples = ClientRows.of_client(x, x[:, 0].astype(np.float64), "square")
        return LoneClient(method_of(run), known.common_facts(run), 0, samples)

    def client(self, number: int) -> LoneClient:
        """A client with its own training rows."""
        own = self._batch.of_client(number % self._known.clients_per_site)
        x, y, _ = own.part(True)
        return LoneClient(self._method, self._common, number, ClientRows.of_client(x, y, own.loss))

    def predicted(self, y_hat: Numbers, function: SavedFunction | None) -> Numbers:
        """Predictions (n,) of the test rows, each by its client's model."""
        (x, _, client), tested = self._batch.part(False), ~self._batch.training
        assert function is not None
        f = function.predict(x)
        predictions = np.full(len(y_hat), np.nan)
        predictions[self._row[tested]] = f[client if len(f) > 1 else 0, np.arange(len(x))]
        return predictions

    def baseline_errors(self, y_hat: Numbers) -> Numbers:
        """Squared errors of each client's mean training target, on the rows with predictions."""
        (_, y, client), (_, tested, whose) = self._batch.part(True), self._batch.part(False)
        errors: Numbers = (tested - (np.bincount(client, y) / np.bincount(client))[whose]) ** 2
        return errors

    @property
    def _row(self) -> NDArray[np.int64]:
        assert self._batch.row is not None
        return self._batch.row


def kind_of(run: Run) -> type[StreamClients]:
    """The class of clients for a run's method."""
    return StreamClients if task_of(run.algo).judged_as_it_learns else BatchClients


def ends_of(run: Run, table: Table, clients_per_site: int, site: int) -> SiteRanges:
    """Facts that a site reports for the common scale, before it knows the scale."""
    if loss_of(run).classes:
        require_two(np.unique(table.y).tolist(), run)
    facts, all_rows = (
        SharedFacts("", 1, clients_per_site, 1, table.feature_names, Scale()),
        np.ones(len(table.y), np.bool_),
    )
    try:
        rows = kind_of(run)(run, facts, table, site).learned_from if clients_per_site <= len(table.y) else all_rows
    except FklError:  # too few rows for its clients: it is refused once all sites are connected
        rows = all_rows
    return SiteRanges.from_table(table, run.settings.scaling, rows)


def _join_functions(functions: Sequence[SavedFunction]) -> SavedFunction:
    """The function of several clients: the one that they share, or their own ones in order."""
    first, joined = functions[0], dict[str, Any]()
    for axis in "KT":  # of weights and coefficients, and of theta
        names = [name for name, (_, axes) in first.arrays.items() if axes.startswith(axis)]
        parts_of = [[getattr(one, name) for one in functions] for name in names]
        if any(not np.array_equal(arrays[0], other) for arrays in parts_of for other in arrays[1:]):
            joined |= {name: np.concatenate(arrays) for name, arrays in zip(names, parts_of, strict=True)}
    return replace(first, **joined)
