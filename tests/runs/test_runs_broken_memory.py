"""What does not fit into the memory: one line with the figure and the key, exit code 2, and nothing written."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken.memory import TooLarge, too_large
from broken.refusal import require_refused
from conftest import Answer

from fkl.basics import memory


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=" ".join(case.call[-3:]), marks=[pytest.mark.slow] * case.slow) for case in too_large()],
)
def test_what_does_not_fit_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: TooLarge
) -> None:
    if case.free is not None:
        monkeypatch.setattr(memory, "available_bytes", lambda: case.free)
    require_refused(fkl("run", *case.call), tmp_path, f"out of memory: .*{case.said}", case.call)
