"""Dockerfile and .devcontainer as far as they can be read: no test here builds an image."""

import json
import re
import shlex
import tomllib
from pathlib import Path

from test_versions import ROOT, would_do

from fkl.cli.commands import commands

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = re.sub(r"\\\n", "", DOCKERFILE)


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    """Also what pyproject.toml takes into the wheel."""
    copied = [part for words in re.findall(r"^COPY (?!--)(.+) \S+$", STEPS, re.MULTILINE) for part in words.split()]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored and sorted(kept) == sorted(copied)
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]} <= {*copied}
    [extras] = re.findall(r"'\.\[([\w,]+)\]'", STEPS)
    assert {*extras.split(",")} <= {*project["project"]["optional-dependencies"]}


def test_the_image_runs_fkl_and_not_as_root() -> None:
    [entry], [command] = (re.findall(rf"^{word} (\[.+\])$", STEPS, re.MULTILINE) for word in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["fkl"] and json.loads(command)[0] in commands.commands
    assert re.findall(r"^USER (\S+)$", STEPS, re.MULTILINE) == ["1000"]
    lock = "--constraint requirements.lock"
    assert lock in STEPS and "pip install" in STEPS


def test_the_development_container_sets_up_what_make_does() -> None:
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    first, *others = made["postCreateCommand"].split(" && ")
    program, target = shlex.split(first)
    assert program == "make" and "--constraint requirements.lock" in would_do(target)
    [told] = [words for words in others if "fkl" in words]
    [file] = made["customizations"]["vscode"]["settings"]["yaml.schemas"]
    assert told.endswith(f"fkl describe algo --format=schema > {file}")
    assert not Path(file).is_absolute()
