"""Pictures of the page, with few colours: in files next to it, or embedded."""

import base64
import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from fkl.basics.errors import FklError

FULL, REDUCED = 3000, 420
"""Width in pixels of a paper's figure, and of a run's."""

COLOURS = {FULL: 128, REDUCED: 64}
"""Enough colours for lines, bands and smooth letters; the file is then a fifth as large."""

MOST_PIXELS = 50_000_000
"""Ten times the size of the largest figure."""

PER_CSS_PIXEL = {FULL: 2.0, REDUCED: 1.4}
"""Screens of phones have two or three pixels per CSS pixel; reduced pictures must remain legible."""

LONGEST_STEM = 80


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Parameters
    ----------
    name : str
        Name of its file next to the page, with a hash of its content.
    png : bytes
    width, height : int
        Its size in CSS pixels.
    alt : str
        Description for readers who cannot see it.
    """

    name: str
    png: bytes
    width: int
    height: int
    alt: str

    @property
    def uri(self) -> str:
        """The picture as a data address."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


def embedded(file: Path, alt: str, widest: int = FULL) -> Picture:
    """A PNG file as a picture with few colours, at most `widest` pixels wide.

    Raises
    ------
    fkl.basics.errors.FklError
        If it is not a PNG.
    """
    try:
        with Image.open(file, formats=["PNG"]) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FklError(f"{image.width} x {image.height} pixels")
            picture = image.convert("RGB")
    except Exception as error:  # Pillow can raise nearly any error for a malicious file
        raise FklError(f"{file.name}: not a picture that can be shown ({error})") from None
    if picture.width > widest:
        picture = picture.resize((widest, round(picture.height * widest / picture.width)), Image.Resampling.LANCZOS)
    png = io.BytesIO()
    # by octree, because the usual median cut merges thin lines of different colours
    picture.quantize(COLOURS[widest], Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        png, "PNG", optimize=True
    )
    stem = re.sub("[^A-Za-z0-9._-]+", "-", f"{file.parent.name}-{file.stem}")[:LONGEST_STEM]
    name = f"{stem}-{hashlib.sha256(png.getvalue()).hexdigest()[:8]}.png"
    width, height = (round(side / PER_CSS_PIXEL[widest]) for side in picture.size)
    return Picture(name, png.getvalue(), width, height, alt)
