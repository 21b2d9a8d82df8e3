"""Configuration folders that are another's: one line names the file or the key, nothing is written, nothing runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken.refusal import files, require_refused
from broken.yamls import FOLDERS
from conftest import SMALL, Answer

MODULES = {"evil": "raise RuntimeError('ran')", "ends": "raise SystemExit(0)", "halved": "class"}
"""What lies in the working directory; each does something that tells when it is run."""


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)


@pytest.mark.parametrize("what", FOLDERS)
def test_a_broken_folder_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    folder = FOLDERS[what]
    for name, content in ((folder.file, folder.content), *folder.more):
        file = tmp_path / "conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    given = files(tmp_path)
    options = [word for word in folder.call.split() if word.startswith("-")]
    words = [word for word in folder.call.split() if not word.startswith("-")]
    answer = fkl("run", "--config-dir", "conf", *options, *SMALL, *words)
    require_refused(answer, tmp_path, folder.said, what, given)
