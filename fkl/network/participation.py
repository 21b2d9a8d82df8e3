"""Participation: which clients take part in a round, with a new draw in every replicate."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line, require
from fkl.basics.keys import Keys, key
from fkl.data.own_file import OfAFile

Present = NDArray[np.bool_]
HEADER = ["round", "client", "present"]


@dataclass(frozen=True)
class Share(Keys):
    """Each client takes part in a round with the same probability, independently of earlier rounds and other clients.

    The server does not select a fixed number of clients. Clients are absent for their own reasons, like the phones of
    McMahan et al., which are charged or not ("Communication-efficient learning of deep networks from decentralized
    data", 2017, section 1). If at least one client answers, the mean over the answers is an unbiased estimate of the
    mean over all clients.
    """

    share: float = key(0.5, "Probability that a client takes part in a round.", above=0, max=1)

    def idle(self, problem: Any) -> str:
        """A message if no client is absent, else empty."""
        return "participation.share=1: no client is absent" if self.share == 1 else ""

    def present(self, present: Present, generator: np.random.Generator) -> Present:
        """Whether each present client takes part, (T, K)."""
        taking_part = np.empty(present.shape, np.bool_)
        for row, here in zip(taking_part, present, strict=True):
            row[...] = here & (generator.random(len(here)) < self.share)
        return taking_part


@dataclass(frozen=True)
class Markov(Keys):
    """Clients are absent for several rounds at a time: each follows an independent two-state chain, like Gilbert's.

    The first round is drawn from the chain's stationary distribution, so in every round a client takes part with
    probability back / (leave + back).
    """

    leave: float = key(
        0.1, "Probability that a participating client does not take part in the next round.", min=0, max=1
    )
    back: float = key(
        0.3,
        "Probability that an absent client takes part in the next round; absences last 1 / back rounds on average.",
        above=0,
        max=1,
    )

    @property
    def stationary(self) -> float:
        """Long-run share of the rounds in which a client takes part."""
        return self.back / (self.leave + self.back)

    def idle(self, problem: Any) -> str:
        """A message if no client is absent, else empty."""
        return "" if self.leave else "participation.leave=0: no client is absent"

    def present(self, present: Present, generator: np.random.Generator) -> Present:
        """Whether each present client takes part, (T, K)."""
        drawn = generator.random(present.shape)
        state = np.empty(present.shape, np.bool_)
        here = drawn[0] < self.stationary
        for t, uniform in enumerate(drawn):
            if t:
                here = np.where(here, uniform >= self.leave, uniform < self.back)
            state[t] = here
        return present & state


@dataclass(frozen=True)
class Schedule(Keys):
    """Clients take part in turn, a fixed number at a time; after each period, the next ones in order."""

    clients: int = key(1, "Number of clients at a time.", min=1)
    period: int = key(1, "Number of rounds for which the same clients take part.", min=1)

    def idle(self, problem: Any) -> str:
        """A message if no client is absent, else empty."""
        every = self.clients >= problem.clients
        return f"participation.clients={self.clients}: no client is absent" if every else ""

    def present(self, present: Present, generator: np.random.Generator) -> Present:
        """Clients present in each round, (T, K): a window of `clients` that moves on after each period; no draw."""
        T, K = present.shape
        require(self.clients <= K, "clients", self.clients, f"an integer from 1 to {K}, the number of clients")
        first = np.arange(T) // self.period * self.clients
        return present & ((np.arange(K) - first[:, None]) % K < self.clients)


@dataclass(frozen=True)
class Dropout(Keys):
    """Some clients drop out for good, each before a random round from the second on."""

    share: float = key(0.3, "Share of the clients that drop out; their number is rounded.", min=0, max=1)

    def idle(self, problem: Any) -> str:
        """A message if no client is absent, else empty."""
        gone = round(self.share * problem.clients)
        return "" if gone else f"participation.share={self.share}: rounded, it is 0 of {problem.clients} clients"

    def present(self, present: Present, generator: np.random.Generator) -> Present:
        """Whether each present client takes part, (T, K)."""
        T, K = present.shape
        last = np.full(K, T)
        gone = generator.permutation(K)[: round(self.share * K)]
        last[gone] = generator.integers(1, max(T, 2), len(gone))
        return present & (np.arange(T)[:, None] < last)


@dataclass(frozen=True)
class Trace(OfAFile):
    """A recorded trace: a CSV file with a header line and the columns round, client and present (1 or 0).

    Rounds count from 1 and clients from 0, as in the tables of a run. A client takes part in rounds for which it has no
    line. All replicates have the same trace.
    """

    def present(self, present: Present, generator: np.random.Generator) -> Present:
        """Clients present in each round, (T, K), from the file, without a draw.

        Raises
        ------
        FklError
            For any error in the file; the message names the file and the line.
        """
        T, K = present.shape
        state = np.ones((T, K), np.bool_)
        lines: dict[tuple[int, int], int] = {}
        rows = self._trace_records()
        _, heading = next(rows, (1, []))
        if [cell.strip() for cell in heading] != HEADER:
            raise FklError(f"{self.path}, line 1: {in_one_line(','.join(heading))!r} is not {','.join(HEADER)}")
        for line, cells in rows:
            where = f"{self.path}, line {line}"
            if not cells:
                continue
            if len(cells) != len(HEADER):
                raise FklError(f"{where}: {len(cells)} columns where {len(HEADER)} are expected")
            row = []
            for name, cell, (low, high) in zip(HEADER, cells, ((1, T), (0, K - 1), (0, 1)), strict=True):
                word = cell.strip()
                if not (word.isascii() and word.isdigit() and len(word) < 20 and low <= int(word) <= high):
                    wrong = f"{in_one_line(cell)!r} is not an integer from {low} to {high}"
                    raise FklError(f"{where}, column {name}: {wrong}")
                row.append(int(word))
            t, k, here = row
            if (t, k) in lines:
                raise FklError(f"{where}: round {t} of client {k} is already in line {lines[t, k]}")
            lines[t, k] = line
            state[t - 1, k] = here
        return present & state

    def _trace_records(self) -> Iterator[tuple[int, list[str]]]:
        """The number of each line and its cells."""
        rows = csv.reader(io.StringIO(self.words, newline=""))
        try:
            yield from ((rows.line_num, cells) for cells in rows)
        except csv.Error as error:
            raise FklError(f"{self.path}, line {rows.line_num}: {error}") from None
