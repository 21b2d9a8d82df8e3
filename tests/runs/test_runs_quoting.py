"""Values in any alphabet, and with signs that Hydra's grammar has no place for, simply work."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from broken.files import good, written
from conftest import SMALL, Answer
from hydra.core.override_parser.overrides_parser import OverridesParser
from numpy.random import default_rng

from fkl.config.compose import quoted, read_words

VALUES = {
    "größe.csv": "größe.csv",
    "日本": "日本",
    "'größe.csv'": "größe.csv",
    '"größe.csv"': "größe.csv",
    "'a, b'": "a, b",
    "my größe.csv": "my größe.csv",
    "a&b": "a&b",
    "it's": "it's",
    "run(1).csv": "run(1).csv",
    "(1)ä": "(1)ä",
    "#1": "#1",
    "a;b": "a;b",
    "50€": "50€",
    r"C:\ö": r"C:\ö",
    r"ö\ ": "ö ",
    r"a\,ö": "a,ö",
    "ö\\": "ö\\",
    "${paths.data}/ö": "${paths.data}/ö",
    "${oc.env:HÖHE,x}": "${oc.env:HÖHE,x}",
    "ö=b": "ö=b",
    "[ä,b,[ö,'ü']]": ["ä", "b", ["ö", "ü"]],
    "[1,2]": [1, 2],
    "{a: 1}": {"a": 1},
    "1e-3": 1e-3,
    "null": None,
    "": "",
}
"""What a user writes, and what it is."""
SWEEPS = {
    "größe,b": ["größe", "b"],
    "größe 1 , größe 2": ["größe 1", "größe 2"],
    "'ä,b',ö": ["ä,b", "ö"],
    "choice(ä,'ö',c)": ["ä", "ö", "c"],
    "choice(a b,c&d)": ["a b", "c&d"],
    "sort(ö,ä)": ["ä", "ö"],
    "tag(x,choice(ö,b))": ["ö", "b"],
    "range(1,3)": [1, 2],
}
"""Sweeps, and what their jobs are given."""
UNREADABLE = ("'ö", "ö]", "[ö", "ö,", "'a'ö", "{ö: 1}", "${ö")
"""What stays as wrong as it was."""


@pytest.mark.parametrize("word", VALUES)
def test_a_value_is_what_it_says(word: str) -> None:
    assert OverridesParser.create().parse_override(quoted(f"key={word}")).value() == VALUES[word]


@pytest.mark.parametrize("word", SWEEPS)
def test_a_sweep_s_values_are_what_they_say(word: str) -> None:
    parser = OverridesParser.create()
    jobs = parser.parse_override(quoted(f"key={word}")).sweep_string_iterator()
    assert [parser.parse_override(quoted(f"key={job}")).value() for job in jobs] == SWEEPS[word]


@pytest.mark.parametrize("word", UNREADABLE)
def test_what_is_wrong_is_still_refused(fkl: Callable[..., Answer], word: str) -> None:
    answer = fkl("run", f"out={word}")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "not understood; write KEY=VALUE" in answer.err


def test_a_run_has_names_in_any_alphabet(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "größe.csv").write_bytes(written(good(default_rng(0))))
    own = ("dataset=file", "dataset.path=größe.csv", "dataset.target=price", "kernels.D=4", "replicates=1")
    assert fkl("run", *own, "out=日本 & größe").code == 0
    assert (tmp_path / "日本 & größe" / "summary.csv").is_file()


def test_an_experiment_has_names_in_any_alphabet(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """Its sweep is written in a file, so no shell and no command line comes between."""
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    text = "# @package _global_\nhydra: {sweeper: {params: {out: 'größe,b&c'}}}\n"
    (tmp_path / "conf" / "experiment" / "x.yaml").write_text(text)
    answer = fkl("run", "-m", "--config-dir", "conf", *SMALL, "kernels.N=5", "+experiment=x")
    assert answer.code == 0, answer.err
    assert all((tmp_path / name / "summary.csv").is_file() for name in ("größe", "b&c"))


def test_a_sweep_has_names_in_any_alphabet(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """Also where a value is quoted by the user."""
    answer = fkl("run", "-m", *SMALL, "kernels.N=5", "out=choice(größe,'日本',plain)")
    assert answer.code == 0, answer.err
    assert "3 runs: 3 finished" in answer.out
    assert all((tmp_path / name / "summary.csv").is_file() for name in ("größe", "日本", "plain"))


NAMES = ("eq=ual", "br{ace}", "br[ack]", "it's={x}", 'say "x"=[y', "a=b\\", "=", "{", "ö]")


@pytest.mark.parametrize("command", [("run",), ("run", "-m"), ("plan",)])
@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_needs_quotes_is_told_with_them(
    fkl: Callable[..., Answer], name: str, command: tuple[str, ...]
) -> None:
    """The line has the word as a shell takes it, and this word is understood."""
    refused = fkl(*command, f"out={name}", *SMALL)
    told = re.search("not understood; write KEY=VALUE, or (.*) if it is text\n", refused.err)
    assert refused.code == 2 and refused.err.count("\n") == 1 and told is not None, refused.err
    [word] = shlex.split(told[1])
    [read] = read_words([word])
    assert (read.key, read.value) == ("out", name)


def test_a_comma_in_text_is_told(fkl: Callable[..., Answer]) -> None:
    assert "text '\"a,b\"'" in fkl("run", "dataset=file", "dataset.path=a,b.csv").err
    [read] = read_words(['dataset.path="a,b.csv"'])
    assert read.value == "a,b.csv"


def test_a_list_that_is_too_long_is_told_the_short_form(fkl: Callable[..., Answer]) -> None:
    refused = fkl("run", "-m", "seed=" + ",".join(map(str, range(3000))))
    assert refused.code == 2 and "numbers in a row are written range(FIRST,END)" in refused.err


LONG = "a" * 300
TOO_LONG = {
    (f"metrics.{LONG}=x.y",): f"metrics.{LONG}=x.y: must be the import path",
    ("-m", "seed=1,2", f"{LONG}=x"): f"{LONG}: no such key",
    (f"algo={LONG}",): f"algo={LONG}: no such choice",
    (f"dataset={'ö' * 130}",): f"dataset={'ö' * 130}: no such choice",
    (f"+experiment={LONG}",): f"experiment={LONG}: no such choice",
    (f"+{LONG}/b=c",): f"{LONG}/b: no such key",
    ("-m", f"hydra.sweep.dir={LONG}", "seed=1,2"): "hydra.sweep.dir=aaa",
}


@pytest.mark.parametrize("words", TOO_LONG)
def test_a_name_that_is_too_long_for_a_file_names_its_key(fkl: Callable[..., Answer], words: tuple[str, ...]) -> None:
    refused = fkl("run", *words)
    assert refused.code == 2 and TOO_LONG[words] in refused.err and "too long" not in refused.err, refused.err
