"""POLY-2: online regression with the one exact kernel (x'x')^2."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.online.omkr import Omkr


@dataclass(frozen=True)
class Poly2(Omkr):
    """OMKR with a dictionary of one (kernels=poly_2)."""

    label: ClassVar[str] = "POLY-2"
    only: ClassVar[tuple[str, float, str] | None] = ("polynomial", 2, "(x'x')^2: kernels=poly_2")
