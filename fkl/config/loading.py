"""A composed configuration becomes a checked run, with its values, objects, digest and folder.

A configuration node with `_target_` names a dataclass. The dataclass's fields are the node's keys, its annotations
their types, and its `__post_init__` checks their limits. Data sets, partitions, kernels, networks and algorithms (also
a user's own, by import path) all follow this schema.
"""

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from fkl import __version__
from fkl.basics.environment import current_folder, environment_variable
from fkl.basics.errors import BadValue, FklError, did_you_mean, key_prefix, own_lines, require, with_own_line
from fkl.basics.files import DamagedError, read_arrays, sha256_of
from fkl.basics.keys import require_words, union_members
from fkl.config import digest as source
from fkl.config.choices import CONDITIONS, refuse_gone
from fkl.config.digest import decisive_part
from fkl.config.settings import ENGINES, NODES, OPTIONAL_NODES, Paths, Settings
from fkl.data.dealt_rows import parts_of_all
from fkl.data.encoder import Encoder
from fkl.data.problem import Scale

OWN_TABLE = "fkl.data.table_file.TableFile"
MOST = 30_000
"""Limit for all interpolations together: keys, values and letters."""
DEEPEST = 50
"""Limit for a chain of interpolations that name each other."""
INTERPOLATION = re.compile(r"\$\{([^${}]*)\}")
FUNCTIONS: dict[str, Callable[[str, Callable[..., Any]], Any]] = {
    # the number for rows=all, half of it for a half, and a share of it for a portion
    "full_or_half": lambda number, value_of: int(number) // parts_of_all(value_of("rows", default="all")),
    "variable": lambda words, _: environment_variable(*(word.strip(" '\"") for word in words.split(",", 1))),
    # one factor for all features would make features in small units nearly vanish
    "usual_scaling": lambda _, value_of: (
        "unit_box" if value_of("dataset", "_target_", default=None) == OWN_TABLE else "unit_ball"
    ),
}
"""Functions of an interpolation, such as ``${full_or_half:500}``: of the text after the colon, and of other values."""
ABSENT: Any = object()


def resolve_config(config: dict[str, Any]) -> dict[str, Any]:
    """A copy of a composed configuration with interpolations replaced by their values.

    An interpolation is a key, ``${algo.M}``, a key beside it, ``${.M}``, or a call of one of `FUNCTIONS`.

    Raises
    ------
    fkl.basics.errors.FklError
        If an interpolation cannot be replaced or is too large, or a value is missing; the message names the key.
    """
    if not _is_open(str(config)):
        return deepcopy(config)  # in a tenth of the time
    left = MOST

    def replaced(value: Any, path: tuple[str, ...], above: tuple[tuple[str, ...], ...] = ()) -> Any:
        """The value at a path; `above` are the paths of the interpolations that led to it, the first one first."""
        nonlocal left
        key = ".".join(above[0] if above else path)
        left -= 1 + (len(value) if above and isinstance(value, str) else 0)
        if left < 0:
            raise FklError(f"{key}: has more than {MOST} values and letters, including those of its interpolations")
        if isinstance(value, dict):
            return {name: replaced(inner, (*path, str(name)), above) for name, inner in value.items()}
        if isinstance(value, list):
            return [replaced(inner, (*path, str(place)), above) for place, inner in enumerate(value)]
        if value == "???":
            raise FklError(f"{key}: has no value yet: set it")
        if not isinstance(value, str) or "${" not in value:
            return value
        if path in above:
            raise FklError(f"{key}: its interpolation leads back to itself")
        if len(above) >= DEEPEST:
            raise FklError(f"{key}: more than {DEEPEST} interpolations, each of which names the next")

        def value_of(*wanted: str, default: Any = ABSENT) -> Any:
            found: Any = config
            for place, name in enumerate(wanted):
                if isinstance(found, str):
                    found = replaced(found, wanted[:place], (*above, path))
                found = _inside(found, name)
            if found is not ABSENT:
                return replaced(found, wanted, (*above, path))
            if default is ABSENT:
                raise FklError(f"{key}: its interpolation names {'.'.join(wanted)}, which is no key")
            return default

        def value_at(match: re.Match[str]) -> Any:
            name, calls, argument = match[1].strip().partition(":")
            if calls:
                require(name in FUNCTIONS, key, match[0], f"a key, or a function: {', '.join(FUNCTIONS)}")
                try:
                    return FUNCTIONS[name](argument, value_of)
                except (TypeError, ValueError):
                    raise BadValue(key, match[0], f"an interpolation that {name} can read") from None
            # .b is a key beside the interpolation, and ..b one beside the node around it
            dots = len(name) - len(name.lstrip("."))
            start = path[: max(len(path) - dots, 0)] if dots else ()
            return value_of(*start, *re.findall(r"[^.\[\]]+", name))

        whole = INTERPOLATION.fullmatch(value)
        made = value_at(whole) if whole else INTERPOLATION.sub(lambda match: str(value_at(match)), value)
        if isinstance(made, str) and "${" in made:
            raise FklError(f"{key}: its interpolation makes keys, which is not allowed; write out its value")
        return made

    made: dict[str, Any] = replaced(config, ())
    return made


def _inside(node: Any, name: str) -> Any:
    """The value with this name in a mapping, or at this place in a list; `ABSENT` if there is none."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return next((inner for known, inner in items if str(known) == name), ABSENT)


def _is_open(text: str) -> bool:
    return "${" in text or "???" in text


@dataclass(frozen=True)
class Run:
    """A checked configuration.

    Parameters
    ----------
    settings, paths : the keys outside every group
    algo, dataset, partition, kernels, network, topology : objects
        Instances of the nodes' dataclasses. topology is None for a method with a server, kernels for a method that does
        not use them.
    resolved : dict
        The configuration as plain data, as in `config.yaml`.
    conditions : dict of str to object
        Network conditions, by the names in `CONDITIONS`, without those that are not set.
    intervals : object or None
        Intervals around predictions, see `fkl.tasks.intervals`.
    loggers : dict of str to object
        Loggers that follow the run, `fkl.runs.loggers.Logger`, by name.
    words : tuple of str
        The user's settings, as KEY=VALUE words.
    """

    settings: Settings
    paths: Paths
    algo: Any
    dataset: Any
    partition: Any
    kernels: Any
    network: Any
    topology: Any
    resolved: dict[str, Any]
    conditions: dict[str, Any] = field(default_factory=dict)
    intervals: Any = None
    loggers: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Hash of everything that decides numbers: configuration, checksums of data files, source of fkl and user."""
        all_of_it = [
            __version__,
            source.of_fkl(),
            self._modules,
            decisive_part(self.resolved, getattr(self.algo, "idle", ())),
            self._checksums,
        ]
        return _hash_values(all_of_it)

    @property
    def parts(self) -> dict[str, str]:
        """Hashes of the run's code and data, which show the cause of a different digest."""
        return {"code": _hash_values([source.of_fkl(), self._modules]), "data": _hash_values(self._checksums)}

    @property
    def _modules(self) -> list[str | None]:
        """Hash of the source of each node's class and of each metric; None for fkl's own."""
        targets = [str(node["_target_"]) for name in (*NODES, *OPTIONAL_NODES) if (node := self.resolved.get(name))]
        targets += (self.settings.metrics or {}).values()
        return [source.of_module(target.rpartition(".")[0]) for target in targets]

    @cached_property
    def taken_over(self) -> tuple[Encoder, Scale] | None:
        """Encoder and scale of the run that `like` names; None without it."""
        if self.settings.like is None:
            return None
        wrong = BadValue("like", self.settings.like, "the folder of a run with save_model=true and numbers as target")
        try:
            arrays = read_arrays(Path(self.settings.like) / "model.npz")
            about = json.loads(arrays["about"].tobytes())
            if about["signs"] is not False or isinstance(about["encoder"], list):
                raise wrong
            x_low, x_unit, y_low, y_unit = (arrays[f"0/{one.name}"] for one in fields(Scale))
            return Encoder.of_json(about["encoder"]), Scale(x_low, x_unit, float(y_low), float(y_unit))
        except (OSError, DamagedError, ValueError, LookupError, TypeError, AttributeError):
            raise wrong from None

    @property
    def source_of_rows(self) -> str:
        """Hash of the rows that a run reads, before they are divided among clients."""
        own = self._checksums_of({"dataset": self.dataset})
        return _hash_values([*own, self.settings.rows] if own else [self.resolved["dataset"], self.settings.seed])

    @property
    def _checksums(self) -> list[str]:
        """Checksums of the data files, including the user's own."""
        given = self._checksums_of({"dataset": self.dataset, "topology": self.topology, **self.conditions})
        return given if self.taken_over is None else [*given, sha256_of(Path(str(self.settings.like)) / "model.npz")]

    def _checksums_of(self, nodes: dict[str, Any]) -> list[str]:
        checksums = [file.sha256 for file in self.dataset.data_files]
        for name, node in nodes.items():
            with key_prefix(name):
                fingerprint = getattr(node, "fingerprint", None)
            if fingerprint is not None:  # the user's own file; other nodes do not change the digest
                checksums.append(fingerprint)
        return checksums

    @cached_property
    def folder(self) -> Path:
        """Folder of the run's files."""
        return self._run_folder("runs", "")

    @cached_property
    def failed_folder(self) -> Path:
        """Folder for a failed run's error and its rows so far."""
        return self._run_folder("failed", ".failed")

    @cached_property
    def broken_folder(self) -> Path:
        """Folder to which a damaged folder of this run is moved."""
        return self._run_folder("broken", ".broken")

    def _run_folder(self, kind: str, suffix: str) -> Path:
        if self.settings.out is not None:
            return Path(f"{_without_parents(self.settings.out)}{suffix}")
        method = re.sub(r"\W+", "_", self.algo.label.lower()).strip("_")
        name = f"{self.dataset.name}-{method}-{self.digest}"
        return _without_parents(self.paths.outputs) / kind / name


def _hash_values(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_parents(folder: str) -> Path:
    """A folder's path; the absolute path if it contains `..`, which fails where a folder on the way is missing."""
    return Path(os.path.realpath(folder)) if ".." in Path(folder).parts else Path(folder)


LIKE = ("seed", "replicates", "precision", "scaling", "kernels")
"""Keys that a run with `like` takes from the other run: with them, both have the same features."""
PARTS = {
    "algo": ("label", "init", "step"),
    "dataset": ("name", "data_files", "load"),
    "partition": ("split",),
    "kernels": ("bank", "gram"),
    "network": ("uplink_budget", "loss", "cost"),
    "topology": ("build",),
    **dict.fromkeys(CONDITIONS, ("client_sends", "server_takes", "agent_sends")),
    "participation": ("present",),
    "links": ("always_up", "links_up"),
    "intervals": ("begin", "on_streams"),
    "logger": ("begin", "round", "end", "fail"),
}
"""Attributes that a class must have to be the class of a node."""
NAMES_OF_TYPES = {dict: "names with words", int: "an integer", float: "a number", bool: "true or false", str: "a word"}
WORDS_OF_BOOL = dict.fromkeys(("true", "yes", "y", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "n", "off", "0"), False
)


def load_run(config: dict[str, Any], words: Iterable[str] = ()) -> Run:
    """Check a composed configuration without changing it; `words` are the user's words in it.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the key and its allowed values.
    """
    plain = resolve_config(config)
    for path, node, name in _find_interpolations(config, plain):  # out=${seed} is the text of a number
        if isinstance(node[name], int | float) and str in union_members(type_of_key(plain, path)):
            node[name] = str(node[name])
    if plain.get("like") is not None:
        _copy_like(plain, words := tuple(words))
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
        require(kernels is None, "kernels", given, f"omitted, for example with ~kernels: {label} uses none")
    refuse_gone(f"engine={top.get('engine')}")
    settings, top = build_object(Settings, top, "", also=groups)
    plain |= top
    for name, path in (settings.metrics or {}).items():
        require(callable(import_object(f"metrics.{name}", path, "function")), f"metrics.{name}", path, "a function")
    folders = plain.get("paths")
    if not isinstance(folders, dict):
        raise BadValue("paths", folders, "folders, for example paths.outputs=FOLDER")
    with key_prefix("paths"):
        paths, plain["paths"] = build_object(Paths, folders, "paths")
    may = not settings.save_model or hasattr(nodes["algo"], "functions")
    allowed = f"false for {label}, whose class has no functions(world, state, t)"
    require(may, "save_model", settings.save_model, allowed)
    conditions = {name: made for name in CONDITIONS if (made := nodes.pop(name)) is not None}
    logger_nodes, loggers, complete = plain.get("logger"), {}, {}
    allowed = "nodes, for example logger=jsonl"
    require(logger_nodes is None or isinstance(logger_nodes, dict), "logger", logger_nodes, allowed)
    for name, node in (logger_nodes or {}).items():
        refuse_gone(f"logger={name}")
        with key_prefix(f"logger.{name}"):
            loggers[name], complete[name] = _make_from_node(node, f"logger.{name}")
    plain["logger"] = complete if logger_nodes is not None else None
    nodes |= {"conditions": conditions, "loggers": loggers}
    run = Run(settings=settings, paths=paths, resolved=plain, words=tuple(words), **nodes)
    if (why := load_engine(settings.engine).can_play(run)) is not None:
        able = " or ".join(name for name in ENGINES if load_engine(name).can_play(run) is None)
        raise BadValue("engine", settings.engine, f"{able} for {run.algo.label}: {why}")
    return run


def _copy_like(plain: dict[str, Any], words: Iterable[str]) -> None:
    """Give a configuration the keys in `LIKE` of another run; the user's own words must not say otherwise."""
    folder = Path(str(plain["like"]))
    try:
        theirs = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        copied = {key: theirs[key] for key in LIKE}
        # Bandwidths around the median distance of its own rows are those that it has used
        used = json.loads((folder / "provenance.json").read_text(encoding="utf-8")).get("bandwidths")
        kernels = {name: value for name, value in copied["kernels"].items() if name != "samples"}
        around = {"_target_": "fkl.kernels.Dictionary", "smallest": used[0], "largest": used[-1]} if used else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        raise BadValue("like", plain["like"], "the folder of a run with kernels and save_model=true, or null") from None
    named = {word.lstrip("+~").partition("=")[0].partition(".")[0] for word in words}
    for key in (key for key in LIKE if key in named):
        is_node = key == "kernels" and isinstance(plain[key], dict)
        mine, shown = (copied[key] | plain[key], "other keys") if is_node else (plain.get(key), plain.get(key))
        require(mine == copied[key], key, shown, f"omitted: like={folder} decides it")
    plain |= copied | {"kernels": kernels | around if used else copied["kernels"]}


def _find_interpolations(config: Any, plain: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Key of each interpolation, and where its value is: a mapping or list, and a name in it."""
    for name, value in config.items() if isinstance(config, dict) else enumerate(config):
        if isinstance(value, dict | list):
            yield from _find_interpolations(value, plain[name], f"{path}{name}.")
        elif isinstance(value, str) and "${" in value:
            yield f"{path}{name}", plain, name


def load_engine(name: str) -> Any:
    """The `fkl.engines.base.Engine` with this name; its module is imported at the first use."""
    module, _, kind = ENGINES[name].rpartition(".")
    return getattr(import_module(module), kind)()


def make_object(node: dict[str, Any] | None, group: str) -> Any:
    """Make the object named by a node's `_target_`."""
    return _make_from_node(node, group)[0]


def _make_from_node(node: dict[str, Any] | None, group: str) -> tuple[Any, dict[str, Any]]:
    """Make the object named by a node's `_target_`, and the node with all its keys."""
    if not isinstance(node, dict) or "_target_" not in node:
        raise BadValue("_target_", None, "the import path of a class")
    path = str(node["_target_"])
    target = import_object("_target_", path, "class")
    lacking = [part for part in PARTS[group.partition(".")[0]] if not hasattr(target, part)]
    require(isinstance(target, type) and is_dataclass(target), "_target_", path, "the import path of a dataclass")
    require(not lacking, "_target_", path, f"a class for {group}: this one has no {', '.join(lacking)}")
    given = {key: value for key, value in node.items() if key != "_target_"}
    made, values = build_object(target.with_keys(given) if hasattr(target, "with_keys") else target, given, group)
    return made, node | values


def type_of_key(config: dict[str, Any], key: str) -> Any:
    """Declared type of a key of a composed configuration; Any if that is not known."""
    kind: Any = Settings
    node: Any = config
    for place, name in enumerate(key.replace("[", ".").replace("]", "").split(".")):
        node = node.get(name) if isinstance(node, dict) else None
        if isinstance(node, dict) and "_target_" in node:
            given = {inner: value for inner, value in node.items() if inner != "_target_"}
            try:
                kind = import_object("_target_", str(node["_target_"]), "class")
                kind = kind.with_keys(given) if hasattr(kind, "with_keys") else kind
            except FklError:  # `load_run` reports it
                return Any
        elif name == "paths" and not place:
            kind = Paths
        else:
            inner = next((one for one in union_members(kind) if is_dataclass(one) or get_args(one)), Any)
            kind = get_type_hints(inner).get(name, Any) if is_dataclass(inner) else (get_args(inner) or (Any,))[-1]
    return kind


def import_object(key: str, path: str, what: str) -> Any:
    """The object at an import path, in a module of fkl or of the user."""
    with _own_modules():
        try:
            module, _, name = path.rpartition(".")
            return getattr(source.import_module(module), name)
        except (Exception, SystemExit) as error:  # any error in the user's own module is reported in one line
            # An error without a line of the user's code is about a missing module, or names its line like a SyntaxError
            said = with_own_line(error) if own_lines(error) else str(error)
            raise BadValue(key, path, f"the import path of a {what} ({said})") from error


@contextmanager
def _own_modules() -> Iterator[None]:
    """Find a user's own modules in the current folder, after installed ones, and only in this block.

    Outside the block, a file there could be mistaken for an optional module of some library, such as a plugin of Hydra.
    """
    here = str(current_folder())
    added = [here] if here not in sys.path else []
    sys.path += added
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def build_object(
    target: type, values: dict[str, Any], group: str, also: tuple[str, ...] = ()
) -> tuple[Any, dict[str, Any]]:
    """Make a dataclass from plain values; check keys and types, and that numbers are finite.

    Returns
    -------
    object, dict
        The object, and the values with defaults for omitted keys, so both spellings name the same run.
    """
    types = get_type_hints(target)
    keys = {one.name: one for one in fields(target) if one.init}
    for key in values:
        if key not in keys:
            allowed_keys = ", ".join(sorted([*keys, *also]))
            start = f"{group}." if group else ""
            near = did_you_mean(str(key), keys, start=start)
            raise FklError(f"{start}{key}: no such key; keys are {allowed_keys or 'none'}", help=near)
    plain = {}
    for key, one in keys.items():
        default = one.default if one.default_factory is MISSING else one.default_factory()
        value = values.get(key, default)
        if is_dataclass(types[key]) and isinstance(value, dict):
            with key_prefix(f"{group}.{key}"):
                value, _ = build_object(types[key], value, f"{group}.{key}")
        require_words(key, value, types[key])
        try:
            plain[key] = "???" if value is MISSING else _as_type(value, types[key])
        except (ValueError, TypeError, LookupError, OverflowError):
            raise BadValue(key, value, _in_words(types[key])) from None
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


def _as_type(value: Any, kind: Any) -> Any:
    """A value converted to a field's type, such as text to a number; raises one of Python's errors if it cannot be."""
    inner = get_args(kind)
    if isinstance(value, dict):
        value = {str(name): member for name, member in value.items()}  # a column without a name is called by its number
    if kind is Any or (value is None and type(None) in inner):
        return value
    if len(union_members(kind)) > 1:
        for member in union_members(kind):
            with suppress(ValueError, TypeError, LookupError, OverflowError):
                return _as_type(value, member)
        raise TypeError
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if get_origin(kind) is list and isinstance(value, list | tuple):
        return [_as_type(member, inner[0]) for member in value]
    if get_origin(kind) is dict and isinstance(value, dict):
        return {name: _as_type(member, inner[1]) for name, member in value.items()}
    if kind is bool and isinstance(value, bool | int | str):
        return WORDS_OF_BOOL[str(value).lower()]
    if kind in (int, float) and type(value) in (int, str, kind):
        return kind(value)
    if kind is str and isinstance(value, str):
        return value
    raise TypeError


def _in_words(kind: Any) -> str:
    """The values that a field's type allows, as text."""
    inner = get_args(kind)
    if len(union_members(kind)) > 1:
        return " or ".join("null" if one is type(None) else _in_words(one) for one in inner)
    if get_origin(kind) is list:
        return f"a list of {_in_words(inner[0])}"
    return NAMES_OF_TYPES.get(get_origin(kind) or kind, "another type")
