"""Files of several sites: all faults at once, keys for one file, what is decided, and sites that lie apart."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import FklError
from fkl.data.sites_apart import sites_apart
from fkl.data.store import Store
from fkl.data.table_check import check_files
from fkl.data.table_file import TableFile

ROWS = [(20 + i % 7, ("gas", "oil")[i % 2], 1.5 * i + 0.25) for i in range(12)]
BASE = {"target": "y", "text": "one_hot", "date_format": "%Y-%m-%d"}


def write_sites(folder):
    """Five sites of one table in as many dialects: comma decimals, no header, one column less, another unit."""
    texts = {
        "aalen": ["day,age,fuel,y", *(f"2024-01-{i + 1:02},{age},{fuel},{y}" for i, (age, fuel, y) in enumerate(ROWS))],
        "berlin": ["y;fuel;age;day"]
        + [
            f"{y};{fuel};{age};{i + 1:02}.02.2024".replace(f"{y}", f"{y}".replace(".", ","))
            for i, (age, fuel, y) in enumerate(ROWS)
        ],
        "celle": [f"2024-03-{i + 1:02},{age},{fuel},{y}" for i, (age, fuel, y) in enumerate(ROWS)],
        "dresden": ["day,fuel,y", *(f"2024-04-{i + 1:02},{fuel},{y}" for i, (_, fuel, y) in enumerate(ROWS))],
        "erfurt": ["day,age,fuel,y"]
        + [f"2024-05-{i + 1:02},{12 * age},{'coal' if i == 5 else fuel},{y}" for i, (age, fuel, y) in enumerate(ROWS)],
    }
    for name, lines in texts.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return TableFile(path=str(folder / "*.csv"), **BASE)


KEYS = {
    "files": {"berlin.csv": {"decimal": "comma", "date_format": "%d.%m.%Y"}, "celle.csv": {"header": False}},
    "fill": {"age": 23},
}


def test_all_faults_of_all_files_are_told_at_once_and_their_keys_read_them(tmp_path):
    data = write_sites(tmp_path)
    lines = check_files(data, None).fault_lines()
    assert all("\n" not in line for line in lines)
    for said in (
        r".*celle.csv, line 1: looks like data .*dataset\.files=\{celle\.csv:\{header:false\}\}",
        r".*dresden.csv, column age: no such column, 3 other files have it; .*dataset\.fill=\{age:VALUE\}",
        r".*berlin.csv, line 2, column y: '0,25' .*dataset\.files=\{berlin\.csv:\{decimal:comma\}\}",
        r".*berlin.csv, line 2, column day: '01\.02\.2024' is not a",
    ):
        assert any(re.match(said, line) for line in lines), (said, lines)
    table = TableFile(path=data.path, **BASE, **KEYS).load(Store(Path()), None)
    assert table.site_names == ("aalen", "berlin", "celle", "dresden", "erfurt")
    assert table.y.tolist() == [y for _ in range(5) for *_, y in ROWS]
    ages = [age for age, *_ in ROWS]
    assert table.x[:, table.feature_names.index("age")].tolist() == ages * 3 + [23] * 12 + [12 * age for age in ages]
    assert table.x[[0, 12, 24], 0].tolist() == [19723, 19754, 19783]  # 2024-01-01, 01.02.2024, 2024-03-01


def test_one_file_after_the_other_is_refused_by_its_own_key(tmp_path):
    """The first line of each refusal, followed literally, leads to a run."""
    data, keys = write_sites(tmp_path), dict[str, object]({"fill": {"age": 23}, "files": {}})
    for _ in range(4):
        try:
            TableFile(path=data.path, **BASE, **keys).load(Store(Path()), None)
            break
        except FklError as error:
            name, key, value = re.search(r"dataset\.files=\{(\w+\.csv):\{(\w+):(\w+)\}\}", str(error)).groups()
            own = keys["files"].setdefault(name, {})
            own[key] = {"false": False, "FORMAT": "%d.%m.%Y"}.get(value, value)
    assert keys == KEYS


def test_each_column_at_each_site_and_what_is_decided(tmp_path):
    checked = check_files(TableFile(path=write_sites(tmp_path).path, **BASE, **KEYS), None)
    assert not checked.faults
    decided = {one.column: one for one in checked.decisions}
    assert [decided[name].read_as for name in ("day", "age", "fuel", "y")] == [
        "date",
        "whole number",
        "words (3 words)",
        "number",
    ]
    assert decided["fuel"].why == "'gas' in line 2 of aalen.csv is no number"
    assert "12 missing, the first in line 2 of dresden.csv" in decided["age"].why
    at = {(one.column, one.site): one for one in checked.by_site()}
    assert at["fuel", "erfurt"].only_there == "coal" and at["fuel", "aalen"].only_there == ""
    assert at["age", "aalen"].range == "20 to 26" and at["age", "dresden"].missing == "12 of 12"
    assert at["day", "berlin"].range == "2024-02-01 to 2024-02-12"
    [line] = checked.columns_apart()
    assert line.startswith("age of erfurt lies apart: its median is 270") and "another unit?" in line


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(1.8, 32.0), (24.0, 0.0), (60.0, 0.0), (0.001, 0.0)]),
    st.integers(3, 10),
)
def test_a_site_in_another_unit_lies_apart_and_equal_sites_do_not(seed, unit, sites):
    """Temperatures in Fahrenheit, hours for days, minutes for hours, metres for millimetres."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(sites), 60)
    values = rng.normal(12, 2.5, len(site))
    names = [f"s{number}" for number in range(sites)]
    assert sites_apart({"a": values}, site, names) == []
    values[site == 1] = unit[0] * values[site == 1] + unit[1]
    [line] = sites_apart({"a": values}, site, names)
    assert line.startswith("a of s1 lies apart")


def test_a_column_that_describes_the_site_is_no_unit():
    site = np.repeat(np.arange(6), 10)
    assert sites_apart({"altitude": 100.0 * site}, site, [f"s{number}" for number in range(6)]) == []


def test_a_screen_lists_faults_and_decisions_and_a_run_warns(fkl, tmp_path):
    write_sites(Path())
    answer = fkl("data", "describe", "file", "dataset.path=*.csv", "dataset.target=y", "dataset.text=one_hot")
    assert answer.code == 2 and answer.err.count("error: ") > 3
    assert "kinds of faults in 5 files, see above" in answer.err and "used as" in answer.out
    words = shlex.split(
        "dataset=file dataset.path=*.csv dataset.target=y dataset.text=one_hot dataset.date_format=%Y-%m-%d "
        "'dataset.files={berlin.csv:{decimal:comma,date_format:%d.%m.%Y},celle.csv:{header:false}}' "
        "dataset.fill={age:23}"
    )
    answer = fkl("run", "algo=one_shot_ridge", *words, "replicates=1", "figures=none", "kernels.D=5", "-v")
    assert answer.code == 0, answer.err
    assert "age of erfurt lies apart" in answer.err and "words (3 words)" in answer.out


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.csv": {"header": "no"}}, r"files\.a\.csv\.header=no: must be true, false"),
        ({"a.csv": {"target": "y"}}, r"files\.a\.csv=.*: must be keys for this file: date_format, decimal, "),
        ({"a.csv": None}, r"files\.a\.csv=None: must be keys for this file"),
        ({"nowhere.csv": {"skip": 1}}, r"files=nowhere\.csv: must be the name of a file of "),
    ],
)
def test_keys_of_a_file_are_checked(files, said, tmp_path):
    data = write_sites(tmp_path)
    with pytest.raises(FklError, match=said):
        TableFile(path=data.path, **BASE, files=files).load(Store(Path()), None)
