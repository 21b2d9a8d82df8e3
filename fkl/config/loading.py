"""From a composed configuration to checked objects.

A configuration node with `_target_` names a dataclass. The dataclass's fields are the node's keys, its annotations
their types, and its `__post_init__` checks their limits. Data sets, partitions, kernels, networks and algorithms (also
a user's own, by import path) all follow this schema.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf, ValidationError
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from fkl.basics.errors import BadValue, FklError, key_prefix, own_lines, require, with_own_line
from fkl.config import digest as source
from fkl.config.choices import CONDITIONS
from fkl.config.interpolation import resolved
from fkl.config.run import Run
from fkl.config.settings import ENGINES, NODES, OPTIONAL_NODES, Paths, Settings

PARTS = {
    "algo": ("label", "init", "step"),
    "dataset": ("name", "files", "load"),
    "partition": ("split",),
    "kernels": ("bank", "gram"),
    "network": ("uplink_budget", "loss", "cost"),
    "topology": ("build",),
    **dict.fromkeys(CONDITIONS, ("client_sends", "server_takes", "agent_sends")),
    "participation": ("present",),
    "links": ("always_up", "up"),
    "intervals": ("begin", "on_streams"),
    "logger": ("begin", "round", "end", "fail"),
}
"""Attribute that identifies the class of a node."""


def load(config: dict[str, Any], words: Iterable[str] = ()) -> Run:
    """Check a composed configuration without changing it; `words` are the user's words in it.

    Raises
    ------
    fkl.basics.errors.FklError
        Names the key and its allowed values.
    """
    plain = resolved(config)
    groups = (*NODES, *OPTIONAL_NODES, "paths", "logger")
    top = {key: value for key, value in plain.items() if key not in groups}
    nodes: dict[str, Any] = dict.fromkeys(OPTIONAL_NODES)
    for name in (*NODES, *OPTIONAL_NODES):
        if name in NODES or plain.get(name) is not None:
            with key_prefix(name):
                nodes[name], plain[name] = _make_from_node(plain.get(name), name)
    label, kernels = nodes["algo"].label, nodes["kernels"]
    if getattr(nodes["algo"], "uses_kernels", True):
        require(kernels is not None, "kernels", None, f"kernels for {label}, for example kernels=rbf")
        if hasattr(nodes["algo"], "require_fits"):
            with key_prefix("algo"):
                nodes["algo"].require_fits(kernels)
    else:
        given = type(kernels).__name__
        require(kernels is None, "kernels", given, f"left out, as by ~kernels: {label} uses none")
    settings, top = build(Settings, top, "", also=groups)
    plain |= top
    for name, path in (settings.metrics or {}).items():
        require(callable(_imported(f"metrics.{name}", path, "function")), f"metrics.{name}", path, "a function")
    folders = plain.get("paths")
    if not isinstance(folders, dict):
        raise BadValue("paths", folders, "folders, for example paths.outputs=FOLDER")
    with key_prefix("paths"):
        paths, plain["paths"] = build(Paths, folders, "paths")
    may = not settings.save_model or hasattr(nodes["algo"], "functions")
    allowed = f"false for {label}, whose class has no functions(world, state, t)"
    require(may, "save_model", settings.save_model, allowed)
    conditions = {name: made for name in CONDITIONS if (made := nodes.pop(name)) is not None}
    logger_nodes, loggers, complete = plain.get("logger"), {}, {}
    allowed = "nodes, for example logger=jsonl"
    require(logger_nodes is None or isinstance(logger_nodes, dict), "logger", logger_nodes, allowed)
    for name, node in (logger_nodes or {}).items():
        with key_prefix(f"logger.{name}"):
            loggers[name], complete[name] = _make_from_node(node, f"logger.{name}")
    plain["logger"] = complete if logger_nodes is not None else None
    nodes |= {"conditions": conditions, "loggers": loggers}
    run = Run(settings=settings, paths=paths, resolved=plain, words=tuple(words), **nodes)
    if (why := engine(settings.engine).can_play(run)) is not None:
        able = " or ".join(name for name in ENGINES if engine(name).can_play(run) is None)
        raise BadValue("engine", settings.engine, f"{able} for {run.algo.label}: {why}")
    return run


def engine(name: str) -> Any:
    """The `fkl.engines.base.Engine` of this name, whose module is imported at the first use."""
    module, _, kind = ENGINES[name].rpartition(".")
    return getattr(import_module(module), kind)()


def instantiate(node: dict[str, Any] | None, group: str) -> Any:
    """Make the object named by a node's `_target_`."""
    return _make_from_node(node, group)[0]


def _make_from_node(node: dict[str, Any] | None, group: str) -> tuple[Any, dict[str, Any]]:
    """Make the object named by a node's `_target_`, and the node with all its keys."""
    if not isinstance(node, dict) or "_target_" not in node:
        raise BadValue("_target_", None, "the import path of a class")
    path = str(node["_target_"])
    target = _imported("_target_", path, "class")
    lacking = [part for part in PARTS[group.partition(".")[0]] if not hasattr(target, part)]
    require(isinstance(target, type) and is_dataclass(target), "_target_", path, "the import path of a dataclass")
    require(not lacking, "_target_", path, f"a class for {group}: this one has no {', '.join(lacking)}")
    given = {key: value for key, value in node.items() if key != "_target_"}
    made, values = build(target.with_keys(given) if hasattr(target, "with_keys") else target, given, group)
    return made, node | values


def _imported(key: str, path: str, what: str) -> Any:
    """The object at an import path, in a module of fkl or of the user."""
    try:
        with _own_modules():
            module, _, name = path.rpartition(".")
            return getattr(source.import_module(module), name)
    except (Exception, SystemExit) as error:  # any error in the user's own module is reported in one line
        # One without a line of the user's says that there is no such module, or names its place as a SyntaxError does
        said = with_own_line(error) if own_lines(error) else str(error)
        raise BadValue(key, path, f"the import path of a {what} ({said})") from error


@contextmanager
def _own_modules() -> Iterator[None]:
    """Find a user's own modules in the current folder, after installed ones, and only in this block.

    Outside the block, a file there could be mistaken for an optional module of some library, such as a plugin of Hydra.
    """
    here = str(Path.cwd())
    added = [here] if here not in sys.path else []
    sys.path += added
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def build(target: type, values: dict[str, Any], group: str, also: tuple[str, ...] = ()) -> tuple[Any, dict[str, Any]]:
    """Make a dataclass from plain values, checking keys and types, and that numbers are finite.

    Returns
    -------
    object, dict
        The object, and the values with defaults for omitted keys, which then name the same run.
    """
    schema = OmegaConf.structured(target)
    OmegaConf.set_readonly(schema, False)
    nested = {one.name: one.type for one in fields(target) if isinstance(one.type, type) and is_dataclass(one.type)}
    for key, value in values.items():
        if key in nested and isinstance(value, dict):
            with key_prefix(f"{group}.{key}"):
                value, _ = build(nested[key], value, f"{group}.{key}")
        if isinstance(value, dict):
            value = {str(name): one for name, one in value.items()}  # a column without a name is called by its number
        try:
            schema[key] = value
            if isinstance(schema[key], bool) and isinstance(value, int | float):
                require(value in (0, 1), key, value, "true or false")  # OmegaConf converts any integer to true
        except ConfigKeyError:
            known = ", ".join(sorted([*map(str, schema), *also]))
            raise FklError(f"{group + '.' if group else ''}{key}: no such key; there are {known or 'none'}") from None
        except (ValidationError, OmegaConfBaseException, OverflowError) as error:
            raise BadValue(key, value, _allowed_by_type(target, key, error)) from None
    plain: dict[str, Any] = OmegaConf.to_container(schema)  # type: ignore[assignment]
    built = target(**plain)  # its own limits are more specific than the general ones
    for key, value in plain.items():
        # General limits of numbers, also inside lists, so no class has to check them
        for number in _single_values(value):
            if isinstance(number, float):
                require(math.isfinite(number), key, value, "a finite number" if number is value else "finite numbers")
            elif isinstance(number, int):
                require(abs(number) < 2**63, key, value, "an integer below 2^63")
    return built, values | {key: value for key, value in plain.items() if key not in values}


def _single_values(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _single_values(item)
    else:
        yield value


def _allowed_by_type(target: type, key: str, error: Exception) -> str:
    """The values that a field's type allows, as text."""
    annotation = str(next(one.type for one in target.__dataclass_fields__.values() if one.name == key))  # type: ignore[attr-defined]
    words = {
        "dict": "names with words",
        "int": "an integer",
        "float": "a number",
        "bool": "true or false",
        "str": "a word",
    }
    for name, meaning in words.items():
        if name in annotation:
            listed = f"{annotation.count('list') * 'a list of '}{meaning}"
            return listed + (" or null" if "None" in annotation else "")
    return str(error).splitlines()[0]
