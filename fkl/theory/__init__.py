"""Theorems of the papers on finished runs: both sides of each inequality, and its assumptions.

A module for each method has one class for each of its theorems. `THEORIES` finds the module by the method's label.
"""

from collections.abc import Callable
from typing import Any

from fkl.contract.world import World
from fkl.theory import fed_poe, fomd_oms, graph_omkl, pof_mkl, raker, rf_gp
from fkl.theory.base import Theorem

THEORIES: dict[str, Callable[[Any, World], tuple[Theorem, ...]]] = {
    "POF-MKL": pof_mkl.theorems,
    "Raker": raker.theorems,
    "RF-GP": rf_gp.theorems,
    "FOMD-OMS": fomd_oms.theorems,
    "Fed-POE": fed_poe.theorems,
    **dict.fromkeys(graph_omkl.THEOREMS, graph_omkl.theorems),
}
"""By the label of a method: a function that plays one replicate of it, and returns its theorems."""

_COKE = "Theorems 1 to 3 and 5 have no constants; Theorem 4 needs dual variables, which no replay records yet"
_FDSKL = "Theorem 4 wants gamma below 1e-10 for the paper's lambda, and needs the best function f*"
_PARSIMONIOUS = "Theorem 1 is the column gap; the bounds of Theorems 3 and 4 grow with the number of samples"
_ORDER = "its theorem gives an order O() only"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("COKE", "DKLA"), _COKE),
    **dict.fromkeys(("FDSKL", "DSG"), _FDSKL),
    **dict.fromkeys(("PF", "PC"), _PARSIMONIOUS),
    **dict.fromkeys(("AdaRaker", "ODKLA", "QC-ODKLA", "DOMKL"), _ORDER),
}
"""Why no bound of a method with theorems is computed, by its label."""
