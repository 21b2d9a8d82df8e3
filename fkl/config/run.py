"""A checked configuration, and the folder that it names."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fkl import __version__
from fkl.basics.errors import key_prefix
from fkl.config import source_digest as source
from fkl.config.digest import decisive
from fkl.config.settings import NODES, OPTIONAL_NODES, Paths, Settings


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
        Loggers that follow the run, `fkl.loggers.logger.Logger`, by name.
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
        """Hashes of the code and of the data behind the run, which tell which of them differs where the digest does."""
        return {"code": _hash([source.of_fkl(), self._modules]), "data": _hash(self._checksums)}

    @property
    def data_digest(self) -> str:
        """Hash of the data set's files, whatever keys it is read with; of its name where it comes without files."""
        return _hash(self._checksums_of({"dataset": self.dataset}) or [self.dataset.name])

    @property
    def _modules(self) -> list[str | None]:
        """Hash of the source of each node's class, and of each metric; None for one of fkl's own."""
        targets = [str(node["_target_"]) for name in (*NODES, *OPTIONAL_NODES) if (node := self.resolved.get(name))]
        targets += (self.settings.metrics or {}).values()
        return [source.of_module(target.rpartition(".")[0]) for target in targets]

    @property
    def _checksums(self) -> list[str]:
        """Those of the data files, the user's own among them."""
        return self._checksums_of({"dataset": self.dataset, "topology": self.topology, **self.conditions})

    def _checksums_of(self, nodes: dict[str, Any]) -> list[str]:
        checksums = [file.sha256 for file in self.dataset.files]
        for name, node in nodes.items():
            with key_prefix(name):
                fingerprint = getattr(node, "fingerprint", None)
            if fingerprint is not None:  # a file of the user's own; without one a digest stays what it was
                checksums.append(fingerprint)
        return checksums

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
        """Where a damaged folder goes that lies in the place of this run."""
        return self._folder("broken", ".broken")

    def _folder(self, kind: str, suffix: str) -> Path:
        if self.settings.out is not None:
            return Path(f"{_without_parents(self.settings.out)}{suffix}")
        name = f"{self.dataset.name}-{type(self.algo).__module__.rsplit('.', 1)[-1]}-{self.digest}"
        return _without_parents(self.paths.outputs) / kind / name


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _without_parents(folder: str) -> Path:
    """A folder's path; one with `..` in it, which leads nowhere where a part is missing, from the root."""
    return Path(os.path.realpath(folder)) if ".." in Path(folder).parts else Path(folder)
