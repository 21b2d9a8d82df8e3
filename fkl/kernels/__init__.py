"""Kernels, their random features, and all heavy arithmetic.

`dictionary` says which kernels there are and how features are drawn, `bank` computes with all of them at once, and
`compiled` has its inner loops. `exact` has kernels without features, `hindsight` the best fit to all samples. Start
with `bank.FeatureBank`.
"""

from fkl.kernels.bank import BANKS, FeatureBank
from fkl.kernels.dictionary import Dictionary

__all__ = ["BANKS", "Dictionary", "FeatureBank"]
