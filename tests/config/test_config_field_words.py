"""Words of the field lead to fkl's own, and choices may be spelled as papers spell them."""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import Answer
from hypothesis import given, settings
from hypothesis import strategies as st

import fkl as package
from fkl.basics.errors import FklError, did_you_mean
from fkl.basics.field_words import FIELD_WORDS, field_words
from fkl.cli.describe import explain_name
from fkl.config import choices
from fkl.config.compose import compose_config
from fkl.runs.metrics import ACCURACIES, require_metric
from fkl.study.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
CHOICES = [(group, name) for group in choices.GROUPS for name in choices.choice_files(group)]
WORDS = [word for one in FIELD_WORDS for word in one.words.split()]
SMALL = ("dataset=diabetes", "kernels.D=4", "kernels.N=2", "replicates=2", "figures=none")
CLASSES = ("dataset=ellipses", "dataset.rows=90", "scaling=none", "replicates=2", "figures=none")
SPLIT = ("partition=iid", "partition.clients=3", "partition.rounds=null")


@given(st.sampled_from(CHOICES), st.randoms(use_true_random=False), st.sampled_from(["-", "_", ""]))
@settings(max_examples=200, deadline=None)
def test_every_choice_is_found_in_any_case_with_or_without_dashes(
    choice: tuple[str, str], draw: object, between: str
) -> None:
    group, name = choice
    spelled = "".join(draw.choice([sign.lower(), sign.upper()]) for sign in name.replace("_", between))  # type: ignore[attr-defined]
    assert choices.Choices().spelled_name(group, spelled) == name
    assert compose_config(f"{group}={spelled}") == compose_config(f"{group}={name}")


def test_another_spelling_is_the_same_run_from_python_in_a_sweep_and_in_a_study(
    fkl: Callable[..., Answer], tmp_path: Path
) -> None:
    runs = tmp_path / "outputs" / "runs"
    folder = package.run("algo=POF-MKL", "dataset=Diabetes", "kernels=RBF", *SMALL[1:], quiet=True).folder
    assert fkl("run", "-m", "algo=pof_mkl,Pof_Mkl,POFMKL", *SMALL).code == 0
    assert [one.name for one in runs.iterdir()] == [folder.name]
    assert fkl("compare", "algo=PofMkl", "dataset=DIABETES").code == 0
    plans = []
    for text in ("methods: [FedAvg, {algo: POF-MKL, M: 2}]\ndatasets: [Diabetes]", ""):
        (tmp_path / "study.yaml").write_text(text or "methods: [fedavg, {algo: pof_mkl, M: 2}]\ndatasets: [diabetes]")
        plans.append(Plan.read(tmp_path / "study.yaml"))
    assert (plans[0].methods, plans[0].datasets) == (plans[1].methods, plans[1].datasets)


def test_a_spelling_of_two_own_choices_is_refused_and_an_exact_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "algo").mkdir()
    for name in ("My_Method", "mymethod"):
        (tmp_path / "algo" / f"{name}.yaml").write_text(f"_target_: {name}\n")
    assert compose_config("algo=My_Method", folders=[tmp_path])["algo"]["_target_"] == "My_Method"
    with pytest.raises(FklError, match="algo=MYMETHOD: no such choice") as refused:
        compose_config("algo=MYMETHOD", folders=[tmp_path])
    assert "mymethod" in refused.value.help[0] and "My_Method" in refused.value.help[0]


def test_a_choice_is_removed_and_described_in_any_spelling(fkl: Callable[..., Answer]) -> None:
    assert compose_config("algo=coke", "~topology=Erdos-Renyi") == compose_config("algo=coke", "~topology")
    for command in ("describe", "show"):
        assert fkl(command, "FedAvg").out == fkl(command, "fedavg").out != ""
    assert fkl("data", "verify", "Naval").out == fkl("data", "verify", "naval").out != ""


@pytest.mark.parametrize("word", WORDS)
def test_describe_leads_every_word_of_the_field_to_fkl_s_own(word: str) -> None:
    """In any case; what the line names can itself be described."""
    told = explain_name(word.upper().replace("_", "-"), 80)
    for line, names in field_words(word):
        assert all(name in told for name in names) and line.count("\n") == 0
        for name in names:
            assert explain_name(name, 80)


def test_a_word_stands_once_with_each_meaning() -> None:
    assert len({*WORDS}) == len(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_every_refusal_leads_a_word_of_the_field_to_fkl_s_own(word: str) -> None:
    """As a key of the top, a key of a node, a choice and a metric, unless fkl has it there."""
    [(line, _)] = field_words(word)
    for said in (f"{word}=1", f"algo.{word}=1", f"partition.{word}=1", f"partition={word}"):
        try:
            compose_config(said)
        except FklError as refused:
            assert refused.help[0] == line, said
    with pytest.raises(FklError) as wrong:
        require_metric(word, ["none"])
    assert wrong.value.help[0] == line


def test_the_words_that_newcomers_try_are_led_on_the_screen(fkl: Callable[..., Answer]) -> None:
    for word, own in {
        "algo.lr=0.1": "algo.eta",
        "lr=0.1": "algo.eta",
        "num_rounds=10": "partition.rounds",
        "num_clients=10": "partition.clients",
        "algo.local_epochs=2": "algo.local_steps",
        "batch_size=32": "algo.batch",
        "fraction_fit=0.1": "participation=share",
        "partition=noniid": "partition=dirichlet",
        "+algo.lr=1": "algo.eta",
        "device=cuda": "engine=jax",
    }.items():
        answer = fkl("run", word)
        assert answer.code == 2 and own in answer.err and "Traceback" not in answer.err, word
    assert "LIBSVM" in (said := fkl("describe", "epsilon").out) and "privacy.noise" in said
    assert did_you_mean("sed", ["seed"]) == ["did you mean seed?"]


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (("algo=pof_mkl", "algo.loss=logistic", "kernels=rbf", "kernels.D=4", *SPLIT), {"error"}),
        (("algo=dkla", "algo.loss=logistic", "algo.iterations=5"), {"test_error", "train_error"}),
        (("algo=cascade_svm",), {"test_error", "train_error"}),
        (("algo=pp_svmv", "partition=vertical"), {"test_error"}),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_accuracy_stands_beside_every_error_of_classes(words: tuple[str, ...], there: set[str], tmp_path: Path) -> None:
    result = package.run(*CLASSES, *words, f"paths.outputs={tmp_path}", quiet=True)
    for table in (result.summary, result.rounds, result.clients):
        for error, accuracy in ACCURACIES.items():
            assert (accuracy in table) == (error in table)
            if error in table:
                pd.testing.assert_series_equal(table[accuracy], 1 - table[error], check_names=False, rtol=1e-9)
    assert there == {*ACCURACIES} & {*result.summary}
    name = ACCURACIES[min(there)]
    assert f"{name} " in repr(result)
    assert name in package.compare([result], name).metric


def test_accuracy_stops_a_run_and_is_searched_only_upwards(fkl: Callable[..., Answer]) -> None:
    words = ("algo=pof_mkl", "algo.loss=logistic", "kernels=rbf", "kernels.D=4", *CLASSES, *SPLIT)
    assert fkl("run", *words, "stop_when=accuracy>0.01", "out=stopped").code == 0
    assert package.load("stopped").summary["stopped_at"].notna().all()
    search = ("hydra/sweeper=optuna", "hydra.sweeper.n_trials=1", "algo.eta=interval(0.1,1)")
    answer = fkl("run", "-m", *words, *search, "objective=accuracy")
    assert answer.code == 2 and "hydra.sweeper.direction=maximize" in answer.err


def test_the_line_of_the_page_stacks_tables_with_their_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = [package.run(f"algo={algo}", *SMALL, quiet=True) for algo in ("pof_mkl", "vm_kofl")]
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^    import pandas as pd\n.*?\n\n(?=\S)", page, re.MULTILINE | re.DOTALL)
    code = re.sub("^    ", "", block, flags=re.MULTILINE)
    for name in ("summary", "rounds", "clients"):
        found: dict[str, pd.DataFrame] = {}
        exec(code.replace("summary.csv", f"{name}.csv"), found)
        for result in results:
            own = found["table"][found["table"]["run"] == result.folder.name].drop(columns="run")
            pd.testing.assert_frame_equal(own.reset_index(drop=True), getattr(result, name), check_like=True)
