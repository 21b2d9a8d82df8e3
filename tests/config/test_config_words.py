"""Where a key holds names or words, what was typed is the word, or a refusal shows the quotes."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fkl.basics.errors import FklError
from fkl.config.choices import read_mapping
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.data.registry import named_dataset
from fkl.sweeps.hydra import job_words

LIKE_OTHERS = (
    "250.80", "1e3", "true", "False", "null", "NULL", "01", "1_000", "0x1f", "yes", "off", "1.", "+5", "-0", ".5",
    "NaN", "inf", "-inf", "12345678901234567890", "12:30", "2019", "2.0", "1E-3", "0", "1e999",
)  # fmt: skip
"""Words that Hydra's grammar or YAML reads as something else."""
typed = st.sampled_from(LIKE_OTHERS) | st.from_regex(
    r"[+-]?[0-9_]{1,8}(\.[0-9_]{0,4})?(e[+-]?[0-9]{1,2})?", fullmatch=True
)
OWN = ("algo=one_shot_ridge", "dataset=file", "dataset.path=own.csv", "dataset.text=code")
SHAPES = {
    "dataset.target=WORD": "target",
    "dataset.site=WORD": "site",
    "dataset.time=WORD": "time",
    "dataset.path=WORD": "path",
    "dataset.test_path=WORD": "test_path",
    "dataset.time=[day,WORD]": "time",
    "dataset.drop=[ WORD ,b]": "drop",
    "dataset.words={icd:[V57,WORD],ward:null}": "words",
    "dataset.words={WORD:[V57,WORD],ward: [a b]}": "words",
    'dataset.words={"CO(GT)":[WORD,V57]}': "words",
    "dataset.fill={icd:WORD}": "fill",
    "dataset.fill={WORD:a,other: WORD}": "fill",
    "dataset.hole=[WORD]": "hole",
    "dataset.date_format={WORD:%Y}": "date_format",
}
"""Words of a command line around the typed one, and the key that they change."""


def texts_in(value: object) -> list[object]:
    """Names and values inside a key's value."""
    if isinstance(value, dict):
        return [text for name, one in value.items() for text in (name, *texts_in(one))]
    return [text for one in value for text in texts_in(one)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("shape", SHAPES)
@given(word=typed)
@example(word="250.80")
@settings(max_examples=25, deadline=None)
def test_a_command_line_keeps_what_was_typed_as_the_word(shape, word):
    assume(word.lower() != "null" or "[" in shape)  # null alone stays null
    assume(":" not in word or "{WORD" not in shape)  # a name with a colon needs quotes
    found = texts_in(compose_config(*OWN, shape.replace("WORD", word))["dataset"][SHAPES[shape]])
    assert found.count(word) == shape.count("WORD")
    assert all(text is None or isinstance(text, str) for text in found)


@pytest.mark.parametrize("word", ["out=1e3", "paths.outputs=01", "metrics.mine=1.50", "+logger.jsonl.file=1_000"])
def test_names_of_every_group_stay_what_was_typed(word):
    key, _, text = word.lstrip("+").partition("=")
    found = compose_config("algo=one_shot_ridge", "logger=jsonl", word)
    for name in key.split("."):
        found = found[name]
    assert found == text


def test_null_alone_quotes_and_interpolations_mean_what_they_meant():
    config = compose_config(
        *OWN, "dataset.site=null", "dataset.drop=[${seed},'01',\"1e3\"]", "dataset.words={a:null,b:['true']}"
    )
    node = load_run(config).resolved["dataset"]
    assert node["drop"] == ["0", "01", "1e3"] and node["site"] is None and node["words"] == {"a": None, "b": ["true"]}
    assert config["dataset"]["drop"] == ["${seed}", "01", "1e3"]
    assert compose_config("algo=one_shot_ridge", "dataset=diabetes", "seed=1_000")["seed"] == 1000


def of_yaml(node):
    config = compose_config(*OWN)
    config["dataset"] |= node
    return load_run(config).dataset


def of_python(node):
    return named_dataset("file", **node)


@pytest.mark.parametrize("take", [of_yaml, of_python])
@given(word=typed)
@settings(max_examples=40, deadline=None)
def test_words_in_yaml_and_python_are_their_text_or_are_refused_with_quotes(take, word):
    for raw in (word, json.dumps(word)):
        words = read_mapping(f"words: {{icd: [V57, {raw}]}}", Path("own.yaml"))
        value = words["words"]["icd"][1]
        try:
            assert take({"path": "own.csv", "text": "code", **words}).words["icd"][1] == word
        except FklError as error:
            assert not isinstance(value, str)
            assert "words.icd" in str(error) and f'"{str(value).lower().replace("none", "null")}"' in str(error)


@pytest.mark.parametrize(
    "keys", [{"drop": [1]}, {"target": 2019}, {"site": True}, {"time": ["day", 1.5]}, {"words": {1: ["a"]}}]
)
def test_numbers_in_place_of_names_are_refused_with_quotes(keys):
    with pytest.raises(FklError, match=r"must be text in quotes, written as in the file, such as \""):
        named_dataset("file", path="own.csv", text="code", **keys)


@pytest.mark.parametrize("word", LIKE_OTHERS)
def test_a_saved_configuration_has_the_same_words(word):
    told = f"dataset.words={{icd:[V57,{word}],ward:null}}", f"dataset.drop=[{word}]"
    first = load_run(compose_config(*OWN, *told))
    again = load_run(yaml.safe_load(yaml.safe_dump(first.resolved)))
    assert again.dataset == first.dataset and again.dataset.drop == [word]


@pytest.mark.parametrize("values", ["1e3,01", "choice(1e3,01)", "tag(a,choice(1e3,01))"])
def test_a_sweep_keeps_what_was_typed(values):
    words = ["algo=fed3r,one_shot_ridge", *OWN[1:], f"dataset.target={values}", "dataset.drop=[1_000]", "seed=1,2"]
    overrides = {one.key_or_group: one for one in job_words(words, ())[2]}
    jobs = [f"dataset.target={value}" for value in overrides["dataset.target"].sweep_string_iterator()]
    assert [compose_config(*OWN, job)["dataset"]["target"] for job in jobs] == ["1e3", "01"]
    assert overrides["dataset.drop"].get_value_element_as_str() == "['1_000']"
    assert [*overrides["seed"].sweep_string_iterator()] == ["1", "2"]
