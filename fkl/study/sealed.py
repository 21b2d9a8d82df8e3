"""The sealed rows of a study: sealed at registration, and read once after all judged runs have ended."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fkl.basics.errors import FklError, require
from fkl.data import seals
from fkl.data.seals import Seal
from fkl.study.jobs import are_drawn, judged_jobs, words_to_try
from fkl.study.plan import Plan
from fkl.study.search import quiet
from fkl.tasks.run_samples import whole_table


def seal(plan: Plan) -> None:
    """Seal a share of the blocks of each data set.

    Raises
    ------
    fkl.basics.errors.FklError
        For data that each seed draws, or if another study has sealed another share.
    """
    made: dict[Path, Seal] = {}
    for dataset in plan.datasets if plan.sealed else ():
        drawn = are_drawn(plan, dataset)
        require(not drawn, "sealed", plan.sealed, f"left out: each seed draws the rows of {dataset.name} anew")
        run = plan.run(words_to_try(plan, dataset))
        path = seals.path_of(run.data_digest, plan.file)
        require(not path.exists(), "sealed", plan.sealed, f"of a study of its own: one with the same text wrote {path}")
        for other in seals.seals_of(run.data_digest):
            allowed = f"{other.share:g}, the share of {dataset.name} that {other.study} has sealed"
            require(other.share == plan.sealed, "sealed", plan.sealed, allowed)
        with quiet():
            layout = seals.layout_of(whole_table(run, np.random.default_rng(0)).group)
        one = Seal(**_place(plan), share=float(plan.sealed or 0), layout=layout, date=_now())
        first = made.setdefault(path, one)
        allowed = f"left out: {dataset.name} has the files of another data set, read with other keys"
        require(first.layout == layout, "sealed", plan.sealed, allowed)
    for path, one in made.items():
        seals.write(path, one)


def troubles(plan: Plan) -> list[str]:
    """Errors of a registered study's seals: a missing or damaged seal, or another share."""
    said = []
    for path in _paths(plan):
        try:
            found = seals.read(path)
            require(found.share == plan.sealed, "sealed", plan.sealed, f"{found.share:g}, as {path} says")
        except FklError as error:
            said.append(str(error))
    return said


def mark(plan: Plan) -> None:
    """Note in the seals that all runs of a plan have ended: it breaks them, and after the last stage they are spent."""
    left = sum(job.note is None for dataset in plan.datasets for job in judged_jobs(plan, dataset))
    if plan.sealed and left:
        raise FklError(f"{plan.file}: its seals are left as they are: {left} runs have not ended")
    for path in _paths(plan):
        old = seals.read(path)
        new = replace(old, spent=old.spent or _now()) if plan.before else replace(old, broken=old.broken or _now())
        seals.write(path, replace(new, **_place(plan)))


def _paths(plan: Plan) -> list[Path]:
    """The seals of a study, one for the files of each data set."""
    runs = [plan.run(words_to_try(plan, dataset)) for dataset in plan.datasets if plan.sealed]
    return list(dict.fromkeys(seals.path_of(run.data_digest, plan.file) for run in runs))


def _place(plan: Plan) -> dict[str, Any]:
    """Current state of a study."""
    return {"study": str(plan.file.resolve()), "folder": str(plan.folder.resolve())}


def _now() -> str:
    """The date with microseconds: the older of two seals is read first."""
    return datetime.now(UTC).isoformat(sep=" ", timespec="microseconds")
