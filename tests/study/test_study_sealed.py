"""A sealed study from its registration to its answer: refused to all before, read once, and told where it is not so."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fkl.basics.errors import FklError
from fkl.basics.files import read_arrays
from fkl.config import load
from fkl.config.compose import compose
from fkl.data import seals
from fkl.results.tables import LOSSES
from fkl.runs.prepare import prepare
from fkl.study.answer import Answer
from fkl.study.command import command
from fkl.study.jobs import Job, judged_jobs, portions_of
from fkl.study.plan import Plan
from fkl.study.registered import deviations

SMALL = """
methods: [ofmkl_avg, {algo: pooled_raker, name: Raker_p}]
datasets: [diabetes]
tune: {trials: 2, space: {algo.eta: log 0.01..0.2}}
judge: {seeds: 3}
sealed: 0.3
set: [kernels.D=4, kernels.N=2, kernels.laplacians=0, "kernels.smallest=0.5", "kernels.largest=2.0"]
"""
EACH = ("algo=ofmkl_avg", "dataset=diabetes", "kernels.D=4", "replicates=1")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that is not registered yet, with a folder of seals of its own."""
    monkeypatch.setenv("FKL_SEALS", str(tmp_path / "seals"))
    made = tmp_path / "sealed.yaml"
    made.write_text(SMALL)
    return made


def the_seal(folder: Path) -> Path:
    [path] = (folder / "seals").glob("*.json")
    return path


def told(call: "pytest.ExceptionInfo[FklError]") -> str:
    """What was refused, which is one line."""
    said = str(call.value)
    assert "\n" not in said
    return said


def test_sealed_rows_are_refused_then_read_once_and_a_second_time_listed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FklError) as call:
        command(file)
    assert "sealed=0.3: must be registered before the first run" in told(call)
    command(file, register=True)
    # Refused to a run, and to another study
    for rows in ("all", "judge_0", "sealed_0.3"):
        with pytest.raises(FklError) as call:
            prepare(load(compose(*EACH, f"rows={rows}")))
        assert f"sealed by {file}; rows=open_0.3 may be read, and fkl study {file} opens all" in told(call)
    prepare(load(compose(*EACH, "rows=open_0.3")))
    other = tmp_path / "other.yaml"
    other.write_text(SMALL.replace("sealed: 0.3\n", ""))
    with pytest.raises(FklError, match="sealed by"):
        command(other)
    for share in ("0.2", "0.4"):
        other.write_text(SMALL.replace("0.3", share))
        with pytest.raises(FklError, match=r"sealed by|must be 0.3, the share of diabetes that"):
            command(other, register=True)
    assert len([*(tmp_path / "seals").iterdir()]) == 1
    # Killed in the last stage; the same command goes on
    plan, do, done = Plan.read(file), Job.do, []

    def killed(job: Job) -> None:
        if job.plan.before:
            done.append(job.file)
            if len(done) == 4:
                raise KeyboardInterrupt
        do(job)

    monkeypatch.setattr(Job, "do", killed)
    with pytest.raises(KeyboardInterrupt):
        command(file)
    state = seals.read(the_seal(tmp_path))
    assert state.broken and not state.spent
    with pytest.raises(FklError, match="sealed by"):
        prepare(load(compose(*EACH)))
    command(file, status=True)
    before = [path.read_bytes() for path in done[:3]]
    command(file)
    assert [path.read_bytes() for path in done[:3]] == before and len({*done}) == len(done) - 1 == 6
    # All is read, each row at most once in a seed, the same ones in each
    assert seals.read(the_seal(tmp_path)).spent
    prepare(load(compose(*EACH)))
    last = plan.last_stage
    rows = {word for job in judged_jobs(last, plan.datasets[0]) for word in job.words if word.startswith("rows=")}
    assert rows == {"rows=sealed_0.3"}
    used = [_rows(job) for part in plan.parts for job in judged_jobs(part, plan.datasets[0])]
    assert all(not {*opened} & {*sealed} for opened in used[:6] for sealed in used[6:])
    # The answer is of the sealed rows, beside what was judged before
    assert "On the sealed rows of diabetes, " in Answer.of(last).sentences[0]
    assert "on the sealed 30 % of the blocks of rows, read once" in (plan.folder / "results.md").read_text()
    assert "Judged before, on open rows" in (plan.folder / "open-results.md").read_text()
    assert "Judged before, on open rows" in file.with_suffix(".html").read_text()
    assert len(pd.read_csv(plan.folder / "jobs.csv")) == len(pd.read_csv(plan.folder / "sealed-jobs.csv")) == 6
    assert deviations(plan) == deviations(last) == []
    # A second reading
    spent = the_seal(tmp_path).read_bytes()
    done[0].unlink()
    command(file)
    assert deviations(last) == [f"{done[0].name} was judged 2 times"]
    assert the_seal(tmp_path).read_bytes() == spent
    with pytest.raises(FklError, match="registered already"):
        command(file, register=True)
    # A seal that is not there
    the_seal(tmp_path).unlink()
    assert any("there is no such seal any more" in one for one in deviations(last))


def _rows(job: Job) -> list[int]:
    assert job.note is not None
    rows: list[int] = read_arrays(job.plan.folder / "runs" / job.note["folder"] / LOSSES)["row"].tolist()
    assert len({*rows}) == len(rows) > 100
    return rows


@pytest.mark.parametrize(
    ("damage", "said"), [("", "there is no such seal any more"), ("{", "a damaged seal"), ("0.2", "must be 0.2, as ")]
)
def test_a_seal_that_is_missing_or_damaged_is_told(file: Path, tmp_path: Path, damage: str, said: str) -> None:
    command(file, register=True)
    seal = the_seal(tmp_path)
    if damage == "0.2":
        seal.write_text(json.dumps({**json.loads(seal.read_text()), "share": 0.2}))
    elif damage:
        seal.write_text(damage)
    else:
        seal.unlink()
    with pytest.raises(FklError, match=said):
        command(file)
    assert not (tmp_path / "sealed" / "jobs").exists()


def test_data_that_each_seed_draws_are_not_sealed(file: Path) -> None:
    file.write_text(SMALL.replace("[diabetes]", "[synthetic]"))
    with pytest.raises(FklError, match="each seed draws the rows of synthetic anew"):
        command(file, register=True)
    assert not file.with_suffix("").exists()


def test_the_same_file_under_another_name_is_sealed_and_with_other_sites_refused(file: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {name: rng.standard_normal(800) for name in "abcy"}
    for name in ("wards", "copy"):
        pd.DataFrame({**columns, "site": np.repeat([*"nesw"], 200)}).to_csv(tmp_path / f"{name}.csv", index=False)
    part = f"[{{dataset: file, path: {tmp_path / 'wards.csv'}, target: y, site: site, name: wards}}]"
    file.write_text(SMALL.replace("[diabetes]", part))
    command(file, register=True)
    copy = ("algo=ofmkl_avg", "dataset=file", f"dataset.path={tmp_path / 'copy.csv'}", "replicates=1", "partition=iid")
    with pytest.raises(FklError, match="sealed by"):
        prepare(load(compose(*copy, "dataset.target=a", "dataset.site=site")))
    with pytest.raises(FklError, match="with other keys of dataset"):
        prepare(load(compose(*copy, "dataset.target=y", "rows=open_0.3", "dataset.text=drop")))


def test_portions_hold_the_sealed_rows_that_a_run_needs(file: Path) -> None:
    file.write_text(SMALL.replace("seeds: 3", "seeds: 10").replace("set: [", "set: [partition.rounds=3, "))
    plan = Plan.read(file)
    assert portions_of(plan, plan.datasets[0]) == 10
    words = Job(plan.last_stage, plan.datasets[0], plan.methods[0], 4).words
    assert "rows=sealed_0.3_4_of_10" in words
    assert "rows=tune_4_of_10_but_0.3" in Job(plan, plan.datasets[0], plan.methods[0], 4, 0).words
    assert prepare(plan.run(words)).problem.rounds == 3
    file.write_text(file.read_text().replace("sealed: 0.3", "sealed: 0.1"))
    assert portions_of(Plan.read(file), plan.datasets[0]) == 0, "a tenth of a tenth of 442 rows is too little"


def test_of_two_sealed_studies_the_second_waits_for_the_first(file: Path, tmp_path: Path) -> None:
    command(file, register=True)
    second = tmp_path / "second.yaml"
    second.write_text(SMALL)
    with pytest.raises(FklError, match="one with the same text wrote"):
        command(second, register=True)
    second.write_text("question: Once more?" + SMALL)
    command(second, register=True)
    with pytest.raises(FklError) as call:
        command(second)
    assert f"rows=sealed_0.3: some are sealed by {file}" in told(call)
    notes = [path.name for path in (tmp_path / "second" / "jobs").iterdir()]
    assert sum("judged" in name for name in notes) == 6 and not any("sealed" in name for name in notes)
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (file, file.with_suffix("")):
        path.rename(moved / path.name)
    command(moved / file.name)
    command(second)
    assert all(seals.read(path).spent for path in (tmp_path / "seals").iterdir())
