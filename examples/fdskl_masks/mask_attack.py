"""Attacks on FDSKL: others' features that workers, or an eavesdropper, can compute from received messages.

FDSKL's Definition 6: the directions w of all features are public, and so are the trees. An attacker has the messages
that it received, and a worker also its own features, masks and phases. Nothing else is used here. It knows that
features are scaled to [0, 1] and, optionally, that they are 0 or 1.

Angles are sums over workers, sum_j (w_j'x_j + b^j), so every message is a known combination of unknown numbers.
`equations` removes the masks, as far as the messages allow, and `solve` is least squares in what is left; if angles are
known only up to whole turns, or up to a phase that all samples share, it also finds these.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN, Dsg
from fkl.algorithms.vertical.fdskl import MASK, MASKED, Fdskl, Worker
from fkl.conformance.isolated import ActorInSight, Heard, Mail
from fkl.contract.parties import Actor, Wire
from fkl.contract.world import Common
from fkl.data.vertical import Vertical

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ENOUGH = 40
"""Equations for each unknown of a sum; more are left out."""
STEPS = 30
"""Number of repeated guesses of turns and phases."""
FITS = 0.5
"""Radians, root mean square, below which a row fits; unrelated angles leave 1.8."""


class Block(NamedTuple):
    """Equations w'x = angle (- phase) for one set of workers, all features of an iteration and all rows.

    Parameters
    ----------
    w : (D, d)
        Zero in the features of other workers.
    angle : (rows, D)
    exact : bool
        Whether nothing is added; otherwise the same unknown number is added in all rows.
    """

    w: Array
    angle: Array
    exact: bool


class Received(NamedTuple):
    """Messages about one call of Algorithm 3, each a combination of unknowns.

    Parameters
    ----------
    values : (m, q) int
        Whether a message contains w_j'x_j of worker j.
    masks : (m, q) int
        Whether it contains worker j's mask.
    stays : (m,) int
        Whether it contains the phase of l' that stays, in addition to a mask.
    payload : (m, rows, D)
    """

    values: Integers
    masks: Integers
    stays: Integers
    payload: Array


@dataclass
class Listener(Worker):
    """A worker that records its masks; all features so far are requested for the rows of one batch (Algorithm 2).

    Each call of Algorithm 3 is the worker's own; only its use of the angles is left out.
    """

    rows: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    drawn: dict[int, Array] = field(default_factory=dict)

    def play(self) -> Actor:
        """One call of Algorithm 3 per feature."""
        for s in range(self.method.iterations):
            found = yield from self.sum_angles(s, self.rows)
            self.known[s] = self.rows
            if found is not None:
                self.angles[s] = found

    def draw_mask(self, s: int, shape: tuple[int, ...]) -> Array:
        """As in a worker, with the same result for a repeated request."""
        if s not in self.drawn:
            self.drawn[s] = super().draw_mask(s, shape)
        return self.drawn[s]


@dataclass(frozen=True)
class Overheard:
    """Letters on the wire, and the records of each worker.

    Parameters
    ----------
    method : Fdskl
    common : Common
    problem : Vertical
    workers : list of Listener
        Workers with records; an attacker has its own.
    rows : (B,) int
        Rows of the batch in all letters.
    letters : list of Heard
    """

    method: Fdskl
    common: Common
    problem: Vertical
    workers: list[Listener]
    rows: Integers
    letters: list[Heard]

    @classmethod
    def from_protocol(cls, method: Fdskl, common: Common, problem: Vertical) -> "Overheard":
        """The calls of Algorithm 3 for the batch of the last iteration, and all features so far."""
        _, holders = method.dealt(common, problem)
        rows = Dsg.first_learner(method, common, problem).batches[-1]
        workers = [Listener(method, holder, Wire(), rows=rows) for holder in holders]  # type: ignore[arg-type]
        return cls(method, common, problem, workers, rows, listen(workers))

    def duties(self, s: int) -> tuple[int, int]:
        """Workers l and l' of an iteration, which all know."""
        root, apart = self.workers[0].own.duties[s].tolist()
        return root, apart


def listen(workers: Iterable[Worker]) -> list[Heard]:
    """All letters of these workers."""
    heard: list[Heard] = []
    Mail([ActorInSight(worker.play(), worker.wire) for worker in workers], heard).deliver_letters()
    return heard


def equations(play: Overheard, attackers: Iterable[int] | None, s: int) -> list[Block]:
    """Knowledge of attackers (None: an eavesdropper on all links) about the features of iteration s.

    Masks with one number per feature cancel in differences between rows, so a sum that still has them is useful. Masks
    with one number per row have to be removed first.
    """
    members = () if attackers is None else tuple(attackers)
    heard = [one for one in play.letters if one.about[0] == s and (attackers is None or one.receiver in members)]
    if not heard:
        return []
    received = _less_own_parts(play, heard, members, s)
    everything = np.column_stack([received.masks, received.stays])
    changing = received.masks[:, : len(play.workers) * (play.method.masks == "fresh")]
    blocks = _blocks(play, *_without_unknowns(everything, received), s, exact=True)
    covered = np.zeros(play.problem.dimension, bool)
    for block in blocks:
        covered |= block.w.any(axis=0)
    relative = _blocks(play, *_without_unknowns(changing, received), s, exact=False)
    return blocks + [one for one in relative if (one.w.any(axis=0) & ~covered).any()]


class Found(NamedTuple):
    """An attacker's estimate of others' features.

    Parameters
    ----------
    x : (rows, d)
    claimed : (rows, d) bool
        Entries about which it can be sure: the equations determine them, and they fit.
    """

    x: Array
    claimed: NDArray[np.bool_]


def solve(blocks: list[Block], turned: bool, binary: bool) -> Found:
    """Best fitting features, by least squares.

    Parameters
    ----------
    blocks : list of Block
        At least one.
    turned : bool
        Whether angles are known only up to whole turns.
    binary : bool
        Whether all features are known to be 0 or 1, not only between these.
    """
    w, angle = np.concatenate([one.w for one in blocks]), np.concatenate([one.angle for one in blocks], axis=1)
    relative = np.concatenate([np.full(len(one.w), not one.exact) for one in blocks])
    inverse = np.linalg.pinv(w)
    determined = np.einsum("dk,kd->d", inverse, w) > 1 - 1e-6
    floats = ~(w[~relative] != 0).any(axis=0)  # only differences between rows are known: [0, 1] gives the rest
    x = np.full((len(angle), w.shape[1]), 0.5)
    for _ in range(STEPS if turned else 2):
        x = x + _residuals(angle - x @ w.T, relative, turned) @ inverse.T
        x -= np.where(floats, (x.min(axis=0) + x.max(axis=0) - 1) / 2, 0)
        x = np.clip(x, 0, 1) if turned else x
    x = np.round(x).clip(0, 1) if binary else x
    left = _residuals(angle - x @ w.T, relative, turned)
    fits = np.sqrt((left**2).mean(axis=1)) < FITS
    return Found(x, fits[:, None] & determined)


def _residuals(left: Array, relative: NDArray[np.bool_], turned: bool) -> Array:
    """Residuals of the features, without the phase that all rows share and whole turns."""
    if not turned:
        return left - np.where(relative, left.mean(axis=0), 0)
    phase = np.angle(np.exp(1j * left).mean(axis=0))
    return np.asarray((left - np.where(relative, phase, 0) + np.pi) % TURN - np.pi)


def gathered(blocks: Iterable[Block]) -> list[Block]:
    """Enough equations for every feature: exact ones first, then those that involve few workers."""
    chosen: list[Block] = []
    have = np.zeros(1)
    for block in sorted(blocks, key=lambda one: (not one.exact, one.w.any(axis=0).sum())):
        here = block.w.any(axis=0)
        have = np.zeros(here.shape) if have.shape != here.shape else have
        if (have[here] < ENOUGH * here.sum()).any():
            chosen.append(block)
            have += here * len(block.w)
    return chosen


def _less_own_parts(play: Overheard, heard: list[Heard], members: tuple[int, ...], s: int) -> Received:
    """Messages minus the attackers' own contributions."""
    # Unknowns of each message, from the trees that all workers know
    root, apart = play.duties(s)
    trees = dict(zip((MASKED, MASK), play.workers[root].sum_trees(root, apart), strict=True))
    leaves = {
        (kind, link): under for kind, tree in trees.items() for under, link in zip(tree.sent, tree.links, strict=True)
    }
    under = [leaves[message.kind, (message.sender, message.receiver)] for message in heard]
    masked = np.array([message.kind == MASKED for message in heard], np.int64)
    masks = np.array([[worker in those for worker in range(len(play.workers))] for those in under], np.int64)
    values = masks * masked[:, None]
    stays = masked * np.array([play.method.masks == "fresh" and apart in those for those in under])
    payload = np.stack([message.values for message in heard])
    for member in members:
        worker = play.workers[member]
        payload = payload - values[:, member, None, None] * worker.partial_products(s, play.rows)
        payload = payload - masks[:, member, None, None] * worker.draw_mask(s, payload.shape[1:])
        values[:, member] = masks[:, member] = 0
        if member == apart:
            payload = payload - stays[:, None, None] * worker.phases(s)
            stays = np.zeros_like(stays)
    return Received(values, masks, stays, payload)


def _without_unknowns(nuisance: Integers, received: Received) -> tuple[Integers, Array]:
    """Combinations of messages without these unknowns, from as few workers as possible.

    Trees are nested sets, so integer multiples of messages are enough, and whole turns stay whole.
    """
    unknown, payload, start = np.column_stack([nuisance, received.values]), received.payload.copy(), 0
    for column in range(unknown.shape[1]):
        pivots = start + np.flatnonzero(np.abs(unknown[start:, column]) == 1)
        if not pivots.size:
            continue
        swap = [start, int(pivots[0])]
        unknown[swap], payload[swap] = unknown[swap[::-1]], payload[swap[::-1]]
        sign = unknown[start, column]
        unknown[start], payload[start] = sign * unknown[start], sign * payload[start]
        for other in np.flatnonzero(unknown[:, column]):
            if other != start:
                times = unknown[other, column]
                unknown[other] -= times * unknown[start]
                payload[other] -= times * payload[start]
        start += 1
    free, first = ~unknown[:, : nuisance.shape[1]].any(axis=1), nuisance.shape[1]
    return unknown[free, first:], payload[free]


def _blocks(play: Overheard, values: Integers, angle: Array, s: int, exact: bool) -> list[Block]:
    w, groups = play.method.directions(play.common, s), play.problem.groups
    blocks = []
    for combination, one in zip(values, angle, strict=True):
        if combination.any():
            scale = np.zeros(play.problem.dimension)
            for times, group in zip(combination, groups, strict=True):
                scale[group] = times
            blocks.append(Block(w * scale, one, exact))
    return blocks
