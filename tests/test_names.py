"""What is told of a slip of the pen, and what the Tab key offers."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from fkl.basics.errors import FklError
from fkl.config import choices
from fkl.config.compose import compose, keys_of

EXTENDING = [
    (group, name)
    for group in choices.GROUPS
    for name, file in choices.files(group).items()
    if "defaults:" in file.read_text() and "  - _self_" in file.read_text()
][::3]
SLIPS = {
    "algo=nope": ("algo=nope: no such choice", "all of them: fkl list algo"),
    "algo=pof_mlk": ("algo=pof_mlk: no such choice", "did you mean pof_mkl? all of them: fkl list algo"),
    "seed=1 dataset=DIABETES": (
        "dataset=DIABETES: no such choice",
        "did you mean diabetes? all of them: fkl list dataset",
    ),
    "+experiment=nope": ("experiment=nope: no such choice", "there are coke/..., "),
    "+experiment=pof_mkl/tabel1": ("experiment=pof_mkl/tabel1: no such choice", "did you mean pof_mkl/table1"),
    "+as_published=nope": ("as_published=nope: no such choice", "all of them: fkl list as_published"),
    "+pof_mkl/row=nope": ("pof_mkl/row=nope: no such choice", None),
    "algo.nope=1": ("algo.nope: no such key", "keys there: M, "),
    "algo=coke algo.xii=1": ("algo.xii: no such key", "keys there: censored, "),
    "dataset=file dataset.file=x.csv": ("dataset.file: no such key", "did you mean dataset.fill? "),
    "kernels=rbf kernels.d=1": ("kernels.d: no such key", "did you mean kernels.D? keys there: D, N, "),
    "network.los=0": ("network.los: no such key", "did you mean network.loss?"),
    "paths.out=x": ("paths.out: no such key", "keys there: cache, data, outputs"),
    "sed=1": ("sed: no such key", "did you mean seed? all keys: fkl describe settings"),
    "experiment=coke/censored": (
        "experiment=coke/censored: the configuration has no experiment; to add it, write",
        None,
    ),
    "+topology=ring": ("topology: chosen twice, as None and ring; without + a word replaces the choice", None),
}
"""Words that mean nothing, how the line that refuses them begins, and the help below it."""


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_refused_with_what_may_be_meant(words: str) -> None:
    with pytest.raises(FklError) as refused:
        compose(*words.split())
    said, help = SLIPS[words]
    assert str(refused.value).startswith(said)
    assert "".join(refused.value.help).startswith(help or "")


@pytest.mark.parametrize(("group", "name"), EXTENDING)
def test_a_choice_has_the_keys_that_it_is_composed_to(group: str, name: str) -> None:
    assert keys_of(group, name) == compose(f"{group}={name}")[group]


@pytest.mark.parametrize("words", ["algo=nope", "algo.nope=1", "+experiment=nope"])
def test_a_slip_costs_no_library(words: str) -> None:
    """Not even Hydra is imported."""
    code = f"import sys; sys.argv = ['fkl', 'run', *{words.split()!r}]\n"
    code += "from fkl.cli import main\ntry: main()\nexcept SystemExit as stop: assert stop.code == 2\n"
    code += "assert not {'hydra', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "offered"), [("fkl da", "data"), ("fkl data fe", "fetch"), ("fkl plan --mul", "--multirun")]
)
def test_click_completes_commands_and_options(
    fkl: Callable, monkeypatch: pytest.MonkeyPatch, words: str, offered: str
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_FKL_COMPLETE", "bash_complete")
    assert fkl().out.split(",")[1].strip() == offered
