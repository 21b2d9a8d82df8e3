"""Look of each method in all figures: its family decides the hue, its position there shade, marker and dashes."""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

import matplotlib

FAMILIES = {
    "federated": (
        "POF-MKL", "vM-KOFL", "OFMKL-Avg", "eM-KOFL", "OFSKL", "PerFedAvg", "Fed-POE", "FOMD-OMS", "NCO-OMS", "RF-GP",
        "One-shot ridge", "FALKON", "DKRR-NY-CM", "OMKL-GF, pooled", "Raker, pooled", "AdaRaker, pooled",
        "Fed3R",
    ),
    "decentralized": (
        "DKLA", "CTA", "COKE", "ODKLA", "DeKRR-DDRF", "QC-ODKLA", "DOMKL", "Consensus RF-GP", "DKLA on links",
        "CTA, push-sum", "D-RF-GP",
    ),
    "vertical": (
        "FDSKL", "PP-SVMV", "LIBSVM", "DSG", "FD-SVRG", "SecureBoost", "Nystroem", "RFF ridge", "FDSKL, bank",
    ),
    "online": (
        "OMKL-GF", "OMKL-SFG", "OMKL-SFG-R", "OMKR", "Raker", "AdaRaker", "RFOMKR", "RBF-1", "POLY-2",
    ),
    "parsimonious": ("PF", "PC", "SVM", "Cascade SVM"),
    "local_training": (
        "FedAvg", "FedAvgM", "FedAdagrad", "FedAdam", "FedYogi", "FedProx", "SCAFFOLD", "q-FedAvg", "Ditto", "pFedMe",
    ),
}  # fmt: skip
"""Labels of methods by package of fkl.algorithms. Append new ones, because the position decides the look."""
SHADES = {
    "federated": ("#0072B2", "#56B4E9", "#003B6F"),
    "decentralized": ("#009E73", "#00513B", "#66C9A5"),
    "vertical": ("#D55E00", "#7A2E00", "#F2A06B"),
    "online": ("#B5418A", "#5E1A4B", "#DE97C3"),
    "parsimonious": ("#E69F00", "#8A5A00", "#F0C75E"),
    "local_training": ("#6F5BC0", "#352A78", "#A99BE0"),
    "others": ("#7B6A00", "#4B4B9B", "#A0522D"),
}
"""Near the hues of Okabe and Ito, which colour-blind readers can distinguish; shades of one hue differ in lightness."""
ON_DARK = {
    "federated": ("#4BA3DC", "#A9DCF8", "#2C78B8"),
    "decentralized": ("#2CB795", "#1B8063", "#A3E4CB"),
    "vertical": ("#F08A45", "#C25A1A", "#FBCFAE"),
    "online": ("#DB84BB", "#AD4E8B", "#F5CBE4"),
    "parsimonious": ("#E69F00", "#B57C00", "#F7DD96"),
    "local_training": ("#A99BEA", "#7B69CC", "#D6CEF8"),
    "others": ("#C9B84A", "#9C9CE8", "#D98A63"),
}
"""The same, for a dark background."""
MARKERS = "osD^vP*X"
DASHES = ("-", "--", "-.", ":")
FILLS = ("full", "none", "left")
DARK_BACKGROUND = "#16181B"
GREYS, GREYS_ON_DARK = ("#4D4D4D", "#8C8C8C"), ("#C4C4C4", "#8C8C8C")
"""Colour of baselines without learning."""


class Look(NamedTuple):
    """How a method is drawn.

    Parameters
    ----------
    colour, marker, dash, fill : str
        As in matplotlib; dash is the style of its line, fill the fill style of its marker.
    """

    colour: str
    marker: str
    dash: str
    fill: str = "full"


def look_of(method: str) -> Look:
    """The look of a method, whatever keys are in its name; a method outside fkl gets a look from its name."""
    return _look(_registered(method))


def looks_of(methods: Iterable[str]) -> dict[str, Look]:
    """The looks of all methods in a figure, which may show one method with several values of its keys.

    These share colour and marker. Dashes and fill styles distinguish them, in the order of their names.
    """
    methods = list(dict.fromkeys(methods))
    looks = {}
    for name in dict.fromkeys(map(_registered, methods)):
        base = _look(name)
        for number, one in enumerate(sorted(method for method in methods if _registered(method) == name)):
            dash = DASHES[(DASHES.index(base.dash) + number) % len(DASHES)]
            looks[one] = base._replace(dash=dash, fill=FILLS[number % len(FILLS)])
    return {method: looks[method] for method in methods}


def baseline_colour(number: int) -> str:
    """Grey of a baseline, which is drawn with dashes."""
    greys = GREYS_ON_DARK if is_dark() else GREYS
    return greys[number % len(greys)]


def is_dark() -> bool:
    """Whether figures are currently drawn on a dark background."""
    return bool(matplotlib.rcParams["figure.facecolor"] == DARK_BACKGROUND)


def _registered(method: str) -> str:
    """The longest known name at the beginning of a method's name; if there is none, its own up to a comma."""
    every = [name for family in FAMILIES.values() for name in family]
    known = [name for name in every if method == name or method.startswith((f"{name},", f"{name} ("))]
    return max(known, key=len, default=method.partition(", ")[0])


def _look(name: str) -> Look:
    shades = ON_DARK if is_dark() else SHADES
    family = next((family for family, names in FAMILIES.items() if name in names), "others")
    number = FAMILIES[family].index(name) if family in FAMILIES else zlib.crc32(name.encode())
    return Look(shades[family][number % 3], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)])
