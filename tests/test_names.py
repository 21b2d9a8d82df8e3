"""What is told of a slip of the pen, and what the Tab key offers."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from fkl.basics.errors import FklError
from fkl.cli.commands import commands
from fkl.cli.completion import SCRIPTS, offered
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
    ("line", "words"),
    [
        ("fkl da", ["data"]),
        ("fkl data ", ["list", "describe", "fetch", "verify", "clear"]),
        ("fkl data fetch wav", ["wave_farm"]),
        ("fkl run algo=pof", ["algo=pof_mkl"]),
        ("fkl run topology=s", ["topology=star"]),
        ("fkl run -m algo=coke,dk", ["algo=coke,dkla", "algo=coke,dkrr_ny_cm"]),
        ("fkl run algo=coke algo.ce", ["algo.censored="]),
        ("fkl run algo.xi=1 see", ["seed="]),
        ("fkl run algo.b", ["algo.bins_by="]),
        ("fkl run algo=nope algo.", []),
        ("fkl run +as_published=of", ["+as_published=ofmkl_avg", "+as_published=ofskl"]),
        ("fkl run +pof_mkl/row=vm", ["+pof_mkl/row=vm_kofl"]),
        ("fkl run ~", []),
        ("fkl run seed=", []),
        ("fkl completion f", ["fish"]),
    ],
)
def test_completion_offers_what_there_is(line: str, words: list[str]) -> None:
    assert offered(line, commands) == words


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_completes(fkl: Callable, tmp_path: Path, shell: str) -> None:
    """A shell that is not installed is left out; what its Tab key does is asked of its own machinery."""
    if which(shell) is None:
        pytest.skip(f"there is no {shell}")
    command = tmp_path / "fkl"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fkl "$@"\n')
    command.chmod(0o755)
    source = fkl("completion", shell).out
    ask = {
        "bash": "compopt() { :; }; COMP_WORDBREAKS='='; COMP_LINE='fkl run algo=pof'; COMP_POINT=16\n"
        '_fkl_completion fkl; echo "algo=${COMPREPLY[@]}"',
        "zsh": 'compadd() { [[ $@[-1] == -- ]] || echo "$@[-1]"; }; words=(fkl run algo=pof); CURRENT=3\n'
        "_fkl_completion",
        "fish": "complete -C 'fkl run algo=pof'",
    }[shell]
    source = source.replace("compdef _fkl_completion fkl", "")  # outside an interactive shell there is none
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    ended = subprocess.run([shell, "-c", source + ask], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["algo=pof_mkl"]
