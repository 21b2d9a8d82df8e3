"""What FDSKL's workers write to one another."""

from fkl.algorithms.vertical.messages import Letter


class Index(Letter, kind="index"):
    """Numbers of an iteration's rows, and its seed, on the way to all."""


class MaskedSum(Letter, kind="masked sum"):
    """Partial sums of some rows under their masks, on the way to the worker that asks."""


class MaskSum(Letter, kind="mask sum"):
    """Their masks."""


class FunctionPart(Letter, kind="function part"):
    """Parts of f of some rows, on the way to the root."""


class Shrink(Letter, kind="shrink"):
    """What coefficients shrink by, on the way to all."""


LETTERS = (Index, MaskedSum, MaskSum, FunctionPart, Shrink)
INDEX, MASKED, MASK, PART, SHRINK = (letter.kind for letter in LETTERS)
SCALAR_BYTES = {letter.kind: letter.size(1) for letter in LETTERS}
