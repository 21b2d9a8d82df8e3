"""The search of a study does not depend on its judged rows: whatever is in their cells, its trials are the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fkl.data.dealt_rows import in_part
from fkl.study.jobs import StudyJob
from fkl.study.plan import Plan

ROWS = 400
FILE = """
methods: [{methods}]
datasets: [{{dataset: file, path: {path}, target: {target}, {keys}}}]
claim: {claim}
tune: {{trials: 3, space: {{{space}}}}}
judge: {{seeds: 3}}
set: [{words}]
"""
AUTO = "kernels=auto, kernels.D=5"
STREAM = ("vm_kofl, pof_mkl", "algo.eta: log 0.03..3", AUTO)
BATCH = (
    "one_shot_ridge, falkon",
    "algo.lam: log 1e-4..1",
    f"{AUTO}, kernels.N=1, kernels.smallest=1, kernels.largest=1",
)
PARTIES = ("vertical_ridge, fdskl", "algo.lam: log 1e-4..1e-2", "partition=vertical, partition.parties=2")
BOTH = "missing: mean, text: one_hot"
CASES = {
    "a stream": (*STREAM, "rows", "stay", f"{BOTH}, site: ward"),
    "a stream of codes": (*STREAM, "rows", "stay", "missing: mean, text: code, site: ward"),
    "a stream of one client": (*STREAM, "rows", "stay", f"{BOTH}, drop: [ward]"),
    "a stream's later rows": (*STREAM, "time", "stay", f"{BOTH}, site: ward"),
    "a stream of classes": (*STREAM, "rows", "kind", f"{BOTH}, site: ward, labels: code"),
    "a batch": (*BATCH, "rows", "stay", f"{BOTH}, site: ward"),
    "a batch's later rows": (*BATCH, "time", "stay", f"{BOTH}, site: ward"),
    "a batch of classes": (*BATCH, "rows", "kind", f"{BOTH}, site: ward, labels: code"),
    "parties": (*PARTIES, "rows", "kind", f"{BOTH}, drop: [ward], labels: code"),
}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    size, drug = rng.normal(5, 1, ROWS), rng.choice(["b", "c", "d"], ROWS)
    frame = pd.DataFrame({"age": rng.uniform(0, 90, ROWS), "size": size, "drug": drug})
    frame["stay"] = 20 + 3 * size + 5 * (drug == "c") + rng.normal(0, 1, ROWS)
    frame["kind"] = np.where(frame["stay"] + rng.normal(0, 2, ROWS) > 36, "low", "high")
    frame["ward"] = rng.choice(["north", "south"], ROWS)
    frame.loc[::7, "size"] = np.nan
    return frame


def changed(frame: pd.DataFrame, rows: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """These rows with other numbers, some of them far, with holes, and with words and classes of their own."""
    frame, count = frame.copy(), int(rows.sum())
    for name in ("age", "size", "stay"):
        values = rng.normal(-1e4, 1e5, count)
        values[rng.integers(count)] = 1e9
        if name != "stay":
            values[rng.random(count) < 0.5] = np.nan
        frame.loc[rows, name] = values
    frame.loc[rows, "drug"] = rng.choice(["a", "c", "zz"], count)
    frame.loc[rows, "kind"] = rng.choice(["at once", "high"], count)
    return frame


def plan_of(folder: Path, frame: pd.DataFrame, case: tuple[str, ...]) -> Plan:
    methods, space, words, claim, target, keys = case
    folder.mkdir()
    left = "" if target == "kind" else "kind"
    frame.drop(columns=[left] if left else []).to_csv(folder / "own.csv", index=False)
    file = folder / "study.yaml"
    text = FILE.format(
        methods=methods, path=folder / "own.csv", target=target, keys=keys, claim=claim, space=space, words=words
    )
    file.write_text(text)
    return Plan.read(file)


def trials(plan: Plan, method: int) -> list[dict[str, Any]]:
    """The trials of the first search of a method, without the time that they took."""
    job = StudyJob(plan, plan.datasets[0], plan.methods[method], 0, wave=0)
    job.do_job()
    found: list[dict[str, Any]] = json.loads(job.file.read_text())["trials"]
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in found]


def searched(plan: Plan, frame: pd.DataFrame) -> np.ndarray:
    """Whether each row is one of the search's."""
    [rows] = [
        word for word in StudyJob(plan, plan.datasets[0], plan.methods[0], 0, wave=0).words if word.startswith("rows=")
    ]
    site = np.zeros(ROWS, np.int64)
    if "site" in plan.file.read_text():
        site = pd.factorize(frame["ward"])[0].astype(np.int64)
    return in_part(rows.removeprefix("rows="), site)


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_judged_rows_change_no_digit_of_a_search(tmp_path: Path, case: tuple[str, ...], method: int) -> None:
    frame, plan = table(), plan_of(tmp_path / "before", table(), case)
    before, mine = trials(plan, method), searched(plan, table())
    assert "failed" not in [trial["state"] for trial in before], before
    assert 0 < mine.sum() < ROWS
    for number in range(2):
        other = changed(frame, ~mine, np.random.default_rng(number))
        assert trials(plan_of(tmp_path / f"after{number}", other, case), method) == before
    other = changed(frame, mine, np.random.default_rng(5))
    assert trials(plan_of(tmp_path / "own rows", other, case), method) != before
