"""Theorems of the papers on finished runs: both sides of each inequality, its assumptions, and identities.

A module for each method has one class for each of its theorems. `THEORIES` finds the module by the method's label.
"""

from collections.abc import Callable
from typing import Any

from fkl.contract.world import World
from fkl.theory import coke, fdskl, parsimonious, pof_mkl, raker, rf_gp
from fkl.theory.base import Replicate

THEORIES: dict[str, Callable[[Any, World], Replicate]] = {
    "POF-MKL": pof_mkl.replicate,
    "Raker": raker.replicate,
    "RF-GP": rf_gp.replicate,
    **dict.fromkeys(("COKE", "DKLA"), coke.replicate),
    **dict.fromkeys(("FDSKL", "DSG"), fdskl.replicate),
    **dict.fromkeys(("PF", "PC"), parsimonious.replicate),
}
"""By the label of a method: a function that plays one replicate of it, and returns its theorems and identities."""

_GRAPH_AIDED = "its theorems have constant rates, and eta_t = algo.eta / sqrt(t) falls"
_ORDER = "its theorem gives an order O() only"
_CONSTANTS = "its paper's constants were not available"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"), _GRAPH_AIDED),
    **dict.fromkeys(("AdaRaker", "ODKLA", "QC-ODKLA", "DOMKL"), _ORDER),
    **dict.fromkeys(("FOMD-OMS", "Fed-POE"), _CONSTANTS),
}
"""Why no bound of a method with theorems is computed, by its label."""
