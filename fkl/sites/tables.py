"""The server's tables: participation, bytes and seconds of each round, and the errors that sites report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import count_of
from fkl.basics.files import write_text
from fkl.runs.metrics import with_accuracies

Integers = NDArray[np.int64]
COLUMNS = ("round", "sites", "uplink_bytes", "downlink_bytes", "sent_by_flower", "heard_by_flower", "seconds")
"""Columns of rounds.csv, before the columns of errors."""


@dataclass(frozen=True)
class Errors:
    """A site's report on its predicted rows so far, on the common scale.

    Parameters
    ----------
    rows : int
        Number of predicted rows.
    error, baseline : float
        Sums of the errors of the method, and of a constant that follows each client's targets, such as their mean.
    target, target_squared : float
        Sums of the targets and of their squares.
    """

    rows: int
    error: float
    baseline: float
    target: float
    target_squared: float

    @classmethod
    def sum_over_sites(cls, each: Mapping[int, "Errors"]) -> Self:
        """Sums over sites, in their order."""
        names = [one.name for one in fields(cls)]
        return cls(*(sum(getattr(each[k], name) for k in sorted(each)) for name in names))

    def columns(self, error: str, baseline: str, unit: float) -> dict[str, float]:
        """Columns as in a simulation's summary, by name; `unit` is the size of 1 in the target's units."""
        n = max(self.rows, 1)
        if not error.endswith("mse"):
            return with_accuracies({error: self.error / n}) | {baseline: self.baseline / n}
        mse, variance = self.error / n, self.target_squared / n - (self.target / n) ** 2
        r2 = 1 - mse / variance if variance > 0 else np.nan
        return {error: mse, "rmse_in_units": unit * mse**0.5, "r2": r2, baseline: self.baseline / n}


@dataclass
class RoundTraffic:
    """Bytes and seconds of a round: bytes of arrays, as a ledger counts them, and total bytes of Flower's messages.

    Parameters
    ----------
    up, down : dict of int to int
        Bytes of arrays by site.
    sent, heard : int
        Bytes of Flower's serialised messages.
    played : float
        Seconds of computing at the slowest site.
    """

    up: dict[int, int] = field(default_factory=dict)
    down: dict[int, int] = field(default_factory=dict)
    sent: int = 0
    heard: int = 0
    played: float = 0.0


@dataclass
class Book:
    """Record of the completed rounds.

    Parameters
    ----------
    here : (T, S) bool
        Whether each site took part.
    up, down : (T, S) int64
        Bytes of arrays.
    sent, heard : (T,) int64
        Bytes of Flower's messages.
    seconds, played : (T,)
        Seconds of the round, and of computing at the slowest site.
    errors : dict of int to dict of int to Errors
        Reports by round, from 1, and by site.
    rounds : int
        Number of completed rounds.
    """

    here: NDArray[np.bool_]
    up: Integers
    down: Integers
    sent: Integers
    heard: Integers
    seconds: NDArray[np.float64]
    played: NDArray[np.float64]
    errors: dict[int, dict[int, Errors]] = field(default_factory=dict)
    rounds: int = 0

    @classmethod
    def empty_record(cls, rounds: int, sites: int) -> Self:
        """The record before the first of this many rounds."""
        up, down = (np.zeros((rounds, sites), np.int64) for _ in range(2))
        sent, heard = (np.zeros(rounds, np.int64) for _ in range(2))
        return cls(np.zeros((rounds, sites), np.bool_), up, down, sent, heard, np.zeros(rounds), np.zeros(rounds))

    def enter(self, here: list[int], traffic: RoundTraffic, seconds: float) -> None:
        """Record the next round."""
        t = self.rounds
        self.here[t, here] = True
        for k in here:
            self.up[t, k], self.down[t, k] = traffic.up.get(k, 0), traffic.down.get(k, 0)
        self.sent[t], self.heard[t] = traffic.sent, traffic.heard
        self.seconds[t], self.played[t] = seconds, traffic.played
        self.rounds = t + 1

    @property
    def last_errors(self) -> dict[int, Errors]:
        """The newest errors of each site."""
        return {k: one for t in sorted(self.errors) for k, one in self.errors[t].items()}

    def write(self, folder: Path, rows: Mapping[int, int], names: tuple[str, str], unit: float) -> None:
        """Write rounds.csv and sites.csv.

        Parameters
        ----------
        folder : Path
        rows : dict of int to int
            Number of rows of each site.
        names : (str, str)
            Columns of the error and of its baseline.
        unit : float
            Size of 1 on the common scale, in the target's units.
        """
        # rounds.csv: a row per round, with errors where sites have reported
        blank = dict.fromkeys(Errors(0, 0, 0, 0, 0).columns(*names, unit), "")
        lines = [",".join([*COLUMNS, *blank])]
        for t in range(self.rounds):
            sites = " ".join(map(str, np.flatnonzero(self.here[t])))
            bytes_ = self.up[t].sum(), self.down[t].sum(), self.sent[t], self.heard[t]
            errors_now = self.errors.get(t + 1)
            errors = _as_text(Errors.sum_over_sites(errors_now).columns(*names, unit)) if errors_now else blank
            lines.append(",".join(map(str, [t + 1, sites, *bytes_, f"{self.seconds[t]:.3f}", *errors.values()])))
        write_text(folder / "rounds.csv", "\n".join([*lines, ""]))
        # sites.csv: a row per site, with its last errors
        lines = [",".join(["site", "rows", "rounds", "uplink_bytes", "downlink_bytes", "predicted", *blank])]
        last = self.last_errors
        for k, n in sorted(rows.items()):
            predicted: int | str = last[k].rows if k in last else ""
            errors = _as_text(last[k].columns(*names, unit)) if k in last else blank
            took_part = self.here[:, k].sum(), self.up[:, k].sum(), self.down[:, k].sum()
            lines.append(",".join(map(str, [k, n, *took_part, predicted, *errors.values()])))
        write_text(folder / "sites.csv", "\n".join([*lines, ""]))

    def summary(self, names: tuple[str, str], unit: float) -> Iterator[str]:
        """Lines with the result of all sites together, and of each site."""
        # Without reports, or with noise, there are no errors to show
        last = self.last_errors
        if not last or not np.isfinite(Errors.sum_over_sites(last).error):
            return
        for who, errors in (
            ("all sites", Errors.sum_over_sites(last)),
            *((f"site {k}", last[k]) for k in sorted(last)),
        ):
            columns = errors.columns(*names, unit)
            error, baseline = (columns[name] for name in names)
            sentence = f"{names[0]} {error:.4g} ({names[1]} {baseline:.4g})"
            if "r2" in columns:
                sentence = (
                    f"error {columns['rmse_in_units']:.4g} in the target's units "
                    f"(predicting the mean: {unit * baseline**0.5:.4g}), R2 {columns['r2']:.3f}, {names[0]} {error:.4g}"
                )
            yield f"{who}: {sentence}, {count_of(errors.rows, 'prediction')}"


def _as_text(columns: Mapping[str, float]) -> dict[str, str]:
    return {name: repr(float(value)) for name, value in columns.items()}
