"""`python -m benchmarks`: what it prints, of a case made small."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import fkl
from fkl.kernels import Dictionary

# The repository's root is not on the path of the tests: an installed fkl would lose to the one there.
FOLDER = Path(__file__).parents[1] / "benchmarks"
spec = spec_from_file_location("benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
sys.modules["benchmarks"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["benchmarks"])
from benchmarks import against, bench, pof_mkl  # noqa: E402
from benchmarks.case import Case  # noqa: E402


def test_a_case_is_a_line_with_the_median_of_its_ratios(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run, which compiles, does not count; the floor is measured before each of the others."""
    seconds = {"ours": iter([99.0, 2.0, 3.0, 9.0]), "floor": iter([1.0, 2.0, 3.0])}
    case = Case(
        "mine", "small", "products", lambda: next(seconds["ours"]), lambda: next(seconds["floor"]), 1.5, 3, lambda: 1500
    )
    monkeypatch.setattr(pof_mkl, "cases", lambda: [case])
    machine, [cells] = bench(["pof_mkl"])
    assert f"fkl {fkl.__version__}, Python 3." in machine and machine.endswith(" cores.")
    assert cells == ("mine", "small", "3", "2", "2.00", "1.5", "1.50 kB", "products")
    assert capsys.readouterr().err.splitlines()[-1] == "mine, 3 of 3: 9 s, floor 3 s"


def test_pof_mkl_is_run_beside_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """On samples and kernels so few that nothing can be said of the ratio, but that both are times."""
    for name, value in (("K", 4), ("T", 6), ("R", 2), ("N", 2), ("D", 3), ("FLOOR_ROUNDS", 3)):
        monkeypatch.setattr(pof_mkl, name, value)
    monkeypatch.setattr(pof_mkl, "DICTIONARY", Dictionary(N=2, D=3))
    [case] = pof_mkl.cases()
    assert case.shape == "K=4 T=6 N=2 D=3 R=2 d=14"
    assert all(ours > 0 and floor > 0 for ours, floor in case.turns())


def test_a_change_counts_beyond_noise() -> None:
    """The median is beyond 10 %, and at most one turn of nine contradicts it."""

    def answer(*ratios: float) -> str:
        return against._answer([ratios])

    assert answer(0.9, *[1.2] * 8) == "slower"
    assert answer(0.9, 0.9, *[1.2] * 7) == ""
    assert answer(*[1.05] * 9) == ""
    assert answer(1.1, *[0.8] * 8) == "faster"
