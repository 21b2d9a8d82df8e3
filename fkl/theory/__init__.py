"""The papers' theorems, applied to finished runs: both sides of each inequality, and its assumptions.

Each method's module runs one replicate (`record_of`) and yields its theorems (`theorems`). `THEORIES` has the functions
by the method's label. Start with `base`.
"""

from fkl.theory import coke, fdskl, fed_poe, fomd_oms, graph_omkl, parsimonious, pof_mkl, raker, rf_gp, similarity
from fkl.theory.base import Theory

_AGENTS = Theory(coke.record_of, coke.theorems, coke.identities)
_PARTIES = Theory(fdskl.record_of, fdskl.theorems, fdskl.identities)
_GRAPHS = Theory(graph_omkl.record_of, graph_omkl.theorems, without_draws=similarity.theorems)
_PARSIMONIOUS = Theory(parsimonious.record_of, parsimonious.theorems, parsimonious.identities)
THEORIES: dict[str, Theory] = {
    "POF-MKL": Theory(pof_mkl.record_of, pof_mkl.theorems),
    "Raker": Theory(raker.record_of, raker.theorems),
    "RF-GP": Theory(rf_gp.record_of, rf_gp.theorems),
    "FOMD-OMS": Theory(fomd_oms.record_of, fomd_oms.theorems),
    "Fed-POE": Theory(fed_poe.record_of, fed_poe.theorems),
    "OMKL-GF": Theory(graph_omkl.record_of, graph_omkl.theorems),
    **dict.fromkeys(("OMKL-SFG", "OMKL-SFG-R"), _GRAPHS),
    **dict.fromkeys(("COKE", "DKLA"), _AGENTS),
    **dict.fromkeys(("FDSKL", "DSG"), _PARTIES),
    **dict.fromkeys(("PF", "PC"), _PARSIMONIOUS),
}
"""Theories by the label of their method."""

_ORDER = "its theorem gives only an order O()"
_FDSKL = "Theorem 4 needs algo.lam above 0 and the best function f*, which fkl computes for up to 3000 training rows"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("FDSKL", "DSG"), _FDSKL),
    **dict.fromkeys(("AdaRaker", "ODKLA", "QC-ODKLA", "DOMKL"), _ORDER),
}
"""Why no bound is computed for a method with theorems, by its label."""
