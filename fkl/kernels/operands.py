"""Arrays as compiled code takes them: of one type whoever made them, so that a loop is compiled once."""

from typing import Any

from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written: to numba another type than one that can, which some callers' arrays are."""
    seen = array.view()
    seen.flags.writeable = False
    return seen
