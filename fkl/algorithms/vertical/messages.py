"""Types of what the parties of a vertical partition hold and send."""

import numpy as np
from numpy.typing import NDArray

from fkl.contract.parties import Groups, Integers
from fkl.wire.letters import Count, Letter, uncounted

__all__ = ["SCALAR", "Array", "Count", "Groups", "Integers", "Letter", "uncounted"]

Array = NDArray[np.float64]
SCALAR = 8
"""Bytes of a float64 or int64 on the wire."""
