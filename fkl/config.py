"""From a composed Hydra configuration to checked objects.

A configuration node with `_target_` names a dataclass; the dataclass's fields are the node's keys, its types their
types, its `__post_init__` their limits. That is the whole schema: data sets, partitions, kernels, networks and
algorithms (also a user's own, by import path) all follow it.
"""

import hashlib
import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, ValidationError
from omegaconf.errors import ConfigKeyError, InterpolationResolutionError, MissingMandatoryValue, OmegaConfBaseException

from fkl import __version__
from fkl.data.normalise import SCALINGS
from fkl.errors import BadValue, FklError, inside, require

NODES = ("algo", "dataset", "partition", "kernels", "network")
OPTIONAL_NODES = ("topology",)
NOT_RESULTS = ("out", "paths", "threads", "chunk")
"""Keys that change where or how fast a run goes, but no number of it."""


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
        Compiled features, or the slow numpy reference.
    scaling : {"unit_ball", "unit_box", "none"}
        Of features and target, see `fkl.data.normalise.normalise`.
    threads : int or None
        Threads of the compiled kernels; None for all.
    chunk : int or None
        Replicates that run together; None for as many as a gigabyte holds.
    out : str or None
        Folder for this run's files; None for one named after the configuration.
    """

    seed: int = 0
    replicates: int = 20
    precision: str = "float32"
    scaling: str = "unit_ball"
    threads: int | None = None
    chunk: int | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0")
        require(self.replicates >= 1, "replicates", self.replicates, "a whole number from 1")
        require(self.precision in ("float32", "float64"), "precision", self.precision, "float32 or float64")
        require(self.scaling in SCALINGS, "scaling", self.scaling, ", ".join(SCALINGS))
        require(self.threads is None or self.threads >= 1, "threads", self.threads, "a whole number from 1, or null")
        require(self.chunk is None or self.chunk >= 1, "chunk", self.chunk, "a whole number from 1, or null")
        require(self.out is None or self.out.strip() != "", "out", self.out, "a folder, or null")


@dataclass(frozen=True)
class Run:
    """A checked configuration.

    Parameters
    ----------
    settings, paths : the keys outside every group
    algo, dataset, partition, kernels, network, topology : objects
        Instances of the dataclasses that the nodes name; topology is None for a method with a server.
    resolved : dict
        The configuration as plain data, as `config.yaml` keeps it.
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

    @property
    def digest(self) -> str:
        """Hash of everything that decides numbers: configuration, data files' checksums, version of fkl."""
        decisive = {key: value for key, value in self.resolved.items() if key not in NOT_RESULTS}
        checksums = [file.sha256 for file in self.dataset.files]
        for name in ("dataset", "topology"):
            with inside(name):
                fingerprint = getattr(getattr(self, name), "fingerprint", None)
            if fingerprint is not None:  # a file of the user's own; without one a digest stays what it was
                checksums.append(fingerprint)
        return hashlib.sha256(json.dumps([__version__, decisive, checksums], sort_keys=True).encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Where the run's files go."""
        if self.settings.out is not None:
            return Path(self.settings.out)
        name = f"{self.dataset.name}-{type(self.algo).__module__.rsplit('.', 1)[-1]}-{self.digest}"
        return Path(self.paths.outputs) / "runs" / name


def load(config: DictConfig) -> Run:
    """Check a composed configuration.

    Raises
    ------
    fkl.errors.FklError
        Names the key and what it may be.
    """
    try:
        plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)  # type: ignore[assignment]
    except (InterpolationResolutionError, MissingMandatoryValue) as error:
        raise FklError(f"{error.full_key}: {_first_line(error)}") from None
    groups = (*NODES, *OPTIONAL_NODES, "paths")
    top = {key: value for key, value in plain.items() if key not in groups}
    nodes = dict.fromkeys(OPTIONAL_NODES)
    for name in (*NODES, *OPTIONAL_NODES):
        if name in NODES or plain.get(name) is not None:
            with inside(name):
                nodes[name] = instantiate(plain[name], name)
    settings = build(Settings, top, "", also=groups)
    with inside("paths"):
        paths = build(Paths, plain["paths"], "paths")
    return Run(settings=settings, paths=paths, resolved=plain, **nodes)


def instantiate(node: dict[str, Any], group: str) -> Any:
    """Make the object that a node's `_target_` names."""
    require(isinstance(node, dict) and "_target_" in node, "_target_", None, "the import path of a class")
    path = str(node["_target_"])
    module, _, name = path.rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadValue("_target_", path, f"the import path of a class ({error})") from None
    return build(target, {key: value for key, value in node.items() if key != "_target_"}, group)


def build(target: type, values: dict[str, Any], group: str, also: tuple[str, ...] = ()) -> Any:
    """Make a dataclass from plain values, checking keys and types."""
    schema = OmegaConf.structured(target)
    OmegaConf.set_readonly(schema, False)
    for key, value in values.items():
        try:
            schema[key] = value
        except ConfigKeyError:
            known = ", ".join(sorted([*map(str, schema), *also]))
            raise FklError(f"{group + '.' if group else ''}{key}: no such key; there are {known}") from None
        except (ValidationError, OmegaConfBaseException) as error:
            raise BadValue(key, value, _allowed(target, key, error)) from None
    return target(**OmegaConf.to_container(schema))  # type: ignore[arg-type]


def _allowed(target: type, key: str, error: Exception) -> str:
    """What a field's type lets in, in words."""
    annotation = str(next(field.type for field in target.__dataclass_fields__.values() if field.name == key))  # type: ignore[attr-defined]
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
    for name, meaning in words.items():
        if name in annotation:
            return meaning + (" or null" if "None" in annotation else "")
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
