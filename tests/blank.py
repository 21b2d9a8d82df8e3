"""Blank figures: drawing would take more than half of a small run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

draw, arrange = Figure.savefig, ConstrainedLayoutEngine.execute


@cache
def made(kind: str) -> bytes:
    """A file of this kind; drawn once."""
    file = BytesIO()
    draw(Figure((1, 1)), file, format=kind, metadata={"CreationDate": None} if kind == "pdf" else {})
    return file.getvalue()


def savefig(_: Figure, file: IO[bytes] | str | Path, format: str = "", **__: object) -> None:
    """Instead of `Figure.savefig`."""
    if isinstance(file, str | Path):
        Path(file).write_bytes(made(format or Path(file).suffix[1:]))
    else:
        file.write(made(format))


def begin() -> None:
    """Let figures be blank from now on, in this process."""
    Figure.savefig, ConstrainedLayoutEngine.execute = savefig, lambda *_: None


@contextmanager
def drawn_after_all() -> Iterator[None]:
    """Draw figures for a while, and then no more."""
    Figure.savefig, ConstrainedLayoutEngine.execute = draw, arrange
    try:
        yield
    finally:
        begin()
