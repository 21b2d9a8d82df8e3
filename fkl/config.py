"""From a composed Hydra configuration to checked objects.

A configuration node with `_target_` names a dataclass; the dataclass's fields are the node's keys, its types their
types, its `__post_init__` their limits. That is the whole schema: data sets, partitions, kernels, networks and
algorithms (also a user's own, by import path) all follow it.
"""

import hashlib
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, ValidationError
from omegaconf.errors import ConfigKeyError, InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

import fkl
from fkl import __version__, source
from fkl.composing import resolvers  # noqa: F401 # called when a configuration is resolved, also in a sweep's worker
from fkl.data import renamed
from fkl.data.normalise import SCALINGS
from fkl.data.problem import PARTS_OF_ROWS
from fkl.errors import BadValue, FklError, inside, require

NODES: tuple[str, ...] = ("algo", "dataset", "partition", "network")
CONDITIONS = ("participation", "privacy", "compression", "secure", "late", "links")
"""Nodes of what the network does, which may all be left out; what is put around messages in this order."""
OPTIONAL_NODES = ("kernels", "topology", *CONDITIONS)
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
    "logger": ("begin", "round", "end", "fail"),
}
"""What the class of a node is known by."""
ENGINES = {
    "numba": "fkl.engines.local.Numba",
    "numpy": "fkl.engines.local.Numpy",
    "mpi": "fkl.engines.mpi.Mpi",
    "jax": "fkl.engines.jax.Jax",
}
"""Import paths of what plays the rounds, see `fkl.engines.base.Engine`, as `_target_` is one of a node's class."""
NOT_RESULTS = ("out", "paths", "threads", "chunk", "checkpoint_s", "objective", "save_model", "logger")
"""Keys that change where or how fast a run goes, but no number of it."""
MOST_REPLICATES = 1_000_000
LONGEST_NAME = 200


@dataclass(frozen=True)
class Paths:
    """Folders.

    Parameters
    ----------
    data : str
        Data files; by default the environment's FKL_DATA, else ``data``.
    outputs : str
        Runs, tables and figures.
    cache : str
        What is computed once for many runs; by default the environment's FKL_CACHE, else ``~/.cache/fkl``.
    """

    data: str = "data"
    outputs: str = "outputs"
    cache: str = "~/.cache/fkl"

    def __post_init__(self) -> None:
        for one in fields(self):
            _require_folder(one.name, getattr(self, one.name), "a folder")
        try:
            Path(self.cache).expanduser()
        except RuntimeError:
            raise BadValue("cache", self.cache, "a folder; there is no user of this name") from None


@dataclass(frozen=True)
class Settings:
    """The keys outside every group.

    Parameters
    ----------
    seed : int
        Decides every random draw of the run.
    replicates : int
        Independent sets of random features.
    precision : {"float32", "float64"}
        Of random features, of the parameters that go with them, and of scalars on the wire.
    engine : {"numba", "numpy", "mpi", "jax"}
        Compiled loops, or the slow reference in numpy; a method whose loops exist only compiled refuses the latter.
        With mpi, for methods whose clients have a server, the processes that mpirun has started play the clients in
        parts, by the compiled loops, and come to the same bytes. With jax, for methods whose rounds can be traced, they
        are played by one compiled scan, on the device that JAX finds.
    scaling : {"unit_ball", "unit_box", "none"}
        Of features and target, see `fkl.data.normalise.normalise`.
    rows : {"all", "even", "odd"}
        Which of the data set's rows there are: all, or every other block of 50 in their order. What is chosen on the
        even ones has seen nothing of the odd ones, not even their scale. A partition's default rounds (of by_site, own
        and other) are then half as many; values that you give are taken as they are.
    threads : int or None
        Threads of the compiled kernels; None for all.
    chunk : int or None
        Replicates that run together; None for as many as a gigabyte holds.
    checkpoint_s : float or None
        Seconds between two savings of what a run has done so far; 0 for every round, None for never.
    objective : str or None
        Column of the summary whose mean a search for hyper-parameters is to make small.
    save_model : bool
        Whether to keep what was learned, in ``model.npz``.
    out : str or None
        Folder for this run's files; None for one named after the configuration.
    """

    seed: int = 0
    replicates: int = 20
    precision: str = "float32"
    engine: str = "numba"
    scaling: str = "unit_ball"
    rows: str = "all"
    threads: int | None = None
    chunk: int | None = None
    checkpoint_s: float | None = 30.0
    objective: str | None = None
    save_model: bool = False
    out: str | None = None

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer >= 0, below 2^63")
        allowed = f"an integer from 1 to {MOST_REPLICATES}"
        require(1 <= self.replicates <= MOST_REPLICATES, "replicates", self.replicates, allowed)
        require(self.precision in ("float32", "float64"), "precision", self.precision, "float32 or float64")
        require(self.engine in ENGINES, "engine", self.engine, ", ".join(ENGINES))
        require(self.scaling in SCALINGS, "scaling", self.scaling, ", ".join(SCALINGS))
        require(self.rows in PARTS_OF_ROWS, "rows", self.rows, ", ".join(PARTS_OF_ROWS))
        require(self.threads is None or self.threads >= 1, "threads", self.threads, "an integer >= 1, or null")
        require(self.chunk is None or self.chunk >= 1, "chunk", self.chunk, "an integer >= 1, or null")
        every = self.checkpoint_s
        require(every is None or 0 <= every < float("inf"), "checkpoint_s", every, "seconds >= 0, or null")
        named = self.objective is None or self.objective.strip() != ""
        require(named, "objective", self.objective, "a column of summary.csv, or null")
        if self.out is not None:
            _require_folder("out", self.out, "a folder, or null")


@dataclass(frozen=True)
class Run:
    """A checked configuration.

    Parameters
    ----------
    settings, paths : the keys outside every group
    algo, dataset, partition, kernels, network, topology : objects
        Instances of the dataclasses that the nodes name; topology is None for a method with a server, kernels for one
        that has no use for them.
    resolved : dict
        The configuration as plain data, as `config.yaml` keeps it.
    conditions : dict of str to object
        What the network does, by the names of `CONDITIONS`; those that are left out are not there.
    loggers : dict of str to object
        Who is told of the run, `fkl.loggers.logger.Logger`, by name.
    words : tuple of str
        What the user set, as KEY=VALUE words.
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
    loggers: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Hash of everything that decides numbers: configuration, data files' checksums, source of fkl and the user."""
        checksums = [file.sha256 for file in self.dataset.files]
        files = {"dataset": self.dataset, "topology": self.topology, **self.conditions}
        for name, node in files.items():
            with inside(name):
                fingerprint = getattr(node, "fingerprint", None)
            if fingerprint is not None:  # a file of the user's own; without one a digest stays what it was
                checksums.append(fingerprint)
        targets = [str(node["_target_"]) for name in (*NODES, *OPTIONAL_NODES) if (node := self.resolved.get(name))]
        modules = [source.of_module(target.rpartition(".")[0]) for target in targets]
        all_of_it = [
            __version__,
            source.of_fkl(),
            modules,
            decisive(self.resolved, getattr(self.algo, "idle", ())),
            checksums,
        ]
        return hashlib.sha256(json.dumps(all_of_it, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def folder(self) -> Path:
        """Where the run's files go."""
        return self._folder("runs", "")

    @cached_property
    def failed_folder(self) -> Path:
        """Where the run leaves its error, and what rows it has, when it fails."""
        return self._folder("failed", ".failed")

    @cached_property
    def broken_folder(self) -> Path:
        """Where what lies in the run's place goes when it is not as it was written."""
        return self._folder("broken", ".broken")

    def _folder(self, kind: str, suffix: str) -> Path:
        if self.settings.out is not None:
            return Path(f"{_without_parents(self.settings.out)}{suffix}")
        name = f"{self.dataset.name}-{type(self.algo).__module__.rsplit('.', 1)[-1]}-{self.digest}"
        return _without_parents(self.paths.outputs) / kind / name


def _without_parents(folder: str) -> Path:
    """A folder's path; one with `..` in it, which leads nowhere where a part is missing, from the root."""
    return Path(os.path.realpath(folder)) if ".." in Path(folder).parts else Path(folder)


def decisive(resolved: dict[str, Any], idle: Iterable[str] = ()) -> dict[str, Any]:
    """What of a resolved configuration decides numbers; idle are keys that its method has no use for."""
    keys = {key: value for key, value in resolved.items() if key not in NOT_RESULTS}
    keys = {key: value for key, value in keys.items() if value is not None or key not in CONDITIONS}
    network = keys.get("network")
    if isinstance(network, dict) and network.get("_target_") == "fkl.network.Network":  # whose null and 0 do nothing
        keys["network"] = {key: value for key, value in network.items() if value}
    if isinstance(keys.get("dataset"), dict):
        keys["dataset"] = renamed.identifying(keys["dataset"])
    for group in {key.partition(".")[0] for key in idle}:
        keys[group] = {key: value for key, value in keys[group].items() if f"{group}.{key}" not in idle}
    return keys


def identity(resolved: dict[str, Any], free: Iterable[str] = ()) -> str:
    """Digest of the decisive configuration, whatever some free keys of it are, for example ``dataset.rows``.

    A number is the same with and without a point: ``algo.gamma=0`` and ``algo.gamma=0.0``. A setting that was not there
    yet when a run was made has its default, and a key of the kernels that had another name has the one of today.
    """
    settings = {one.name: one.default for one in fields(Settings)}
    keys = _without_points(decisive(settings | resolved))
    kernels = keys.get("kernels")
    if isinstance(kernels, dict) and "orthogonal" in kernels:  # what is kernels.draw now
        kernels["draw"] = "orthogonal" if kernels.pop("orthogonal") else "iid"
    for key in free:
        *nodes, last = key.split(".")
        node: Any = keys
        for name in nodes:
            node = node.get(name) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node.pop(last, None)
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def _without_points(value: Any) -> Any:
    """A copy of plain data, in which integers are written as such."""
    if isinstance(value, dict):
        return {key: _without_points(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_points(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def load(config: DictConfig, words: Iterable[str] = ()) -> Run:
    """Check a composed configuration; `words` are those of the user that it was composed of.

    Raises
    ------
    fkl.errors.FklError
        Names the key and what it may be.
    """
    try:
        plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)  # type: ignore[assignment]
    except (InterpolationResolutionError, MissingMandatoryValue) as error:
        raise FklError(f"{error.full_key}: {_first_line(error)}") from None
    groups = (*NODES, *OPTIONAL_NODES, "paths", "logger")
    top = {key: value for key, value in plain.items() if key not in groups}
    nodes: dict[str, Any] = dict.fromkeys(OPTIONAL_NODES)
    for name in (*NODES, *OPTIONAL_NODES):
        if name in NODES or plain.get(name) is not None:
            with inside(name):
                nodes[name] = instantiate(plain.get(name), name)
    _require_kernels(nodes["algo"], nodes["kernels"])
    settings = build(Settings, top, "", also=groups)
    plain |= top
    folders = plain.get("paths")
    require(isinstance(folders, dict), "paths", folders, "folders, for example paths.outputs=FOLDER")
    with inside("paths"):
        paths = build(Paths, plain["paths"], "paths")
    may = not settings.save_model or hasattr(nodes["algo"], "functions")
    allowed = f"false for {nodes['algo'].label}, whose class has no functions(world, state, t)"
    require(may, "save_model", settings.save_model, allowed)
    conditions = {name: made for name in CONDITIONS if (made := nodes.pop(name)) is not None}
    loggers = _loggers(plain.get("logger"))
    nodes |= {"conditions": conditions, "loggers": loggers}
    run = Run(settings=settings, paths=paths, resolved=plain, words=tuple(words), **nodes)
    if (why := engine(settings.engine).can_play(run)) is not None:
        able = " or ".join(name for name in ENGINES if engine(name).can_play(run) is None)
        raise BadValue("engine", settings.engine, f"{able} for {run.algo.label}: {why}")
    return run


def engine(name: str) -> Any:
    """The `fkl.engines.base.Engine` of this name, whose module is imported when it is first asked for."""
    module, _, kind = ENGINES[name].rpartition(".")
    return getattr(import_module(module), kind)()


def _loggers(nodes: Any) -> dict[str, Any]:
    """Those that the node `logger` names, which has a node for each."""
    require(nodes is None or isinstance(nodes, dict), "logger", nodes, "nodes, for example logger=jsonl")
    loggers = {}
    for name, node in (nodes or {}).items():
        with inside(f"logger.{name}"):
            loggers[name] = instantiate(node, f"logger.{name}")
    return loggers


def _require_kernels(algo: Any, kernels: Any) -> None:
    """Refuse kernels that a method has no use for, and a lack of those that it needs."""
    label, uses = algo.label, getattr(algo, "uses_kernels", True)
    if uses:
        require(kernels is not None, "kernels", None, f"kernels for {label}, for example kernels=rbf")
    else:
        given = type(kernels).__name__
        require(kernels is None, "kernels", given, f"left out, as by ~kernels: {label} uses none")


def instantiate(node: dict[str, Any] | None, group: str) -> Any:
    """Make the object that a node's `_target_` names."""
    if not isinstance(node, dict) or "_target_" not in node:
        raise BadValue("_target_", None, "the import path of a class")
    node |= renamed.as_today(node)
    path = str(node["_target_"])
    target = _imported(path)
    lacking = [part for part in PARTS[group.partition(".")[0]] if not hasattr(target, part)]
    require(isinstance(target, type) and is_dataclass(target), "_target_", path, "the import path of a dataclass")
    require(not lacking, "_target_", path, f"a class for {group}: this one has no {', '.join(lacking)}")
    values = {key: value for key, value in node.items() if key != "_target_"}
    made = build(target.with_keys(values) if hasattr(target, "with_keys") else target, values, group)
    node |= values
    return made


def _imported(path: str) -> Any:
    """What an import path names; whatever the user's own module does wrong is said in one line, with its place."""
    module, _, name = path.rpartition(".")
    try:
        with _own_modules():
            return getattr(source.import_module(module), name)
    except (Exception, SystemExit) as error:
        place = _place(error)
        said = f"{place}{type(error).__name__}: {error}" if place else error
        raise BadValue("_target_", path, f"the import path of a class ({said})") from None


@contextmanager
def _own_modules() -> Iterator[None]:
    """Find a user's own modules in the current folder, after whatever is installed, and only in this block.

    For longer, a file there could pass for any module that some library would like to have, Hydra's plugins among
    them.
    """
    here = str(Path.cwd())
    added = [here] if here not in sys.path else []
    sys.path += added
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def _place(error: BaseException) -> str:
    """File and line of an error inside a module; empty where there was no module to run."""
    if isinstance(error, SyntaxError):
        return ""  # which names them itself
    *_, last = traceback.extract_tb(error.__traceback__)
    ours = "importlib" in last.filename or last.filename in (__file__, source.__file__, fkl.__file__)
    return "" if ours else f"{last.filename}, line {last.lineno}: "


def build(target: type, values: dict[str, Any], group: str, also: tuple[str, ...] = ()) -> Any:
    """Make a dataclass from plain values, checking keys and types, and that numbers are finite.

    Keys that are left out are put into `values` with their defaults, so that they name the same run.
    """
    schema = OmegaConf.structured(target)
    OmegaConf.set_readonly(schema, False)
    nested = {one.name: one.type for one in fields(target) if isinstance(one.type, type) and is_dataclass(one.type)}
    for key, value in values.items():
        if key in nested and isinstance(value, dict):
            with inside(f"{group}.{key}"):
                value = build(nested[key], {**value}, f"{group}.{key}")
        try:
            schema[key] = value
            _require_bool(schema[key], key, value)
        except ConfigKeyError:
            known = ", ".join(sorted([*map(str, schema), *also]))
            raise FklError(f"{group + '.' if group else ''}{key}: no such key; there are {known or 'none'}") from None
        except (ValidationError, OmegaConfBaseException, OverflowError) as error:
            raise BadValue(key, value, _allowed(target, key, error)) from None
    plain: dict[str, Any] = OmegaConf.to_container(schema)  # type: ignore[assignment]
    built = target(**plain)  # whose own limits say more than those that hold for all
    for key, value in plain.items():
        _require_number(key, value)
        values.setdefault(key, value)
    return built


def _require_folder(key: str, value: str, allowed: str) -> None:
    """Refuse what names no folder that a file system could hold, with our own files beside it."""
    short = all(len(part.encode()) <= LONGEST_NAME for part in Path(value).parts)
    require(value.strip() != "" and short, key, value, f"{allowed}; no name longer than {LONGEST_NAME} bytes")
    require(value.isprintable(), key, value, f"{allowed}, without control characters")
    home = value.startswith("~") and key != "cache"  # some libraries would take it for a home folder, others not
    require(not home, key, value, f"{allowed}; write $HOME for ~")


def _require_bool(taken: Any, key: str, given: Any) -> None:
    """Refuse the integers above 1 that OmegaConf takes for true."""
    if isinstance(taken, bool) and isinstance(given, int | float):
        require(given in (0, 1), key, given, "true or false")


def _require_number(key: str, value: Any) -> None:
    """Refuse what no number can be, also inside lists: so no class has to think of it."""
    for number in _leaves(value):
        if isinstance(number, float):
            require(math.isfinite(number), key, value, "a finite number" if number is value else "finite numbers")
        elif isinstance(number, int):
            require(abs(number) < 2**63, key, value, "an integer below 2^63")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _allowed(target: type, key: str, error: Exception) -> str:
    """What a field's type lets in, in words."""
    annotation = str(next(one.type for one in target.__dataclass_fields__.values() if one.name == key))  # type: ignore[attr-defined]
    words = {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a word"}
    for name, meaning in words.items():
        if name in annotation:
            listed = f"{annotation.count('list') * 'a list of '}{meaning}"
            return listed + (" or null" if "None" in annotation else "")
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
