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


class MaskedShare(Letter, kind="masked sum", dtype="u8"):
    """With split angles, shares of an angle under masks of pairs."""


class SharePart(Letter, kind="function part", dtype="u8"):
    """With split angles, shares of f under masks of pairs."""


class MaskedFactor(Letter, kind="masked factor", dtype="u8"):
    """A factor of products under a dealer's mask."""


class DealtProduct(Letter, kind="dealt product", dtype="u8"):
    """What a dealer has to say of the product of its masks."""


class Share(Letter, kind="share", dtype="u8"):
    """The other share of a sum of products."""


LETTERS = (Index, MaskedSum, MaskSum, FunctionPart, Shrink, MaskedFactor, DealtProduct, Share)
INDEX, MASKED, MASK, PART, SHRINK, FACTOR, DEALT, SHARE = (letter.kind for letter in LETTERS)
SCALAR_BYTES = {letter.kind: letter.size(1) for letter in LETTERS}
