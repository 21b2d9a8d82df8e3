"""`fkl describe`: every key of every choice has a meaning, and what is told is what the classes themselves say."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path

import pytest

from fkl.basics.errors import BadValue, FklError
from fkl.cli.describe import GROUPS, NODES, _choices, as_text, describe, of_choice
from fkl.config import choices
from fkl.config.compose import compose, keys_of

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "own_method"
CHOICES = [(group, name) for group in choices.GROUPS for name in choices.files(group)]
BROKEN = [
    ("algo", "pof_mkl", {"M": 0}),
    ("algo", "pof_mkl", {"step_factor": 0.0}),
    ("algo", "coke", {"mu": 2.0}),
    ("algo", "coke", {"censored": "x"}),
    ("algo", "fdskl", {"fold": 9}),
    ("algo", "fdskl", {"gamma": 0.0}),
    ("algo", "secureboost", {"trees": 0}),
    ("algo", "omkl_sfg", {"p_floor": 2.0}),
    ("dataset", "file", {"missing": "x"}),
    ("dataset", "naval", {"rows": 1}),
    ("dataset", "concrete", {"decimals": 16}),
    ("partition", "by_site", {"own": 0}),
    ("kernels", "rbf", {"laplacians": -1}),
    ("kernels", "rbf", {"smallest": 0.0}),
    ("topology", "erdos_renyi", {"p": 2.0}),
    ("topology", "erdos_renyi", {"p": 0.5, "resample": -1}),
]


def _class(group: str, name: str) -> type:
    module, _, attribute = str(keys_of(group, name)["_target_"]).rpartition(".")
    made = getattr(import_module(module), attribute)
    return made.with_keys(keys_of(group, name)) if hasattr(made, "with_keys") else made


def test_every_key_has_a_type_and_a_meaning() -> None:
    """So no YAML needs a comment for each."""
    for key in (key for choice in CHOICES for key in of_choice(*choice).keys):
        assert key.type and key.meaning, key
        assert "self" not in key.limits and "{" not in key.limits, key


def test_keys_are_the_fields_of_the_class() -> None:
    """With the defaults of the YAML, or the class's own where it has none."""
    for choice in CHOICES:
        node, own = keys_of(*choice), {field.name: field for field in fields(_class(*choice)) if field.init}
        node, own = ({key: one for key, one in found.items() if key != "table"} for found in (node, own))
        described = {key.name.rpartition(".")[2]: key for key in of_choice(*choice).keys}
        assert set(described) == set(own) >= set(node) - {"_target_"}, choice
        for key in set(own) - set(node):
            default = own[key].default_factory() if own[key].default is MISSING else own[key].default
            assert described[key].default == str(default).replace("None", "null").replace("False", "false"), choice


@pytest.mark.parametrize(("group", "name", "values"), BROKEN, ids=str)
def test_limits_are_those_that_the_class_requires(group: str, name: str, values: dict[str, object]) -> None:
    node = {key: value for key, value in keys_of(group, name).items() if key != "_target_"}
    with pytest.raises(BadValue) as refused:
        _class(group, name)(**(node if "table" in node else {}) | values)
    key = f"{group}.{refused.value.key}"
    [limits] = [one.limits for one in of_choice(group, name).keys if one.name == key]
    assert refused.value.allowed.partition("=")[0] in limits


def test_everything_that_list_names_is_described() -> None:
    for group in GROUPS:
        for name in _choices(group):
            made = describe(f"{group}={name}")
            assert (made.group, made.name) == (group, name)
            assert made.what or group in GROUPS[-2:]
            assert as_text(made, 80).count("\n") > 1 and max(map(len, as_text(made, 80).splitlines())) < 120
    for name in NODES:
        assert all(key.type and key.meaning for key in describe(name).keys)


def test_methods_name_their_papers() -> None:
    """All of them follow one, or are ours and say whose parts they are made of."""
    assert [name for name in choices.files("algo") if not describe(f"algo={name}").paper] == []
    assert describe("pof_mkl").equations == "equations 5, 6, 7, 8, 9, 10; algorithms 1, 2"


@pytest.mark.parametrize(
    ("group", "name"), [("algo", "coke"), ("algo", "fdskl"), ("dataset", "file"), ("dataset", "air")]
)
def test_what_it_brings_is_what_hydra_composes(group: str, name: str) -> None:
    """Also what a choice has from the one that it extends."""
    brought = describe(f"{group}={name}").brings
    assert brought
    composed = compose(f"{group}={name}")
    for word in brought:
        other, _, choice = word.partition("=")
        assert composed[other] == (None if choice == "null" else keys_of(other, choice))


def test_a_name_of_several_groups_is_told_of_all() -> None:
    assert describe("naval").group == "dataset"
    assert describe("naval").also == ("partition=naval",)
    assert describe("partition=naval").also == ("dataset=naval",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pofmkl", "^no choice, key, column or kind of message is named pofmkl$"),
        ("algo=naval", "no choice of algo is named naval"),
        ("x=naval", "x: no such group; there are algo"),
        ("", "kind of message is named $"),
        ("../algo/coke", "kind of message is named ../algo/coke"),
    ],
)
def test_what_there_is_not_is_refused(name: str, said: str) -> None:
    with pytest.raises(FklError, match=said) as refused:
        describe(name)
    if name == "pofmkl":
        assert refused.value.help == ("did you mean pof_mkl? all names: fkl list",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mse_gini", "mse_gini: inequality between clients"),
        ("uplink_bytes", "bytes sent from all clients to the server"),
        ("replicates", "replicates=20"),
        ("network.loss", "network.loss=0.0"),
        ("algo.M", "algo.M=1"),
        ("alpha_of_nothing", "no choice, key"),
    ],
)
def test_columns_and_keys_are_explained(fkl: Callable, name: str, said: str) -> None:
    answer = fkl("describe", name)
    assert said in answer.out + answer.err


def test_the_command_tells_and_imports_nothing_heavy(fkl: Callable) -> None:
    assert "algo.M=1" in fkl("describe", "pof_mkl").out
    assert fkl("describe", "nope").code == fkl("describe").code == 2
    assert "--fail-fast" in fkl("run", "--help").out and "replicates=20" in fkl("run", "--help").out
    for words in (("describe", "pof_mkl"), ("run", "--help")):
        code = f"import sys; sys.argv = ['fkl', *{words!r}]; from fkl.cli import main; main(); "
        code += "assert not {'numpy', 'numba', 'hydra'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["fomd_oms", "nco_oms"])
def test_list_and_describe_name_the_authors_rates(fkl: Callable, name: str) -> None:
    """Those of theory, the default, lose a factor of 26 and 2.7."""
    for answer in (fkl("list", "algo"), fkl("describe", name)):
        assert f"+as_published={name}" in " ".join(answer.out.split())


def test_a_method_of_one_s_own_is_listed_and_described(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain fields of its class have the meanings of its docstring."""
    monkeypatch.chdir(EXAMPLE)
    listed = fkl("list", "algo", "--config-dir", "my_conf").out
    assert listed[listed.index("Methods of your own:") :].count("\n") == 7 and "quiet" not in fkl("list", "algo").out
    told = fkl("describe", "quiet", "--config-dir", "my_conf").out
    assert "fkl run --config-dir my_conf algo=quiet [algo.KEY=VALUE ...]" in told
    assert "algo.enough=0.1       [float] Error below which a client sends nothing." in told
    assert "algo.lam=0.001        [float] Regularisation lambda" in told
    assert "with topology=barbell" in fkl("describe", "topology.crowd", "--config-dir", "my_conf").out


@pytest.mark.parametrize("target", ["nowhere.X", "X", "numpy.X", "null"])
def test_a_choice_that_names_no_class_says_so(fkl: Callable, tmp_path: Path, target: str) -> None:
    """All other names are found."""
    (tmp_path / "algo").mkdir()
    (tmp_path / "algo" / "bad.yaml").write_text(f"# Bad\n_target_: {target}\neta: 1\n")
    refused = fkl("describe", "bad", "--config-dir", str(tmp_path))
    assert refused.code == 2 and "no such class" in refused.err
    assert fkl("describe", "eta", "--config-dir", str(tmp_path)).out == fkl("describe", "eta").out
