"""Hydra makes sweepers of modules of this package only, which all its plugins share: fkl's search."""

from fkl.composing import search


class Search(search.Search):
    """See `fkl.composing.search`."""
