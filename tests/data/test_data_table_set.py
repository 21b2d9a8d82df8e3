"""Data sets that a YAML describes: what it may say, and what is refused."""

import copy
from pathlib import Path

import numpy as np
import pytest

from fkl.basics.errors import FklError
from fkl.config.loading import make_object
from fkl.data.store import Store
from fkl.data.table_layout import FIELDS, expand_patterns

DOCS = Path(__file__).parents[2] / "docs" / "own_data.md"
NODE = {
    "_target_": "fkl.data.table_set.TableSet", "missing": "mean", "input": "all", "quiet": 0.5,
    "table": {
        "name": "toy",
        "files": [{"name": "one.csv", "site": "first"}, {"name": "two.csv", "site": "second"}],
        "separator": "semicolon", "columns": ["x{1..2}", "word", "y"], "text": ["word"], "target": "y", "hole": "?",
        "replace": {"cell": 7.0, "key": "quiet"},
        "switches": {
            "missing": ["mean", "drop"],
            "input": {"all": {}, "few": {"leave_out": ["x2"], "switches": {"missing": ["drop"]}}},
        },
    },
}  # fmt: skip
FILES = {"one.csv": "x1;x2;word;y\n1;2;b;3\n7;?;a;4\n", "two.csv": "x1;x2;word;y\n3;4;a;5\n5;6;c;6\n"}


def load(folder, **keys):
    for name, text in FILES.items():
        (folder / name).write_text(text)
    made = make_object(copy.deepcopy(NODE) | keys, "dataset")
    return made.load(Store(folder, offline=True), np.random.default_rng(0))


def test_files_sites_words_holes_and_replaced_cells(tmp_path: Path) -> None:
    table = load(tmp_path)
    assert table.feature_names == ("x1", "x2", "word")
    assert table.x.tolist() == [[1, 2, 0], [0.5, 4, 1], [3, 4, 1], [5, 6, 2]]
    assert table.y.tolist() == [3, 4, 5, 6] and table.x.flags.f_contiguous
    assert (table.site.tolist(), table.site_names) == ([0, 0, 1, 1], ("first", "second"))
    table = load(tmp_path, input="few", missing="drop", quiet=9.0)  # a switch changes fields and narrows others
    assert table.feature_names == ("x1", "word")
    assert table.x.tolist() == [[1, 0], [9, 1], [3, 1], [5, 2]]


def changed(**fields: object) -> dict:
    return {"table": NODE["table"] | fields}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"input": "few"}, "missing=mean: must be drop with input=few"),
        ({"missing": "median"}, "missing=median: must be mean or drop"),
        ({"colour": 1}, "dataset.colour: no such key"),
        ({"table": None}, "table=None: must be how its files are read, see docs/own_data.md"),
        (changed(colour=1), "dataset.table.colour: no such key"),
        (changed(name="../up"), "dataset.table.name=../up: must be a word of letters"),
        (changed(target="z"), "dataset.table.target=z: must be one of dataset.table.columns"),
        (changed(replace={"7": "quiet"}), "dataset.table.replace={'7': 'quiet'}: must be cell and key"),
        (changed(switches={"input": {"all": {"colour": 1}}}), "table.switches=colour: must be one of the fields"),
        (changed(switches={"missing": {True: {}}, "input": ["all"]}), 'must be a word in quotes, "true"'),
        (changed(switches={"absent": ["a"]}), "absent=None: must be given in addition to dataset.table"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, keys: dict, said: str) -> None:
    with pytest.raises(FklError) as refused:
        load(tmp_path, **keys)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_patterns_are_expanded_as_by_a_shell_and_every_field_is_documented() -> None:
    found = [*expand_patterns(["a", "WAP{008..010}", "{T,RH(1)}_{0..1}"])]
    assert found == ["a", "WAP008", "WAP009", "WAP010", "T_0", "T_1", "RH(1)_0", "RH(1)_1"]
    assert [name for name in FIELDS if f"`{name}`" not in DOCS.read_text()] == []
