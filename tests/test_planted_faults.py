"""The faults of scripts/planted_faults.yaml can be planted; that they are caught, the script tells."""

import importlib.util
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "planted_faults.py"
if not SCRIPT.exists():
    pytest.skip("the tests are not in a checkout", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("planted_faults", SCRIPT)
assert _spec is not None and _spec.loader is not None
planted_faults = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(planted_faults)


@pytest.mark.parametrize("fault", planted_faults.faults(), ids=lambda fault: fault.fault)
def test_a_fault_can_be_planted(fault: planted_faults.Fault) -> None:
    """What it replaces is once in its file, and the tests that have to catch it are there."""
    assert (ROOT / "fkl" / fault.file).read_text().count(fault.old) == 1
    assert fault.old != fault.new
    files = shlex.split(fault.tests.partition(" -k ")[0])
    assert files and all((ROOT / "tests" / file).exists() for file in files)


def test_a_fault_is_planted_and_taken_out_again(tmp_path: Path) -> None:
    """And nothing else is touched."""
    fault = planted_faults.Fault("none", "some.py", "a - b", "a + b", "")
    (tmp_path / "fkl").mkdir()
    file = tmp_path / "fkl" / "some.py"
    file.write_text("c = a - b\n")
    with planted_faults.planted(fault, tmp_path):
        assert file.read_text() == "c = a + b\n"
    assert file.read_text() == "c = a - b\n"
