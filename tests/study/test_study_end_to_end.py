"""A small study from its file to its page: tuned and judged on rows apart, resumed, registered, failures told."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_browser import PHONE, opened, require_black_on_white, require_keyboard, require_whole
from numpy.typing import NDArray

import fkl
from fkl.basics.errors import FklError
from fkl.basics.files import read_arrays
from fkl.data.dealt_rows import in_part
from fkl.runs.tables import LOSSES
from fkl.statistics.verdicts import as_table
from fkl.study import jobs
from fkl.study.answer import Answer
from fkl.study.command import command
from fkl.study.jobs import Job, judged_jobs
from fkl.study.paper import methods_paragraph
from fkl.study.plan import Plan
from fkl.study.play import _progress, play
from fkl.study.progress import check
from fkl.study.registered import deviations, register, require_unchanged
from fkl.study.results import stages
from fkl.study.tables import errors, results, setup

SMALL = """
question: Which one?
methods: [ofmkl_avg, {algo: pooled_raker, name: Raker_p}]
datasets: [diabetes]
tune: {trials: 2}
judge: {seeds: 3}
set: [kernels.D=4, kernels.N=2, kernels.laplacians=0, "kernels.smallest=0.5", "kernels.largest=2.0"]
"""


def study(file: Path, **options: bool) -> None:
    command(file, (), **options)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A study that has ended; tests only read it."""
    folder = tmp_path_factory.mktemp("study")
    file = folder / "small.yaml"
    file.write_text(SMALL)
    study(file)
    return Plan.read(file)


def copied(done: Plan, folder: Path) -> Plan:
    """A copy, whose runs are in another folder."""
    shutil.copytree(done.file.parent, folder, dirs_exist_ok=True)
    return Plan.read(folder / done.file.name)


def told(plan: Plan) -> pd.DataFrame:
    """The judged runs without times, and without digests, which know the folder."""
    return pd.read_csv(plan.folder / "jobs.csv").drop(columns=["seconds", "folder"])


def test_all_is_there_and_the_answer_comes_first(done: Plan) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert {"jobs.csv", "trials.csv", "results.csv", "results.md", "results-240pt.tex", "results-345pt.tex"} <= names
    assert {"setup.csv", "searched.md", "tests-diabetes-240pt.tex", "methods.tex", "references.bib"} <= names
    assert {"paper.tex", "error-against-bytes.png", "differences.csv", "differences.png", "plan.yaml"} <= names
    assert len(told(done)) == 6
    assert len(pd.read_csv(done.folder / "trials.csv")) >= 2 * 2 * 3
    page = done.file.with_suffix(".html").read_text()
    sentence = Answer.of(done).sentences[0]
    assert sentence.split(" ")[0] in page[: page.index("Errors and costs")]
    assert "http://" not in page and "https://" not in page
    assert fkl.compare(done.folder).pivot.methods, "its folder can be compared as that of a sweep"


def test_its_page_is_whole_in_a_browser(browser: Any, done: Plan) -> None:
    page = done.file.with_suffix(".html")
    require_whole(browser, page, page.with_suffix(""))
    with opened(browser, page, PHONE) as tab:
        assert any("scroll" in name for name in require_keyboard(tab)), "wide tables are scrolled by keyboard"
        require_black_on_white(tab)


def test_what_its_methods_cite_is_in_its_bibliography(done: Plan) -> None:
    said = (done.folder / "methods.tex").read_text(encoding="utf-8")
    keys = {key for found in re.findall(r"\\cite\{([^}]*)\}", said) for key in found.split(",")}
    assert {"fkl", "akiba2019optuna", "holm1979", "cameron2011", "mitra2021online", "efron2004least"} <= keys
    bibliography = (done.folder / "references.bib").read_text(encoding="utf-8")
    assert keys == {*re.findall(r"^@\w+\{(.*),$", bibliography, re.MULTILINE)}


def test_tuned_and_judged_rows_are_apart_and_dealt_anew_in_each_seed(done: Plan) -> None:
    judged = []
    for job in judged_jobs(done, done.datasets[0]):
        assert job.note is not None
        arrays = read_arrays(done.folder / "runs" / job.note["folder"] / LOSSES)
        np.testing.assert_allclose(arrays["loss"].mean(), job.note["error"], rtol=1e-8)
        judged.append({*arrays["row"].tolist()})
    assert judged[0] == judged[1], "both methods are judged on the same rows of a seed"
    assert judged[0] != judged[2]
    search, run = (Job(done, done.datasets[0], done.methods[0], 1, wave) for wave in (0, None))
    assert "rows=tune_1" in search.words and "rows=judge_1" in run.words
    assert "seed=1000001" in search.words and "seed=1" in run.words


def test_a_study_that_was_interrupted_goes_on_to_the_same(
    done: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / done.file.name
    file.write_text(SMALL)
    plan, began = Plan.read(file), []
    do = Job.do

    def interrupted(job: Job) -> None:
        began.append(job)
        if len(began) == 9:
            raise KeyboardInterrupt
        do(job)

    monkeypatch.setattr(Job, "do", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play(plan)
    assert 0 < len(told(plan)) < 6
    assert not Answer.of(plan).finished
    study(file, status=True)
    play(plan)
    pd.testing.assert_frame_equal(told(plan), told(done))
    begun = len(began)
    play(plan)
    assert len(began) == begun, "what has ended is not done again"


def test_a_study_that_was_moved_has_ended_all_the_same(done: Plan, tmp_path: Path) -> None:
    moved = copied(done, tmp_path)
    assert all(job.note for job in judged_jobs(moved, moved.datasets[0]))


def test_failures_are_told_with_their_rate_and_decide_by_ranks(tmp_path: Path) -> None:
    file = tmp_path / "failing.yaml"
    file.write_text(SMALL.replace("ofmkl_avg,", "ofmkl_avg, {algo: ofmkl_avg, eta: 1e30, name: Wild},"))
    study(file)
    plan = Plan.read(file)
    answer = Answer.of(plan)
    assert any("Wild failed on diabetes in 3 of 3 seeds [44 %, 100 %]" in note for note in answer.notes)
    [one] = [one for one in answer.verdicts["diabetes"] if {one.a, one.b} == {"OFMKL-Avg", "Wild"}]
    assert one.difference.failed_b == 3
    assert one.outcome == "cannot tell"  # three signed ranks cannot be small enough
    assert "3 of 3 failed" in (plan.folder / "results.md").read_text()
    assert (pd.read_csv(plan.folder / "trials.csv").query("method == 'Wild'").state == "failed").all()


def test_a_method_with_failed_seeds_has_no_figure_of_the_survivors(done: Plan, tmp_path: Path) -> None:
    """One run of three failed, as its note says."""
    plan = copied(done, tmp_path)
    file = judged_jobs(plan, plan.datasets[0])[0].file
    note = json.loads(file.read_text())
    file.write_text(json.dumps({**note, "state": "failed", "error": None, "reason": "it diverged"}))
    judged = Answer.of(plan).judged
    frame = errors(judged).set_index("method")
    row, other = frame.loc[note["method"]], frame.drop(note["method"]).iloc[0]
    assert (row["failed"], row["of"]) == (1, 3)
    assert row[["error", "sd", "r2", "uplink_bytes", "seconds", "below_mean_percent"]].isna().all()
    assert not other[["error", "sd", "r2", "uplink_bytes", "seconds", "below_mean_percent"]].isna().any()
    [cells] = [row for row in results(errors(judged)).rows if row[0].text == note["method"]]
    assert [cell.text for cell in cells] == [note["method"], "1 of 3 failed", *[""] * (len(cells) - 2)]
    assert (setup(plan, judged).set_index("method")["seeds"] == "3").all()
    assert "none was left out" not in methods_paragraph(Answer.of(plan))
    assert "exact signed ranks" in methods_paragraph(Answer.of(plan))


def test_a_name_is_printed_and_decides_nothing(done: Plan, tmp_path: Path) -> None:
    """Any letters, also two names of the same ones; with other names a finished study has ended all the same."""
    plan = copied(done, tmp_path)
    text = SMALL.replace(
        "[ofmkl_avg, {algo: pooled_raker, name: Raker_p}]",
        "[{algo: ofmkl_avg, name: A+}, {algo: pooled_raker, name: A-}]",
    )
    for names in ("A+ A-", "Ä Ö", "甲 乙"):
        first, second = names.split()
        plan.file.write_text(
            text.replace("A+", first).replace("A-", second).replace("[diabetes]", "[{dataset: diabetes, name: Ω}]")
        )
        renamed = Plan.read(plan.file)
        assert all(job.note for job in judged_jobs(renamed, renamed.datasets[0]))
        verdict = Answer.of(renamed).verdicts["Ω"][0]
        assert {verdict.a, verdict.b} == {first, second}
        assert Answer.of(renamed).finished
        study(plan.file)
        assert set(pd.read_csv(renamed.folder / "results.csv")["method"]) == {first, second}
    assert [*told(Plan.read(plan.file))["error"]] == [*told(done)["error"]]


def test_what_sends_more_than_the_budget_has_failed(tmp_path: Path) -> None:
    file = tmp_path / "budget.yaml"
    file.write_text(SMALL.replace("{algo: pooled_raker, name: Raker_p}", "rf_gp") + "budget: {uplink_bytes: 10_000}\n")
    plan = Plan.read(file)
    play(plan)
    reasons = {job.note["reason"] for job in judged_jobs(plan, plan.datasets[0]) if job.note and job.note["reason"]}
    assert reasons == {"all trials of its search failed"}
    trials = [
        trial
        for _, some in stages(plan, plan.datasets[0])
        for job in some
        for trial in (job.note or {}).get("trials", ())
    ]
    assert any("over the budget of 1e+04" in trial["reason"] for trial in trials)


def test_a_best_value_outside_the_range_is_widened_for_twice_and_marked(tmp_path: Path) -> None:
    file = tmp_path / "narrow.yaml"
    file.write_text(SMALL.replace("trials: 2", "trials: 12, space: {algo.eta: log 1e-7..1e-6}"))
    plan = Plan.read(file)
    play(plan)
    dataset, method = plan.datasets[0], plan.methods[0]
    assert jobs.last_wave(plan, dataset, method) == 2
    assert str(jobs.spaces_of(plan, dataset, method, 2)["algo.eta"]) == "log 1e-07..0.0001"
    assert any("algo.eta at its high end" in note for note in Answer.of(plan).notes)


def test_a_registered_study_tells_what_was_done_otherwise(done: Plan, tmp_path: Path) -> None:
    with pytest.raises(FklError, match="cannot be registered any more"):
        register(done)
    file = tmp_path / "frozen.yaml"
    file.write_text(SMALL)
    plan = Plan.read(file)
    register(plan)
    study(file)
    assert "Registered on" in (plan.folder / "results.md").read_text()
    assert deviations(plan) == []
    # A second judgement
    job = judged_jobs(plan, plan.datasets[0])[0]
    job.file.unlink()
    play(Plan.read(file))
    assert any("was judged 2 times" in one for one in deviations(plan))
    # An edited run, and one outside the plan
    assert job.note is not None
    run = plan.folder / "runs" / job.note["folder"]
    shutil.copytree(run, run.with_name("other"))
    summary = run / "summary.csv"
    summary.write_text(summary.read_text().replace("0.", "1.", 1))
    said = " ".join(deviations(plan))
    assert "summary.csv has changed" in said and "runs/other is outside the plan" in said
    # An edited note
    note = json.loads(job.file.read_text())
    job.file.write_text(json.dumps(note | {"error": note["error"] / 2}))
    assert any("is not what was judged" in one for one in deviations(plan))
    # Another plan
    file.write_text(SMALL.replace("seeds: 3", "seeds: 4"))
    with pytest.raises(FklError, match="changed since: plan"):
        require_unchanged(Plan.read(file))


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX on this machine")
def test_its_paper_and_its_narrow_tables_compile_without_overfull_boxes(done: Plan, tmp_path: Path) -> None:
    plan = copied(done, tmp_path)
    narrow = "\n".join(rf"\input{{{one.name}}}" for one in sorted(plan.folder.glob("*-240pt.tex")))
    (plan.folder / "narrow.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs,graphicx,textcomp}\textwidth=240pt \hsize=240pt \begin{document}"
        + narrow
        + r"\end{document}"
    )
    environment = {**os.environ, "max_print_line": "1000"}
    for name in ("paper", "narrow"):
        call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]
        ended = subprocess.run(call, cwd=plan.folder, capture_output=True, text=True, env=environment, check=False)
        assert ended.returncode == 0, ended.stdout[-2000:]
        assert "Overfull" not in ended.stdout


def test_a_pilot_says_how_many_seeds_are_needed_and_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "piloted.yaml"
    file.write_text(SMALL.replace("trials: 2", "trials: 2, space: {algo.eta: log 0.01..0.2}"))
    study(file, pilot=True)
    said = capsys.readouterr().out
    assert "diabetes: OFMKL-Avg and Raker_p: 2 %: " in said
    assert "by a pilot of 5" in said
    plan = Plan.read(file)
    assert not any(job.note for job in judged_jobs(plan, plan.datasets[0]))
    job = Job(plan.as_pilot(), plan.datasets[0], plan.methods[0], 1)
    assert job.note is not None
    assert {"seed=500001", "rows=judge_500001"} <= {*job.words}
    register(plan)  # a pilot does not stand in its way


@pytest.mark.parametrize(
    ("claim", "unit", "units"), [("clients", "client", 4), ("time", "block", 10), ("seeds", "seed", 3)]
)
def test_each_claim_has_its_own_unit(claim: str, unit: str, units: int, tmp_path: Path) -> None:
    """On a file of four sites of one's own, whose clients are natural."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((480, 3))
    rows = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=np.sin(x[:, 0]) + x[:, 1], site=np.repeat([*"nesw"], 120))
    rows.to_csv(tmp_path / "wards.csv", index=False)
    (tmp_path / "claim.yaml").write_text(
        SMALL.replace(
            "[diabetes]", f"[{{dataset: file, path: {tmp_path / 'wards.csv'}, target: y, site: site, name: wards}}]"
        )
        + f"claim: {claim}\n"
    )
    plan = Plan.read(tmp_path / "claim.yaml")
    play(plan)
    answer = Answer.of(plan)
    [one] = answer.verdicts["wards"]
    assert (one.difference.unit, one.difference.n) == (unit, units)
    rows_of = {word for job in judged_jobs(plan, plan.datasets[0]) for word in job.words if word.startswith("rows=")}
    assert rows_of == ({"rows=late"} if claim == "time" else {f"rows=judge_{seed}" for seed in range(3)})


def test_a_word_that_is_no_launcher_s_is_refused(done: Plan) -> None:
    with pytest.raises(FklError, match="a word here is a launcher's"):
        play(done, ["algo.eta=3"])


def test_a_run_that_could_not_begin_is_told_before_the_first_one(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(SMALL.replace("kernels.D=4", "partition.clients=4000"))
    with pytest.raises(FklError, match=r"OFMKL-Avg on diabetes: partition.clients=4000"):
        study(file)
    assert not file.with_suffix("").exists()


def test_what_is_searched_for_needs_no_value_in_the_file(tmp_path: Path) -> None:
    """Privacy's clip has no default: a run is tried with the middle of its range."""
    file = tmp_path / "noise.yaml"
    noise = "{algo: ofmkl_avg, privacy: central, privacy.noise: 0.5}"
    file.write_text(SMALL.replace("ofmkl_avg", noise).replace("2}", "2, space: {privacy.clip: log 0.1..10}}", 1))
    check(Plan.read(file))


def test_portions_count_the_samples_of_a_batch_and_simulated_data_are_not_dealt(tmp_path: Path) -> None:
    """Where the clients of a batch take all rows, ten seeds cannot have portions of their own."""
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.random((1000, 3)), columns=["a", "b", "y"]).to_csv(tmp_path / "rows.csv", index=False)
    file = tmp_path / "batch.yaml"
    table = f"{{dataset: file, path: {tmp_path / 'rows.csv'}, target: y, partition: iid, partition.clients: 5}}"
    both = "[one_shot_ridge, {algo: one_shot_ridge, name: other, kernels.D: 8}]"
    for rounds, portions in ((50, 0), (10, 10)):
        text = f"methods: {both}\ndatasets: [{table}]\njudge: {{seeds: 10}}\nset: [partition.rounds={rounds}]\n"
        file.write_text(text)
        plan = Plan.read(file)
        assert jobs.portions_of(plan, plan.datasets[0]) == portions
    file.write_text("methods: [pof_mkl, vm_kofl]\ndatasets: [drift]\n")
    plan = Plan.read(file)
    assert "rows=all" in Job(plan, plan.datasets[0], plan.methods[0], 3).words


@pytest.mark.parametrize(
    ("partition", "more"),
    [("iid", "claim: seeds"), ("iid", "tune: {once: true}"), ("iid", ""), ("by_site", "")],
)
def test_seeds_read_the_whole_source_where_a_partition_takes_its_first_rows(
    tmp_path: Path, partition: str, more: str
) -> None:
    """A run reads 200 rows of 9000, and those of ten seeds lie in all thirds of each of the two sites."""
    x = np.random.default_rng(0).random((9000, 3))
    table = pd.DataFrame(x, columns=["a", "b", "y"]).assign(site=np.arange(9000) // 4500)
    table.to_csv(tmp_path / "rows.csv", index=False)
    file = tmp_path / "first.yaml"
    how = {
        "iid": "clients=4, partition.rounds=50",
        "by_site": "clients_per_site=2, partition.own=40, partition.other=10",
    }
    words = f"partition={partition}, partition.{how[partition]}"
    data = f"{{dataset: file, path: {tmp_path / 'rows.csv'}, target: y, site: site}}"
    file.write_text(f"methods: [ofmkl_avg, pooled_raker]\ndatasets: [{data}]\nset: [{words}]\n{more}\n")
    plan = Plan.read(file)
    [dataset], method = plan.datasets, plan.methods[0]

    def rows(job: Job) -> NDArray[np.int64]:
        run = plan.run((*job.words, *plan.middles(dataset, method)))
        problem = jobs.prepare(run).problem
        assert problem.rounds * problem.clients == 200
        there = np.flatnonzero(in_part(run.settings.rows, np.arange(9000) // 4500))
        assert len(there) < 320
        return there if problem.row is None else problem.row.ravel()

    for wave, seeds in ((0, plan.searches), (None, range(plan.seeds))):
        read = [rows(Job(plan, dataset, method, seed, wave)) for seed in seeds]
        assert len(np.unique(np.concatenate(read) // 1500)) >= (3 if plan.once else 6)


def test_a_data_set_ends_at_the_first_look_that_decides_all_its_pairs(tmp_path: Path) -> None:
    """Two methods that are one and the same are never decided; one that learns nothing is decided at once."""
    text = SMALL.replace("judge: {seeds: 3}", "judge: {seeds: 10, looks: [5, 10]}")
    other = {"same": 0.1, "idle": 1e-12}
    ended = {}
    for name, eta in other.items():
        file = tmp_path / f"{name}.yaml"
        both = f"[{{algo: ofmkl_avg, eta: 0.1, name: A}}, {{algo: ofmkl_avg, eta: {eta}, name: B}}]"
        file.write_text(re.sub("methods: .*", f"methods: {both}", text))
        plan = Plan.read(file)
        play(plan)
        answer = Answer.of(plan)
        ended[name] = sum(job.note is not None for job in judged_jobs(plan, plan.datasets[0])) / 2
        [verdict] = answer.verdicts["diabetes"]
        assert answer.finished
        assert verdict.difference.seeds == answer.judged[0].seeds == ended[name]
        assert (
            len([job for _, some in stages(plan, plan.datasets[0]) for job in some if job.wave is None])
            == 2 * ended[name]
        )
    assert ended == {"same": 10, "idle": 5}
    assert (verdict.level, verdict.outcome) == (0.005, "better by more than the margin")
    row = as_table(answer.verdicts).iloc[0]
    assert row["percent"] == pytest.approx(100 * np.expm1(verdict.difference.m))
    assert row["low"] < row["percent"] < row["high"] < 0
    assert row["better"] == "A"
    assert "diabetes after 5" in answer.unit


def test_status_fits_a_screen_and_a_dry_run_counts_what_is_done(
    done: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = copied(done, tmp_path)
    study(plan.file, status=True)
    status = capsys.readouterr().out.splitlines()
    assert status[0].startswith("small.yaml: all 6 judged runs have ended")
    assert status[1] == f"  diabetes  {Answer.of(plan).brief('diabetes')}" and len(status) == 2
    study(plan.file, dry_run=True)
    assert "nothing: all runs have ended" in capsys.readouterr().out
    judged_jobs(plan, plan.datasets[0])[0].file.unlink()
    study(plan.file, status=True)
    assert "  diabetes  6 of 6 searches, 5 of 6 judged runs" in capsys.readouterr().out
    study(plan.file, dry_run=True)
    said = capsys.readouterr().out
    assert "searches  6, each of 2 trials, 6 of them done" in said and "judged    6 runs, 5 of them done" in said
    assert "one after another for the rest" in said


def test_a_log_has_lines_of_progress(
    done: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = copied(done, tmp_path)
    jobs_ = judged_jobs(plan, plan.datasets[0])
    monkeypatch.setattr("fkl.study.play.POLL_S", 0.01)
    monkeypatch.setattr("fkl.study.play.LINE_S", 0.01)
    with _progress([*jobs_, Job(plan, plan.datasets[0], plan.methods[0], 7)], "diabetes: judged runs"):
        time.sleep(0.2)
    assert re.search(r"^diabetes: judged runs: 6 of 7 done after .* s, .* s left$", capsys.readouterr().out, re.M)
