"""A study's file is read and checked before any data: one line names the key, and what is allowed."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fkl.basics.errors import BadValue, FklError
from fkl.cli.commands import commands
from fkl.config.choices import choice_files, tuned_keys
from fkl.config.compose import compose_config
from fkl.study.plan import Plan, has_key
from fkl.study.progress import check_study
from fkl.study.search import best_of
from fkl.study.space import Range

EXAMPLES = Path(__file__).parents[2] / "examples" / "studies"
GOOD = "methods: [pof_mkl, vm_kofl]\ndatasets: [diabetes]\n"


def read(folder: Path, text: str) -> Plan:
    file = folder / "study.yaml"
    file.write_text(text)
    return Plan.read(file)


def test_names_and_keys_become_words(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        "methods: [pof_mkl, {algo: ofmkl_avg, compression: sign, lam: 0.0}]\n"
        "datasets: [diabetes, {dataset: file, name: wards, path: wards.csv, target: stay, site: ward}]\n",
    )
    assert [one.name for one in plan.methods] == ["POF-MKL", "OFMKL-Avg (sign lam=0.0)"]
    assert plan.methods[1].words == ("algo=ofmkl_avg", "compression=sign", "algo.lam=0.0")
    words = "dataset=file dataset.path=wards.csv dataset.target=stay dataset.site=ward"
    assert (plan.datasets[1].name, " ".join(plan.datasets[1].words)) == ("wards", words)
    assert plan.trials_each == 24  # two keys at most, twelve trials each


def test_names_are_short_and_tell_data_sets_apart(tmp_path: Path) -> None:
    iid = "partition: iid, partition.clients"
    data = f"naval, {{dataset: energy, {iid}: 5}}, {{dataset: air, {iid}: 5}}, {{dataset: air, {iid}: 9}}"
    files = "{dataset: file, path: my/wards.csv, target: stay}, {dataset: file, path: 'sites/*.csv', target: stay}"
    plan = read(tmp_path, f"methods: [pof_mkl, vm_kofl]\ndatasets: [{data}, {files}]\n")
    names = ["naval", "energy", "air (clients=5)", "air (clients=9)", "wards", "sites"]
    assert [one.name for one in plan.datasets] == names


def test_beside_adds_each_method_alone_and_pooled_and_compares_it_with_itself(tmp_path: Path) -> None:
    plan = read(tmp_path, GOOD + "beside: [alone, pooled, mean]\n")
    assert [one.name for one in plan.all_methods] == [
        "POF-MKL", "vM-KOFL", "POF-MKL (alone)", "POF-MKL (pooled)", "vM-KOFL (alone)", "vM-KOFL (pooled)",
    ]  # fmt: skip
    assert ("POF-MKL", "vM-KOFL (alone)") not in plan.pairs
    assert len(plan.pairs) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("methods: [pof_mkl]\ndatasets: [diabetes]", "methods"),
        ("methods: [pof_mkl, pof_mkl]\ndatasets: [diabetes]", "different names"),
        (GOOD + "claims: rows", "no such key of a study"),
        (GOOD + "tune: {space: {algo.eta: 1 to 3}}", "tune.space.algo.eta"),
        (GOOD + "judge: {seeds: 10, looks: [10, 5]}", "judge.looks"),
        (GOOD + "pairs: [[POF-MKL, RF-GP]]", "POF-MKL, vM-KOFL"),
        (GOOD + "set: [seed=3]", "which the study sets"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FklError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize("name", choice_files("algo"))
def test_every_method_says_what_is_searched_over_and_has_these_keys(name: str) -> None:
    spaces = tuned_keys(name)
    config = compose_config(f"algo={name}")
    assert spaces
    for key, text in spaces.items():
        Range.read(key, text)
        assert has_key(config, key)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_studies_that_ship_can_be_read(file: Path) -> None:
    plan = Plan.read(file)
    for method in plan.methods:
        assert plan.search_space(plan.datasets[0], method)
        plan.checked_run((*plan.words_of(plan.datasets[0], method), *plan.words_of_middles(plan.datasets[0], method)))


def test_ranges() -> None:
    eta = Range.read("eta", "log 1e-3..3")
    assert (eta.low, eta.high, eta.log) == (1e-3, 3.0, True)
    assert Range.read("depth", "2..6").low == 2
    assert [eta.end_of(value) for value in (0.0011, 0.05, 2.9)] == ["low", "", "high"]
    assert str(eta.widen_ends("high")) == "log 0.001..30"
    middles = [Range.read("key", text).middle for text in ("log 0.01..100", "0.5..1.5", "2..6", ["a", "b", "c"])]
    assert middles == [1.0, 1.0, 4, "b"]
    with pytest.raises(BadValue, match="eta="):
        Range.read("eta", "0..")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.95..1.0", "0.9..1", "0.95..1.05"),
        ("2..6", "-2..6", "2..10"),
        ("log 1e-3..3", "log 0.0001..3", "log 0.001..30"),
        ("-1.0..3.0", "-5..3", "-1..7"),
    ],
)
def test_every_range_has_two_ends_and_grows_at_either(text: str, low: str, high: str) -> None:
    one = Range.read("key", text)
    assert [one.end_of(value) for value in (one.low, one.middle, one.high)] == ["low", "", "high"]
    assert (str(one.widen_ends("low")), str(one.widen_ends("high"))) == (low, high)


def test_a_range_grows_as_far_as_its_key_allows() -> None:
    beta = Range.read("beta", "0.0..0.95")
    assert str(beta.widen_ends("high", lambda value: 0 <= value < 1)) == "0..0.98"
    assert beta.widen_ends("low", lambda value: 0 <= value < 1) is None, "0 is the key's own limit"
    depth = Range.read("depth", "2..6")
    assert str(depth.widen_ends("low", lambda value: value >= 1)) == "1..6"
    assert depth.widen_ends("high", lambda value: value <= 6) is None
    rate = Range.read("rate", "log 0.05..1")
    assert rate.widen_ends("high", lambda value: 0 < value <= 1) is None
    numbers = Range.read("N", [5, 11, 51])
    assert [numbers.end_of(value) for value in numbers.values] == ["low", "", "high"]
    assert numbers.widen_ends("high") is None and Range.read("N", [11, 51]).end_of(11) == ""
    assert Range.read("loss", ["a", "b", "c"]).end_of("a") == Range.read("flag", [True, False]).end_of(True) == ""


@pytest.mark.parametrize("name", choice_files("algo"))
def test_ranges_that_ship_know_the_limits_of_their_keys(tmp_path: Path, name: str) -> None:
    """A wider range, where there is one, has an end that a run accepts."""
    plan = read(tmp_path, f"methods: [{name}, {{algo: {name}, name: other}}]\ndatasets: [diabetes]\n")
    [dataset], method = plan.datasets, plan.methods[0]
    for key, space in plan.search_space(dataset, method).items():
        for end in ("low", "high"):
            wider = plan.widen_range(dataset, method, key, space, end)
            value = getattr(space if wider is None else wider, end)
            plan.checked_run(
                (*plan.words_of(dataset, method), *plan.words_of_middles(dataset, method), f"{key}={value}")
            )
            assert wider is None or wider.end_of(getattr(space, end)) in ("", end)


def test_one_method_beside_itself_is_a_study_and_pairs_name_its_variants(tmp_path: Path) -> None:
    plan = read(tmp_path, "methods: [vm_kofl]\ndatasets: [diabetes]\nbeside: [alone, mean]\n")
    assert plan.pairs == [("vM-KOFL", "vM-KOFL (alone)")]
    pair = "pairs: [[POF-MKL, vM-KOFL (alone)], [vM-KOFL (alone), vM-KOFL]]\n"
    plan = read(tmp_path, GOOD + "beside: [alone]\n" + pair)
    others = [("vM-KOFL (alone)", "vM-KOFL"), ("POF-MKL", "POF-MKL (alone)")]
    assert plan.pairs == [("POF-MKL", "vM-KOFL (alone)"), *others]


def test_a_method_of_a_module_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `fkl run --config-dir`, in a study and in each command that builds a run."""
    monkeypatch.chdir(tmp_path)
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("from fkl.algorithms.federated.descent import OfmklAvg as Own\n")
    source = f"{name}.Own"
    (tmp_path / "mine" / "algo").mkdir(parents=True)
    (tmp_path / "mine" / "algo" / "mine.yaml").write_text(f"# Mine\n_target_: {source}\n")
    plan = read(tmp_path, "config_dir: mine\nmethods: [{algo: mine, name: Mine}, ofmkl_avg]\ndatasets: [diabetes]\n")
    assert plan.not_tuned(plan.datasets[0]) == [plan.methods[0].name]
    assert plan.trials_of(plan.datasets[0], plan.methods[0]) == 1
    for command in ("plan", "data describe", "plan -m"):
        words = [*command.split(), "algo=mine", "dataset=diabetes", "kernels.D=4", "--config-dir", "mine"]
        result = CliRunner().invoke(commands, words)
        assert result.exception is None, (command, result.output)


def test_the_trial_with_the_smallest_error_is_chosen_of_those_that_ended() -> None:
    trials = [{"error": error, "values": number} for number, error in enumerate((2.0, None, 1.0, 3.0))]
    assert best_of(trials) == 2 and best_of(trials[1:2]) is None


@pytest.mark.parametrize(
    ("methods", "space"),
    [
        ("ofmkl_avg", "algo.level: 0.1..0.9"),
        ("ofmkl_avg", "algo.loss: [square, quantile]"),
        ("{algo: ofmkl_avg, loss: quantile}", "algo.level: [0.5, 0.9]"),
        ("ofmkl_avg", "scaling: [unit_ball, unit_box]"),
        ("ofmkl_avg", "rows: [even, odd]"),
        ("ofmkl_avg", "partition.clients: 2..4"),
        ("ofmkl_avg", "partition: [iid, blocks]"),
        ("one_shot_ridge", "algo.test_share: 0.1..0.5"),
        ("one_shot_ridge", "algo.test_on: [drawn, last]"),
        ("one_shot_ridge", "algo.fold: [0, 1]"),
        ("{algo: ofmkl_avg, kernels: coke}", "algo.loss: [square, logistic]"),
    ],
)
def test_a_search_cannot_choose_what_the_error_is(tmp_path: Path, methods: str, space: str) -> None:
    """Some errors are smaller by definition, or of easier samples, whatever the method: that of level 0.9, of 0.5."""
    data = "{dataset: ellipses, partition: iid}" if "logistic" in space else "diabetes"  # two classes
    text = f"methods: [{methods}]\ndatasets: [{data}]\nbeside: [alone]\n"
    with pytest.raises(FklError, match="what the error is"):
        check_study(
            read(tmp_path, text + f"tune: {{space: {{{space}}}}}\nset: [partition.clients=3, partition.rounds=40]\n")
        )


@pytest.mark.parametrize("space", ["algo.delta: log 0.01..1", "algo.loss: [square, huber]", "kernels.D: 2..6"])
def test_a_search_over_what_is_learned_is_judged_by_one_error(tmp_path: Path, space: str) -> None:
    text = "methods: [{algo: ofmkl_avg, loss: huber}, {algo: ofmkl_avg, name: B}]\ndatasets: [diabetes]\n"
    check_study(read(tmp_path, text + f"tune: {{space: {{{space}}}}}\n"))


@pytest.mark.parametrize("other", ["level: 0.9", "loss: square"])
def test_methods_are_judged_by_one_error(tmp_path: Path, other: str) -> None:
    loss = "loss: quantile, " * ("level" in other)
    methods = f"[{{algo: ofmkl_avg, loss: quantile, level: 0.5}}, {{algo: vm_kofl, {loss}{other}}}]"
    words = "set: [partition=iid, partition.clients=5, partition.rounds=20, kernels.D=4]\n"
    plan = read(tmp_path, f"methods: {methods}\ndatasets: [diabetes]\n" + words)
    with pytest.raises(FklError, match=r"pinball of level 0.5.*errors of one kind"):
        check_study(plan)
    check_study(
        read(
            tmp_path,
            f"methods: {methods}\ndatasets: [diabetes]\n{words}".replace(
                other, (loss and "level: 0.5") or "loss: quantile"
            ),
        )
    )
