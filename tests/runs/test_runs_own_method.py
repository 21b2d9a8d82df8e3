"""Methods, data, graphs and a whole family from outside the package: the READMEs of the examples say the truth."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import require_shown
from processes import Command, Ended

EXAMPLES = Path(__file__).parents[2] / "examples"
BLOCKS = [
    (readme.parent.name, *block)
    for readme in sorted(EXAMPLES.glob("*/README.md"))
    for block in re.findall(r"```console\n\$ (.*)\n((?s:.*?))```", readme.read_text())
]


@pytest.fixture(autouse=True)
def _own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples' data lie in their own folder."""
    monkeypatch.delenv("FKL_DATA", raising=False)


def copied(example: str, folder: Path) -> Path:
    """Copy an example into this folder."""
    shutil.copytree(EXAMPLES / example, folder / "mine", ignore=shutil.ignore_patterns("__pycache__", "outputs"))
    return folder / "mine"


def call(folder: Path, command: str) -> Ended:
    """Run `fkl ...` or `python -m MODULE ...` in a process of its own in this folder."""
    program, *words = shlex.split(command)
    if program == "fkl":
        return Command(folder, *words).wait()
    option, module, *words = words
    assert (program, option) == ("python", "-m")
    return Command(folder, *words, module=f"{module}.__main__").wait()


@pytest.mark.parametrize(("example", "command", "printed"), BLOCKS, ids=[command for _, command, _ in BLOCKS])
def test_the_readme_s_commands_print_what_it_says(tmp_path: Path, example: str, command: str, printed: str) -> None:
    """Each in a process of its own; refused ones say so with exit code 2."""
    answer = call(copied(example, tmp_path), command)
    refused = printed.startswith("error: ")
    assert answer.code == (2 if refused else 0), answer.err
    require_shown(answer.err if refused else answer.out, printed)


@pytest.mark.parametrize(
    "command",
    [
        "fkl run --config-dir my_conf algo=coke dataset=friedman topology=barbell algo.iterations=50 replicates=2",
        *(f"python -m fkl.conformance --config-dir my_conf algo={name}" for name in ("quiet", "tracking", "of_late")),
    ],
)
def test_methods_data_and_graphs_of_the_example_run_and_keep_their_promises(tmp_path: Path, command: str) -> None:
    answer = call(copied("own_method", tmp_path), command)
    assert answer.code == 0, answer.out + answer.err
