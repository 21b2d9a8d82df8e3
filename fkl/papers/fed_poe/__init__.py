"""Ghari and Shen, Personalized Federated Learning with Mixture of Models for Adaptive Prediction, NeurIPS 2024."""

from functools import partial

from fkl.papers import script_output

table = partial(script_output.script_table, __file__)
