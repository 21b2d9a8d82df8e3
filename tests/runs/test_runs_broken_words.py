"""Command lines that mean nothing, or no good: one line that says what, exit code 2, and nothing written."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import require_refused
from broken.words import CALLS, COMMANDS, OPTIONS, QUEUES, SEARCHES, SWEEPS, WORKERS
from conftest import SMALL, Answer

SWEEP = ("run", "-m", *SMALL, "kernels.N=5")
SEEDS = (*SWEEP, "seed=1,2")
SEARCH = (*SWEEP, "objective=mse", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=1")
UPON: list[tuple[tuple[str, ...], dict[str, str]]] = [
    (("run", *SMALL), CALLS),
    (SWEEP, SWEEPS),
    ((*SEEDS, "hydra/launcher=joblib"), WORKERS),
    ((*SEEDS, "hydra/launcher=submitit_local"), QUEUES),
    (SEARCH, SEARCHES),
    (("run",), OPTIONS),
    ((), COMMANDS),
]
"""What each list of words is added to."""
CASES = {" ".join((*upon, words)): (upon, words, said) for upon, entries in UPON for words, said in entries.items()}
SIGNS = {
    ("\x1b[2J",): r"\x1b[2J: no such command",
    ("data", "verify", "\x1b[2J"): r"\x1b[2J: no such data set",
    ("table", "\x1b[31mred/1"): r"\x1b[31mred: no such paper",
    ("run", "\x1b[2J"): r"\x1b[2J: not understood",
    ("run", "--\x1b[2J"): r"--\x1b[2J: no such option",
    ("run", "--config-name", "\x1b[2J"): "--config-name: no such option",
    ("run", "--config-dir", "\x9b2J"): r"--config-dir=\x9b2J: must be a folder",
    ("run", "nope\u202e=1"): r"nope\u202e=1: not understood",
    ("run", "algo='\x1b]0;mine\x07'"): r"algo=\x1b]0;mine\x07: no such choice",
    ("run", *SMALL, "scaling=a\u2066b"): r"scaling=a\u2066b: must be",
    ("run", *SMALL, "out=\x07"): r"out=\x07: must be a folder",
    ("run", "out=a\udcff"): r"out=a\udcff: not text in UTF-8",
    ("list", "\udc80"): r"\udc80: not text in UTF-8",
    ("run", "x" * 100_000): "longer than 8192 letters",
    ("run", "seed=" + "9" * 5000): "Exceeds the limit",
    ("run", "algo.M=" + "1," * 3000 + "1"): "several values are for fkl run -m",
    ("run", "algo.M=" + "[" * 3000): "not understood",
    ("run", "algo." * 1000 + "M=1"): "algo.algo: no such key",
}
"""Words that would write to the terminal, are no text, or too much of it."""


@pytest.mark.parametrize("words", CASES)
def test_words_are_refused(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("PATH", "")  # there is no sbatch
    upon, more, said = CASES[words]
    require_refused(fkl(*upon, *shlex.split(more)), tmp_path, re.escape(said), words)


@pytest.mark.parametrize("number", range(len(SIGNS)))
def test_signs_do_not_reach_the_terminal(fkl: Callable[..., Answer], tmp_path: Path, number: int) -> None:
    words, said = list(SIGNS.items())[number]
    require_refused(fkl(*words), tmp_path, re.escape(said), words)
