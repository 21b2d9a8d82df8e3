"""Numbers in another notation, such as ``14.8 kg``, ``₹10``, ``<7.0``, ``10±1`` or ``1.5D+03``.

As words they would be a silent error: a feature for each number. So a column in which most cells are such numbers is
refused. The guard looks at what is in a cell, not at a list of units: one number, and around it signs or a unit.
Names are words: letters directly before the digits, as in V57 or ward_3, a longer word before a whole number, as in
Week 3, a rank, as in 3rd, and a month or a quarter, as in 1998 Q1.
"""

import re
from collections.abc import Sequence
from unicodedata import numeric

import numpy as np
from numpy.typing import NDArray

MINUS = "\u2212"
"""The minus sign of typeset text, which is read like the hyphen."""
SIGN = rf"[+\-{MINUS}]"
DASHES = f"-{MINUS}\u2010\u2011\u2012\u2013\u2014\u2015\ufe63\uff0d"
"""Signs that look like the hyphen, and stand for it beside a number."""
GROUPED = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d{1,3}(?:['’_ \u00a0\u202f]\d{3})+(?:[.,]\d+)?"
    r"|\d{1,2}(?:,\d{2})*,\d{3}(?:\.\d+)?"
)
"""A number like 910.141.2 has no sign that groups digits."""
FRACTION = "[¼½¾⅐-⅞]"
NUMBER = rf"0[xX][0-9a-fA-F]+|{GROUPED}|\d*\s?{FRACTION}|\d+(?:[.,]\d*)?|(?<![^\W\d_])[.,]\d+"
EXPONENT = (
    rf"[eEdD]{SIGN}?\d+|[qQ](?:{SIGN}\d+|\d\d+)|(?<=[.,\d]){SIGN}\d{{3}}"
    rf"|\s*[x×*·]\s*10(?:\s*\^?\s*{SIGN}?\d+|[⁺⁻⁰¹²³⁴-⁹]+)"
)
"""Also Fortran's, which has D or Q instead of E, or no letter before three digits; then the number has a point."""
UNCERTAINTY = rf"\s*(?:±|\+/?[-{MINUS}])\s*(?:{NUMBER})|\s*(?:\(\d+\)|\[\d+\])"
"""Or the number of a footnote."""
RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
UNIT_DIGIT = r"(?<=[^\W\d_])\^?-?\d(?!\d)"
"""A digit of a unit, as in m2 or s^-1."""
WITH_ONE_NUMBER = re.compile(
    rf"(?P<before>\D*?)(?P<sign>(?:[+{DASHES[1:]}-]\s*)?)(?P<number>{NUMBER})(?P<exponent>{EXPONENT})?(?:{UNCERTAINTY})?"
    rf"(?P<after>(?:\D|{UNIT_DIGIT})*)"
)
NAME = re.compile(r"(?:[^\W\d_]|_)[-_/#:]?$")
"""End of what stands before the digits of a name, as in V57, ward_3 or site-3."""
RANK = re.compile(r"_|(?:st|nd|rd|th)\b", re.IGNORECASE)
"""Beginning of what stands behind the digits of a rank, as in 3rd, or of a name, as in 3_north."""
MONTH = re.compile(
    r"[\W_]*(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|[qh][1-4])[\W_]*",
    re.IGNORECASE,
)
"""What stands beside a year, or a day, as in 1975 Jan or 1998 Q1."""
MOST_SIGNS = 3
"""So many letters and signs beside a number are always a unit; more of them must stand beside other numbers, too."""
FEWEST_NUMBERS = 3
"""Two words carry as much as two numbers, so fewer different numbers than these may be words."""


def number_inside(cell: str) -> tuple[str, str] | None:
    """The only number in a cell and all that stands around it; None if it has no number, several, or is a name."""
    # A number inside a name, such as 5G, is none
    match = WITH_ONE_NUMBER.fullmatch(cell)
    if match is None or NAME.search(match["before"]) or RANK.match(match["after"]):
        return None
    # What is a date, a range or an id is none either
    number, exponent = match["number"], match["exponent"] or ""
    around, before = ("".join(part.split()) for part in (match["before"] + match["after"], match["before"]))
    whole = number.isdecimal() and not exponent
    if MONTH.fullmatch(around) or (whole and len(before) > MOST_SIGNS):
        return None
    if exponent[:1] in (*"+-", MINUS) and number.isdecimal():  # 50-100 is a range
        return None
    return match["sign"] + number + exponent, around


def plain_number(cell: str, decimal: str) -> str:
    """The only number of such a cell as it should be written; ``10 or -10`` for ``(10)``, which can mean both.

    Parameters
    ----------
    cell : str
        A cell for which `number_inside` finds a number.
    decimal : {".", ","}
        The decimal sign of the file: ``1.234 kg`` is 1.234 or 1234.
    """
    # What the cell may mean: hexadecimal, a fraction, or a number with signs between its digits
    match = WITH_ONE_NUMBER.fullmatch(cell)
    assert match is not None
    before, text, after = match["before"].strip(), match["number"], match["after"].strip()
    signs = re.sub(r"\d", "", text)
    if text[:2] in ("0x", "0X"):
        text = str(int(text, 16))
    elif re.search(FRACTION, text):
        text = f"{int(text[:-1].strip() or 0) + numeric(text[-1]):.12g}"
    else:
        # Groups of three digits, or a decimal sign
        in_groups = re.fullmatch(GROUPED, text) and len(set(signs)) == 1 and signs != decimal
        head, _, tail = text.rpartition(signs[-1]) if signs and not in_groups else (text, "", "")
        text = f"{re.sub(r'[^0-9]', '', str(head))}.{tail}"
    # An exponent in any notation, and a sign before or after the number
    exponent = re.sub(r"^[^\d]*10\s*\^?\s*(?=\S)|^[a-zA-Z]", "", (match["exponent"] or "").translate(RAISED).lstrip())
    number = float(f"{text}e{exponent.replace(MINUS, '-') or 0}")
    beside = [match["sign"].strip(), before[:1], before[-1:], after if match["number"][-1] not in ".," else ""]
    minus = any(sign and sign in DASHES for sign in beside)
    positive, negative = f"{number:.12g}", f"{-number:.12g}"
    # Brackets may mean a negative number or nothing, so show both
    if "(" in before and ")" in after:
        return f"{positive} or {negative}"
    return negative if minus else positive


def first_in_other_notation(
    cells: Sequence[str], count: NDArray[np.int64], is_number: NDArray[np.bool_], of_classes: bool
) -> int | None:
    """The first of a column's distinct cells that is a number in another notation, if most of its cells are numbers.

    Parameters
    ----------
    cells : sequence of str
        The distinct cells that are not missing, in the order in which they first appear.
    count : (m,) int
        How often each occurs.
    is_number : (m,) bool
        Whether each is a plain number.
    of_classes : bool
        Whether these are the labels of classes: then ``grade 3`` is a name.
    """
    # Number and surroundings of each distinct cell
    inside = [None if plain else number_inside(cell) for cell, plain in zip(cells, is_number, strict=True)]
    numbers_of: dict[str, set[str]] = {}
    for pair in filter(None, inside):
        numbers_of.setdefault(pair[1], set()).add(pair[0])

    # Surroundings that several numbers share are a unit, not part of a name
    def is_alike(pair: tuple[str, str] | None) -> bool:
        if pair is None or (of_classes and re.match(r"[^\W\d_]", pair[1])):
            return False
        few = len(pair[1]) <= MOST_SIGNS and not any(map(str.isdigit, pair[1]))
        return few or len(numbers_of[pair[1]]) >= FEWEST_NUMBERS

    # Only a column that is mostly numbers has numbers in another notation
    alike = np.array([is_alike(pair) for pair in inside], np.bool_)
    different = {pair[0] for pair, taken in zip(inside, alike, strict=True) if pair and taken}
    different |= {cell for cell, plain in zip(cells, is_number, strict=True) if plain}
    mostly = 2 * count[alike | is_number].sum() > count.sum()
    return int(alike.argmax()) if alike.any() and mostly and len(different) >= FEWEST_NUMBERS else None
