"""Look of each method in all figures: its position in one list decides colour, marker and dashes."""

import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

import matplotlib

METHODS = (
    # federated
    "POF-MKL", "vM-KOFL", "OFMKL-Avg", "eM-KOFL", "OFSKL", "PerFedAvg", "Fed-POE", "FOMD-OMS", "NCO-OMS", "RF-GP",
    "One-shot ridge", "FALKON", "DKRR-NY-CM", "OMKL-GF, pooled", "Raker, pooled", "AdaRaker, pooled", "Fed3R",
    # local training
    "FedAvg", "FedAvgM", "FedAdagrad", "FedAdam", "FedYogi", "FedProx", "SCAFFOLD", "q-FedAvg", "Ditto", "pFedMe",
    # decentralized
    "DKLA", "CTA", "COKE", "ODKLA", "DeKRR-DDRF", "QC-ODKLA", "DOMKL", "Consensus RF-GP", "DKLA on links",
    "CTA, push-sum", "D-RF-GP",
    # vertical
    "FDSKL", "PP-SVMV", "LIBSVM", "DSG", "FD-SVRG", "SecureBoost", "Nystroem", "RFF ridge", "FDSKL, bank",
    # online
    "OMKL-GF", "OMKL-SFG", "OMKL-SFG-R", "OMKR", "Raker", "AdaRaker", "RFOMKR", "RBF-1", "POLY-2",
    # parsimonious
    "PF", "PC", "SVM", "Cascade SVM",
    # appended
    "FDSKL, as stated",
)  # fmt: skip
"""Labels of methods. Only append, because the position decides the look: neighbours differ in colour and marker."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""
ON_DARK = ("#2F95D0", "#EE8442", "#2CB795", "#DF9DC4", "#E69F00", "#8FD0F5", "#FFFFFF")
"""Lighter colours of that palette, for a dark background."""
MARKERS = "osD^vP*X"
MORE_MARKERS = "<>hpHd8"
"""Markers of methods in a figure in which another method has their own."""
DASHES = ("-", "--", "-.", ":")
FILLS = ("full", "none", "left")
DARK_BACKGROUND = "#16181B"
GREYS, GREYS_ON_DARK = ("#4D4D4D", "#8C8C8C"), ("#C4C4C4", "#8C8C8C")
"""Colour of baselines without learning."""


class MethodLook(NamedTuple):
    """Colour, marker and dashes with which a method is drawn.

    Parameters
    ----------
    colour, marker, dash, fill : str
        Values for matplotlib; dash is the style of the line, fill the fill style of the marker.
    """

    colour: str
    marker: str
    dash: str
    fill: str = "full"


def look_of(method: str) -> MethodLook:
    """The look of a method, which does not depend on keys in its name; for an unknown method it depends on the name."""
    name = _registered_name(method)
    number = METHODS.index(name) if name in METHODS else zlib.crc32(name.encode())
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    fill = FILLS[number // (len(COLOURS) * len(MARKERS)) % 2]
    return MethodLook(colour_of(number), MARKERS[number % len(MARKERS)], dash, fill)


def looks_of(methods: Iterable[str]) -> dict[str, MethodLook]:
    """The looks of all methods in a figure, which may show the same method with several values of its keys.

    Such variants share colour and marker. Dashes and fill styles distinguish them, in the order of their names. Two
    methods have different markers: the later one gets another.
    """
    # One look per method; a marker that is taken gives way to the next free one
    methods = list(dict.fromkeys(methods))
    looks: dict[str, MethodLook] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(map(_registered_name, methods)):
        base = look_of(name)
        base = base._replace(
            marker=next((one for one in base.marker + MARKERS + MORE_MARKERS if one not in taken), base.marker)
        )
        taken.add(base.marker)
        # Variants of a method differ in dash and fill
        for number, one in enumerate(sorted(method for method in methods if _registered_name(method) == name)):
            dash = DASHES[(DASHES.index(base.dash) + number) % len(DASHES)]
            fill = FILLS[(FILLS.index(base.fill) + number) % len(FILLS)]
            looks[one] = base._replace(dash=dash, fill=fill)
    return {method: looks[method] for method in methods}


def colour_of(number: int) -> str:
    """A colour of the palette, by number."""
    return (ON_DARK if is_dark() else COLOURS)[number % len(COLOURS)]


def baseline_colour(number: int) -> str:
    """Grey of a baseline, which is drawn with dashes."""
    greys = GREYS_ON_DARK if is_dark() else GREYS
    return greys[number % len(greys)]


def is_dark() -> bool:
    """Whether figures are currently drawn on a dark background."""
    return bool(matplotlib.rcParams["figure.facecolor"] == DARK_BACKGROUND)


def _registered_name(method: str) -> str:
    """The longest known name at the beginning of a method's name; for an unknown method, its name without keys."""
    known = [name for name in METHODS if method == name or method.startswith((f"{name},", f"{name} ("))]
    return max(known, key=len, default=re.split(r", | \(", method)[0])
