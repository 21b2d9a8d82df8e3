"""Pictures of the page, of few colours: in files beside it, or inside it."""

import base64
import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from fkl.basics.errors import FklError

FULL, REDUCED = 3000, 420
"""Pixels across of a paper's figure, and of a run's."""

COLOURS = {FULL: 128, REDUCED: 64}
"""Enough for lines, bands and smooth letters; a picture of few colours is a fifth of its file."""

MOST_PIXELS = 50_000_000
"""Ten times what the largest figure has."""

PER_CSS_PIXEL = {FULL: 2.0, REDUCED: 1.4}
"""Screens of phones have two or three pixels for one of the style sheet; the reduced ones shall stay legible."""

LONGEST_STEM = 80


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Parameters
    ----------
    name : str
        Of its file beside the page, with a hash of what is in it.
    png : bytes
    width, height : int
        Its size in CSS pixels.
    alt : str
        What it shows, for those who do not see it.
    """

    name: str
    png: bytes
    width: int
    height: int
    alt: str

    @property
    def uri(self) -> str:
        """The picture itself as an address."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


def embedded(file: Path, alt: str, widest: int = FULL) -> Picture:
    """A PNG file as a picture of few colours, at most `widest` pixels across.

    Raises
    ------
    fkl.basics.errors.FklError
        When it is none.
    """
    try:
        with Image.open(file, formats=["PNG"]) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FklError(f"{image.width} x {image.height} pixels")
            picture = image.convert("RGB")
    except Exception as error:  # Pillow raises nearly anything for a file that is made to deceive
        raise FklError(f"{file.name}: not a picture that can be shown ({error})") from None
    if picture.width > widest:
        picture = picture.resize((widest, round(picture.height * widest / picture.width)), Image.Resampling.LANCZOS)
    png = io.BytesIO()
    # by octree, since the usual median cut lets thin lines of other colours become one
    picture.quantize(COLOURS[widest], Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        png, "PNG", optimize=True
    )
    stem = re.sub("[^A-Za-z0-9._-]+", "-", f"{file.parent.name}-{file.stem}")[:LONGEST_STEM]
    name = f"{stem}-{hashlib.sha256(png.getvalue()).hexdigest()[:8]}.png"
    width, height = (round(side / PER_CSS_PIXEL[widest]) for side in picture.size)
    return Picture(name, png.getvalue(), width, height, alt)
