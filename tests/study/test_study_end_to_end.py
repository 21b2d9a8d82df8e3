"""A small study from its file to its page: tuned and judged on rows apart, resumed, registered, failures told."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_browser import PHONE, faults, opened, require_black_on_white, require_keyboard
from numpy.typing import NDArray

import fkl
from fkl.basics.errors import FklError
from fkl.basics.files import read_arrays
from fkl.data.dealt_rows import in_part
from fkl.runs.tables import LOSSES
from fkl.statistics.verdicts import as_table
from fkl.study import jobs, progress
from fkl.study.answer import StudyAnswer
from fkl.study.command import study_command
from fkl.study.jobs import StudyJob, judged_jobs
from fkl.study.paper import methods_paragraph
from fkl.study.plan import Plan
from fkl.study.play import run_study
from fkl.study.progress import check_study
from fkl.study.registered import plan_deviations, register_study, require_unchanged
from fkl.study.tables import errors_frame, results_sheet, searched_frame, setup_frame

SMALL = """
question: Which one?
methods: [ofmkl_avg, {algo: pooled_raker, name: Raker_p}]
datasets: [diabetes]
tune: {trials: 2}
judge: {seeds: 3}
set: [kernels.D=4, kernels.N=2, kernels.laplacians=0, "kernels.smallest=0.5", "kernels.largest=2.0"]
"""


def study(file: Path, **options: bool) -> None:
    study_command(file, (), **options)


def planned(folder: Path, text: str = SMALL, *changes: tuple[str, str]) -> Plan:
    """A plan of this text, with changes."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(text)
    return Plan.read(folder / "study.yaml")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A study that has ended; tests only read it."""
    plan = planned(tmp_path_factory.mktemp("study"))
    study(plan.file)
    return plan


@pytest.fixture
def copied(done: Plan, tmp_path: Path) -> Plan:
    """A copy, whose runs are in another folder."""
    shutil.copytree(done.file.parent, tmp_path, dirs_exist_ok=True)
    return Plan.read(tmp_path / done.file.name)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], Any]], None]:
    """Searches that find a place in each range, without a trial."""

    def found(place: Callable[[Any], Any]) -> None:
        def search(plan: Plan, words: object, spaces: dict[str, Any], seed: int) -> list[dict[str, Any]]:
            values = {key: place(one) for key, one in spaces.items()}
            return [{"values": values, "state": "finished", "error": 0.1, "reason": ""}]

        monkeypatch.setattr(jobs, "run_search", search)

    return found


def judged(plan: Plan) -> list[StudyJob]:
    return judged_jobs(plan, plan.datasets[0])


def told(plan: Plan) -> pd.DataFrame:
    """The judged runs without times, and without digests, which know the folder."""
    return pd.read_csv(plan.folder / "jobs.csv").drop(columns=["seconds", "folder"])


def test_all_is_there_and_the_answer_comes_first(done: Plan) -> None:
    names = {path.name for path in done.folder.iterdir()}
    assert {"results.csv", "results.md", "results-240pt.tex", "error-against-bytes.png", "differences.png"} <= names
    assert {"setup.csv", "searched.md", "tests-diabetes-240pt.tex", "methods.tex", "paper.tex", "plan.yaml"} <= names
    assert len(told(done)) == 6 and len(pd.read_csv(done.folder / "trials.csv")) >= 2 * 2 * 3
    page = done.file.with_suffix(".html").read_text()
    sentence = StudyAnswer.compare_ended(done).sentences[0]
    assert sentence.split(" ")[0] in page[: page.index("Errors and costs")] and "://" not in page
    assert fkl.compare(done.folder).pivot.methods, "its folder can be compared as that of a sweep"
    said = (done.folder / "methods.tex").read_text(encoding="utf-8")
    keys = {key for found in re.findall(r"\\cite\{([^}]*)\}", said) for key in found.split(",")}
    assert {"fkl", "akiba2019optuna", "holm1979", "cameron2011", "mitra2021online", "efron2004least"} <= keys
    bibliography = (done.folder / "references.bib").read_text(encoding="utf-8")
    assert keys == {*re.findall(r"^@\w+\{(.*),$", bibliography, re.MULTILINE)}


def test_its_page_is_whole_in_a_browser(browser: Any, done: Plan) -> None:
    page = done.file.with_suffix(".html")
    assert faults(browser, page, PHONE, "dark", page.with_suffix("")) == set()
    with opened(browser, page, PHONE) as tab:
        assert any("scroll" in name for name in require_keyboard(tab)), "wide tables are scrolled by keyboard"
        require_black_on_white(tab)


def test_tuned_and_judged_rows_are_apart_and_dealt_anew_in_each_seed(done: Plan) -> None:
    rows = []
    for job in judged(done):
        assert job.note is not None
        arrays = read_arrays(done.folder / "runs" / job.note["folder"] / LOSSES)
        np.testing.assert_allclose(arrays["loss"].mean(), job.note["error"], rtol=1e-8)
        rows.append({*arrays["row"].tolist()})
    assert rows[0] == rows[1], "both methods are judged on the same rows of a seed"
    assert rows[0] != rows[2]
    search, run = (StudyJob(done, done.datasets[0], done.methods[0], 1, wave) for wave in (0, None))
    assert {"rows=tune_1", "seed=1000001"} <= {*search.words} and {"rows=judge_1", "seed=1"} <= {*run.words}
    trials = [trial for trial in (search.note or {})["trials"] if trial["error"] is not None]
    assert run.values == min(trials, key=lambda trial: trial["error"])["values"]


def test_a_study_that_was_interrupted_goes_on_to_the_same(
    done: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, began, do = planned(tmp_path), [], StudyJob.do_job

    def interrupted(job: StudyJob) -> None:
        began.append(job)
        if len(began) == 9:
            raise KeyboardInterrupt
        do(job)

    monkeypatch.setattr(StudyJob, "do_job", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(plan)
    assert 0 < len(told(plan)) < 6 and not StudyAnswer.compare_ended(plan).finished
    study(plan.file, status=True)
    run_study(plan)
    pd.testing.assert_frame_equal(told(plan), told(done))
    begun = len(began)
    run_study(plan)
    assert len(began) == begun, "what has ended is not done again"


def test_a_method_with_failed_seeds_has_no_figure_of_the_survivors(copied: Plan) -> None:
    """One run of three failed, as its note says."""
    file = judged(copied)[0].file
    note = json.loads(file.read_text())
    file.write_text(json.dumps({**note, "state": "failed", "error": None, "reason": "it diverged"}))
    answer = StudyAnswer.compare_ended(copied)
    frame = errors_frame(answer.judged).set_index("method")
    row, other = frame.loc[note["method"]], frame.drop(note["method"]).iloc[0]
    numbers = ["error", "sd", "r2", "uplink_bytes", "seconds", "below_mean_percent"]
    assert (row["failed"], row["of"]) == (1, 3) and row[numbers].isna().all() and not other[numbers].isna().any()
    [cells] = [row for row in results_sheet(errors_frame(answer.judged)).rows if row[0].text == note["method"]]
    assert [cell.text for cell in cells] == [note["method"], "1 of 3 failed", *[""] * (len(cells) - 2)]
    assert (setup_frame(copied, answer.judged).set_index("method")["seeds"] == "3").all()
    said = methods_paragraph(answer)
    assert "none was left out" not in said and "exact signed ranks" in said


def test_a_name_and_a_folder_decide_nothing(copied: Plan, done: Plan) -> None:
    """Two names of the same letters, or of any; with other names a finished study has ended all the same."""
    for first, second in (("A+", "A-"), ("甲", "乙")):
        methods = f"[{{algo: ofmkl_avg, name: {first}}}, {{algo: pooled_raker, name: {second}}}]"
        copied.file.write_text(re.sub("methods: .*", f"methods: {methods}", SMALL))
        renamed = Plan.read(copied.file)
        answer = StudyAnswer.compare_ended(renamed)
        assert all(job.note for job in judged(renamed)) and answer.finished
        assert {answer.verdicts["diabetes"][0].a, answer.verdicts["diabetes"][0].b} == {first, second}
    study(copied.file)
    assert [*told(renamed)["error"]] == [*told(done)["error"]]


def test_what_sends_more_than_the_budget_has_failed(tmp_path: Path) -> None:
    rf_gp = ("{algo: pooled_raker, name: Raker_p}", "rf_gp")
    plan = planned(tmp_path, SMALL + "budget: {uplink_bytes: 10_000}\n", rf_gp)
    run_study(plan)
    reasons = {job.note["reason"] for job in judged(plan) if job.note and job.note["reason"]}
    assert reasons and all("failed: uplink_bytes " in reason and "budget of 1e+04" in reason for reason in reasons)
    notes = [StudyJob(plan, plan.datasets[0], plan.methods[1], 0, 0).note or {}]
    assert any("over the budget of 1e+04" in trial["reason"] for note in notes for trial in note["trials"])


def test_a_best_value_outside_the_range_is_widened_for_twice_and_marked(tmp_path: Path, found: Callable) -> None:
    """At the end of a range in more than a third of the searches; the last one's values are judged."""
    plan = planned(tmp_path, SMALL, ("trials: 2", "trials: 2, space: {algo.eta: log 1e-7..1e-6}"))
    dataset, method = plan.datasets[0], plan.methods[0]
    found(lambda space: space.high)
    run_study(plan)
    assert jobs.last_wave(plan, dataset, method) == 2
    assert str(jobs.spaces_of(plan, dataset, method, 2)["algo.eta"]) == "log 1e-07..0.0001"
    assert judged(plan)[0].values == pytest.approx({"algo.eta": 1e-4})


def test_one_search_of_three_at_the_end_of_a_range_does_not_widen_it(tmp_path: Path, found: Callable) -> None:
    plan = planned(tmp_path, SMALL, ("trials: 2", "trials: 2, space: {algo.eta: log 1e-3..1}"))
    dataset, method = plan.datasets[0], plan.methods[0]
    for seed in range(3):
        found(lambda space, seed=seed: space.high if seed == 2 else space.middle)
        StudyJob(plan, dataset, method, seed, 0).do_job()
    assert jobs.last_wave(plan, dataset, method) == 0


def test_a_registered_study_tells_what_was_done_otherwise(done: Plan, tmp_path: Path, found: Callable) -> None:
    found(lambda space: space.middle)
    with pytest.raises(FklError, match="cannot be registered after its first judged run"):
        register_study(done)
    plan = planned(tmp_path)
    register_study(plan)
    study(plan.file)
    assert "Registered on" in (plan.folder / "results.md").read_text() and plan_deviations(plan) == []
    # A second judgement
    job = judged(plan)[0]
    job.file.unlink()
    run_study(Plan.read(plan.file))
    assert any("was judged 2 times" in one for one in plan_deviations(plan))
    # An edited run, one outside the plan, and an edited note
    assert job.note is not None
    run = plan.folder / "runs" / job.note["folder"]
    shutil.copytree(run, run.with_name("other"))
    summary, note = run / "summary.csv", json.loads(job.file.read_text())
    summary.write_text(summary.read_text().replace("0.", "1.", 1))
    job.file.write_text(json.dumps(note | {"error": note["error"] / 2}))
    said = " ".join(plan_deviations(plan))
    for words in ("summary.csv has changed", "runs/other is outside the plan", "has changed since it was judged"):
        assert words in said
    plan.file.write_text(SMALL.replace("seeds: 3", "seeds: 4"))
    with pytest.raises(FklError, match="changed since: plan"):
        require_unchanged(Plan.read(plan.file))


def test_a_pilot_says_how_many_seeds_are_needed_and_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: Callable
) -> None:
    found(lambda space: space.middle)
    plan = planned(tmp_path)
    study(plan.file, pilot=True)
    said = capsys.readouterr().out
    assert "diabetes: OFMKL-Avg and Raker_p: 2 %: " in said and "from a pilot of 5" in said
    assert not any(job.note for job in judged(plan))
    job = StudyJob(plan.as_pilot(), plan.datasets[0], plan.methods[0], 1)
    assert job.note is not None and {"seed=500001", "rows=judge_500001"} <= {*job.words}
    register_study(plan)  # a pilot does not stand in its way


@pytest.mark.parametrize(("claim", "unit", "units"), [("clients", "client", 4), ("time", "block", 10)])
def test_each_claim_has_its_own_unit(claim: str, unit: str, units: int, tmp_path: Path, found: Callable) -> None:
    """On a file of four sites of one's own, whose clients are natural."""
    found(lambda space: space.middle)
    x = np.random.default_rng(0).standard_normal((480, 3))
    rows = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=np.sin(x[:, 0]) + x[:, 1], site=np.repeat([*"nesw"], 120))
    rows.to_csv(tmp_path / "wards.csv", index=False)
    table = f"[{{dataset: file, path: {tmp_path / 'wards.csv'}, target: y, site: site, name: wards}}]"
    plan = planned(tmp_path, SMALL + f"claim: {claim}\n", ("[diabetes]", table))
    run_study(plan)
    [one] = StudyAnswer.compare_ended(plan).verdicts["wards"]
    assert (one.difference.unit, one.difference.n) == (unit, units)
    rows_of = {word for job in judged(plan) for word in job.words if word.startswith("rows=")}
    assert rows_of == ({"rows=late"} if claim == "time" else {f"rows=judge_{seed}" for seed in range(3)})


def test_what_cannot_begin_is_told_before_the_first_run(done: Plan, tmp_path: Path) -> None:
    """What is searched for needs no value in the file: a run is tried with the middle of its range."""
    with pytest.raises(FklError, match="words here are about a launcher"):
        run_study(done, ["algo.eta=3"])
    plan = planned(tmp_path, SMALL, ("kernels.D=4", "partition.clients=4000"))
    with pytest.raises(FklError, match=r"OFMKL-Avg on diabetes: partition.clients=4000") as refused:
        study(plan.file)
    assert progress.HALF in refused.value.help
    assert not plan.file.with_suffix("").exists()
    noise = "{algo: ofmkl_avg, privacy: central, privacy.noise: 0.5}"
    check_study(planned(tmp_path, SMALL, ("ofmkl_avg", noise), ("2}", "2, space: {privacy.clip: log 0.1..10}}")))


def test_portions_count_the_samples_of_a_batch_and_simulated_data_are_not_dealt(tmp_path: Path) -> None:
    """Where the clients of a batch take all rows, ten seeds cannot have portions of their own."""
    frame = pd.DataFrame(np.random.default_rng(0).random((1000, 3)), columns=["a", "b", "y"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    table = f"{{dataset: file, path: {tmp_path / 'rows.csv'}, target: y, partition: iid, partition.clients: 5}}"
    both = "[one_shot_ridge, {algo: one_shot_ridge, name: other, kernels.D: 8}]"
    for rounds, portions in ((50, 0), (30, 0), (10, 10)):
        text = f"methods: {both}\ndatasets: [{table}]\njudge: {{seeds: 10}}\nset: [partition.rounds={rounds}]\n"
        plan = planned(tmp_path, text)
        assert jobs.portions_of(plan, plan.datasets[0]) == portions
    plan = planned(tmp_path, "methods: [pof_mkl, vm_kofl]\ndatasets: [drift]\n")
    assert "rows=all" in StudyJob(plan, plan.datasets[0], plan.methods[0], 3).words


def test_seeds_read_the_whole_source_where_a_partition_takes_its_first_rows(tmp_path: Path) -> None:
    """A run reads 200 rows of 9000, and those of ten seeds lie in all thirds of each of the two sites."""
    x = np.random.default_rng(0).random((9000, 3))
    table = pd.DataFrame(x, columns=["a", "b", "y"]).assign(site=np.arange(9000) // 4500)
    table.to_csv(tmp_path / "rows.csv", index=False)
    words = "partition=by_site, partition.clients_per_site=2, partition.own=40, partition.other=10"
    data = f"{{dataset: file, path: {tmp_path / 'rows.csv'}, target: y, site: site}}"
    plan = planned(tmp_path, f"methods: [ofmkl_avg, pooled_raker]\ndatasets: [{data}]\nset: [{words}]\n")
    [dataset], method = plan.datasets, plan.methods[0]

    def rows(job: StudyJob) -> NDArray[np.int64]:
        run = plan.checked_run((*job.words, *plan.words_of_middles(dataset, method)))
        problem = jobs.prepare_run(run).problem
        assert problem.rounds * problem.clients == 200
        there = np.flatnonzero(in_part(run.settings.rows, np.arange(9000) // 4500))
        assert len(there) < 320
        return there if problem.row is None else problem.row.ravel()

    for wave, seeds in ((0, plan.searches), (None, range(plan.seeds))):
        read = [rows(StudyJob(plan, dataset, method, seed, wave)) for seed in seeds]
        assert len(np.unique(np.concatenate(read) // 1500)) >= 6


@pytest.mark.parametrize(("eta", "ended"), [(0.1, 5), (1e-12, 5)], ids=["the same", "one that learns nothing"])
def test_a_data_set_ends_at_the_first_look_that_decides_all_its_pairs(
    tmp_path: Path, found: Callable, eta: float, ended: int
) -> None:
    """Two methods that are one and the same are tied at once; one that learns nothing is worse at once."""
    found(lambda space: space.middle)
    both = f"[{{algo: ofmkl_avg, eta: 0.1, name: A}}, {{algo: ofmkl_avg, eta: {eta}, name: B}}]"
    text = re.sub("methods: .*", f"methods: {both}", SMALL)
    plan = planned(tmp_path, text, ("seeds: 3", "seeds: 10, looks: [5, 10]"))
    run_study(plan)
    answer = StudyAnswer.compare_ended(plan)
    [verdict] = answer.verdicts["diabetes"]
    assert answer.finished and sum(job.note is not None for job in judged(plan)) == 2 * ended
    assert verdict.difference.seeds == answer.judged[0].seeds == ended
    if eta < 0.1:
        assert (verdict.level, verdict.outcome) == (0.005, "better by more than the margin")
        row = as_table(answer.verdicts).iloc[0]
        assert row["percent"] == pytest.approx(100 * np.expm1(verdict.difference.m))
        assert row["low"] < row["percent"] < row["high"] < 0 and row["better"] == "A"
        assert "diabetes after 5" in answer.unit


def test_status_fits_a_screen_and_a_dry_run_counts_what_is_done(
    copied: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    study(copied.file, status=True)
    status = capsys.readouterr().out.splitlines()
    assert status[0].startswith("study.yaml: all 6 judged runs have ended")
    assert status[1] == f"  diabetes  {StudyAnswer.compare_ended(copied).brief_answer('diabetes')}" and len(status) == 2
    judged(copied)[0].file.unlink()
    study(copied.file, status=True)
    assert "  diabetes  6 of 6 searches, 5 of 6 judged runs" in capsys.readouterr().out
    study(copied.file, dry_run=True)
    said = capsys.readouterr().out
    assert "searches  6, each of 2 trials, 6 of them done" in said and "judged    6 runs, 5 of them done" in said


SHORT = ("set: [", "set: [partition=iid, partition.clients=5, partition.rounds=20, ")


@pytest.mark.parametrize("others", [["vm_kofl", "rf_gp"], ["rf_gp"]], ids=["one ends", "none ends"])
def test_a_study_in_which_fewer_than_two_methods_end_has_an_answer_and_a_page(
    tmp_path: Path, others: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """4000 bytes are enough for POF-MKL alone; the dry run says so before the first run."""
    methods = ["pof_mkl", *others] if len(others) > 1 else ["vm_kofl", *others]
    text = re.sub("methods: .*", f"methods: [{', '.join(methods)}]", SMALL)
    plan = planned(tmp_path, text + "budget: {uplink_bytes: 4000}\n", SHORT)
    study(plan.file, dry_run=True)
    said = capsys.readouterr().out
    assert "RF-GP on diabetes sends" in said and "over the budget of 4000" in said and "POF-MKL on diabetes" not in said
    study(plan.file)
    said = capsys.readouterr().out
    answer = StudyAnswer.compare_ended(plan)
    assert answer.finished and answer.sentences[0] in " ".join(said.split())
    expected = "only POF-MKL ended in all seeds" if len(others) > 1 else "no method ended in all seeds"
    assert expected in answer.sentences[0] and "best" not in answer.sentences[0].partition("; not better")[0]
    assert expected in answer.brief_answer("diabetes"), "so says --status"
    assert expected in plan.file.with_suffix(".html").read_text(encoding="utf-8")
    assert "practically equal" not in methods_paragraph(answer)


def test_a_value_at_the_end_of_a_linear_range_is_widened_and_said(tmp_path: Path, found: Callable) -> None:
    """RF-GP forgets nothing with 1, the key's own limit; below it the range can grow, and its method is never worse."""
    plan = planned(tmp_path, SMALL, ("{algo: pooled_raker, name: Raker_p}", "rf_gp"))
    dataset, method = plan.datasets[0], plan.methods[1]
    found(lambda space: space.low if not space.log else space.middle)
    run_study(plan)
    assert str(jobs.searched_space(plan, dataset, method)["algo.forget"]) == "0.8..1"
    answer = StudyAnswer.compare_ended(plan)
    said = " ".join(answer.sentences)
    assert "At the limit of its range: algo.forget of RF-GP (low end on diabetes)" in said
    paragraph = methods_paragraph(answer)
    assert "it was widened and searched again: algo.forget of RF-GP." in paragraph
    assert "algo.eta (OFMKL-Avg); algo.forget (RF-GP)" in paragraph
    [verdict] = answer.verdicts["diabetes"]
    assert verdict.at_end == {"RF-GP": "algo.forget"} and "3 of 3 at the low end" in str(
        searched_frame(plan, answer.judged)
    )
    # The highest value is the key's own limit
    plan = planned(tmp_path / "high", SMALL, ("{algo: pooled_raker, name: Raker_p}", "rf_gp"))
    found(lambda space: space.high if not space.log else space.middle)
    for job in (StudyJob(plan, plan.datasets[0], plan.methods[1], seed, 0) for seed in range(3)):
        job.do_job()
    assert jobs.ends_of(plan, plan.datasets[0], plan.methods[1], 0) == []


def test_a_method_without_ranges_is_called_not_tuned(tmp_path: Path, found: Callable) -> None:
    """In answer, table, setup and paragraph; a paragraph on tuned methods does not name it."""
    found(lambda space: space.middle)
    plan = planned(
        tmp_path,
        SMALL,
        ("{algo: pooled_raker, name: Raker_p}", "{algo: vm_kofl, eta: 1, step_factor: 0.1, name: Mine}"),
    )
    run_study(plan)
    answer = StudyAnswer.compare_ended(plan)
    assert "Not tuned: Mine." in answer.sentences
    assert [row[0].text for row in results_sheet(errors_frame(answer.judged)).rows] == ["OFMKL-Avg", "Mine, not tuned"]
    assert [*setup_frame(plan, answer.judged)["trials"]] == ["2", "not tuned"]
    said = methods_paragraph(answer)
    assert "Every method except Mine had" in said and "algo.eta (OFMKL-Avg)" in said and "Mine: not tuned." in said
    assert "widened" not in said and "near a limit" not in said and "failed run" not in said


def noted(plan: Plan, errors_of: dict[str, list[float]], **summary: float) -> None:
    """Notes of judged runs with these errors, instead of the runs' own."""
    for job in judged(plan):
        note = json.loads(job.file.read_text())
        error = errors_of[job.method.name][job.seed]
        columns = note["summary"] | {note["metric"]: error} | summary
        job.file.write_text(json.dumps(note | {"error": error, "summary": columns}))


def test_headline_bold_row_and_differences_use_one_mean(copied: Plan) -> None:
    """The arithmetic mean of A is larger, its geometric mean smaller: over seeds, log ratios decide all three."""
    plan = planned(copied.file.parent, SMALL + "claim: seeds\n")
    noted(plan, {"OFMKL-Avg": [0.1, 0.1, 1.0], "Raker_p": [0.25, 0.25, 0.27]}, mse_running_mean=0.3)
    answer = StudyAnswer.compare_ended(plan)
    frame = errors_frame(answer.judged).set_index("method")
    [verdict] = answer.verdicts["diabetes"]
    assert np.log(frame["error"]["OFMKL-Avg"] / frame["error"]["Raker_p"]) == pytest.approx(verdict.difference.m)
    bold = [row[0].text for row in results_sheet(errors_frame(answer.judged)).rows if row[1].weight]
    assert bold == ["OFMKL-Avg"] and "geometric mean" in results_sheet(errors_frame(answer.judged)).caption
    assert re.match(r"On diabetes \(\d+ of 442 rows judged in a seed\), OFMKL-Avg leads", answer.sentences[0])


@pytest.mark.parametrize(
    ("mean", "last", "best", "beaten_by"),
    [
        (0.3, 0.5, 0.4, ""),
        (0.3, 0.5, 0.15, "the best constant in hindsight: OFMKL-Avg"),
        (0.3, 0.5, 0.2, "the best constant in hindsight: OFMKL-Avg"),
        (0.3, 0.15, 0.4, "each client's last target: OFMKL-Avg"),
        (0.1, 0.5, 0.1, "each client's mean target so far and the best constant in hindsight: OFMKL-Avg"),
        (0.15, 0.5, 0.01, "the best constant in hindsight: Raker_p"),
    ],
)
def test_a_method_that_does_not_beat_every_baseline_is_marked(
    copied: Plan, mean: float, last: float, best: float, beaten_by: str
) -> None:
    """Below the mean target, but not below the best constant or the last target, is not better than a constant."""
    baselines = {"mse_running_mean": mean, "mse_last_value": last, "mse_best_constant": best}
    noted(copied, {"OFMKL-Avg": [0.2, 0.2, 0.2], "Raker_p": [0.05, 0.05, 0.05]}, **baselines)
    answer = StudyAnswer.compare_ended(copied)
    told = answer.sentences[0].partition("; not better than ")[2]
    assert (beaten_by in told) if beaten_by else not told
    table = results_sheet(errors_frame(answer.judged))
    marked = {row[0].text for row in table.rows if row[1].mark == "▲"}
    assert marked == {name for name in ("OFMKL-Avg", "Raker_p") if name in told}
    assert ("▲: does not beat every baseline" in table.caption) == bool(marked)


def test_the_answer_counts_data_sets_and_compares_at_equal_bytes(tmp_path: Path, found: Callable) -> None:
    found(lambda space: space.middle)
    text = re.sub("methods: .*", "methods: [pof_mkl, ofmkl_avg]", SMALL).replace(
        "Which one?", "Which needs fewer bytes?"
    )
    plan = planned(tmp_path, text, SHORT, ("[diabetes]", "[diabetes, synthetic]"))
    run_study(plan)
    answer = StudyAnswer.compare_ended(plan)
    said = answer.sentences
    assert said[0].startswith("Over 2 data sets, smallest errors of the methods: ") and said[0].endswith(
        "a test needs 5."
    )
    assert [words.split(", ")[0] for words in said if "bytes" in words] == [
        "At equal bytes on diabetes", "At equal bytes on synthetic",
    ]  # fmt: skip
    least = min(errors_frame(answer.judged)["uplink_bytes"])
    assert f"{least / 1e3:.3g}" in said[2]
    # A question about errors has no such sentence, and five values of a key are one data set
    data = ", ".join(f"{{dataset: diabetes, partition.clients: {clients}}}" for clients in (4, 5))
    plan = planned(
        tmp_path, SMALL, ("set: [", "set: [partition=iid, partition.rounds=20, "), ("[diabetes]", f"[{data}]")
    )
    run_study(plan)
    assert not any(
        "equal bytes" in words or words.startswith("Over") for words in StudyAnswer.compare_ended(plan).sentences
    )


def test_a_forecast_counts_the_time_before_and_after_the_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole trial takes 7 s by this clock: 12 trials and 6 judged runs."""
    now = [0.0]

    def trial(plan: Plan, words: tuple[str, ...]) -> float:
        now[0] += 7.0
        return 0.1

    monkeypatch.setattr(progress, "error_of_trial", trial)
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    study(planned(tmp_path).file, dry_run=True)
    assert f"about {7 * 18 / 60:.2g} min one after another" in capsys.readouterr().out.replace("2 min 6 s", "2.1 min")


def test_keys_that_count_for_each_client_and_variants_left_out_are_named(tmp_path: Path, found: Callable) -> None:
    """FALKON's centres; FALKON alone cannot run. One-shot ridge has no such key."""
    found(lambda space: space.middle)
    text = re.sub("methods: .*", "methods: [falkon, one_shot_ridge]", SMALL) + "beside: [alone, pooled]\n"
    text = re.sub("set: .*", "set: [kernels=rbf_single, kernels.D=4]", text)
    plan = planned(tmp_path, text)
    run_study(plan)
    answer = StudyAnswer.compare_ended(plan)
    [said] = answer.unlike
    assert said.startswith("FALKON (pooled) is one client, and algo.centres counts for each client")
    assert said in answer.sentences and any(note.startswith("FALKON (alone) is left out: ") for note in answer.notes)


@pytest.mark.parametrize(
    ("old", "new", "said", "instead"),
    [
        ("trials: 2", "trials: 2, once: true", "had one search for all seeds", "its own search in each seed"),
        ("judge:", "limit_s: 100\njudge:", "more than 100 seconds counted as failed", ""),
        ("judge:", "budget: {uplink_bytes: 1e9}\njudge:", "uplink bytes of at most 1e+09", ""),
        ("seeds: 3", "seeds: 5, looks: [5]", "if the 99\\,\\% interval lies", "if the 90\\,\\% interval lies"),
        ("judge:", "claim: seeds\njudge:", "by Student's t over seeds", "times the variance over 20 blocks"),
    ],
)
def test_each_sentence_on_methods_is_of_what_was_done(
    done: Plan, tmp_path: Path, found: Callable, old: str, new: str, said: str, instead: str
) -> None:
    """A sentence that is true of one study is not in the paragraph of another."""
    found(lambda space: space.middle)
    plan = planned(tmp_path, SMALL, (old, new))
    run_study(plan)
    paragraph, other = (
        methods_paragraph(StudyAnswer.compare_ended(plan)),
        methods_paragraph(StudyAnswer.compare_ended(done)),
    )
    assert said in paragraph and said not in other
    assert instead in other and (not instead or instead not in paragraph)


@pytest.mark.parametrize(
    ("partition", "name", "order", "beside"),
    [
        ("agents", "iid", "at random", "alone"),
        ("blocks", "blocks", "in file order", "alone"),
        ("blocks", "blocks", "in file order", "mean"),
        ("quantity_skew", "quantity_skew", "at random", "mean"),
    ],
)
def test_a_study_says_how_rows_were_dealt(
    partition: str, name: str, order: str, beside: str, tmp_path: Path, found: Callable
) -> None:
    """The key that deals rows is in each caption; rows in an order that matters are in the answer and the verdict."""
    found(lambda space: space.middle)
    day, noise = np.arange(400), np.random.default_rng(0).normal(size=(400, 2))
    table = pd.DataFrame({"day": day, "noise": noise[:, 0], "target": np.sin(day / 20) + 0.1 * noise[:, 1]})
    table.to_csv(tmp_path / "drifting.csv", index=False)
    data = f"{{dataset: file, path: {tmp_path / 'drifting.csv'}, target: target, partition: {partition}}}"
    size = '"partition.rounds=40", "partition.clients=5", "kernels.D=4"'
    changes = ("datasets: [diabetes]", f"datasets: [{data}]"), ('"kernels.smallest', f'{size}, "kernels.smallest')
    plan = planned(tmp_path, SMALL.replace('"kernels.D=4", ', "") + f"beside: [{beside}]\nclaim: seeds\n", *changes)
    study(plan.file)
    answer = StudyAnswer.compare_ended(plan)
    said = f"Rows were dealt by partition={name} ({order})."
    captions = [text for path in plan.folder.glob("*.tex") for text in re.findall(r"\\caption\{.*", path.read_text())]
    assert len(captions) >= 9 and all(said.replace("_", r"\_") in caption for caption in captions)
    assert said in answer.unit and said in methods_paragraph(answer).replace(r"\_", "_")
    assert said in plan.file.with_suffix(".html").read_text()
    assert {*setup_frame(plan, answer.judged)["partition"]} == {*errors_frame(answer.judged)["partition"]} == {name}
    told = [line for line in answer.sentences if "drifting: rows are in file order: neighbouring targets" in line]
    assert len(told) == (order == "in file order")
    assert all(("may turn the answer" in line) == (beside == "alone") for line in told)
    assert ("On drifting, rows are in file order: neighbouring" in methods_paragraph(answer)) == bool(told)
    lines = [line for _, some in answer.details for line in some if "alone" in line]
    assert len(lines) == 2 * (beside == "alone")
    assert all(("on rows in file order" in line) == bool(told) for line in lines)
