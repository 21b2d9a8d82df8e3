"""What docstrings and differences.md say of fkl beside papers and other programs, and the numbers it is said of."""

from pathlib import Path

import numpy as np
import pytest

from fkl.algorithms.online.learners import AdaRaker
from fkl.algorithms.parsimonious.dual import Dual, solve
from fkl.algorithms.parsimonious.parsimonious import Parsimonious
from fkl.algorithms.parsimonious.solver import Quadrature
from fkl.algorithms.vertical.fdskl import Fdskl
from fkl.basics.keys import Keys, declarations
from fkl.basics.random_streams import Streams
from fkl.data.ellipses import BOX, Ellipses
from fkl.data.store import Store
from fkl.papers import differences


def words(text: str | None) -> str:
    return " ".join(str(text).split())


def said(method: type[Keys]) -> str:
    """The docstring and the meanings of the keys."""
    return words(" ".join([str(method.__doc__), *(declared.meaning for declared, _ in declarations(method).values())]))


def told(paper: str) -> str:
    return words(differences(paper))


def test_ada_raker_s_steps_of_theta_are_half_to_0_7_of_ours_in_the_authors_program() -> None:
    authors = {1: 0.25, 2: 0.25, 16: 0.088, 256: 0.022}  # by |I|, in units of features with D^-1/2, D = 50
    ratios = [step / AdaRaker(eta=0.5)._step_of_interval(round(np.log2(length))) for length, step in authors.items()]
    assert (min(ratios), max(ratios)) == (pytest.approx(0.5, abs=0.01), pytest.approx(0.71, abs=0.01))
    said = words(AdaRaker.__doc__)
    assert "Its steps of theta are 0.5 to 0.7 of these, since its features lack D^-1/2." in said


def test_fdskl_draws_rows_without_replacement_unless_told_otherwise() -> None:
    """An epoch has every row once; i.i.d. draws of 60 of 60 rows would miss a third of them."""
    rows = np.arange(100, 160)
    batches = Fdskl(iterations=24, batch=5).batches(rows, Streams(0, (0,)))
    assert all(sorted(epoch.ravel()) == rows.tolist() for epoch in np.split(batches, 2))
    drawn = Fdskl(iterations=600, batch=5, rows="iid").batches(rows, Streams(0, (0,)))
    missed = np.mean([1 - len(np.unique(epoch)) / 60 for epoch in np.split(drawn, 50)])
    assert missed == pytest.approx((1 - 5 / 60) ** 12, abs=0.02)
    assert "without replacement" in words(Fdskl.__doc__) and "drawn without replacement" in told("fdskl")
    assert "No cell of the paper can be counted" in told("fdskl")


def test_a_parsimonious_model_that_is_sent_breaks_its_constraints_more_than_the_gap() -> None:
    table = Ellipses(rows=90, test_rows=0).load(Store(Path()), np.random.default_rng(0))
    problem = Dual.single(Quadrature.over_box(BOX, 24**2, (1.0, 2.0, 4.0)), table.x, table.y, 25.0, 0.01)
    solution = solve(problem, 1000, tolerance=1e-7)
    assert float(solution.gap[0]) <= 1e-7
    assert 1e-5 < float(solution.violation[0]) <= 1.1e-2
    assert "may violate them" in said(Parsimonious) and "1e-4 to 1.1e-2 (of 0.99)" in told("parsimonious")
