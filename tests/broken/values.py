"""Values that a key can never have, whatever the key's own check says of them."""

import math
import types
import typing
from typing import Any

from broken.schema import Key

from fkl.basics.keys import declarations

NO_NUMBER = ("two", "nan", "inf", "-inf", "1e400", "''", "[1]", "{a: 1}", "true")
BY_TYPE: dict[Any, tuple[str, ...]] = {
    int: (*NO_NUMBER, "1.5", "1e3", "0x10", "-1", "-1000000000000000000000", "9" * 30),
    float: (*NO_NUMBER, "-1.0", "-1e300", "1.2.3", "9" * 400),
    bool: ("maybe", "2", "1.5", "''", "[true]", "{a: 1}", "nan"),
    str: ("''", "' '", "no_such_word", "7", "nan", "[a]", "{a: 1}", "false"),
    dict: ("word", "7", "''", "[word]", "{mse: m.f}", "true"),
    list: ("word", "7", "''", "{a: 1}", "[word]", "[nan]", "[inf]", "[-1]", "[]", "[[]]", "[null]", "true"),
}
"""What the command line may say of a key, and none of its type can be."""

EMPTY_OR_LIST = ("''", "' '", "[a]", "{a: 1}")
ANY_WORD = {("Settings", "out"), ("Settings", "objective"), *(("Paths", key) for key in ("data", "outputs", "cache"))}
"""Keys that any word will do for; a column is looked for once there is a summary."""
BELOW_0 = {("TableSet", "no_signal"), ("Centralized", "eps"), ("Federated", "eps")}
TAKES = dict.fromkeys(BELOW_0, ("-1.0", "-1e300"))
TAKES |= {
    ("TableFile", "delimiter"): ("' '",),
    ("TableFile", "date_format"): ("null", "{a: 1}"),  # the latter is refused as date_format.a
    ("TableFile", "fill"): ("{mse: m.f}",),
    ("TableFile", "hole"): ("[word]", "[nan]", "[inf]", "[-1]", "[]", "[null]"),
    **{(owner, "kinds"): ("[]",) for owner in ("Sign", "TopK", "Uniform")},
}
"""What a key may be all the same, which others of its type or name cannot."""
AFTER_LOADING = {
    ("EdgeList", "path"),
    ("PofMkl", "M"),
    ("RfGp", "M"),
    ("FomdOms", "J"),
    ("NcoOms", "J"),
    ("Trace", "path"),
}
AFTER_LOADING |= {("TableFile", key) for key in ("path", "target", "site", "time", "test_path", "drop")}
AFTER_LOADING |= {(owner, "kinds") for owner in ("Sign", "TopK", "Uniform")}
"""Keys that are compared with files, data, the dictionary or what a method sends, so not before a run begins; some
lists are, too."""


ODD = {
    "algo.key_bits": ("129",),
    "dataset.decimals": ("16",),
    "dataset.rows": ("0", "1"),
    "dataset.rows_per_site": ("0", "1"),
    "partition.active": ("0", "3"),
    "kernels.laplacians": ("77",),
    "topology.neighbours": ("3",),
    "compression.bits": ("17", "31"),
    "secure.neighbours": ("3",),
}
"""Numbers that keys refuse for another reason than the limits that their fields declare."""


def outside(key: Key) -> list[str]:
    """The numbers nearest to the limits that a key's field declares, outside them."""
    if key.field not in declarations(key.owner):
        return []
    declared, annotation = declarations(key.owner)[key.field]
    ends = ((declared.least, -1), (declared.above, 0), (declared.below, 0), (declared.most, 1))
    given = [(end, way) for end, way in ends if end is not None]
    if annotation.startswith("int"):
        return [str(end + way) for end, way in given]
    return [str(math.nextafter(end, way * math.inf) if way else float(end)) for end, way in given]


def broken_values(key: Key) -> list[str]:
    """Values, as a command line has them, that the key's type or its documented range rules out."""
    kind, optional = kind_of(key.type)
    values = [*BY_TYPE[kind], *(() if optional else ("null",))]
    if key.place in ANY_WORD:
        values = [value for value in values if value in EMPTY_OR_LIST]
    return [
        value for value in (*values, *outside(key), *ODD.get(key.name, ())) if value not in TAKES.get(key.place, ())
    ]


def refused_on_load(key: Key, value: str) -> bool:
    """Whether a broken value is refused before any data are read."""
    return key.place not in AFTER_LOADING and not (kind_of(key.type)[0] is list and value in ("[]", "[[]]", "[-1]"))


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Type without its None, and whether None may be; any list is `list`, anything at all is a word."""
    parts = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    kind = next(part for part in parts if part is not type(None))
    kind = typing.get_origin(kind) or kind
    return (str if kind is Any else kind), type(None) in parts
