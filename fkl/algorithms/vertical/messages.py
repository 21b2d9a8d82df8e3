"""Types of the data that the parties of a vertical partition hold and send."""

import numpy as np
from numpy.typing import NDArray

from fkl.contract.parties import Groups, Integers
from fkl.wire import letters
from fkl.wire.letters import Count, uncounted

__all__ = ["SCALAR", "Array", "Count", "Groups", "Integers", "Letter", "uncounted"]

Array = NDArray[np.float64]
SCALAR = 8
"""Bytes of a float64 or int64 on the wire."""


class Letter(letters.Letter):
    """A letter; the first line of its class gives its kind on a wire: ``class Angles(Letter, kind="angles")``."""

    def __init_subclass__(cls, kind: str, dtype: str = "f8") -> None:
        cls.kind, cls.dtype = kind, dtype
