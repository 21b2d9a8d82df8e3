"""A JSON Schema of the configuration, for editors: `fkl describe --format=schema`.

It uses the same facts about each key as `fkl describe`.
"""

import re
from typing import Any

from fkl.basics.errors import FklError, did_you_mean
from fkl.cli.describe import MADE, NODES, TABLE_SET, DescribedKey, class_keys, keys_of_choice, of_node
from fkl.config import choices
from fkl.config.compose import keys_of

Schema = dict[str, Any]
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
TYPES: dict[str, Schema] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": ["string", "number"]},
    "dict": {"type": "object"},
}
"""JSON types for the types of keys. A run accepts a number where a string is expected."""
INTERPOLATION: Schema = {"type": "string", "pattern": r"\$\{.+\}|^\?\?\?$"}
"""A value that Hydra's syntax takes from another key, or requires on the command line."""


def json_schema(name: str | None = None) -> Schema:
    """The JSON Schema of a configuration, or with a group's name that of a choice's file, ``conf/GROUP/*.yaml``.

    A node is checked against the class that its ``_target_`` names, or the class of the choice that it extends. A
    user's own class may have any keys.

    Raises
    ------
    fkl.basics.errors.FklError
        If no group has this name.
    """
    if name is not None and name not in choices.GROUPS:
        raise FklError(
            f"describe {name} --format=schema: must be a group, or omitted for the whole configuration",
            help=did_you_mean(name, choices.GROUPS, f"groups: {', '.join(choices.GROUPS)}"),
        )
    made: Schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if name is not None:
        return made | {"title": f"fkl: conf/{name}", **_group_schema(name)}
    properties = {key.name: _key_schema(key) for key in of_node("settings").keys}
    for node, (target, place, what) in NODES.items():
        if place:
            properties[node] = {"description": what, "type": "object", **_closed_object(of_node(node).keys, target)}
    for group in choices.GROUPS:
        node_or_null = {"type": ["object", "null"], **_group_schema(group)}
        several = {"type": ["object", "null"], "additionalProperties": _group_schema(group)}
        properties[group] = several if group == "logger" else node_or_null
    properties |= {"defaults": {"type": "array"}, "hydra": {"type": "object"}}
    return made | {"title": "fkl", "type": "object", "properties": properties, "additionalProperties": False}


def _group_schema(group: str) -> Schema:
    """Allowed keys of a node in a group: those of its class."""
    names: dict[str, list[str]] = {}
    for choice in choices.choice_files(group):
        names.setdefault(str(keys_of(group, choice)["_target_"]), []).append(choice)
    cases = []
    for target, of_it in names.items():
        named = {"properties": {"_target_": {"const": target}}, "required": ["_target_"]}
        extended = {
            "properties": {"defaults": {"contains": {"enum": of_it}}},
            "required": ["defaults"],
            "not": {"required": ["_target_"]},
        }
        cases.append({"if": {"anyOf": [named, extended]}, "then": _of_class(group, target, of_it)})
    return {"type": "object", "allOf": cases}


def _of_class(group: str, target: str, names: list[str]) -> Schema:
    """The keys of a class, and the defaults that all its choices share."""
    if target == TABLE_SET:  # its YAML names in `table` the keys next to it
        keys = class_keys("dataset.table", "fkl.data.table_layout.Layout")
        table = {"description": MADE["table"], "type": "object", **_closed_object(keys)}
        return {"properties": {"table": table}, "required": ["table"], "allOf": [_of_table(name) for name in names]}
    first, *others = (keys_of_choice(group, name) for name in names)
    differ = {key.name for keys in others for key, ours in zip(keys, first, strict=True) if key.default != ours.default}
    return _closed_object(
        tuple(DescribedKey(**vars(key) | {"default": ""}) if key.name in differ else key for key in first), target
    )


def _of_table(name: str) -> Schema:
    """Keys of a published data set, which its table names."""
    table = {"properties": {"name": {"const": name}}, "required": ["name"]}
    keys = {key.name.rpartition(".")[2]: _key_schema(key) for key in keys_of_choice("dataset", name)}
    return {"if": {"properties": {"table": table}}, "then": {"properties": keys}}


def _closed_object(keys: tuple[DescribedKey, ...], target: str = "") -> Schema:
    """An object with these keys and no others."""
    properties: Schema = {"_target_": {"description": MADE["_target_"], "const": target}} if target else {}
    properties |= {key.name.rpartition(".")[2]: _key_schema(key) for key in keys}
    return {"properties": properties | {"defaults": {"type": "array"}}, "additionalProperties": False}


def _key_schema(key: DescribedKey) -> Schema:
    """Type, limits, default and meaning of a key."""
    value = _type_schema(key.type) | dict(key.bounds)
    kinds = [value, {"type": "null"}] if "null" in key.type or key.default == "null" else [value]
    description = f"{key.meaning.removesuffix('.')}." + f" Must be {key.limits}." * bool(key.limits)
    made: Schema = {"description": description, "anyOf": [*kinds, INTERPOLATION]}
    default = _as_json(key.default, value)
    return made if default is None else made | {"default": default}


def _type_schema(told: str) -> Schema:
    """JSON type for a key's type; any value if no JSON type fits."""
    if told.startswith("{"):
        return {"enum": re.findall(r'"([^"]*)"', told)}
    told = re.sub(r",? or null$", "", told)
    if " or " in told:
        return {}
    inner = TYPES.get(told.rpartition(" ")[2], {})
    for _ in range(len(re.findall(r"\blists? of ", told))):
        inner = {"type": "array", "items": inner}
    return inner


def _as_json(default: str, value: Schema) -> Any:
    """A default as a JSON value; None if it is null, differs between choices or is not a single value."""
    kind = value.get("type", "string" if "enum" in value else "")
    if default in ("", "null", "true", "false"):
        return {"true": True, "false": False}.get(default)
    if kind in ("integer", "number") and re.fullmatch(NUMBER, default):
        return int(float(default)) if kind == "integer" else float(default)
    return default if kind == "string" or kind == ["string", "number"] else None
