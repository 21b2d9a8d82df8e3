"""Ghari and Shen, Personalized Federated Learning with Mixture of Models for Adaptive Prediction, NeurIPS 2024."""

from functools import partial

from fkl.papers.tables import table_beside_script

table = partial(table_beside_script, __file__)
