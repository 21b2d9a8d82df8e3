"""Ghari and Shen, Personalized Federated Learning with Mixture of Models for Adaptive Prediction, NeurIPS 2024."""

from functools import partial

from fkl.papers import script_output

TITLE = "Fed-POE (Ghari and Shen 2024)"
TABLES = {"1": "errors on air, beside what the authors' script prints"}
NO_CELLS = "the paper's printed tables were not available; ours are compared with what the authors' script prints."
"""Why there are no numbers to compare."""
FIGURES: dict[str, str] = {}
UNOBTAINABLE = {"wec": "the four files of 72000 rows are not available; the script wec.py was not run"}

table = partial(script_output.table, __file__)
