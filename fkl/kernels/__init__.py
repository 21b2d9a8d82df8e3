"""Kernels, dictionaries and random-feature banks: all heavy arithmetic of the house."""

from fkl.kernels.bank import FeatureBank
from fkl.kernels.dictionary import Dictionary

__all__ = ["Dictionary", "FeatureBank"]
