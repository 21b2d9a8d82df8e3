"""Words, means and scales of a user's own table follow from the rows that a method learns from, and from no others."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fkl
from fkl.basics.errors import FklError
from fkl.basics.random_streams import Streams
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.contract.parties import draw_split_and_generator
from fkl.data.dealt_rows import in_part
from fkl.data.encoder import Encoder
from fkl.data.vertical import Vertical
from fkl.runs.prepare import prepare_run
from fkl.tasks.task import read_table

ROWS = 48
JUDGED = {"id": 900.0, "size": 1e6, "drug": "zzz", "stay": 5e5}
"""What the cells of rows that are only judged become."""
PARTIES = ("algo=fdskl", "algo.loss=square", "partition=vertical", "partition.parties=2")
CALLS = {
    "one split": ("algo=one_shot_ridge",),
    "a fold": ("algo=one_shot_ridge", "algo.fold=1"),
    "a part": ("algo=one_shot_ridge", "rows=judge_0"),
    "parties": PARTIES,
    "given": (*PARTIES, "partition.how=given", "partition.groups=[[0],[1]]", "dataset.drop=[kind,drug]"),
    "classes": ("algo=pooled_svm", "dataset.labels=code", "dataset.target=kind", "dataset.drop=[stay]"),
}


SCALING = {"algo=one_shot_ridge": "unit_ball", "algo.fold=1": "none"}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    size = rng.normal(5, 1, ROWS)
    size[::7] = np.nan
    frame = pd.DataFrame({"id": np.arange(ROWS) / 7, "size": size, "drug": rng.choice(["a", "b", "c"], ROWS)})
    return frame.assign(stay=rng.normal(20, 3, ROWS), kind=rng.choice(["no", "yes"], ROWS))


def words(path: Path, frame: pd.DataFrame, *more: str) -> tuple[str, ...]:
    frame.to_csv(path, index=False)
    target = () if any("target=" in word for word in more) else ("dataset.target=stay", "dataset.drop=[kind]")
    common = ("dataset=file", f"dataset.path={path}", "dataset.missing=mean", "dataset.text=one_hot", *target)
    return (*common, "precision=float64", "replicates=2", *more)


def replicates(*call: str) -> list[Any]:
    """Each replicate's problem, whether its samples are learned from, and their targets."""
    experiment = prepare_run(load_run(compose_config(*call)))
    found = []
    for replicate in range(2):
        problem = experiment.problem if experiment.redraw is None else experiment.redraw(replicate)[0]
        problem = getattr(problem, "batches", [problem] * 2)[replicate]
        learning = getattr(problem, "training", None)
        if isinstance(problem, Vertical):
            learning = np.zeros(len(problem.y), bool)
            learning[draw_split_and_generator(problem, Streams(0, (replicate,)), None)[0].training] = True
        found.append((problem, learning))
    return found


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_cells_of_rows_that_are_only_judged_change_nothing_that_is_learned(
    tmp_path: Path, call: tuple[str, ...]
) -> None:
    call, before = (*call, f"scaling={SCALING.get(call[-1], 'unit_box')}"), table()
    for replicate in range(2):
        problem, learning = replicates(*words(tmp_path / "own.csv", before, *call))[replicate]
        low, unit = (np.broadcast_to(end, problem.dimension) for end in (problem.scale.x_low, problem.scale.x_unit))
        place = list(problem.encoder.feature_names).index("id")
        learned = np.rint((problem.x[learning][:, place] * unit[place] + low[place]) * 7).astype(int)
        judged, after = ~np.isin(np.arange(ROWS), learned), before.copy()
        assert 0 < judged.sum() < ROWS
        for name, value in JUDGED.items():
            after.loc[judged, name] = value
        again, same = replicates(*words(tmp_path / "own.csv", after, *call))[replicate]
        assert again.encoder == problem.encoder and np.array_equal(same, learning)
        assert again.encoder.fill["size"] == pytest.approx(before["size"][~judged].mean(), rel=1e-15)
        for name in ("x_low", "x_unit", "y_low", "y_unit"):
            assert np.array_equal(getattr(again.scale, name), getattr(problem.scale, name)), name
        assert np.array_equal(again.x[learning], problem.x[learning])
        assert np.array_equal(again.y[learning], problem.y[learning])


@pytest.mark.parametrize("algo", ["one_shot_ridge", "fdskl"])
def test_a_run_is_judged_by_what_its_model_predicts(tmp_path: Path, algo: str) -> None:
    """A test file with new words, missing cells and far values: the run's error is that of its predictions."""
    rows, test = table(), table().assign(size=[np.nan, *range(ROWS - 1)], drug="new")
    test.to_csv(tmp_path / "test.csv", index=False)
    call = words(
        tmp_path / "own.csv", rows, f"algo={algo}", f"dataset.test_path={tmp_path / 'test.csv'}", "figures=none"
    )
    parties = ("partition=vertical", "partition.parties=2", "algo.loss=square") if algo == "fdskl" else ()
    run = fkl.run(*call, *parties, "save_model=true", f"out={tmp_path / 'out'}", quiet=True)
    with pytest.warns(
        UserWarning, match=r"^48 rows with a word that no training row had, .*; row 1, column drug: new$"
    ):
        predicted = run.predict(test, replicate=1)
    rmse = np.sqrt(np.mean((predicted - test["stay"]) ** 2))
    assert rmse == pytest.approx(run.summary["rmse_in_units"][1], rel=1e-9)


def test_a_word_that_counts_as_other_is_named() -> None:
    """A missing cell, and the word itself, are not such words."""
    encoder = Encoder(("drug",), words={"drug": ("old", "other")}, fill={"drug": 1.0})
    found = encoder.passed_over(pd.DataFrame({"drug": [np.nan, "other", "old", "new"]}))
    assert found == "1 row with a word that no training row had, which counts as other; row 4, column drug: new"


def test_a_test_file_does_not_decide_the_scale(tmp_path: Path) -> None:
    table().assign(size=1e3).to_csv(tmp_path / "test.csv", index=False)
    call = words(tmp_path / "own.csv", table(), "algo=coke", f"dataset.test_path={tmp_path / 'test.csv'}")
    read = read_table(load_run(compose_config(*call)), np.random.default_rng(0))
    assert np.abs(read.x[~read.tested]).max() <= 1 < read.x[read.tested].max()


PARTS = ("even", "odd", "early", "late", "tune_0", "judge_1", "tune_1_of_2", "judge_0_one_in_2")
METHODS = {
    "vm_kofl": ("kernels=auto", "kernels.D=5"),
    "one_shot_ridge": ("kernels.D=5",),
    "pooled_svm": ("dataset.labels=code", "dataset.target=kind", "dataset.drop=[stay]"),
    "vertical_ridge": ("partition=vertical", "partition.parties=2"),
}


@pytest.mark.parametrize("text", ["one_hot", "code"])
@pytest.mark.parametrize("algo", METHODS)
def test_a_run_of_a_part_is_that_of_a_file_with_these_rows_only(tmp_path: Path, algo: str, text: str) -> None:
    """Words, means, classes, scales and bandwidths of the other rows are unknown to it."""
    rng, count = np.random.default_rng(8), 480
    frame = pd.concat([table()] * (count // ROWS), ignore_index=True).assign(size=rng.normal(5, 1, count))
    frame = frame.assign(stay=rng.normal(20, 3, count), kind=rng.choice(["no", "yes"], count))
    frame.loc[rng.random(count) < 0.2, "size"] = np.nan
    for part in PARTS:
        mine = in_part(part, np.zeros(count, np.int64))
        others = {"size": 1e4, "stay": -1e4, "kind": "never", "drug": "A"}
        whole = frame.assign(**{name: frame[name].where(mine, value) for name, value in others.items()})
        found = []
        for name, rows, its in (("whole", whole, part), ("own", whole[mine], "all")):
            more = (f"algo={algo}", f"dataset.text={text}", f"rows={its}", f"out={tmp_path / part / name}")
            call = words(tmp_path / f"{name}.csv", rows, *more, "figures=none", "seed=1", *METHODS[algo])
            found.append(fkl.run(*call, quiet=True).summary)
        same = [name for name in found[0] if not name.endswith("_s")]  # but not the time that it took
        assert {name: [*found[0][name]] for name in same} == {name: [*found[1][name]] for name in same}, part


def test_a_fill_word_that_no_training_row_has_is_not_taken_for_another(tmp_path: Path) -> None:
    frame = table().assign(drug=["a", "b"] * (ROWS // 2), size=1.0)
    frame.loc[ROWS - 1, "drug"] = "none"
    more = ("algo=one_shot_ridge", "rows=early", "dataset.text=code", "dataset.fill={drug:none}", "save_model=true")
    run = fkl.run(*words(tmp_path / "own.csv", frame, *more, f"out={tmp_path / 'out'}", "figures=none"), quiet=True)
    row = pd.DataFrame({"id": [1.0], "size": [1.0], "drug": [None]})
    with pytest.raises(FklError, match=r"row 1, column drug: an empty cell must be one of a, b"):
        run.predict(row)
