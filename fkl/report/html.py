"""Templates of fkl's pages, and the pictures in them."""

import base64
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from fkl.basics.errors import FklError
from fkl.runs.finished_runs import legible_text
from fkl.screen import units

FULL, SMALL = 1500, 300
"""Maximum width in CSS pixels of a figure, and of a run's figure."""
PER_CSS_PIXEL = 2
"""Screens of phones have two or three pixels per CSS pixel."""
MOST_PIXELS = 50_000_000
"""Maximum size of a picture, ten times that of the largest figure."""
BEGINNING, END = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"IEND\xaeB`\x82"
"""First and last bytes of a PNG."""

TEMPLATES = Environment(
    loader=PackageLoader("fkl.report"),
    autoescape=True,
    finalize=lambda value: value if hasattr(value, "__html__") else legible_text(str(value)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= {"typeset": units.typeset_number, "units": units}


@dataclass(frozen=True)
class HtmlPicture:
    """A PNG file, its size in CSS pixels, and its description for readers who cannot see it."""

    file: Path
    width: int
    height: int
    alt: str

    def source(self, page: Path | None) -> str:
        """Its address for a page in this folder; without a folder, the whole picture as a data URL."""
        if page is None:
            return "data:image/png;base64," + base64.b64encode(self.file.read_bytes()).decode()
        return quote(Path(os.path.relpath(self.file, page)).as_posix())


def picture_of_png(file: Path, alt: str, widest: int = FULL) -> HtmlPicture:
    """A PNG file as a picture, at most `widest` CSS pixels wide.

    Raises
    ------
    fkl.basics.errors.FklError
        If it is not a complete PNG, or too large to be shown.
    """
    # A whole PNG by its first and last bytes, and the checksum of its header
    data = file.read_bytes()
    if not (data.startswith(BEGINNING) and data.endswith(END) and zlib.crc32(data[12:29]) == _count_view(data[29:33])):
        raise FklError(f"{file.name}: cannot be shown, because it is not a complete PNG")
    # A huge picture would stop the browser
    wide, high = _count_view(data[16:20]), _count_view(data[20:24])
    if not 0 < wide * high <= MOST_PIXELS:
        raise FklError(f"{file.name}: cannot be shown, because it has {wide} x {high} pixels")
    width = min(wide // PER_CSS_PIXEL, widest)
    return HtmlPicture(file, width, round(high * width / wide), alt)


def _count_view(data: bytes) -> int:
    return int.from_bytes(data, "big")
