"""The faults of scripts/planted_faults.yaml can be planted; that they are caught, the script tells."""

import shlex
from pathlib import Path

from conftest import script

ROOT = Path(__file__).parents[1]
planted_faults = script("planted_faults")


def test_every_fault_can_be_planted_and_taken_out_again(tmp_path: Path) -> None:
    """The text that it replaces is once in its file, and the tests that have to catch it are there."""
    faults = planted_faults.faults()
    assert len({fault.fault for fault in faults}) == len(faults)
    for fault in faults:
        file = tmp_path / "fkl" / fault.file
        file.parent.mkdir(parents=True, exist_ok=True)
        right = (ROOT / "fkl" / fault.file).read_text()
        file.write_text(right)
        with planted_faults.planted(fault, tmp_path):
            assert file.read_text() == right.replace(fault.old, fault.new) != right, fault
        assert file.read_text() == right
        files = [word for word in shlex.split(fault.tests.partition(" -k ")[0]) if not word.startswith("--")]
        assert files, fault
        for file in files:
            assert any((folder / file.partition("::")[0]).exists() for folder in (ROOT, ROOT / "tests")), fault
