"""What a run would take: memory, arithmetic, messages and time, from its first rounds, before it is done."""

from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from io import StringIO
from time import perf_counter
from typing import Any

import numpy as np
from tabulate import tabulate

from fkl.basics.errors import key_prefix
from fkl.basics.memory import limited_to_free_memory, peak_bytes, shown_bytes
from fkl.config import ENGINES, engine, load
from fkl.config.compose import compose
from fkl.engines.experiment import Experiment, make_world
from fkl.engines.memory_fit import rehearse
from fkl.kernels.threads import at_most
from fkl.runs.prepare import prepare
from fkl.wire.ledger import ON_WIRES

ROUNDS = 5
"""Rounds that are played with one replicate; the first may set something up, and is slower."""
ENOUGH_S = 2.0
OF_AN_ANGLE = 6
"""Operations besides the projection: a sine, a cosine, and each multiplied and added."""


@dataclass(frozen=True)
class Sample:
    """The first rounds of one replicate.

    Parameters
    ----------
    start, round : float
        Seconds before the first round, and of the quickest.
    rounds : int
        How many were played.
    messages, size, angles : int
        Messages and bytes that were sent in these, and angles whose sine and cosine were taken.
    """

    start: float
    round: float
    rounds: int
    messages: int
    size: int
    angles: int


class Counting:
    """A bank that counts the angles it is asked for, D a sample and kernel."""

    def __init__(self, bank: Any) -> None:
        self._bank, self.angles = bank, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._bank, name)
        if name not in ("features", "predict", "follow", "descend", "accumulate"):
            return found

        def counted(x: Any, *given: Any, **named: Any) -> Any:
            """Count what is asked for, of every sample; of an update only what is not 0."""
            every = self._bank.replicates * len(x) * self._bank.kernels
            asked = np.count_nonzero(given[0]) if name == "accumulate" else every
            self.angles += int(asked * self._bank.rho.shape[-1])
            return found(x, *given, **named)

        return counted


def plan(words: tuple[str, ...]) -> str:
    """Tell what ``fkl run`` would take with these words.

    Raises
    ------
    fkl.basics.errors.FklError
        Whatever the run itself would refuse.
    """
    run = load(compose(*words))
    said, samples, peaks = StringIO(), list[Sample](), list[int]()

    def measured() -> tuple[int, int]:
        """Bytes that a replicate keeps, and needs at most."""
        kept, peak = rehearse(experiment)
        peaks.append(peak)
        return kept, peak

    def sampled(experiment: Experiment, threads: int | None) -> float:
        """Seconds of all rounds and replicates, by the quickest round of one."""
        samples.append(sample := first_rounds(experiment, threads))
        return experiment.replicates * (sample.start + experiment.problem.rounds * sample.round)

    with limited_to_free_memory(), key_prefix("algo"), redirect_stdout(said):
        experiment = prepare(run)
        # Bytes that a replicate needs at most besides its data, and how many would run together
        together = experiment.task.replicates_at_once(measured)
        peak = peaks[0] if peaks else peak_bytes(partial(first_rounds, experiment, 1))
        able = [one for one in map(engine, ENGINES) if one.can_play(run) is None and find_spec(one.library)]
        told = {one.name: one.forecast(experiment, run.settings.threads, sampled) for one in able}
    engines, known = {name: expected for name, expected in told.items() if expected is not None}, samples[0]
    times = experiment.problem.rounds / known.rounds * experiment.replicates
    together = min(run.settings.chunk or together, experiment.replicates)
    flops = known.angles * times * (2 * experiment.problem.dimension + OF_AN_ANGLE)
    table = [
        (
            "memory",
            f"{shown_bytes(peak)} a replicate at most besides the data, {together} together of {experiment.replicates}",
        ),
        ("random features", f"{flops:.3g} operations, for {known.angles * times:.3g} angles"),
        ("messages", f"{known.messages * times:.6g}, {shown_bytes(int(known.size * times))}"),
        *((f"engine={name}", f"about {seconds:.3g} s{how}") for name, (seconds, how) in engines.items()),
    ]
    best = min(engines, key=lambda name: engines[name][0])
    return f"{said.getvalue()}{tabulate(table, tablefmt='plain')}\nit would take engine={best}"


def first_rounds(experiment: Experiment, threads: int | None) -> Sample:
    """Play a few rounds with one replicate, as many as `ROUNDS` or as `ENOUGH_S` have room for, two where there are."""
    with at_most(threads), np.errstate(all="ignore"):
        world, ledger = make_world(experiment, (0,))
        bank = None
        if hasattr(experiment.dictionary, "bank") and "kernels.D" not in getattr(experiment.algorithm, "idle", ()):
            bank = Counting(world.common.bank)
            vars(world.common)["bank"] = bank
        begun = perf_counter()
        state = experiment.algorithm.init(world)
        start, spent = perf_counter() - begun, list[float]()
        while len(spent) < min(ROUNDS, world.problem.rounds) and (len(spent) < 2 or sum(spent) < ENOUGH_S):
            t = len(spent)
            world.channel.open_round(t, world.problem.present[t])
            begun = perf_counter()
            state, _ = experiment.algorithm.step(world, state, t)
            spent.append(perf_counter() - begun)
    sent = [tally.by_round.sum(axis=(0, 1)) for name, tally in ledger.tallies.items() if name in ON_WIRES]
    messages, _, size = np.sum(sent, axis=0).tolist()
    return Sample(start, min(spent), len(spent), messages, size, 0 if bank is None else bank.angles)
