"""The part of a configuration that decides a run's numbers, and its hashes."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from fkl.config.choices import CONDITIONS
from fkl.config.settings import Settings
from fkl.data.table_layout import deciding

NOT_RESULTS = ("out", "paths", "threads", "chunk", "checkpoint_s", "objective", "save_model", "figures", "logger")
"""Keys that change the place or speed of a run, but none of its numbers."""
WITHOUT_NULL = ("metrics", "stop_when")
"""Keys that have no effect if they are null; older runs without them have the same numbers."""


def decisive(resolved: dict[str, Any], idle: Iterable[str] = ()) -> dict[str, Any]:
    """The part of a resolved configuration that decides numbers; `idle` are keys that its method does not use."""
    keys = {key: value for key, value in resolved.items() if key not in NOT_RESULTS}
    keys = {key: value for key, value in keys.items() if value is not None or key not in (*CONDITIONS, *WITHOUT_NULL)}
    if isinstance(keys.get("dataset"), dict) and isinstance(keys["dataset"].get("table"), dict):
        keys["dataset"] = deciding(keys["dataset"])
    network = keys.get("network")
    if isinstance(network, dict) and network.get("_target_") == "fkl.network.Network":  # null and 0 have no effect
        keys["network"] = {key: value for key, value in network.items() if value}
    for group in {key.partition(".")[0] for key in idle}:
        keys[group] = {key: value for key, value in keys[group].items() if f"{group}.{key}" not in idle}
    return keys


def identity(resolved: dict[str, Any], free: Iterable[str] = ()) -> str:
    """Digest of the decisive configuration without some free keys, for example ``dataset.rows``.

    A number is the same with and without a point: ``algo.gamma=0`` and ``algo.gamma=0.0``. A setting that did not exist
    yet when a run was made has its default.
    """
    settings = {one.name: one.default for one in fields(Settings)}
    keys = _without_points(decisive(settings | resolved))
    for key in free:
        *nodes, last = key.split(".")
        node: Any = keys
        for name in nodes:
            node = node.get(name) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.pop(last, None)
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def _without_points(value: Any) -> Any:
    """A copy of plain data with whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _without_points(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_points(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
