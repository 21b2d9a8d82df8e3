"""What names and completion tell of the files, against what Hydra composes from them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

from fkl.cli import commands
from fkl.completion import SCRIPTS, offered
from fkl.compose_errors import in_one_line
from fkl.composing import names
from fkl.composing.loader import compose
from fkl.errors import FklError

EXTENDING = [
    (group, name)
    for group in names.GROUPS
    for name, file in names.files(group).items()
    if "defaults:" in file.read_text() and "  - _self_" in file.read_text()
][::3]
SLIPS = [
    ("algo=nope",),
    ("seed=1", "dataset=DIABETES"),
    ("+experiment=nope",),
    ("+experiment=pof_mkl/nope",),
    ("+as_published=nope",),
    ("+pof_mkl/row=nope",),
    ("algo.nope=1",),
    ("algo=coke", "algo.xi=1"),
    ("dataset=file", "dataset.file=x.csv"),
    ("kernels=rbf", "kernels.d=1"),
    ("network.los=0",),
    ("paths.out=x",),
]


def _refusal(call: Callable, *words: object) -> str:
    with pytest.raises((FklError, HydraException)) as caught:
        call(*words)
    return str(caught.value) if isinstance(caught.value, FklError) else in_one_line(caught.value)


@pytest.mark.parametrize("words", SLIPS, ids=" ".join)
def test_a_slip_is_refused_with_the_line_that_hydra_would_lead_to(words: tuple[str, ...]) -> None:
    said = _refusal(names.require_known, words)
    hydra_s = _refusal(compose, *words)
    assert said == hydra_s or "/" in words[0]  # Hydra lists the choices of the group above
    assert said.split(";")[0] == hydra_s.split(";")[0]


@pytest.mark.parametrize(
    "words",
    [
        ("--config-dir=mine", "algo=nope"),
        ("hydra.searchpath=[mine]", "algo=nope"),
        ("algo=null",),
        ("algo=5",),
        ("algo='nope'",),
        ("~topology", "algo.nope=1"),
        ("+algo.nope=1",),
        ("+experiment=coke/censored", "algo.nope=1"),
        ("-m", "algo.nope=1"),
        ("experiment=coke/censored",),
        ("experiment=nope",),
        ("kernels.d=1",),
        ("hydra/launcher=joblib",),
        ("topology=ring", "seed=1"),
    ],
    ids=" ".join,
)
def test_what_needs_hydra_to_be_understood_is_left_to_it(words: tuple[str, ...]) -> None:
    names.require_known(words)


@pytest.mark.parametrize("group", names.GROUPS)
def test_no_choice_and_no_key_of_one_is_refused(group: str) -> None:
    for name in names.files(group):
        names.require_known((f"{group}={name}", *(f"{group}.{key}=1" for key in names.node(group, name))))


@pytest.mark.parametrize(("group", "name"), EXTENDING)
def test_a_choice_has_the_keys_that_hydra_composes(group: str, name: str) -> None:
    composed = OmegaConf.to_container(compose(f"{group}={name}")[group])
    assert names.node(group, name) == composed


@pytest.mark.parametrize("words", ["algo=nope", "algo.nope=1", "+experiment=nope", "-m algo=coke,nope"])
def test_a_slip_costs_no_library(words: str) -> None:
    """Not even Hydra is imported."""
    code = f"import sys; sys.argv = ['fkl', 'run', *{words.split()!r}]\n"
    code += "from fkl.cli import main\ntry: main()\nexcept SystemExit as stop: assert stop.code == 2\n"
    code += "assert not {'hydra', 'omegaconf', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fkl da", ["data"]),
        ("fkl data ", ["list", "describe", "fetch", "verify"]),
        ("fkl data fetch wa", ["wave_farm"]),
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
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fkl.cli "$@"\n')
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
