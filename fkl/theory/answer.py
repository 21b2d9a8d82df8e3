"""`fkl bound`: repeat a finished run, and show whether its theorems and identities hold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fkl.basics.errors import FklError, count_of
from fkl.conditions.wrapped import OnMessages
from fkl.config.loading import Run
from fkl.conformance.identities import Identity, evaluate_identities
from fkl.engines.base import Experiment, Numba, make_world
from fkl.engines.rounds import within_memory
from fkl.kernels.threads import at_most
from fkl.runs.finished_runs import FinishedRun
from fkl.runs.prepare import prepare_run, to_play_again
from fkl.screen.messages import print_lines, print_note
from fkl.screen.sheet import Sheet
from fkl.theory import THEORIES, WITHOUT
from fkl.theory.base import LOOSE, FormVerdict, Theorem, judge_forms
from fkl.theory.figure import draw_bounds

BOUNDS = ("bound", "left", "right", "right / left", "answer")
IDENTITIES = ("identity", "left", "right", "answer")


class TheoremsAnswer(NamedTuple):
    """Whether a run's theorems and identities hold.

    Parameters
    ----------
    verdicts : tuple of Verdict
    identities : tuple of Identity
        Identities on the first replicate's draws.
    """

    verdicts: tuple[FormVerdict, ...]
    identities: tuple[Identity, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of applicable bounds that are exceeded, and of identities that do not hold."""
        bounds = (one.name for one in self.verdicts if one.exceeded and not one.form.unmet)
        return (*bounds, *(one.name for one in self.identities if not one.holds))


def bound_command(finished: FinishedRun, format: str, verbose: bool) -> bool:
    """Print whether a run's theorems hold; return whether nothing is wrong."""
    # Repeat the run, because theorems need states that it did not store
    run = to_play_again(finished)
    answer = answer_run(run)
    where = f"{run.algo.label} on {finished.provenance['dataset']}"
    first = _first_line(answer, where)
    if format == "table":
        print_lines(first, "")
    else:
        print_note(first)
    # Bounds first, then identities, then the figure
    if answer.verdicts:
        Sheet.from_rows(BOUNDS, [_answer_row(one) for one in answer.verdicts], range(1, 4)).print_sheet(format)
        if format == "table":
            print_lines(*_answer_notes(answer.verdicts))
    if answer.identities:
        if format == "table" and answer.verdicts:
            print_lines("")
        Sheet.from_rows(IDENTITIES, [_identity_row(one) for one in answer.identities], (1, 2)).print_sheet(format)
    if answer.verdicts:
        draw_bounds(finished.folder, answer.verdicts, run.algo.label)
        print_note(f"figure: {finished.folder / 'bound.png'}")
    if verbose:
        print_lines("", *_statement_lines(answer))
    return not answer.wrong


def answer_run(run: Run) -> TheoremsAnswer:
    """Repeat all replicates of a run, one after another, and judge its theorems."""
    # Refuse runs with conditions that theorems do not cover
    label = run.algo.label
    experiment = replace(prepare_run(run), engine=Numba())
    if why := _changed_by(run, experiment):
        raise FklError(f"{label}: no bound is computed, because the theorems do not cover a run with {why}")
    # One replicate at a time, in memory for one
    with at_most(run.settings.threads), np.errstate(all="ignore"), within_memory(experiment, 1):
        verdicts, identities_of_method = by_theory(experiment)
        answer = TheoremsAnswer(verdicts, (*evaluate_identities(experiment, (0,)), *identities_of_method))
    if not (answer.verdicts or answer.identities):
        raise FklError(f"{label}: {_label_without_number(label)}", help=[f"methods with bounds: {', '.join(THEORIES)}"])
    return answer


def by_theory(experiment: Experiment) -> TheoremsAnswer:
    """Verdicts on the method's theorems, and the identities that conformance does not check."""
    theorems, own = repeat_replicates(experiment)
    return TheoremsAnswer(tuple(verdict for theorem in theorems for verdict in judge_forms(theorem)), own)


def repeat_replicates(experiment: Experiment) -> tuple[list[tuple[Theorem, ...]], tuple[Identity, ...]]:
    """Each of the method's theorems on every replicate, and the identities of `by_theory` on the first."""
    theory = THEORIES.get(experiment.algorithm.label)
    if theory is None:
        return [], ()
    # Theorems of each replicate; identities of the first are enough
    replicates: list[list[Theorem]] = []
    identities_of_method: tuple[Identity, ...] = ()
    for r in range(experiment.replicates):
        record = theory.record_of(experiment.algorithm, make_world(experiment, (r,))[0])
        replicates.append([*theory.theorems(record)])
        identities_of_method = identities_of_method if r else tuple(theory.identities(record))
    without_draws = theory.without_draws(experiment.algorithm, make_world(experiment, (0,))[0])
    return [*zip(*replicates, strict=True), *((one,) for one in without_draws)], identities_of_method


def _changed_by(run: Run, experiment: Experiment) -> str:
    """Settings that change the method's messages or rounds; empty if there are none."""
    # What makes the run differ from the method in the paper
    if experiment.task.class_by_class:
        return "one function for each class"
    if experiment.algorithm is not run.algo:
        groups = [group for group, condition in run.conditions.items() if isinstance(condition, OnMessages)]
        return ", ".join(groups) or f"learners={run.settings.learners}"
    if getattr(run.network, "deadline_s", None) is not None:
        return "network.deadline_s"
    if run.network.loss > 0:
        return "network.loss"
    return "" if run.settings.stop_when is None else "stop_when"


def _label_without_number(label: str) -> str:
    return f"no bound is computed: {WITHOUT.get(label, 'fkl knows no theorem about it')}"


def _first_line(answer: TheoremsAnswer, where: str) -> str:
    # Wrong statements first, then what holds, then whether it says something
    if answer.wrong:
        return f"✗ {where}: do not hold on this run: {'; '.join(answer.wrong)}"
    if not answer.verdicts:
        label = where.partition(" on ")[0]
        names = " and ".join(identity.name for identity in answer.identities)
        return f"✓ {where}: identities hold ({names}); {_label_without_number(label)}"
    # Bounds that apply, divided into those that say something and vacuous ones
    apply = [verdict for verdict in answer.verdicts if not verdict.form.unmet]
    if not apply:
        return f"▲ {where}: no bound applies"
    vacuous, telling = ([verdict for verdict in apply if verdict.vacuous == empty] for empty in (True, False))
    nearest = min(telling or vacuous, key=lambda verdict: verdict.factor)
    closest = f", the closest is {nearest.factor:.3g} times the left side" if np.isfinite(nearest.factor) else ""
    others = len(answer.verdicts) - len(apply)
    rest = f"; {others} not applicable" if others else ""
    is_single = len(telling or vacuous) == 1
    if not telling:
        held = f"{count_of(len(vacuous), 'bound')} {'holds, but says' if is_single else 'hold, but say'} nothing here"
        return f"▲ {where}: {held}{closest}{rest}"
    most = max((verdict.factor for verdict in vacuous), default=0)
    rest = f"; {len(vacuous)} vacuous, by a factor of up to {most:.3g}{rest}" if vacuous else rest
    return f"✓ {where}: {count_of(len(telling), 'bound')} hold{'s' * is_single}{closest}{rest}"


def _answer_row(one: FormVerdict) -> list[str]:
    numbers = (f"{one.left:.3g}", f"{one.right:.3g}", f"{one.factor:.3g}" if np.isfinite(one.factor) else "-")
    return [one.name, *numbers, one.answer]


def _answer_notes(verdicts: Sequence[FormVerdict]) -> Iterator[str]:
    """Notes on the answers: why bounds do not apply, and what vacuous means."""
    why: dict[tuple[str, ...], list[str]] = {}
    for verdict in verdicts:
        if verdict.form.unmet:
            why.setdefault(verdict.form.unmet, []).append(verdict.name)
    yield from (f"  does not apply ({'; '.join(names)}): {'; '.join(reasons)}" for reasons, names in why.items())
    if any(verdict.vacuous and not verdict.form.unmet for verdict in verdicts):
        yield "  vacuous: holds, but says nothing here: it is weaker than what holds without it, usually the loss"
        yield f"           of predicting 0; where that is not known, it is more than {LOOSE:g} times the left side"


def _identity_row(one: Identity) -> list[str]:
    return [one.name, f"{one.left:.3g}", f"{one.right:.3g}", "holds" if one.holds else "does not hold"]


def _statement_lines(answer: TheoremsAnswer) -> Iterator[str]:
    """Lines with all statements, kinds and assumptions."""
    for one in answer.verdicts:
        yield f"{one.name} ({one.theorem.paper}), {one.theorem.claims}, {one.form.kind}: {one.form.statement}"
        yield from (f"  {assumed.text}: {assumed.answer}" for assumed in one.form.assumptions)
    yield from (f"{one.name}: {one.statement}" for one in answer.identities)
