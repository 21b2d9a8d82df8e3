"""What FDSKL's workers write to one another."""

from fkl.wire.letters import Letter


class Index(Letter):
    """Numbers of an iteration's rows, and its seed, on the way to all."""

    kind = "index"


class MaskedSum(Letter):
    """Partial sums of some rows under their masks, on the way to the worker that asks."""

    kind = "masked sum"


class MaskSum(Letter):
    """Their masks."""

    kind = "mask sum"


class FunctionPart(Letter):
    """Parts of f of some rows, on the way to the root."""

    kind = "function part"


class Shrink(Letter):
    """What coefficients shrink by, on the way to all."""

    kind = "shrink"


class MaskedShare(Letter):
    """With split angles, shares of an angle under masks of pairs."""

    kind = "masked sum"
    dtype = "u8"


class SharePart(Letter):
    """With split angles, shares of f under masks of pairs."""

    kind = "function part"
    dtype = "u8"


class MaskedFactor(Letter):
    """A factor of products under a dealer's mask."""

    kind = "masked factor"
    dtype = "u8"


class DealtProduct(Letter):
    """What a dealer has to say of the product of its masks."""

    kind = "dealt product"
    dtype = "u8"


class Share(Letter):
    """The other share of a sum of products."""

    kind = "share"
    dtype = "u8"


LETTERS = (Index, MaskedSum, MaskSum, FunctionPart, Shrink, MaskedFactor, DealtProduct, Share)
INDEX, MASKED, MASK, PART, SHRINK, FACTOR, DEALT, SHARE = (letter.kind for letter in LETTERS)
SCALAR_BYTES = {letter.kind: letter.size(1) for letter in LETTERS}
