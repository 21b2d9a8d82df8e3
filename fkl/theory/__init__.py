"""Theorems of the papers on finished runs: both sides of each inequality, and its assumptions.

A module for each method has one class for each of its theorems. `THEORIES` finds the module by the method's label.
"""

from collections.abc import Callable
from typing import Any

from fkl.contract.world import World
from fkl.theory import pof_mkl, raker, rf_gp
from fkl.theory.base import Theorem

THEORIES: dict[str, Callable[[Any, World], tuple[Theorem, ...]]] = {
    "POF-MKL": pof_mkl.theorems,
    "Raker": raker.theorems,
    "RF-GP": rf_gp.theorems,
}
"""By the label of a method: a function that plays one replicate of it, and returns its theorems."""

_GRAPH_AIDED = "its theorems have constant rates, and eta_t = algo.eta / sqrt(t) falls"
_COKE = "Theorems 1 to 3 and 5 have no constants; Theorem 4 needs dual variables, which no replay records yet"
_FDSKL = "Theorem 4 wants gamma below 1e-10 for the paper's lambda, and needs the best function f*"
_PARSIMONIOUS = "Theorem 1 is the column gap; the bounds of Theorems 3 and 4 grow with the number of samples"
_ORDER = "its theorem gives an order O() only"
_CONSTANTS = "its paper's constants were not available"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"), _GRAPH_AIDED),
    **dict.fromkeys(("COKE", "DKLA"), _COKE),
    **dict.fromkeys(("FDSKL", "DSG"), _FDSKL),
    **dict.fromkeys(("PF", "PC"), _PARSIMONIOUS),
    **dict.fromkeys(("AdaRaker", "ODKLA", "QC-ODKLA", "DOMKL"), _ORDER),
    **dict.fromkeys(("FOMD-OMS", "Fed-POE"), _CONSTANTS),
}
"""Why no bound of a method with theorems is computed, by its label."""
