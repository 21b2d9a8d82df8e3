"""`fkl describe --format=schema`: the JSON Schema of the configuration."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_describe import BROKEN

from fkl.basics.errors import FklError
from fkl.cli.schema import schema
from fkl.config import choices
from fkl.config.choices import read_mapping, read_text
from fkl.config.compose import compose, keys_of

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(scope="module")
def whole() -> Draft202012Validator:
    """Checks a whole configuration."""
    return Draft202012Validator(schema())


@pytest.mark.parametrize("group", choices.GROUPS)
def test_every_yaml_fits_the_schema_and_a_wrong_key_does_not(group: str) -> None:
    made = Draft202012Validator(schema(group))
    made.check_schema(made.schema)
    for file in choices.files(group).values():
        node = read_mapping(read_text(file), file)
        assert not [error.message for error in made.iter_errors(node)], file
        if "table" in node:  # which names the keys beside it
            node = {**node, "table": {**node["table"], "nope": 1}}
        assert not made.is_valid({**node, "nope": 1}), file


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/my_conf/*/*.yaml")), ids=lambda file: file.name)
def test_choices_of_a_users_own_fit_the_schema(file: Path) -> None:
    made = Draft202012Validator(schema(file.parent.name))
    assert not [error.message for error in made.iter_errors(read_mapping(read_text(file), file))]


@pytest.mark.parametrize("word", [f"{group}={name}" for group in ("algo", "dataset") for name in choices.files(group)])
def test_what_a_run_is_composed_of_fits_the_schema(word: str, whole: Draft202012Validator) -> None:
    composed = compose(word)
    assert not [error.message for error in whole.iter_errors(composed)]
    assert not whole.is_valid({**composed, "sed": 1})
    assert not whole.is_valid({**composed, "network": {**composed["network"], "los": 0.1}})


@pytest.mark.parametrize(("group", "name", "values"), BROKEN, ids=str)
def test_the_schema_refuses_what_the_class_refuses(group: str, name: str, values: dict[str, Any]) -> None:
    """By the limits that fields declare."""
    made = Draft202012Validator(schema(group))
    assert made.is_valid(keys_of(group, name))
    assert not made.is_valid({**keys_of(group, name), **values})


def test_a_key_has_type_limits_default_and_meaning() -> None:
    [case] = [case["then"]["properties"] for case in schema("algo")["allOf"] if "PofMkl" in json.dumps(case["if"])]
    assert case["xi"]["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    assert case["bins_by"]["anyOf"][0] == {"enum": ["current", "updated"]}
    [made] = [made["then"]["properties"] for made in schema("partition")["allOf"] if "groups" in json.dumps(made)]
    assert made["groups"]["anyOf"][0] == {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    assert case["M"]["default"] == 1 and case["M"]["description"].startswith("Kernels per bin")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("algo", "--format=schema"), "fkl: conf/algo"),
        (("--format=schema",), "checkpoint_s"),
        (("alog", "--format=schema"), "must be a group"),
        ((), "must be given a NAME"),
    ],
)
def test_the_command_prints_json_or_refuses(fkl: Callable, words: tuple[str, ...], said: str) -> None:
    answer = fkl("describe", *words)
    assert said in (answer.err if answer.code else answer.out)
    assert answer.code == 2 or json.loads(answer.out)


def test_a_schema_of_no_group_names_those_that_there_are() -> None:
    with pytest.raises(FklError) as refused:
        schema("alog")
    assert refused.value.help[0].startswith("did you mean algo?")
