"""Values in any alphabet, and with signs that Hydra's grammar has no place for, simply work."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import TABLE
from conftest import SMALL, Answer
from hydra.core.override_parser.overrides_parser import OverridesParser

from fkl.config.compose import quote_word, read_words

VALUES = {
    "my größe.csv": "my größe.csv",
    "it's": "it's",
    r"C:\ö": r"C:\ö",
    r"a\,ö": "a,ö",
    "${paths.data}/ö": "${paths.data}/ö",
    "[ä,b,[ö,'ü']]": ["ä", "b", ["ö", "ü"]],
}
"""What a user writes, and what it is."""
SWEEPS = {
    "größe 1 , größe 2": ["größe 1", "größe 2"],
    "'ä,b',ö": ["ä,b", "ö"],
    "choice(ä,'ö',c)": ["ä", "ö", "c"],
    "tag(x,choice(ö,b))": ["ö", "b"],
}
"""Sweeps, and what their jobs are given."""


@pytest.mark.parametrize("word", VALUES)
def test_a_value_is_what_it_says(word: str) -> None:
    assert OverridesParser.create().parse_override(quote_word(f"key={word}")).value() == VALUES[word]


@pytest.mark.parametrize("word", SWEEPS)
def test_a_sweep_s_values_are_what_they_say(word: str) -> None:
    parser = OverridesParser.create()
    jobs = parser.parse_override(quote_word(f"key={word}")).sweep_string_iterator()
    assert [parser.parse_override(quote_word(f"key={job}")).value() for job in jobs] == SWEEPS[word]


def test_a_run_has_names_in_any_alphabet(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "größe.csv").write_text(TABLE)
    own = ("dataset=file", "dataset.path=größe.csv", "dataset.target=price", "kernels.D=4", "replicates=1")
    assert fkl("run", *own, "out=日本 & größe").code == 0
    assert (tmp_path / "日本 & größe" / "summary.csv").is_file()


@pytest.mark.parametrize("name", ["it's={x}", 'say "x"=[y', "a=b\\", "ö]"])
def test_a_value_that_needs_quotes_is_told_with_them(fkl: Callable[..., Answer], name: str) -> None:
    """The line has the word as a shell takes it, and this word is understood."""
    refused = fkl("run", f"out={name}", *SMALL)
    told = re.search("not understood; write KEY=VALUE, or (.*) if it is text\n", refused.err)
    assert refused.code == 2 and refused.err.count("\n") == 1 and told is not None, refused.err
    [word] = shlex.split(told[1])
    [read] = read_words([word])
    assert (read.key, read.value) == ("out", name)
