"""Theorems of the papers on finished runs: both sides of each inequality, its assumptions, and identities.

A module for each method has one class for each of its theorems. `THEORIES` finds the module by the method's label.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fkl.conformance.identities import Identity
from fkl.contract.world import World
from fkl.theory import coke, fdskl, fed_poe, fomd_oms, graph_omkl, parsimonious, pof_mkl, raker, rf_gp
from fkl.theory.base import Theorem

THEORIES: dict[str, Callable[[Any, World], tuple[Theorem, ...]]] = {
    "POF-MKL": pof_mkl.theorems,
    "Raker": raker.theorems,
    "RF-GP": rf_gp.theorems,
    "FOMD-OMS": fomd_oms.theorems,
    "Fed-POE": fed_poe.theorems,
    **dict.fromkeys(graph_omkl.THEOREMS, graph_omkl.theorems),
    **dict.fromkeys(("COKE", "DKLA"), coke.theorems),
    **dict.fromkeys(("FDSKL", "DSG"), fdskl.theorems),
    **dict.fromkeys(("PF", "PC"), parsimonious.theorems),
}
"""By the label of a method: a function that plays one replicate of it, and returns its theorems."""
OWN_IDENTITIES: dict[str, Callable[[Any, World], Iterator[Identity]]] = {
    **dict.fromkeys(("COKE", "DKLA"), coke.identities),
    **dict.fromkeys(("FDSKL", "DSG"), fdskl.identities),
    **dict.fromkeys(("PF", "PC"), parsimonious.identities),
}
"""The same for identities that only `fkl bound` shows, besides those of `fkl.conformance.identities`."""

_ORDER = "its theorem gives an order O() only"
_FDSKL = "Theorem 4 needs algo.lam above 0, and the best function f*, which is computed for up to 3000 training rows"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("FDSKL", "DSG"), _FDSKL),
    **dict.fromkeys(("AdaRaker", "ODKLA", "QC-ODKLA", "DOMKL"), _ORDER),
}
"""Why no bound of a method with theorems is computed, by its label."""
