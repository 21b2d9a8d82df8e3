"""Forecast of a run's memory, arithmetic, messages and time, from its first rounds."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fkl.basics.errors import count_of, key_prefix
from fkl.basics.memory import limited_to_free_memory, peak_bytes
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_engine, load_run
from fkl.engines.base import Experiment, make_world, play_next
from fkl.engines.rounds import rehearse_round
from fkl.kernels.losses import ClassBank
from fkl.kernels.threads import at_most
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import cells_written
from fkl.screen.units import bytes_of, number_text, seconds_text
from fkl.wire.channel import ON_WIRES

ROUNDS = 5
"""Rounds that are executed with one replicate; the first may include setup and is then slower."""
ENOUGH_S = 2.0
OF_A_CELL, OF_PICTURES = 9, 250_000
"""Bytes on disk: average of a CSV cell, and a run's pictures."""
OF_AN_ANGLE = 6
"""Operations per angle in addition to the projection: a sine, a cosine, and a multiplication and addition for each."""


@dataclass(frozen=True)
class Sample:
    """The first rounds of one replicate.

    Parameters
    ----------
    start, round : float
        Seconds before the first round, and of the fastest round.
    rounds : int
        Number of these rounds.
    messages, size, angles : int
        Messages and bytes sent in these rounds, and number of angles with computed sine and cosine.
    sent : dict of str to int
        Messages, scalars and bytes of these rounds, by column of summary.csv.
    """

    start: float
    round: float
    rounds: int
    messages: int
    size: int
    angles: int
    sent: dict[str, int]


class Counting:
    """A bank that counts the requested angles, D per sample and kernel."""

    def __init__(self, bank: Any) -> None:
        self._bank, self.angles = bank, 0

    def __getattr__(self, name: str) -> Any:
        # Methods of the bank that compute features are counted, all others pass through
        attribute = getattr(self._bank, name)
        if name not in ("features", "predict", "follow", "descend", "accumulate", "learn_rounds"):
            return attribute

        def counted(x: Any, *given: Any, **named: Any) -> Any:
            """Count the requested angles of every sample; in an update, only of nonzero entries."""
            every = self._bank.replicates * prod(x.shape[:-1]) * self._bank.kernels
            asked = np.count_nonzero(given[0]) if name == "accumulate" else every
            if name == "learn_rounds":  # gradients of some clients compute their features again
                sent = np.count_nonzero(given[2], axis=2)
                asked += sent[sent < x.shape[1]].sum()
            self.angles += int(asked * self._bank.rho.shape[-1])
            return attribute(x, *given, **named)

        return counted


@dataclass(frozen=True)
class Forecast:
    """Forecast of a run.

    Parameters
    ----------
    name, size : str
        Its method and data set, and its size.
    engine : str
    seconds : float
        Seconds of all replicates on this engine.
    remark : str
        Text that follows the seconds.
    replicates, together : int
        Number of replicates, and number that run at once.
    memory : int
        Peak bytes of a replicate without the data.
    messages, sent, angles, operations : float
        Messages and bytes of all replicates; angles with sine and cosine, and operations for them.
    disk : float
        Bytes of the run's files.
    said : str
        Lines that the data set prints.
    columns : dict of str to float
        Messages, scalars and bytes of a replicate, by column of summary.csv.
    sums : int
        Bytes of the sums that `save_sums` keeps; 0 for none.
    """

    name: str
    size: str
    engine: str
    seconds: float
    remark: str
    replicates: int
    together: int
    memory: int
    messages: float
    sent: float
    angles: float
    operations: float
    disk: float
    said: str
    columns: dict[str, float]
    sums: int = 0

    def for_replicates(self, replicates: int) -> "Forecast":
        """Scale the forecast to another number of replicates."""
        share = replicates / self.replicates
        return replace(self, seconds=share * self.seconds, replicates=replicates, disk=share * self.disk)

    def lines(self) -> list[str]:
        """Output of `fkl plan`."""
        rows = {
            "size": self.size,
            "time": f"about {seconds_text(self.seconds)} with engine={self.engine}{self.remark}",
            "memory": f"at most {bytes_of(self.memory)} per replicate, without the data; {self.together} at once",
            "disk": f"about {bytes_of(self.disk)}",
            "sent": f"{_amount_text(self.messages)} messages, {bytes_of(self.sent)}",
            "features": f"{_amount_text(self.operations)} operations for {_amount_text(self.angles)} cosines and sines",
        }
        if self.sums:
            rows["sums"] = f"{bytes_of(self.sums)} in sums.npz, and as much memory when the run ends"
        return [self.name, *(f"  {label:9} {words}" for label, words in rows.items())]


def plan_lines(words: tuple[str, ...], folders: Sequence[Path] = ()) -> list[str]:
    """Lines with the forecast for ``fkl run`` with these words and ``--config-dir``; errors as for `forecast_run`."""
    found = forecast_run(load_run(compose_config(*words, folders=folders)))
    return [*found.said.splitlines(), *found.lines()]


def forecast_run(run: Run) -> Forecast:
    """Measure the first rounds of a run.

    Raises
    ------
    fkl.basics.errors.FklError
        The same errors as those of the run itself.
    """
    said, samples, peaks = StringIO(), list[Sample](), list[int]()

    def measured() -> tuple[int, int]:
        """Bytes that a replicate keeps, and its peak."""
        with at_most(run.settings.threads), np.errstate(all="ignore"):  # as in a run
            kept, peak = rehearse_round(experiment)
        peaks.append(peak)
        return kept, peak

    def sampled(experiment: Experiment, threads: int | None) -> float:
        """Seconds of all rounds and replicates, from the fastest round of one."""
        samples.append(sample := first_rounds(experiment, threads))
        return experiment.replicates * (sample.start + experiment.problem.rounds * sample.round)

    # Measure the first rounds in a process state like that of a run
    own_engine = load_engine(run.settings.engine)
    own_engine.require_installed()
    with limited_to_free_memory(), key_prefix("algo"), redirect_stdout(said):
        experiment = prepare_run(run)
        together = experiment.task.replicates_at_once(measured)
        peak = peaks[0] if peaks else peak_bytes(partial(first_rounds, experiment, 1))
        estimate = own_engine.forecast(experiment, run.settings.threads, sampled)
        known = samples[0] if samples else first_rounds(experiment, run.settings.threads)
        # An engine without its own estimate takes as long as these rounds
        expected, remark = estimate or (sampled(experiment, run.settings.threads), "")
        cells = cells_written(experiment)
    sums = 0
    if run.settings.save_sums:
        from fkl.runs.model_sums import bytes_of_sums

        sums = bytes_of_sums(run, experiment)
    # Rounds and replicates cost the same each, so everything is proportional to them
    problem = experiment.problem
    times = problem.rounds / known.rounds * experiment.replicates
    return Forecast(
        name=f"{run.algo.label} on {run.dataset.name}",
        size=" · ".join([
            count_of(problem.clients, "client"), count_of(problem.rounds, "round"),
            count_of(problem.dimension, "feature"), count_of(experiment.replicates, "replicate"),
        ]),
        engine=own_engine.name,
        seconds=expected,
        remark=remark,
        replicates=experiment.replicates,
        together=min(run.settings.chunk or together, experiment.replicates),
        memory=peak,
        messages=known.messages * times,
        sent=known.size * times,
        angles=known.angles * times,
        operations=known.angles * times * (2 * problem.dimension + OF_AN_ANGLE),
        disk=cells * OF_A_CELL + OF_PICTURES + sums,
        said=said.getvalue(),
        sums=sums,
        columns={name: value * problem.rounds / known.rounds for name, value in known.sent.items()},
    )  # fmt: skip


def _amount_text(value: float) -> str:
    """A large number as text."""
    for name, size in {"trillion": 1e12, "billion": 1e9, "million": 1e6}.items():
        if value >= size:
            return f"{number_text(value / size)} {name}"
    return f"{value:,.0f}"


def first_rounds(experiment: Experiment, threads: int | None) -> Sample:
    """Execute a few rounds with one replicate, at most `ROUNDS` and `ENOUGH_S` seconds, but two parts if possible."""
    with at_most(threads), np.errstate(all="ignore"):
        # The real world with one replicate, whose bank counts angles
        world, ledger = make_world(experiment, (0,))
        bank = None
        if hasattr(experiment.dictionary, "bank") and "kernels.D" not in getattr(experiment.algorithm, "idle", ()):
            found: Any = world.common.bank
            of_classes = isinstance(found, ClassBank)
            bank = Counting(found.bank if of_classes else found)
            vars(world.common)["bank"] = replace(found, bank=bank) if of_classes else bank
        # Twice at least, since the first time compiles; then as many rounds as fit the time
        begun = perf_counter()
        state = experiment.algorithm.init(world)
        start, rounds, spent, each = perf_counter() - begun, 0, list[float](), list[float]()
        while rounds < world.problem.rounds and (len(spent) < 2 or (rounds < ROUNDS and sum(spent) < ENOUGH_S)):
            begun = perf_counter()
            played = [*play_next(experiment.algorithm, world, state, rounds, experiment.engine.at_once)]
            spent.append(perf_counter() - begun)
            each.append(spent[-1] / len(played))
            state, rounds = played[-1][0], rounds + len(played)
    # What was sent, by message and in bytes
    sent = [tally.by_round.sum(axis=(0, 1)) for name, tally in ledger.tallies.items() if name in ON_WIRES]
    messages, _, size = np.sum(sent, axis=0).tolist()
    by_column = {
        f"{name}_{what}": number
        for name, tally in ledger.tallies.items()
        for what, number in zip(("messages", "scalars", "bytes"), tally.by_round.sum(axis=(0, 1)).tolist(), strict=True)
    }
    return Sample(start, min(each), rounds, messages, size, 0 if bank is None else bank.angles, by_column)
