"""Files as hospitals have them: several, with ids, dates, decimal commas, own words and missing cells."""

import gzip
import json
import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from fkl.basics.errors import BadValue, FklError
from fkl.data.encoder import Encoder
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.runs import model as fkl_model

FILES = {
    "east.csv": "age;ward;admitted;crp;stay\n41;icu;01.02.2024;1,5;3,5\n;Café;28.02.2024;20;4\n"
    "52,5;;29.02.2024;-1e1;2\n",
    "north.csv": "id\tcrp\tstay\tward\tage\tadmitted\np1\t0,25\t1\tmaternity\t30\t01.01.1970\n"
    "p2\t\t2,5\ticu\t31\t02.01.1970\n",
    "south.csv.gz": "stay|admitted|age|crp|ward\n5|01.03.2024|70|2|Café\n6,25|02.03.2024|71|3|surgery\n",
}
"""Delimiters, orders of columns, words and missing cells differ; only one has ids. South has é as two characters."""
EAST = FILES["east.csv"]
WEST = "age;ward;admitted;crp;stay\n1;icu;01.02.2024;1;\n2;icu;02.02.2024;2;\n"
"""Has no target in any row."""
KEYS = {
    "target": "stay",
    "drop": ["id"],
    "decimal": "comma",
    "date_format": "%d.%m.%Y",
    "fill": {"age": 50.5, "ward": "other", "crp": 2},
    "text": "one_hot",
    "words": {"ward": ["icu", "Café", "other"]},
}
CLEAN = """site,age,ward=icu,ward=Café,ward=other,admitted,crp,stay
east,41,1,0,0,19754,1.5,3.5
east,50.5,0,1,0,19781,20,4
east,52.5,0,0,1,19782,-10,2
north,30,0,0,1,0,0.25,1
north,31,1,0,0,1,2,2.5
south,70,0,1,0,19783,2,5
south,71,0,0,1,19784,3,6.25
"""


RUN = ("run", "dataset=file", "dataset.target=stay", "kernels.D=4", "replicates=1")
SEVERAL = (
    *RUN,
    "dataset.path=*.csv*",
    "dataset.drop=[id]",
    "dataset.decimal=comma",
    "dataset.date_format=%d.%m.%Y",
    "dataset.fill={age:50.5,ward:other,crp:2}",
    "dataset.text=one_hot",
    'dataset.words={ward:[icu,"Café",other]}',
)


def write(folder, **changed):
    """The files, some of them with other content, and the pattern that names them."""
    for name, content in (FILES | {f"{name}.csv": text for name, text in changed.items()}).items():
        raw = unicodedata.normalize("NFD" if "south" in name else "NFC", content).encode()
        (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(folder / "*.csv*")


def load(path, **keys):
    return TableFile(path=str(path), **(KEYS | keys)).load(Store(Path()), None)


def same(one, other):
    """Whether two tables are the same in every number and name."""
    arrays = all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ("x", "y", "site"))
    return arrays and (one.feature_names, one.site_names) == (other.feature_names, other.site_names)


def test_files_of_sites_are_the_table_that_a_person_would_make_of_them(tmp_path):
    table = load(write(tmp_path))
    (tmp_path / "clean.txt").write_text(CLEAN)
    clean = TableFile(path=str(tmp_path / "clean.txt"), target="stay", site="site").load(Store(Path()), None)
    assert same(table, clean)
    # Rows that come later become what these became, in whichever form their words are
    encoder = Encoder.of_json(table.encoder.as_json())
    assert encoder == table.encoder
    rows = {"age": ["41", None], "ward": ["Cafe\u0301", None], "admitted": ["01.02.2024"] * 2, "crp": ["1,5", None]}
    assert encoder.x(pd.DataFrame(rows, dtype=object)).tolist() == [
        [41, 0, 1, 0, 19754, 1.5],
        [50.5, 0, 0, 1, 19754, 2],
    ]
    for column, cell in {"crp": "1.5", "admitted": "2024-02-01"}.items():
        with pytest.raises(FklError, match=f"row 2, column {column}: {cell} must be a"):
            encoder.x(pd.DataFrame(rows | {column: [rows[column][0], cell]}, dtype=object))


def test_a_run_of_several_files_has_the_bytes_of_a_run_of_one(fkl, tmp_path):
    write(tmp_path)
    Path("clean.txt").write_text(CLEAN)
    several = (*SEVERAL, "out=several")
    one = (*RUN, "dataset.path=clean.txt", "dataset.site=site", "out=one")
    for words in (several, one):
        answer = fkl(*words)
        assert answer.code == 0, answer.err
    for name in ("clients.csv", "rounds.csv"):
        assert Path("several", name).read_bytes() == Path("one", name).read_bytes()


def test_new_rows_with_ids_are_predicted_as_training_rows_were_read(fkl, tmp_path):
    write(tmp_path)
    answer = fkl(*SEVERAL, "save_model=true", "figures=none", "out=several")
    assert answer.code == 0, answer.err
    model = fkl_model.load("several")
    Path("new.csv").write_text(
        "id;crp;ward;age;admitted\np1;1,5;icu;;01.02.2024\np2;1.5;icu;3;01.02.2024\np3;2;a;4;x\n"
    )
    frame = {"age": ["50,5"], "ward": ["icu"], "admitted": ["01.02.2024"], "crp": ["1,5"]}
    expected = model.predict(pd.DataFrame(frame, dtype=object))
    answer = fkl("predict", "several", "new.csv")
    assert (answer.code, answer.err) == (2, "error: new.csv: row 3, column admitted: x must be a date as %d.%m.%Y\n")
    answer = fkl(
        "predict", "several", "new.csv", "--skip-bad-rows", "--keep", "id", "--keep", "age", "--out", "out.csv"
    )
    assert answer.code == 0, answer.err
    assert "2 rows without a prediction; the first: row 2, column crp: 1.5 must be a finite number" in answer.err
    found = pd.read_csv("out.csv")
    assert list(found) == ["id", "age", "prediction"]
    assert found["id"].tolist() == ["p1", "p2", "p3"]
    assert found["prediction"][0] == pytest.approx(expected[0], rel=1e-6)
    assert found["prediction"][1:].isna().all()
    answer = fkl("predict", "several", "new.csv", "--keep", "name")
    assert "keep=name: must be a column of new.csv: id, crp, ward, age, admitted" in answer.err
    Path("known.csv").write_text(
        "client;age;ward;admitted;crp;stay\n0;1;icu;01.02.2024;1,5;3,5\n1;1;icu;01.02.2024;2;y\n"
    )
    answer = fkl("predict", "several", "known.csv", "--across", "stay")
    assert "row 2, column stay: y must be a finite number" in answer.err


@pytest.mark.parametrize(
    ("changed", "keys", "said"),
    [
        ({}, {"site": "crp", "fill": None}, "site=crp: must be null: each file of dataset.path="),
        ({}, {"test_path": "t.csv"}, "test_path=t.csv: must be null: each file of dataset.path="),
        ({}, {"drop": ["id", "name"]}, r"drop=name: must be a column of .*\*, which has age, ward, .*, id$"),
        ({}, {"drop": None}, r"east.csv: has no column id, which .*north.csv has"),
        ({"west": "age;stay\n1;2\n3;4\n"}, {}, r"west.csv: has no column ward, which .*east.csv has"),
        ({"south": "a;b\n1;2\n3;4\n"}, {}, r"one file a site: .*south.csv and .*south.csv.gz are both south"),
        ({"east": EAST.replace("1,5", "1.5")}, {}, r"east.csv, line 2, column crp: '1.5' .*; dataset.decimal=point"),
        ({"east": EAST.replace("20;", "2.0;")}, {}, r"east.csv, line 3, column crp: '2.0' is not a finite number"),
        ({"east": EAST.replace(",", ".").replace(";", ",")}, {}, "east.csv: has no semicolon, tab, pipe or space"),
        ({"east": EAST.replace("28.02", "30.02")}, {}, r"line 3, column admitted: '30.02.2024' is no date as"),
        ({}, {"date_format": "%Y/%m/%d"}, "date_format=%Y/%m/%d: must be how dates of .* are written, and no column"),
        (
            {},
            {"words": {"ward": ["icu", "Café"]}},
            "north.csv, line 2, column ward: 'maternity' is none of dataset.words",
        ),
        ({}, {"words": {"ward": ["Café", "other"], "w": ["a"]}}, "words=w: must be of a column of"),
        ({}, {"fill": {"ages": 1}}, "fill=ages: must be of a column of"),
        ({}, {"fill": {"ward": "none"}, "missing": "mean"}, "fill.ward=none: must be one of the column's words: icu"),
        ({}, {"fill": {"age": "old"}, "missing": "mean"}, "fill.age=old: must be a number"),
        ({}, {"fill": {"age": 1, "ward": "other"}}, r"north.csv, line 3, column crp: '' is missing; .*dataset.fill"),
        ({}, {"fill": {"age": 1, "crp": 1}, "missing": "mean"}, r"column ward: .* words have no mean; .*dataset.fill"),
        ({"west": WEST}, {"missing": "drop"}, "west.csv: 0 rows without"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(changed, keys, said, tmp_path):
    with pytest.raises(FklError, match=said) as caught:
        load(write(tmp_path, **changed), **keys)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"decimal": "dot"},
        {"delimiter": ","},
        {"delimiter": "comma"},
        {"date_format": "day"},
        {"date_format": "%d.%m."},
        {"date_format": "%d%d"},
        {"date_format": "%Q"},
        {"drop": ["stay"]},
        {"fill": {"stay": 1}},
        {"fill": {"age": float("nan")}},
        {"fill": {"age": [1]}},
        {"words": {"ward": []}},
        {"words": {"ward": ["Caf\u00e9", "Cafe\u0301"]}},
        {"text": "drop"},
    ],
)
def test_values_that_cannot_be_are_refused(keys):
    with pytest.raises(BadValue):
        TableFile(path="own.csv", **(KEYS | keys))


def test_a_file_of_numbers_has_no_decimal_comma(tmp_path):
    pd.DataFrame({"a": [1.5, 2], "y": [1, 2]}).to_parquet(tmp_path / "own.parquet")
    with pytest.raises(BadValue, match=r"decimal=comma: must be point for .*own\.parquet"):
        TableFile(path=str(tmp_path / "own.parquet"), target="y", decimal="comma").load(Store(Path()), None)


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    (tmp_path / "own[1].csv").write_text("a,y\n1,2\n3,4\n")
    table = TableFile(path=str(tmp_path / "own[1].csv"), target="y").load(Store(Path()), None)
    assert (table.site_names, table.y.tolist()) == (("all",), [2, 4])
    with pytest.raises(BadValue, match="must be a pattern of files that are there"):
        TableFile(path=str(tmp_path / "none*.csv"), target="y").load(Store(Path()), None)


def test_dates_have_hours_and_time_zones_and_give_the_order(tmp_path):
    cells = ["02.01.1970 06:00 +0000", "01.01.1970 00:00 -1200", "31.12.1969 12:00 +0000"]
    (tmp_path / "own.csv").write_text("a,b,y\n" + "".join(f"{one},{one},{i}\n" for i, one in enumerate(cells)))
    keys = {"target": "y", "date_format": "%d.%m.%Y %H:%M %z"}
    table = TableFile(path=str(tmp_path / "own.csv"), time="b", **keys).load(Store(Path()), None)
    assert table.x[:, 0].tolist() == [-0.5, 0.5, 1.25]
    assert table.y.tolist() == [2, 1, 0]


def test_words_that_differ_only_in_unicode_are_one_word(tmp_path):
    content = "ward,y\nCafé,1\nCafe\u0301,2\nicu,3\n"
    (tmp_path / "own.csv").write_text(content)
    table = TableFile(path=str(tmp_path / "own.csv"), target="y", text="code").load(Store(Path()), None)
    assert table.x[:, 0].tolist() == [0, 0, 1]


def test_numbers_can_be_words(tmp_path):
    (tmp_path / "own.csv").write_text("ward,y\n3,1\n10,2\n3,3\n")
    table = TableFile(path=str(tmp_path / "own.csv"), target="y", text="one_hot", words={"ward": ["3", "10"]})
    assert table.load(Store(Path()), None).x.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_what_is_new_leaves_the_words_of_older_models_as_they_were():
    told = {"columns": ["a"], "words": {}, "labels": [], "one_hot": False, "fill": {}}
    assert json.loads(Encoder(("a",)).as_json()) == told
    assert Encoder.of_json(json.dumps(told)) == Encoder(("a",))
