"""Each piece of advice about a user's table is followed, as it is printed, to a run."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

KEY = r"dataset\.\w+=(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}|\[[^\]]*\]|[^\s,;:]+)"
CODE = re.compile(r"(?:numpy|pandas)\..*(?= makes a table)")
RUN = ("run", "algo=one_shot_ridge", "dataset=file", "replicates=1", "figures=none", "kernels.D=4")
N = 24


def table(**columns):
    """Rows of a feature, and of a target, after some other columns."""
    rows = np.arange(N)
    return pd.DataFrame({**columns, "a": rows % 7 + 0.5, "y": rows % 5 + 0.25})


def text(**columns):
    return table(**columns).to_csv(index=False, sep=";")


def whole(b):
    """Cells beside whole numbers."""
    return "b;a;y\n" + "".join(f"{b[n]};{n % 7};{n % 5}\n" for n in range(N))


NUMBERS = [f"{n % 6},{n % 4}5" for n in range(N)]
THOUSANDS = [f"{n % 6 + 1},{100 + n % 4}.5" for n in range(N)]
FRENCH = [f"{n % 6 + 1}.{100 + n % 4},5" for n in range(N)]
WARDS, IDS, LATE = ["icu", "ward"] * 12, [f"p{n}" for n in range(N)], ["icu"] * 23 + ["late"]
DAYS = [f"{n + 1:02d}.01.2024" for n in range(23)] + ["soon"]
GAPS = [*np.arange(23) / 8, None]
YEARS = "2019,2018,2020\n" + "".join(f"{n % 7 / 2},{n % 5},{n % 3}\n" for n in range(N))
TEXTS = {
    "decimal commas": (whole(NUMBERS), (), 2),
    "thousands": (whole(THOUSANDS), (), 2),
    "points of thousands": (whole(FRENCH), ("dataset.decimal=comma",), 2),
    "a word for missing": (text(b=[*range(23), "N/A"]), ("dataset.missing=drop",), 2),
    "two words for missing": (text(b=[*range(22), "N/A", "-"]), ("dataset.missing=drop", "dataset.hole=[N/A]"), 2),
    "missing": (text(b=GAPS), (), 2),
    "NA is a word": (text(b=["NA", "EU", "US"] * 8), ("dataset.text=code",), 2),
    "no value": (text(b=[None] * N), (), 1),
    "a title": (f"Wells\nof 2024, all\n\n{text()}", (), 1),
    "a title with the delimiter": (f"Wells;2024\n{text(b=WARDS)}", ("dataset.text=code",), 1),
    "prose": ("These are wells\nof 2024\n" + text().replace(";", ","), (), 1),
    "no header": (text(b=WARDS).split("\n", 1)[1], ("dataset.target=3", "dataset.text=code"), 1),
    "years as names": (YEARS, ("dataset.target=2019",), 1),
    "latin-1": (text(b=["Café", "Bar"] * 12).encode("latin-1"), ("dataset.text=code",), 1),
    "utf-16": (text().encode("utf-16-le"), (), 1),
    "words": (text(ward=WARDS), (), 4),
    "ids": (text(id=IDS), (), 3),
    "ids with zeros": (text(id=[f"{n:05d}" for n in range(N)]), (), 3),
    "a late word": (text(ward=LATE), ("dataset.text=code", "algo.test_on=last"), 1),
    "units": (text(b=[f"{n % 6} kg" for n in range(N)]), ("dataset.text=one_hot",), 1),
    "units, refused": (text(b=[f"{n % 6} kg" for n in range(N)]), ("dataset.text=code",), 1),
    "labels": (whole(["yes", "no"] * 12), ("dataset.target=b",), 1),
    "large integers": (text(id=[2**60 + 257 * n for n in range(N)]), (), 1),
    "a date that is none": (text(d=DAYS), ("dataset.date_format=%d.%m.%Y", "dataset.missing=drop"), 1),
    "no format of dates": (text(d=[f"2024-01-{n + 1:02d}" for n in range(N)]), (), 3),
}  # fmt: skip
"""Content, words of the command, and the number of ways out that the line names."""


def advised(line):
    """Each choice of keys that a line offers."""
    return [re.findall(KEY, found) for found in re.findall(f"{KEY}(?: {KEY})*", line)]


def followed(fkl, words, line):
    """Run with each choice that a line offers, instead of the same keys before; return the number of choices."""
    choices = [keys for keys in advised(line) if not {*keys} <= {*words}]
    for keys in choices:
        names = {key.partition("=")[0] for key in keys}
        answer = fkl(*RUN, *(word for word in words if word.partition("=")[0] not in names), *keys)
        assert answer.code == 0, (keys, answer.err)
    return len(choices)


@pytest.mark.parametrize("kind", TEXTS)
def test_the_keys_that_a_refusal_names_lead_to_a_run(fkl, kind):
    content, words, ways = TEXTS[kind]
    Path("own.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    words = ["dataset.target=y", "dataset.path=own.csv", *words]
    answer = fkl(*RUN, *words)
    line = answer.err.replace("dataset.header=true if these are names", "")
    assert answer.code == 2 and followed(fkl, words, line) == ways, answer.err


def test_keys_of_one_file_of_several_are_followed(fkl):
    """One has decimal commas, and another has words for its missing cells."""
    Path("sites").mkdir()
    Path("sites/a.csv").write_text(whole(NUMBERS).replace(",", "."))
    Path("sites/b.csv").write_text(whole(NUMBERS))
    words = ["dataset.target=y", "dataset.path='sites/*.csv'"]
    answer = fkl(*RUN, *words)
    assert "dataset.files={b.csv:{decimal:comma}} reads it as 0.05" in answer.err
    assert followed(fkl, words, answer.err) == 2


FRAME = table()
ARFF = "@relation wells\n@attribute a numeric\n@attribute y numeric\n@data\n" + FRAME.to_csv(index=False, header=False)
LEAF = {
    "users": ["u", "v"],
    "user_data": {user: {"x": [[n, n % 3] for n in range(9)], "y": [n % 5 for n in range(9)]} for user in "uv"},
}
CODED = {
    "own.arff": ARFF,
    "own.jsonl": FRAME.to_json(orient="records", lines=True),
    "rows.json": FRAME.to_json(orient="records"),
    "columns.json": FRAME.to_json(),
    "indented.json": json.dumps(json.loads(FRAME.to_json(orient="records")), indent=2),
    "leaf.json": json.dumps(LEAF),
    "leaf of one line.json": json.dumps({"user_data": LEAF["user_data"]}),
    "own.mat": None,
    "own.h5": None,
}


@pytest.mark.parametrize("name", CODED)
def test_the_code_that_a_refusal_shows_makes_a_table(fkl, name):
    """It is evaluated as it is printed."""
    scipy_io, arff = pytest.importorskip("scipy.io"), pytest.importorskip("scipy.io.arff")
    if name == "own.mat":
        scipy_io.savemat(name, {key: FRAME[[key]].to_numpy() for key in FRAME})
    elif name == "own.h5":
        pytest.importorskip("tables", reason="pytables is not installed")
        FRAME.to_hdf(name, key="wells")
    else:
        Path(name).write_text(CODED[name])
    answer = fkl(*RUN, "dataset.target=y", f"dataset.path='{name}'")
    assert answer.code == 2 and (code := CODE.search(answer.err.split("; ", 1)[1])), answer.err
    import scipy

    assert arff and eval(code[0], {"numpy": np, "pandas": pd, "scipy": scipy, "json": json, "open": open}) is None
    target = "y1" if name == "own.mat" else "y"
    answer = fkl(*RUN, f"dataset.target={target}", f"dataset.path=table.{'npz' if name == 'own.mat' else 'csv'}", *[
        key for key in re.findall(KEY, answer.err) if key.startswith("dataset.site")
    ])  # fmt: skip
    assert answer.code == 0, answer.err


WRONG = {"own.parquet": "csv", "own.feather": "txt", "own.npy": "csv", "own.npz": "csv", "own.xlsx": "csv"}


@pytest.mark.parametrize("name", WRONG)
def test_the_suffix_that_a_refusal_names_is_read(fkl, name):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: make test installs it")
    if name == "own.npy":
        np.save(name, FRAME.to_numpy())
    elif name == "own.npz":
        np.savez(name, **FRAME)
    else:
        getattr(FRAME, {"xlsx": "to_excel"}.get(name[4:], f"to_{name[4:]}"))(name)
    wrong = Path(name).rename(f"own.{WRONG[name]}")
    target = "2" if name == "own.npy" else "y"
    answer = fkl(*RUN, f"dataset.target={target}", f"dataset.path={wrong}")
    [suffix] = re.findall(r"give it a name that ends in (\.\w+)", answer.err)
    answer = fkl(*RUN, f"dataset.target={target}", f"dataset.path={wrong.rename(f'new{suffix}')}")
    assert answer.code == 0, answer.err


def test_arrays_are_saved_again_as_a_refusal_says(fkl):
    """Training and test rows in one file, axes, fields, and objects."""
    x, y = FRAME[["a"]].to_numpy(), FRAME["y"].to_numpy()
    np.savez("own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    answer = fkl(*RUN, "dataset.target=y", "dataset.path=own.npz")
    name, use = re.findall(r"as (numpy\.savez\(.*?\)) does with a = (numpy\.load\(.*?\))", answer.err)[0]
    for part in ("train", "test"):
        eval(name.replace("train", part), {"numpy": np, "a": eval(use, {"numpy": np})})
    answer = fkl(*RUN, "dataset.target=y", *re.findall(KEY, answer.err))
    assert answer.code == 0 and f"{N} training and {N} test samples" in answer.out, answer.err
    odd = {"x": np.zeros((N, 2, 2)), "d": np.zeros(N, [("p", "f8"), ("q", "i8")]), "o": np.array([{}] * N, object)}
    for key, array in odd.items():
        np.savez("own.npz", **{key: array}, z=y, y=y)
        answer = fkl(*RUN, "dataset.target=y", "dataset.path=own.npz")
        if key == "x":
            [code] = re.findall(r"as (x\.reshape\(.*?\)) makes", answer.err)
            np.savez("own.npz", x=eval(code, {"x": array}), y=y)
        elif key == "d":
            assert "numpy.savez(path, p=d['p'], ...)" in answer.err
            np.savez("own.npz", p=array["p"], q=array["q"], y=y)
        else:
            assert "numpy.savez(path, x=x, y=y)" in answer.err and followed(
                fkl, ["dataset.target=y", "dataset.path=own.npz"], answer.err
            )
            continue
        answer = fkl(*RUN, "dataset.target=y", "dataset.path=own.npz")
        assert answer.code == 0, answer.err
