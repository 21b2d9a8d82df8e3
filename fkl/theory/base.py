"""Classes for all theorems: both sides of an inequality by round, its assumptions, and a verdict over replicates."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from fkl.basics.arrays import Array
from fkl.conformance.identities import Identity
from fkl.contract.world import Algorithm, World

SURELY = "surely"
EXPECTED = "in expectation"
ROUNDING = 1e-9
"""Share of a bound by which rounding errors may exceed it."""
LOOSE = 1e6
"""A bound that is this many times the left side says nothing, if no trivial bound is known."""
STANDARD_ERRORS = 3
"""An expectation is exceeded if the mean over replicates exceeds it by more than this many standard errors."""


class Assumption(NamedTuple):
    """An assumption, and whether it holds on the run.

    Parameters
    ----------
    text : str
    why_not : str
        Why it does not hold; empty if it holds.
    unknown : bool
        Whether a run cannot show if the assumption holds.
    """

    text: str
    why_not: str = ""
    unknown: bool = False

    @property
    def answer(self) -> str:
        """``holds``, ``does not hold: ...`` or ``cannot be checked``."""
        if self.unknown:
            return "cannot be checked"
        return f"does not hold: {self.why_not}" if self.why_not else "holds"


class Form(NamedTuple):
    """One form of a theorem: as printed, or corrected.

    Parameters
    ----------
    name : str
        ``printed``, ``corrected``, or ``derived`` if the paper's text was not available or gives no number.
    statement : str
    kind : str
        `SURELY` or `EXPECTED`, with respect to the method's draws.
    right : (T, C)
        Right-hand side after each round, for each of C claims.
    assumptions : tuple of Assumption
    """

    name: str
    statement: str
    kind: str
    right: Array
    assumptions: tuple[Assumption, ...] = ()

    def right_side(self, t: int) -> Array:
        """Right-hand side of each claim after round t, from 0."""
        return self.right[t]

    @property
    def unmet(self) -> tuple[str, ...]:
        """Reasons why assumptions do not hold."""
        return tuple(one.why_not for one in self.assumptions if one.why_not)


class Theorem(NamedTuple):
    """A theorem on one replicate.

    Parameters
    ----------
    paper, name : str
    claims : str
        Subject of each claim, such as ``client``.
    left : (T, C)
        Left-hand side after each round, for each claim: for a client, for a kernel, or for all together.
    forms : tuple of Form
    trivial : (C,) or None
        Bound that holds without the theorem, usually the final left-hand side if every prediction were 0. A larger
        bound says nothing.
    exponent : float or None
        Power of T in the bound's order, up to logarithms, with the method's default rates; None if it has no T.
    """

    paper: str
    name: str
    claims: str
    left: Array
    forms: tuple[Form, ...]
    trivial: Array | None = None
    exponent: float | None = None


def derived_form(
    statement: str, right: Array, assumptions: tuple[Assumption, ...] = (), kind: str = SURELY
) -> tuple[Form, ...]:
    """The only form of a theorem whose paper's text was not available or has no number."""
    return (Form("derived", statement, kind, right, assumptions),)


class Theory(NamedTuple):
    """The theory of a method.

    Parameters
    ----------
    record_of : callable
        Runs one replicate, given the method and a world; returns a record with the values that the theorems need.
    theorems : callable
        From the record to the theorems on the replicate; their number is the same for all replicates.
    identities : callable
        From the record to identities that only `fkl bound` shows, in addition to those of `fkl.conformance.identities`.
    without_draws : callable
        From the method and a world to theorems that do not depend on draws, which are computed once.
    """

    record_of: Callable[[Any, World], Any]
    theorems: Callable[[Any], Iterable[Theorem]]
    identities: Callable[[Any], Iterable[Identity]] = lambda record: ()
    without_draws: Callable[[Any, World], Iterable[Theorem]] = lambda method, world: ()


class FormVerdict(NamedTuple):
    """The verdict of a run's replicates on one form of a theorem.

    Parameters
    ----------
    theorem : Theorem
        The theorem on the first replicate.
    form : Form
    left, right : float
        Final sides of the claim that is closest to its bound.
    lefts, rights : (R, T), (T,)
        Sides of this claim after each round: the left side of each replicate, and the mean of the right sides.
    factor : float
        Right side of this claim divided by its left side; infinite if no left side is positive.
    exceeded : bool
        Whether a claim exceeds its bound in a way that the form's kind does not allow.
    vacuous : bool
        Whether this claim's bound is above the theorem's `trivial` bound, or else `LOOSE` times the left side.
    """

    theorem: Theorem
    form: Form
    left: float
    right: float
    lefts: Array
    rights: Array
    factor: float
    exceeded: bool
    vacuous: bool

    @property
    def answer(self) -> str:
        """The verdict in a few words."""
        if self.form.unmet:
            return "does not apply, exceeded" if self.exceeded else "does not apply"
        if self.exceeded:
            return "does not hold"
        return "holds, vacuous" if self.vacuous else "holds"

    @property
    def name(self) -> str:
        """Name of the theorem and its form."""
        return f"{self.theorem.name}, {self.form.name}"


def judge_forms(replicates: Sequence[Theorem]) -> Iterator[FormVerdict]:
    """A verdict on each form of a theorem, given the theorem on each replicate."""
    # Both sides of each form, by replicate, round and claim
    first = replicates[0]
    for at, form in enumerate(first.forms):
        lefts = np.stack([one.left for one in replicates])  # (R, T, C)
        forms = [one.forms[at] for one in replicates]
        rights = np.stack([np.broadcast_to(of_one.right, first.left.shape) for of_one in forms])
        # Assumptions with the first reason why they are not met
        why = {one.text: one for of_one in reversed(forms) for one in of_one.assumptions if one.why_not}
        assumptions = (*why.values(), *(one for one in form.assumptions if one.text not in why))
        every_left, every_right = lefts, rights
        # A sure statement must hold in every replicate; an expected one for the mean, up to its error
        if form.kind == SURELY:
            exceeded = bool((lefts > rights + ROUNDING * (1 + np.abs(rights))).any())
        else:
            apart, count = lefts - rights, len(replicates)
            spread = apart.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(apart.shape[1:], np.inf)
            exceeded = bool((apart.mean(axis=0) > STANDARD_ERRORS * spread + ROUNDING).any())
            lefts, rights = lefts.mean(axis=0)[None], rights.mean(axis=0)[None]
        # The claim that is closest to its bound after the last round
        left, right = lefts[:, -1].ravel(), rights[:, -1].ravel()
        ratios = np.where(left > 0, right / np.where(left > 0, left, 1), np.inf)
        near = int(np.argmin(ratios)) if np.isfinite(ratios).any() else int(np.argmax(left - right))
        claim = near % first.left.shape[1]
        # A bound above a trivial one says nothing
        if first.trivial is None:
            vacuous = bool(LOOSE < ratios[near] < np.inf)
        else:
            vacuous = bool(right[near] > np.mean([one.trivial[claim] for one in replicates]))  # type: ignore[index]
        told = form._replace(assumptions=assumptions)
        by_round = every_left[..., claim], every_right[..., claim].mean(axis=0)
        yield FormVerdict(
            first, told, float(left[near]), float(right[near]), *by_round, float(ratios[near]), exceeded, vacuous
        )


def rounds_of(algorithm: Algorithm, world: World) -> Iterator[tuple[int, Any, Any, Any]]:
    """Run all rounds; yield each round, the state before it, its outcome, and the state after it."""
    state = algorithm.init(world)
    for t in tqdm(range(world.problem.rounds), "rounds", leave=False, disable=None):
        world.channel.open_round(t, world.problem.present[t])
        before = deepcopy(state)  # step may reuse its arrays
        state, outcome = algorithm.step(world, state, t)
        yield t, before, outcome, state


def log_mean_exp(values: Array) -> Array:
    """Logarithm of the mean of exp(values) over the last axis."""
    largest: Array = values.max(axis=-1)
    told: Array = largest + np.log(np.exp(values - largest[..., None]).mean(axis=-1))
    return told
