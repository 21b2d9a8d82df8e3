"""RBF-1: online regression with the one exact kernel exp(-|x - x'|^2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.online.omkr import Omkr


@dataclass(frozen=True)
class Rbf1(Omkr):
    """OMKR with a dictionary of one (kernels=rbf_1)."""

    label: ClassVar[str] = "RBF-1"
    only: ClassVar[tuple[str, float, str] | None] = ("rbf", np.sqrt(2), "exp(-|x - x'|^2): kernels=rbf_1")
