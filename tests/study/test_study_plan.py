"""A study's file is read and checked before any data: one line names the key, and what is allowed."""

from pathlib import Path

import pytest

from fkl.basics.errors import BadValue, FklError
from fkl.config.choices import files, tuned_keys
from fkl.config.compose import compose
from fkl.study.plan import Plan, has_key
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


@pytest.mark.parametrize("name", files("algo"))
def test_every_method_says_what_is_searched_over_and_has_these_keys(name: str) -> None:
    spaces = tuned_keys(name)
    config = compose(f"algo={name}")
    assert spaces
    for key, text in spaces.items():
        Range.read(key, text)
        assert has_key(config, key)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_studies_that_ship_can_be_read(file: Path) -> None:
    plan = Plan.read(file)
    for method in plan.methods:
        assert plan.spaces(plan.datasets[0], method)
        plan.run((*plan.words_of(plan.datasets[0], method), *plan.middles(plan.datasets[0], method)))


def test_ranges() -> None:
    eta = Range.read("eta", "log 1e-3..3")
    assert (eta.low, eta.high, eta.log) == (1e-3, 3.0, True)
    assert Range.read("depth", "2..6").low == 2
    assert [eta.end_of(value) for value in (0.0011, 0.05, 2.9)] == ["low", "", "high"]
    assert str(eta.widened("high")) == "log 0.001..30"
    assert Range.read("forget", "0.95..1.0").end_of(1.0) == ""
    middles = [Range.read("key", text).middle for text in ("log 0.01..100", "0.5..1.5", "2..6", ["a", "b", "c"])]
    assert middles == [1.0, 1.0, 4, "b"]
    with pytest.raises(BadValue, match="eta="):
        Range.read("eta", "0..")


def test_the_trial_with_the_smallest_error_is_chosen_of_those_that_ended() -> None:
    trials = [{"error": error, "values": number} for number, error in enumerate((2.0, None, 1.0, 3.0))]
    assert best_of(trials) == 2 and best_of(trials[1:2]) is None
