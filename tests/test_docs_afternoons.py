"""The afternoons of docs/afternoons.md: every command runs, in order, and prints what stands there."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Answer

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = (ROOT / "docs" / "afternoons.md").read_text(encoding="utf-8").split("\n## ")[1:]
EXAMPLES = {"Three hospitals and a CSV": "hospitals", "A student with a method of her own": "own_method"}
TAKES_TIME = ("runtime_", "files: ", "plots: ", "pictures: ")


def commands(chapter: str) -> list[tuple[str, list[str]]]:
    """Each command with the lines that are shown below it."""
    blocks = "".join(re.findall(r"```console\n((?s:.*?))```", chapter))
    found = re.findall(r"^\$ fkl (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)
    return [(command, shown.splitlines()) for command, shown in found]


def alike(line: str, shown: str) -> bool:
    """Whether words are equal and numbers nearly so."""
    words, others = line.split(), shown.split()
    return len(words) == len(others) and all(
        word == other or near(word.strip("*_"), other.strip("*_")) for word, other in zip(words, others, strict=True)
    )


def near(word: str, other: str) -> bool:
    try:
        return float(word) == pytest.approx(float(other), rel=0.03)
    except ValueError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: EXAMPLES[chapter.splitlines()[0]])
def test_an_afternoon_goes_as_it_is_told(chapter: str, fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """`...` stands for any lines; all others come in their order."""
    example = ROOT / "examples" / EXAMPLES[chapter.splitlines()[0]]
    shutil.copytree(example, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("outputs", "__pycache__"))
    told = commands(chapter)
    assert len(told) <= 6
    for command, shown in told:
        answer = fkl(*shlex.split(command))
        assert answer.code == 0, answer.err
        left = iter(answer.out.splitlines())
        for line in shown:
            if line.strip() not in ("", "...") and not line.startswith(TAKES_TIME):
                assert any(alike(found, line) for found in left), f"{command}: {line}\n{answer.out}"
