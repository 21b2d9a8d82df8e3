"""`fkl describe` explains every choice, key, column and kind of message, as the classes themselves have them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from conftest import ALGORITHMS
from jsonschema import Draft202012Validator

from fkl.algorithms.federated.pof_mkl import choose_bin
from fkl.algorithms.vertical.fdskl import LETTERS
from fkl.basics.errors import BadValue, FklError
from fkl.cli.describe import GROUPS, NODES, _choice_names, as_text, describe_choice, explain_name, of_choice
from fkl.cli.schema import json_schema
from fkl.config import choices
from fkl.config.choices import read_mapping, read_text
from fkl.config.compose import compose_config, keys_of
from fkl.conformance.promises import quick_run
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import TABLES, make_records
from fkl.screen.columns import KINDS, column_meaning, kind_meaning

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHOICES = [(group, name) for group in choices.GROUPS for name in choices.choice_files(group)]
BROKEN = [
    ("algo", "pof_mkl", {"M": 0}),
    ("algo", "coke", {"mu": 2.0}),
    ("algo", "coke", {"censored": "x"}),
    ("algo", "fdskl", {"gamma": 0.0}),
    ("dataset", "file", {"missing": "x"}),
    ("partition", "by_site", {"own": 0}),
    ("kernels", "rbf", {"laplacians": -1}),
    ("topology", "erdos_renyi", {"p": 0.5, "resample": -1}),
]
RUNS = [
    *((f"algo={algo}",) for algo in ALGORITHMS[::6]),
    ("algo=ofskl", "privacy=local", "privacy.clip=1", "privacy.noise=1"),
    ("algo=ofmkl_avg", "secure=pairwise"),
    ("algo=coke", "network.loss=0.3"),
    ("algo=pof_mkl", "network.latency_s=0.1", "network.bandwidth_bytes_per_s=1e6"),
    ("algo=fdskl", "algo.masks=fresh"),
    ("algo=pof_mkl", "dataset=drift", "dataset.rounds=100", "kernels.N=9"),
    ("algo=pof_mkl", "late=updates", "compression=sign", "logger=jsonl"),
]


def _class(group: str, name: str) -> type:
    module, _, attribute = str(keys_of(group, name)["_target_"]).rpartition(".")
    made = getattr(import_module(module), attribute)
    return made.with_keys(keys_of(group, name)) if hasattr(made, "with_keys") else made


def test_keys_are_the_fields_of_the_class_with_types_and_meanings() -> None:
    """With the defaults of the YAML, or the class's own where it has none."""
    for choice in CHOICES:
        keys = of_choice(*choice).keys
        assert all(key.type and key.meaning and "self" not in key.limits for key in keys), choice
        node, own = keys_of(*choice), {field.name: field for field in fields(_class(*choice)) if field.init}
        node, own = ({key: one for key, one in found.items() if key != "table"} for found in (node, own))
        described = {key.name.rpartition(".")[2]: key for key in keys}
        assert set(described) == set(own) >= set(node) - {"_target_"}, choice
        for key in set(own) - set(node):
            default = own[key].default_factory() if own[key].default is MISSING else own[key].default
            assert described[key].default == str(default).replace("None", "null").replace("False", "false"), choice


@pytest.mark.parametrize(("group", "name", "values"), BROKEN, ids=str)
def test_limits_are_those_that_the_class_and_the_schema_require(group: str, name: str, values: dict[str, Any]) -> None:
    node = {key: value for key, value in keys_of(group, name).items() if key != "_target_"}
    with pytest.raises(BadValue) as refused:
        _class(group, name)(**(node if "table" in node else {}) | values)
    key = f"{group}.{refused.value.key}"
    [limits] = [one.limits for one in of_choice(group, name).keys if one.name == key]
    assert refused.value.allowed.partition("=")[0] in limits
    made = Draft202012Validator(json_schema(group))
    assert made.is_valid(keys_of(group, name))
    assert not made.is_valid({**keys_of(group, name), **values})


def test_everything_that_list_names_is_described() -> None:
    """Methods name their papers, and what a choice extends counts as its own."""
    for group in GROUPS:
        for name in _choice_names(group):
            made = describe_choice(f"{group}={name}")
            assert (made.group, made.name) == (group, name)
            assert made.what or group in GROUPS[-2:]
            assert as_text(made, 80).count("\n") > 1 and max(map(len, as_text(made, 80).splitlines())) < 120
            assert made.paper or group != "algo"
    assert all(key.type and key.meaning for name in NODES for key in describe_choice(name).keys)
    assert describe_choice("pof_mkl").equations == "equations 5, 6, 7, 8, 9, 10; algorithms 1, 2"
    assert describe_choice("naval").also == ("partition=naval",)
    for group, name in CHOICES[::7]:
        assert keys_of(group, name) == (compose_config(f"{group}={name}")[group] or {}) or group == "logger", (
            group,
            name,
        )


@pytest.mark.parametrize(("group", "name"), [("algo", "coke"), ("algo", "fdskl"), ("dataset", "file")])
def test_what_it_brings_is_what_hydra_composes(group: str, name: str) -> None:
    composed, brought = compose_config(f"{group}={name}"), describe_choice(f"{group}={name}").brings
    assert brought
    for word in brought:
        other, _, choice = word.partition("=")
        assert composed[other] == (None if choice == "null" else keys_of(other, choice))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pofmkll", "no choice, key, column or kind of message is named pofmkll\n"),
        ("algo=naval", "no choice of algo is named naval"),
        ("x=naval", "x: no such group; groups are algo"),
        ("../algo/coke", "kind of message is named ../algo/coke"),
        ("mse_gini", "mse_gini: inequality between clients"),
        ("uplink_bytes", "bytes sent from all clients to the server"),
        ("network.loss", "network.loss=0.0"),
        ("algo.M", "algo.M=1"),
        ("eta", "algo.eta="),
        ("dataset.rows", "with dataset=naval"),
        ("network", "neural network"),
        ("features", "the party holds"),
        ("fomd_oms", "+as_published=fomd_oms"),
    ],
)
def test_the_command_explains_a_name_or_refuses_it(fkl: Callable, name: str, said: str) -> None:
    answer = fkl("describe", name)
    assert said in answer.out + answer.err
    assert answer.code in (0, 2) and (answer.code == 0) == (answer.err == "")


def keys(node: Any, start: str = "") -> Iterator[str]:
    """Names of all keys of a configuration, and of the parts that they are in."""
    for key, value in node.items():
        yield start + key
        if isinstance(value, dict):
            yield from keys(value, f"{start}{key}.")


@pytest.mark.parametrize("words", RUNS, ids=str)
def test_all_that_a_run_leaves_behind_is_explained(words: tuple[str, ...]) -> None:
    """Every column of its tables, every kind of message, and every key of its configuration."""
    run = quick_run(*words)
    experiment = prepare_run(run)
    chunk = next(iter(simulate_run(experiment, None, 1, lambda _: None)))
    records = make_records(experiment, [chunk])
    unknown = [column for table in TABLES for column in getattr(records, table) if column_meaning(column) is None]
    kinds = [f"{direction} {kind}" for direction, kind in chunk.ledger.kinds]
    unknown += [kind for kind in kinds if kind_meaning(kind) is None]
    assert not unknown
    assert all(explain_name(key, 80) for key in {*keys(run.resolved)})
    assert {letter.kind for letter in LETTERS} <= KINDS.keys()  # rare masks are of three parties


def test_a_method_of_one_s_own_is_listed_and_described(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain fields of its class have the meanings of its docstring."""
    monkeypatch.chdir(EXAMPLES / "own_method")
    listed = fkl("list", "algo", "--config-dir", "my_conf").out
    assert (
        listed[listed.index("Methods of your own:") : listed.index("Losses")].count("\n") == 8
        and "quiet" not in fkl("list", "algo").out
    )
    told = fkl("describe", "quiet", "--config-dir", "my_conf").out
    assert "fkl run --config-dir my_conf algo=quiet [algo.KEY=VALUE ...]" in told
    assert "algo.enough=0.1       [float] Error below which a client sends nothing." in told


@pytest.mark.parametrize("target", ["nowhere.X", "X", "null"])
def test_a_choice_that_names_no_class_says_so(fkl: Callable, tmp_path: Path, target: str) -> None:
    """All other names are found."""
    (tmp_path / "algo").mkdir()
    (tmp_path / "algo" / "bad.yaml").write_text(f"# Bad\n_target_: {target}\neta: 1\n")
    refused = fkl("describe", "bad", "--config-dir", str(tmp_path))
    assert refused.code == 2 and "no such class" in refused.err
    assert fkl("describe", "eta", "--config-dir", str(tmp_path)).out == fkl("describe", "eta").out


@pytest.mark.parametrize("group", choices.GROUPS)
def test_every_yaml_fits_the_schema_and_a_wrong_key_does_not(group: str) -> None:
    made = Draft202012Validator(json_schema(group))
    made.check_schema(made.schema)
    for file in [*choices.choice_files(group).values(), *EXAMPLES.glob(f"*/my_conf/{group}/*.yaml")]:
        node = read_mapping(read_text(file), file)
        assert not [error.message for error in made.iter_errors(node)], file
        if "table" in node:  # which names the keys beside it
            node = {**node, "table": {**node["table"], "nope": 1}}
        assert EXAMPLES in file.parents or not made.is_valid({**node, "nope": 1}), file


def test_what_a_run_is_composed_of_fits_the_schema() -> None:
    whole = Draft202012Validator(json_schema())
    for name in choices.choice_files("algo"):
        composed = compose_config(f"algo={name}")
        assert not [error.message for error in whole.iter_errors(composed)], name
        assert not whole.is_valid({**composed, "sed": 1})
        assert not whole.is_valid({**composed, "network": {**composed["network"], "los": 0.1}})


def test_the_command_prints_a_schema_or_refuses(fkl: Callable) -> None:
    assert "fkl: conf/algo" in fkl("describe", "algo", "--format=schema").out
    assert json.loads(fkl("describe", "--format=schema").out)["properties"]["checkpoint_s"]
    assert fkl("describe", "alog", "--format=schema").code == fkl("describe").code == 2
    with pytest.raises(FklError) as refused:
        json_schema("alog")
    assert refused.value.help[0].startswith("did you mean algo?")


def test_the_source_of_a_method_is_shown_and_what_differs_between_two(
    fkl: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it extends and the functions that it calls; equal functions are only named."""
    one, two = fkl("show", "pof_mkl").out, fkl("show", "coke", "dkla").out
    source = (Path(choose_bin.__code__.co_filename)).read_text()
    assert all(
        part in one for part in ("class PofMkl(MixtureDescent):", "class Descent(", "def choose_bin(", "# eq. (7)")
    )
    assert all(line in source for line in one.split("# fkl/")[1].splitlines()[1:])
    assert "the same in both: " in two and "+++ send, DKLA" in two and "-        sends = news >= self.v" in two
    assert "def functions" not in two
    assert fkl("show", "coke", "coke").out.count("\n") == 3
    monkeypatch.chdir(EXAMPLES / "own_method")
    assert "class Quiet" in fkl("show", "quiet", "--config-dir", "my_conf").out
    for words in ((), ("naval",), ("coke", "dkla", "cta")):
        refused = fkl("show", *words)
        assert refused.code == 2 and refused.err.startswith("error: ")
