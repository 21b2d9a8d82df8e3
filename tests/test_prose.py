"""scripts/prose.py reads docstrings and comments of fkl, but not its code."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "prose.py"
if not SCRIPT.exists():
    pytest.skip("the tests are not in a checkout", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("prose", SCRIPT)
assert _spec is not None and _spec.loader is not None
prose = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(prose)


def test_phrases_are_found_in_docstrings_and_comments_only(tmp_path: Path) -> None:
    """Names, strings and examples may have the words, and a phrase may be wrapped."""
    file = tmp_path / "module.py"
    file.write_text(
        '"""A mean in\nplace of a sum.\n\n>>> told(1)\n"""\ntold = "nobody"  # so that x is 0\n', encoding="utf-8"
    )
    assert prose.faults_of(file) == ['"in place of": instead of', '"so that": so, or a new sentence']
