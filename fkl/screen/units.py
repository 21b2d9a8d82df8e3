"""Numbers and their units, formatted for readers."""

import math
import re
from numbers import Integral, Real

MOST_DECIMALS = 6
BYTES = ("B", "kB", "MB", "GB", "TB")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(value: float, digits: int = 3) -> str:
    """A number with this many significant digits, without a power of ten if it is readable without one.

    Examples
    --------
    >>> [number_text(value) for value in (0.037944, 13.641, 1234.5, 2e-7, 0.0)]
    ['0.0379', '13.6', '1,234', '2.00e-07', '0']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def with_spread(mean: float, spread: float) -> str:
    """A mean and its standard deviation, with the same decimals: two digits of the deviation.

    Examples
    --------
    >>> with_spread(0.037944, 0.00070329)
    '0.03794 ± 0.00070'
    >>> with_spread(1.08e-5, 2.1e-6)
    '(1.08 ± 0.21)e-05'
    """
    if not (spread > 0 and math.isfinite(mean)):
        return number_text(mean)
    power = math.floor(math.log10(abs(mean) or 1))
    if not -4 <= power < 7:
        return f"({with_spread(mean / 10.0**power, spread / 10.0**power)})e{power:+03d}"
    decimals = max(0, 1 - math.floor(math.log10(spread)))
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def bytes_of(value: float) -> str:
    """An amount of bytes, in powers of 1000.

    Examples
    --------
    >>> bytes_of(9.684e6), bytes_of(512)
    ('9.68 MB', '512 B')
    """
    power = min(int(math.log10(value) / 3), len(BYTES) - 1) if value >= 1 else 0
    return f"{number_text(value / 1000**power) if power else f'{value:.0f}'} {BYTES[power]}"


def seconds_text(value: float) -> str:
    """A time.

    Examples
    --------
    >>> seconds_text(0.14421), seconds_text(75), seconds_text(7300)
    ('0.144 s', '1 min 15 s', '2 h 1 min')
    """
    if value < 60:
        return f"{number_text(value) if value < 10 and value % 1 else round(value)} s"
    minutes = round(value) // 60
    return f"{minutes} min {round(value) % 60} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def percent_apart(ours: float, other: float) -> str:
    """Percentage by which our number is below or above another number; only 0 is 100 % below.

    Examples
    --------
    >>> percent_apart(0.0379, 0.0521), percent_apart(1.08e-5, 0.0789), percent_apart(0.0527, 0.0521)
    ('27 % below', '99.99 % below', '1 % above')
    """
    share = 100 * (1 - ours / other)
    digits = 0 if abs(share) >= 1 else 1
    while share < 100 <= round(share, digits) and digits < MOST_DECIMALS:
        digits += 1
    return f"{abs(share):.{digits}f} % {'below' if share > 0 else 'above'}"


def cell_text(value: object) -> str:
    """A cell of a table as text: four significant digits, grouped thousands, empty if unknown."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return f"{value:,}"
    number = float(value)
    if math.isnan(number):
        return ""
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e15 else f"{number:.4g}"


def percent_text(value: float) -> str:
    """A difference in percent with its sign; small differences have two decimals."""
    if math.isnan(value):
        return ""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{round(value, digits) + 0.0:+,.{digits}f}"


def typeset_number(words: str) -> str:
    """A number with a typographic minus and powers of ten; other words are unchanged.

    Examples
    --------
    >>> typeset_number("-1.5e-05"), typeset_number("air")
    ('−1.5 × 10⁻⁵', 'air')
    """
    number = re.fullmatch(r"([+-]?[\d.,]+)(?:e([+-]?\d+))?", words)
    if number is None:
        return words
    digits, power = number[1].replace("-", "−"), number[2]
    if power is None:
        return digits
    exponent = "10" + str(int(power)).translate(RAISED)
    return exponent if digits == "1" else f"{digits} × {exponent}"
