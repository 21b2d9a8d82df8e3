"""What `python -m benchmarks --against COMMIT` calls slower."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

# The repository's root is not on the path of the tests: an installed fkl would lose to the one there.
FOLDER = Path(__file__).parents[1] / "benchmarks"
spec = spec_from_file_location("benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
sys.modules["benchmarks"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["benchmarks"])
from benchmarks import against  # noqa: E402


def test_a_change_counts_beyond_noise() -> None:
    """The median is beyond 10 %, and at most one turn of nine contradicts it."""

    def answer(*ratios: float) -> str:
        return against._answer([ratios])

    assert answer(0.9, *[1.2] * 8) == "slower"
    assert answer(0.9, 0.9, *[1.2] * 7) == ""
    assert answer(*[1.05] * 9) == ""
    assert answer(1.1, *[0.8] * 8) == "faster"
