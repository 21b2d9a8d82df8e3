"""Suggestions for misspelled names."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

MOST = 3
ALIKE, NEARLY = 0.7, 0.12
"""Minimum similarity by difflib, and how much less similar than the nearest name another one may be."""


def did_you_mean(name: str, names: Iterable[str], where: str = "", start: str = "") -> list[str]:
    """One line of help: at most three similar names, and where all names are listed.

    Parameters
    ----------
    name : str
    names : iterable of str
    where : str
        How to list all names.
    start : str
        Prefix of each name.

    Examples
    --------
    >>> did_you_mean("POFMKL", ["pof_mkl", "coke"], "all methods: fkl list algo")
    ['did you mean pof_mkl? all methods: fkl list algo']
    """
    letters = _letters(name)
    shares = {one: SequenceMatcher(None, letters, _letters(one)).ratio() for one in names}
    least = max(ALIKE, max(shares.values(), default=0) - NEARLY)
    near = sorted((one for one, share in shares.items() if share >= least), key=lambda one: -shares[one])[:MOST]
    meant = [f"did you mean {' or '.join(start + one for one in near)}?"] if near else []
    line = " ".join([*meant, where]).strip()
    return [line] if line else []


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9=./]", "", name.lower())
