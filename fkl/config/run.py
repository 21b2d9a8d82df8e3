"""A checked configuration, and its folder."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fkl import __version__
from fkl.basics.errors import key_prefix
from fkl.config import digest as source
from fkl.config.digest import decisive
from fkl.config.settings import NODES, OPTIONAL_NODES, Paths, Settings


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
            decisive(self.resolved, getattr(self.algo, "idle", ())),
            self._checksums,
        ]
        return _hash(all_of_it)

    @property
    def parts(self) -> dict[str, str]:
        """Hashes of the run's code and data, which show the cause of a different digest."""
        return {"code": _hash([source.of_fkl(), self._modules]), "data": _hash(self._checksums)}

    @property
    def _modules(self) -> list[str | None]:
        """Hash of the source of each node's class and of each metric; None for fkl's own."""
        targets = [str(node["_target_"]) for name in (*NODES, *OPTIONAL_NODES) if (node := self.resolved.get(name))]
        targets += (self.settings.metrics or {}).values()
        return [source.of_module(target.rpartition(".")[0]) for target in targets]

    @property
    def _checksums(self) -> list[str]:
        """Checksums of the data files, including the user's own."""
        return self._checksums_of({"dataset": self.dataset, "topology": self.topology, **self.conditions})

    def _checksums_of(self, nodes: dict[str, Any]) -> list[str]:
        checksums = [file.sha256 for file in self.dataset.files]
        for name, node in nodes.items():
            with key_prefix(name):
                fingerprint = getattr(node, "fingerprint", None)
            if fingerprint is not None:  # the user's own file; without one the digest does not change
                checksums.append(fingerprint)
        return checksums

    @cached_property
    def folder(self) -> Path:
        """Folder of the run's files."""
        return self._folder("runs", "")

    @cached_property
    def failed_folder(self) -> Path:
        """Folder for the error, and the rows so far, of a failed run."""
        return self._folder("failed", ".failed")

    @cached_property
    def broken_folder(self) -> Path:
        """Folder to which a damaged folder of this run is moved."""
        return self._folder("broken", ".broken")

    def _folder(self, kind: str, suffix: str) -> Path:
        if self.settings.out is not None:
            return Path(f"{_without_parents(self.settings.out)}{suffix}")
        method = re.sub(r"\W+", "_", self.algo.label.lower()).strip("_")
        name = f"{self.dataset.name}-{method}-{self.digest}"
        return _without_parents(self.paths.outputs) / kind / name


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_parents(folder: str) -> Path:
    """A folder's path; with `..` in it, which fails if a part is missing, the absolute path."""
    return Path(os.path.realpath(folder)) if ".." in Path(folder).parts else Path(folder)
