"""Attacks on the messages of FDSKL's workers: share of others' features that an attacker recovers with each mask.

    python examples/fdskl_masks/mask_audit.py [KEY=VALUE ...]

Words as for `fkl run algo=fdskl`; without any, phishing with its defaults, 20 iterations of 512 samples. The attacked
batch is that of the last iteration, when the workers have requested its angles for all features so far.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from mask_attack import Found, Overheard, equations, gathered, solve
from numpy.typing import NDArray

from fkl.algorithms.vertical.fdskl import MASKS, Fdskl
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.contract.world import Common
from fkl.data.vertical import Vertical
from fkl.engines.base import make_world
from fkl.runs.prepare import prepare_run
from fkl.screen.messages import print_lines
from fkl.screen.sheet import Sheet

Array = NDArray[np.float64]
SHORT = ("algo.iterations=20", "algo.batch=512")
RECOVERED = 0.01
"""Error up to which a feature from 0 to 1 counts as recovered."""
OUTSIDER = "outsider on all links"
SPOKEN = {OUTSIDER: "who listens on all links"}
"""Attackers in a sentence."""
BUT_FOR_A_SHIFT = "but_for_a_shift_percent"


class Played:
    """Attacks on the calls of Algorithm 3 for one batch, that of the last iteration, and all features so far.

    Parameters
    ----------
    method : Fdskl
        Method with the played number of iterations.
    common : Common
        `Common` of one replicate.
    problem : Vertical
    """

    def __init__(self, method: Fdskl, common: Common, problem: Vertical) -> None:
        self.heard = Overheard.from_protocol(method, common, problem)
        self.rows = self.heard.rows
        self.binary = bool(np.isin(problem.x[self.rows], (0, 1)).all())

    def attackers(self) -> dict[str, tuple[int, ...] | None]:
        """Attackers by name."""
        active, duties = self.heard.problem.active, self.heard.workers[0].own.duties
        apart = int(np.bincount(duties[duties[:, 0] == active[0], 1]).argmax())
        last = self.heard.problem.parties - 1
        return {
            "asking worker": (active[0],),
            "asking worker and an l' of its own": (active[0], apart),
            "one other worker": (last,),
            "two other workers": (last - 1, last),
            OUTSIDER: None,
        }

    def attack(self, attackers: tuple[int, ...] | None, turned: bool) -> Found | None:
        """Their result; None if nothing that they know depends only on others' features."""
        calls = range(self.heard.method.iterations)
        blocks = [block for s in calls for block in equations(self.heard, attackers, s)]
        return solve(gathered(blocks), turned, self.binary) if blocks else None


FILE = Path("outputs") / "fdskl_masks.csv"


def main(words: list[str]) -> None:
    """Attack, print the result, and write all columns to `FILE`."""
    own_data = any(word.startswith(("dataset=", "+fdskl/")) for word in words)
    run = load_run(compose_config("algo=fdskl", *(() if own_data else ("+fdskl/kernel=phishing",)), *SHORT, *words))
    require(isinstance(run.algo, Fdskl), "algo", run.algo.label, "fdskl")
    experiment = prepare_run(run)
    T, B = run.algo.iterations, run.algo.batch
    room = 2 * T * B * run.algo.features * experiment.problem.parties * 8 * 2
    require_memory(room, f"messages of {T} iterations", "algo.iterations or algo.batch")
    world, _ = make_world(experiment, (0,))
    frame = audit(run.algo, world.common, experiment.problem)
    print_lines(f"FDSKL on {run.dataset.name}: what attackers recover of {B:,} samples after {T} iterations")
    print_lines(*sentences(frame), "")
    shares = frame.pivot_table(BUT_FOR_A_SHIFT, "attacker", "masks", sort=False)
    rows = [[name, *map(_share, row)] for name, row in zip(shares.index, shares.to_numpy(), strict=True)]
    Sheet.from_rows(["recovered up to a shift", *shares], rows, range(1, 1 + shares.shape[1])).print_sheet()
    print_lines("", *conclusion(frame), f"all columns: {FILE}")
    FILE.parent.mkdir(exist_ok=True)
    frame.to_csv(FILE, index=False)


def sentences(frame: pd.DataFrame) -> Iterator[str]:
    """The attackers' result with each mask, one sentence per mask."""
    for masks, rows in frame.groupby("masks", sort=False):
        told = []
        for row in rows[rows[BUT_FOR_A_SHIFT] > 0].to_dict("records"):
            right, shifted = _share(row["recovered_percent"]), _share(row[BUT_FOR_A_SHIFT])
            more = f", and {shifted} up to a shift" * (right != shifted)
            told.append(f"{SPOKEN.get(row['attacker'], row['attacker'])} gets {right}{more}")
        yield f"✗ {masks}: {'; '.join(told)}" if told else f"✓ {masks}: no party recovers a feature of another"


def conclusion(frame: pd.DataFrame) -> Iterator[str]:
    """Masks with which no attacker recovers anything, and their costs."""
    most = frame.groupby("masks", sort=False)[BUT_FOR_A_SHIFT].max()
    safe, leaking = most.index[most == 0], most[most > 0]
    if len(safe) and len(leaking):
        low, high = _share(leaking.min()), _share(leaking.max())
        span = high if low == high else f"{low} to {high}"
        yield f"Choose algo.masks={' or '.join(safe)}: the others let an attacker have {span} up to a shift."
    sent = frame.groupby("masks", sort=False)["run_scalars"].first()
    yield f"Numbers sent in the run: {', '.join(f'{masks} {scalars:,}' for masks, scalars in sent.items())}."


def _share(percent: float) -> str:
    return f"{percent:.0f} %"


def audit(method: Fdskl, common: Common, problem: Vertical, masks: tuple[str, ...] = MASKS) -> pd.DataFrame:
    """One row for each mask and attacker.

    Returns
    -------
    DataFrame
        entries: features of others in the batch; recovered_percent: of these, right within 0.01 where the fit confirms
        them to the attacker; but_for_a_shift_percent: the same if each feature may be shifted by one number for all
        samples, so only differences are right; rms_error: error of its guesses of all of them; rms_of_means: error of
        guessing only the mean of each feature; run_scalars: sent in the whole run.
    """
    return pd.DataFrame(row for one in masks for row in _rows(Played(replace(method, masks=one), common, problem)))


def _rows(played: Played) -> Iterator[dict[str, object]]:
    problem, method = played.heard.problem, played.heard.method
    sent = method.first_learner(played.heard.common, problem).sent(method.iterations)
    scalars = sum(int(count[:, 1].sum()) for count in sent.values())
    for name, attackers in played.attackers().items():
        own = [problem.groups[member] for member in attackers or ()]
        others = np.setdiff1d(np.arange(problem.dimension), np.concatenate(own) if own else [])
        if not others.size:
            continue
        truth = problem.x[np.ix_(played.rows, others)]
        found = played.attack(attackers, turned=method.masks != "paper")
        row: dict[str, object] = {"masks": method.masks, "attacker": name, "entries": truth.size}
        row |= {"recovered_percent": 0.0, "but_for_a_shift_percent": 0.0, "rms_error": np.nan}
        if found is not None:
            claimed, errors = found.claimed[:, others], found.x[:, others] - truth
            for key, one in (("recovered", errors), ("but_for_a_shift", errors - np.median(errors, axis=0))):
                row[f"{key}_percent"] = 100 * float((claimed & (np.abs(one) <= RECOVERED)).mean())
            row["rms_error"] = _rms(errors)
        yield row | {"rms_of_means": _rms(truth - truth.mean(axis=0)), "run_scalars": scalars}


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FklError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
