"""`fkl bound`: play a finished run again, and show whether its theorems and identities hold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fkl.basics.environment import variable
from fkl.basics.errors import FklError, plural
from fkl.conditions.wrapped import OnMessages
from fkl.config import Run, load
from fkl.engines.experiment import Experiment, make_world
from fkl.engines.local import Numba
from fkl.kernels.threads import at_most
from fkl.results.finished_runs import FinishedRun
from fkl.runs.prepare import prepare
from fkl.screen.messages import note, say
from fkl.screen.tables import show_table
from fkl.theory import THEORIES, WITHOUT
from fkl.theory.base import Identity, Replicate, Verdict, judged

BOUNDS = ("bound", "of each", "left", "right", "right / left", "answer")
IDENTITIES = ("identity", "value", "without faults", "answer")


class Answer(NamedTuple):
    """Whether a run's theorems hold.

    Parameters
    ----------
    verdicts : tuple of Verdict
    identities : tuple of Identity
        Each from the replicate that is farthest off.
    """

    verdicts: tuple[Verdict, ...]
    identities: tuple[Identity, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of bounds that should hold and are exceeded, and of identities that do not hold."""
        exceeded = (one for one in self.verdicts if one.exceeded and not one.form.unmet)
        bounds = (f"{one.theorem.name}, {one.form.name}" for one in exceeded)
        return (*bounds, *(one.name for one in self.identities if not one.holds))


def command(finished: FinishedRun, format: str, verbose: bool) -> bool:
    """Print whether a run's theorems hold, and return whether nothing is wrong."""
    paths = dict(finished.config.get("paths", {}))
    paths["data"] = variable("FKL_DATA", str(paths.get("data", "data")))
    run = load({**finished.config, "paths": paths})
    answer = answered(run)
    where = f"{run.algo.label} on {finished.provenance['dataset']}"
    first = _first_line(answer, where)
    if format == "table":
        say(first, "")
    else:
        note(first)
    show_table(BOUNDS, [_row(one) for one in answer.verdicts], format, numbers=range(2, 5))
    if answer.identities:
        if format == "table":
            say("")
        show_table(IDENTITIES, [_identity_row(one) for one in answer.identities], format, numbers=(1, 2))
    if verbose:
        say("", *_statements(answer))
    return not answer.wrong


def answered(run: Run) -> Answer:
    """Play all replicates of a run again, one after another, and judge its theorems."""
    label = run.algo.label
    if label not in THEORIES:
        why = WITHOUT.get(label, "fkl knows no theorem about it")
        raise FklError(f"{label}: no bound is computed: {why}", help=[f"methods with bounds: {', '.join(THEORIES)}"])
    experiment = replace(prepare(run), engine=Numba())
    if why := _changed_by(run, experiment):
        raise FklError(f"{label}: no bound is computed: the theorems do not cover a run with {why}")
    replicates = []
    with at_most(run.settings.threads), np.errstate(all="ignore"):
        for r in range(run.settings.replicates):
            world, _ = make_world(experiment, (r,))
            replicates.append(THEORIES[label](run.algo, world))
    return judged_together(replicates)


def judged_together(replicates: Sequence[Replicate]) -> Answer:
    """Verdicts from all replicates of a run."""
    theorems = zip(*(one.theorems for one in replicates), strict=True)
    identities = zip(*(one.identities for one in replicates), strict=True)
    verdicts = tuple(verdict for theorem in theorems for verdict in judged(theorem))
    return Answer(verdicts, tuple(max(same, key=lambda one: one.off) for same in identities))


def _changed_by(run: Run, experiment: Experiment) -> str:
    """What changes the method's messages or rounds; empty for nothing."""
    if experiment.algorithm is not run.algo:
        groups = [group for group, condition in run.conditions.items() if isinstance(condition, OnMessages)]
        return ", ".join(groups) or f"learners={run.settings.learners}"
    if getattr(run.network, "deadline_s", None) is not None:
        return "network.deadline_s"
    if run.network.loss > 0:
        return "network.loss"
    return "" if run.settings.stop_when is None else "stop_when"


def _first_line(answer: Answer, where: str) -> str:
    if answer.wrong:
        return f"✗ {where}: not true of this run: {'; '.join(answer.wrong)}"
    apply = [one for one in answer.verdicts if not one.form.unmet]
    if not apply:
        return f"▲ {where}: no bound applies to it"
    nearest = min(apply, key=lambda one: one.factor)
    closest = f", the closest is {nearest.factor:.3g} times the left side" if np.isfinite(nearest.factor) else ""
    counts = {"vacuous": sum(one.vacuous for one in apply), "not applicable": len(answer.verdicts) - len(apply)}
    rest = "".join(f"; {count} {word}" for word, count in counts.items() if count)
    return f"✓ {where}: {plural(len(apply), 'bound')} hold{'s' * (len(apply) == 1)}{closest}{rest}"


def _row(one: Verdict) -> list[str]:
    numbers = (f"{one.left:.3g}", f"{one.right:.3g}", f"{one.factor:.3g}" if np.isfinite(one.factor) else "-")
    return [f"{one.theorem.name}, {one.form.name}", one.theorem.claims, *numbers, one.answer]


def _identity_row(one: Identity) -> list[str]:
    return [one.name, f"{one.value:.3g}", f"{one.expected:.3g}", "holds" if one.holds else "does not hold"]


def _statements(answer: Answer) -> Iterator[str]:
    """Statements, kinds and assumptions."""
    for one in answer.verdicts:
        yield f"{one.theorem.name}, {one.form.name} ({one.theorem.paper}), {one.form.kind}: {one.form.statement}"
        yield from (f"  {assumed.text}: {assumed.answer}" for assumed in one.form.assumptions)
    yield from (f"{one.name}: {one.statement}" for one in answer.identities)
