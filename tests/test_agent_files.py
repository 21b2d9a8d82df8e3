"""SKILL.md and llms.txt are as scripts/agent_files.py writes them, and SKILL.md's commands run in their order."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml
from conftest import Answer
from test_readme import ROOT, here

from fkl.cli.commands import commands
from fkl.cli.listing import ALL
from fkl.config.choices import abouts

SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    \$ (.+)", SKILL, re.MULTILINE)
FEWER = {"trials: 24": "trials: 2", "seeds: 10": "seeds: 3"}
__all__ = ["here"]


@pytest.mark.parametrize("name", ["SKILL.md", "llms.txt"])
def test_the_files_are_as_the_script_writes_them(name: str) -> None:
    """If not: python scripts/agent_files.py."""
    spec = spec_from_file_location("agent_files", ROOT / "scripts" / "agent_files.py")
    assert spec and spec.loader
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.FILES[name]() == (ROOT / name).read_text(encoding="utf-8")


def test_the_skill_is_short_and_names_all_commands_methods_and_data_sets() -> None:
    assert SKILL.count("\n") <= 60
    head = yaml.safe_load(SKILL.split("---\n")[1])
    assert head["name"] == "fkl" and len(head["description"]) < 1024
    assert all(f"`fkl {name}`" in SKILL for name in commands.commands)
    told = {*re.findall(r"\w+", SKILL)}
    assert {*abouts("algo"), *abouts("dataset")} <= told


def test_the_index_names_pages_and_choices_that_there_are() -> None:
    index = (ROOT / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", index)
    assert links and all((ROOT / link).is_file() for link in links)
    assert all(f"`{name}`: " in index for group in ALL[:-1] for name, words in abouts(group).items() if words)


@pytest.mark.usefixtures("here")
def test_commands_of_the_skill_run(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """One after the other in one folder; the study has fewer trials and seeds."""
    [study] = re.findall(r"```yaml\n(.*?)```", SKILL, re.DOTALL)
    for words, fewer in FEWER.items():
        assert words in study
        study = study.replace(words, fewer)
    (tmp_path / "study.yaml").write_text(study)
    for command in COMMANDS:
        program, *words = shlex.split(command)
        if program == "python":
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)
            continue
        answer = fkl(*words)
        assert answer.code == 0, f"{command}: {answer.err}"
