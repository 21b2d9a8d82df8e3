"""RBF-1: online regression with the one exact kernel exp(-|x - x'|^2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import World
from fkl.algorithms.online.omkr import Omkr, State, require_kernel


@dataclass(frozen=True)
class Rbf1(Omkr):
    """OMKR with a dictionary of one (kernels=rbf_1)."""

    label: ClassVar[str] = "RBF-1"

    def init(self, world: World) -> State:
        """No sample seen."""
        require_kernel(world.dictionary, self.label, "rbf", np.sqrt(2), "exp(-|x - x'|^2): kernels=rbf_1")
        return super().init(world)
