"""Kernels, dictionaries and random-feature banks: all heavy arithmetic."""

from fkl.kernels.bank import BANKS, FeatureBank
from fkl.kernels.dictionary import Dictionary

__all__ = ["BANKS", "Dictionary", "FeatureBank"]
