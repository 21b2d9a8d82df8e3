"""Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data, 2024."""

from functools import partial

from fkl.papers import script_output

TITLE = "FOMD-OMS (Li, Wu, Xu and King 2024)"
TABLES = {"4": "errors of methods with kernels, beside what the authors' scripts print"}
NO_CELLS = "the paper's printed tables were not available; ours are compared with what the authors' scripts print."
"""Why there are no numbers to compare."""
FIGURES: dict[str, str] = {}
UNOBTAINABLE = {
    "elevators, bank, slice, Year, ailerons, calhousing": "the authors' files and their scaling are not available"
}

table = partial(script_output.table, __file__)
