"""Values that a key can never have, whatever the key's own check says of them."""

import types
import typing
from typing import Any

from broken.schema import Key

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
    ("Directed", "p"): ("0", "1e-300"),
    **{(owner, "kinds"): ("[]",) for owner in ("Sign", "TopK", "Uniform")},
    ("FedProx", "mu"): ("0", "1.01"),
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


OUTSIDE = {
    "seed": ("9223372036854775808",),
    "replicates": ("0", "1000001"),
    "threads": ("0",),
    "chunk": ("0",),
    "network.uplink_budget": ("0",),
    "network.loss": ("1", "1.01"),
    "network.bandwidth_bytes_per_s": ("0",),
    "algo.fold": ("5", "6"),
    "algo.test_share": ("1", "1.5"),
    "algo.iterations": ("0", "1000000001"),
    "algo.marks": ("0", "1000000001"),
    "algo.passes": ("0", "1000000001"),
    "algo.inner": ("0", "1000000001"),
    "algo.steps": ("0", "1000000001"),
    "algo.centres": ("0", "1000001"),
    "algo.trees": ("0", "1000001"),
    "algo.depth": ("0", "17"),
    "algo.bins": ("1", "257"),
    "algo.key_bits": ("0", "126", "129", "16386"),
    "algo.batch": ("0",),
    "algo.features": ("0", "1000000001"),
    "algo.M": ("0", "10001"),
    "algo.J": ("0", "10001"),
    "algo.rank": ("0",),
    "algo.exploring": ("0",),
    "algo.neurons": ("0",),
    "algo.parameters": ("0", "3", "10000001"),
    "algo.eta": ("0",),
    "algo.eta_k": ("0",),
    "algo.alpha": ("0",),
    "algo.rho": ("0",),
    "algo.step_factor": ("0",),
    "algo.local_steps": ("0", "1001"),
    "algo.weight_factor": ("0",),
    "algo.learning_rate": ("0",),
    "algo.C": ("0",),
    "algo.cache_mib": ("0", "1e7"),
    "algo.memory_gib": ("0",),
    "algo.xi": ("0", "1.01"),
    "algo.mu": ("0", "1.01"),
    "algo.q_floor": ("1.01",),
    "algo.p_floor": ("1.01",),
    "algo.eps": ("1", "1.5"),
    "dataset.overlap": ("1.01",),
    "dataset.seconds": ("0", "0.4", "61"),
    "dataset.participants": ("0", "52"),
    "dataset.decimals": ("16",),
    "dataset.per_side": ("0", "101"),
    "dataset.every": ("0",),
    "dataset.dimension": ("0", "10001"),
    "dataset.rows_per_site": ("0", "1", "1000000000"),
    "dataset.rows": ("0", "1", "1000000000"),
    "dataset.sites": ("0",),
    "dataset.bandwidth": ("0", "1e-31", "1e31"),
    "partition.clients": ("0",),
    "partition.rounds": ("0",),
    "partition.clients_per_site": ("0",),
    "partition.own": ("0",),
    "partition.parties": ("0", "1"),
    "partition.active": ("0", "3"),
    "partition.quantiles": ("0",),
    "partition.alpha": ("0", "0.0009", "1000001"),
    "partition.test_share": ("0", "1"),
    "kernels.N": ("0", "10001"),
    "kernels.laplacians": ("77",),
    "kernels.D": ("0", "10000001"),
    "kernels.smallest": ("0", "1e-31"),
    "kernels.largest": ("0", "1e31"),
    "topology.p": ("0", "1e-300", "1.01"),
    "topology.resample": ("1000001",),
    "topology.rows": ("0",),
    "topology.branching": ("0",),
    "topology.neighbours": ("0", "1", "3"),
    "topology.rewire": ("1.01",),
    "participation.share": ("1.01",),
    "participation.leave": ("1.01",),
    "participation.back": ("0", "1.01"),
    "participation.clients": ("0",),
    "participation.period": ("0",),
    "privacy.clip": ("0",),
    "privacy.delta": ("0", "1"),
    "compression.bits": ("0", "1", "17", "31", "33"),
    "compression.share": ("0", "1.01"),
    "secure.bits": ("0", "65"),
    "secure.neighbours": ("0", "1", "3"),
    "late.rounds": ("1000000001",),
    "links.p": ("1.01",),
    "links.radius": ("0",),
}
"""Numbers outside the documented ranges; a new key may do without, and is drawn by its type alone."""


def broken_values(key: Key) -> list[str]:
    """Values, as a command line has them, that the key's type or its documented range rules out."""
    kind, optional = kind_of(key.type)
    values = [*BY_TYPE[kind], *(() if optional else ("null",))]
    if key.place in ANY_WORD:
        values = [value for value in values if value in EMPTY_OR_LIST]
    return [value for value in (*values, *OUTSIDE.get(key.name, ())) if value not in TAKES.get(key.place, ())]


def refused_on_load(key: Key, value: str) -> bool:
    """Whether a broken value is refused before any data are read."""
    return key.place not in AFTER_LOADING and not (kind_of(key.type)[0] is list and value in ("[]", "[[]]", "[-1]"))


def kind_of(annotation: Any) -> tuple[Any, bool]:
    """Type without its None, and whether None may be; any list is `list`, anything at all is a word."""
    parts = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    kind = next(part for part in parts if part is not type(None))
    kind = typing.get_origin(kind) or kind
    return (str if kind is Any else kind), type(None) in parts
