"""Partitions: which row each client has in each round."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.errors import FklError, require
from fkl.basics.keys import Keys, key
from fkl.data.problem import Problem, Table

Dealt = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""Rows (K, T) of the clients, and which of these entries are used: all, or the first ones of each client."""


@dataclass(frozen=True)
class Partition(Keys):
    """Base class of all partitions; a subclass assigns rows to clients in `dealt`.

    `in_file_order` says whether each client's rows are in the order of the file.
    """

    in_file_order: ClassVar[bool] = False

    def split(self, table: Table, rng: np.random.Generator) -> Problem:
        """Assign the rows of a table to clients.

        Returns
        -------
        Problem
            x and y are 0 if a client is absent.

        Raises
        ------
        FklError
            If the table has too few rows, only one site although several are needed, or sparse features.
        """
        if not isinstance(table.x, np.ndarray):
            raise FklError(
                f"partition: the features of {table.where} are stored sparse, which only partition=vertical accepts"
            )
        # Rows of each client and round, and which of them exist
        rows, present = self.dealt(table, rng)
        # A client's site: that of most of its rows
        site = np.zeros(len(rows), np.int64)
        if len(table.site_names) > 1:
            for k, (mine, seen) in enumerate(zip(rows, present, strict=True)):
                site[k] = np.bincount(table.site[mine[seen]]).argmax()
        # Arrays by round, client and feature, filled in blocks of clients, because a copy may not fit in memory
        K, T = rows.shape
        x, y = np.empty((T, K, table.x.shape[1])), np.empty((T, K))
        here = np.empty((T, K), np.bool_)
        for some in memory.row_blocks(K, -(-memory.ROWS // T)):
            here[:, some] = used = present[some].T
            x[:, some] = np.where(used[:, :, None], table.x[rows[some].T], 0.0)
            y[:, some] = np.where(used, table.y[rows[some].T], 0.0)

        def dealt(values: NDArray[Any] | None) -> Any:
            return None if values is None else values[np.ascontiguousarray(rows.T)]

        return Problem(
            x=x,
            y=y,
            present=here,
            site=site,
            site_names=table.site_names,
            rows_left_out=len(table.y) - int(present.sum()),
            tested=None if table.tested is None else dealt(table.tested) & here,
            scale=table.scale,
            encoder=table.encoder,
            expected=dealt(table.expected),
            row=dealt(table.row),
            incomplete=table.incomplete,
        )

    def dealt(self, table: Table, rng: np.random.Generator) -> Dealt:
        """Rows (K, T) of the clients in the order of their rounds, and which of these are used."""
        raise NotImplementedError


@dataclass(frozen=True)
class EqualShares(Partition):
    """Base class of partitions with equally many rows per client; a subclass selects them in `rows`."""

    clients: int = key(20, "Number K of clients.", min=1)
    rounds: int | None = key(500, "Rounds T; K T rows are used. None for an equal share of all rows each.", min=1)

    def dealt(self, table: Table, rng: np.random.Generator) -> Dealt:
        """The rows that `rows` chooses; all are used."""
        # As many rounds as the rows allow, unless a key sets them
        size = len(table.y)
        rounds = max(size // self.clients, 1) if self.rounds is None else self.rounds
        require(rounds <= size, "rounds", rounds, f"at most {size}, the rows of the data set")
        allowed = f"at most {size // rounds} (each takes {rounds} of the data set's {size} rows)"
        require(self.clients * rounds <= size, "clients", self.clients, allowed)
        # Refuse what does not fit, before the rows are drawn
        _require_room(table, self.clients, rounds, "partition.clients or partition.rounds")
        rows = self.rows(table, rounds, rng)
        used = np.empty(rows.shape, np.bool_)
        used[...] = True
        return rows, used

    def rows(self, table: Table, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows (K, T) of the clients in the order of their rounds."""
        raise NotImplementedError


@dataclass(frozen=True)
class Iid(EqualShares):
    """Equal shares of the rows, dealt at random.

    The seed decides which client gets which row, so each seed deals anew. All replicates of a run share its rows.
    """

    def rows(self, table: Table, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The first rows after `rng` shuffled all of them."""
        rows = np.arange(len(table.y))
        rng.shuffle(rows)
        return rows[: self.clients * rounds].reshape(self.clients, rounds)


@dataclass(frozen=True)
class Blocks(EqualShares):
    """Equal blocks of consecutive rows in file order, as the POF-MKL paper did with naval and UJI.

    Client k gets rows k T to (k + 1) T. Where neighbouring rows of a file are alike, each client sees its own stretch
    and follows the row before, and no other client can help it.
    """

    in_file_order: ClassVar[bool] = True

    def rows(self, table: Table, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The first rows of the file; `rng` is not used."""
        return np.arange(self.clients * rounds).reshape(self.clients, rounds)


@dataclass(frozen=True)
class BySite(Partition):
    """Clients that belong to a site and see a little of every other site.

    The non-i.i.d. split of the POF-MKL paper: a client gets `own` consecutive rows
    of its site and `other` consecutive rows of each other site, then shuffled over the rounds. Blocks are disjoint:
    a site's first rows go to its own clients in turn, the next ones to the clients of the other sites in turn.
    """

    clients_per_site: int = key(6, "Clients of each site; K is this times the number of sites.", min=1)
    own: int = key(350, "Rows of a client from its own site; T = own + other * (sites - 1).", min=1)
    other: int = key(50, "Rows of a client from each other site; T = own + other * (sites - 1).", min=0)

    def dealt(self, table: Table, rng: np.random.Generator) -> Dealt:
        """Clients of the first site first; all present."""
        sites = len(table.site_names)
        if sites < 2:
            raise FklError(f"partition=by_site: {table.where} has one site only; use partition=iid")
        # A client takes `own` rows of its site and `other` of each other site
        rounds = self.own + self.other * (sites - 1)
        per_site = [np.flatnonzero(table.site == site) for site in range(sites)]
        most = min(len(rows) for rows in per_site) // rounds
        allowed = f"at most {most} (the smallest site has {min(map(len, per_site))} rows, a client needs {rounds})"
        # The smallest site limits the number of clients
        require(self.clients_per_site <= most, "clients_per_site", self.clients_per_site, allowed)
        keys = "partition.clients_per_site, partition.own or partition.other"
        _require_room(table, sites * self.clients_per_site, rounds, keys)
        # Each site's rows are given out once: first to its own clients, then to visitors
        clients = []
        for home in range(sites):
            for number in range(self.clients_per_site):
                start = number * self.own
                parts = [per_site[home][start : start + self.own]]
                for site, rows in enumerate(per_site):
                    if site != home:
                        # Visitors have consecutive numbers, starting with those of the first other site.
                        visitor = (home - (home > site)) * self.clients_per_site + number
                        start = self.clients_per_site * self.own + visitor * self.other
                        parts.append(rows[start : start + self.other])
                clients.append(np.concatenate(parts))
        # The order within a client is random
        shuffled = rng.permuted(np.stack(clients), axis=1)
        return shuffled, np.ones(shuffled.shape, np.bool_)


@dataclass(frozen=True)
class Sites(Partition):
    """Clients that are sites, each with all rows of the site in file order, until they are used up."""

    in_file_order: ClassVar[bool] = True

    def dealt(self, table: Table, rng: np.random.Generator) -> Dealt:
        """The number of rounds is the number of rows of the largest site; `rng` is not used.

        A site without rows, for example in a part of the rows, is not a client.
        """
        counts = np.bincount(table.site)
        counts = counts[counts > 0]
        _require_room(
            table, len(counts), int(counts.max()), "the number of sites, or choose a partition other than sites"
        )
        return _one_after_another(np.argsort(table.site, kind="stable"), counts, int(counts.max()))


@dataclass(frozen=True)
class Dirichlet(EqualShares):
    """Clients that see different ranges of the target.

    The rows are put into `quantiles` classes of equal size by their target. Each client draws the shares of its classes
    from a symmetric Dirichlet distribution and then its rows without replacement. When a class is used up, its share
    goes to the others. After Hsu, Qi and Brown, "Measuring the effects of non-identical data distribution for federated
    visual classification" (2019), with quantiles of the target instead of labels. If nearly all rows are assigned, the
    last clients get the remaining ones.
    """

    alpha: float = key(
        0.5,
        "Concentration: near 0 a client sees one class, far above 1 all classes equally.",
        min=1e-3,
        max=1_000_000,
    )
    quantiles: int = key(10, "Number of classes.", min=1)

    def rows(self, table: Table, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of the classes that each client draws, in random order."""
        # Classes of rows by their target, in random order within a class
        size = len(table.y)
        require(self.quantiles <= size, "quantiles", self.quantiles, f"at most {size}, the rows of the data set")
        classes = np.array_split(np.argsort(table.y, kind="stable"), self.quantiles)
        stock = [rng.permutation(rows) for rows in classes]
        left = np.array([len(rows) for rows in stock])
        # Each client draws its shares of the classes
        clients = []
        for _ in range(self.clients):
            shares = rng.dirichlet(np.full(self.quantiles, self.alpha))
            # Number of rows from each class, `rounds` in total and not more than are left
            taken = np.zeros_like(left)
            while (missing := rounds - int(taken.sum())) > 0:
                open_shares = np.where(taken < left, shares, 0.0)
                if open_shares.sum() == 0:  # the drawn shares are 0 for all remaining classes
                    open_shares = (left - taken).astype(np.float64)
                drawn = rng.multinomial(missing, open_shares / open_shares.sum())
                taken = np.minimum(taken + drawn, left)
            # Take the rows from the end of each class's stock
            parts = [rows[rest - count : rest] for rows, rest, count in zip(stock, left, taken, strict=True)]
            clients.append(rng.permutation(np.concatenate(parts)))
            left = left - taken
        return np.stack(clients)


@dataclass(frozen=True)
class ByTarget(EqualShares):
    """Clients whose targets are nearer to the middle of the range, the later the client.

    The K T rows are drawn at random. A part of them is assigned at random, equally many to each client. The others are
    assigned by the distance of their target from the middle of its range, the farthest to the first client. With
    targets in [-1, 1] it is the partition of the published numbers of DeKRR-DDRF (Yang et al., IEEE TNNLS 2024), whose
    code uses the distance |y|.
    """

    clients: int = 10
    rounds: int | None = None
    mixed: float = key(0.2, "Share of each client's rows that is assigned at random, rounded up.", min=0, max=1)

    def rows(self, table: Table, rounds: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Some rows are drawn at random and the others by their target; each client sees its rows in random order."""
        rows = rng.permutation(len(table.y))[: self.clients * rounds]
        at_random = rounds - int((1 - self.mixed) * rounds)
        given, rest = np.split(rows, [self.clients * at_random])
        far = np.abs(table.y[rest] - (table.y.min() + table.y.max()) / 2)
        rest = rest[np.argsort(-far, kind="stable")]
        of_clients = np.concatenate([part.reshape(self.clients, -1) for part in (given, rest)], axis=1)
        return rng.permuted(of_clients, axis=1)


@dataclass(frozen=True)
class QuantitySkew(Partition):
    """Clients with unequal numbers of rows.

    Shares are drawn from a symmetric Dirichlet distribution. The client with the largest share gets `rounds` rows,
    the others in proportion, rounded down, each at least one. Rows are assigned after shuffling all of them. A client
    whose rows are used up is absent from then on.
    """

    clients: int = key(20, "Number K of clients.", min=1)
    rounds: int = key(500, "Rounds T, and rows of the largest client.", min=1)
    alpha: float = key(
        2.0,
        "Concentration: near 0 few clients have nearly all rows, far above 1 all have about `rounds`.",
        min=1e-3,
        max=1_000_000,
    )

    def dealt(self, table: Table, rng: np.random.Generator) -> Dealt:
        """Rows in random order; the drawn shares give the number for each client."""
        # Shares of the clients; the client with the largest share has a row in every round
        size = len(table.y)
        require(self.clients <= size, "clients", self.clients, f"at most {size}, the rows of the data set")
        shares = rng.dirichlet(np.full(self.clients, self.alpha))
        relative = shares / shares.max()
        counts = np.maximum((self.rounds * relative).astype(np.int64), 1)
        # No count is above rounds * relative + 1, which gives a sufficient number of rounds.
        # At least one row each, and no more than there are
        most = max(int((size - self.clients) / relative.sum()), 1)
        allowed = f"at most {most} for these {self.clients} clients and the {size} rows of the data set"
        require(int(counts.sum()) <= size, "rounds", self.rounds, allowed)
        _require_room(table, self.clients, self.rounds, "partition.clients or partition.rounds")
        return _one_after_another(rng.permutation(size)[: counts.sum()], counts, self.rounds)


def _one_after_another(order: NDArray[np.int64], counts: NDArray[np.int64], rounds: int) -> Dealt:
    """Assign each client the next `counts` rows of this order; a client is absent once its rows are used up."""
    present = np.arange(rounds) < counts[:, None]
    rows = np.zeros(present.shape, dtype=np.int64)
    rows[present] = order
    return rows, present


def _require_room(table: Table, clients: int, rounds: int, keys: str) -> None:
    """Refuse streams that do not fit in memory: x and y with one place for each client and round, and presence."""
    needed = clients * rounds * (8 * (len(table.feature_names) + 2) + 1)
    memory.require_memory(needed, f"the streams of {clients} clients over {rounds} rounds", keys)
