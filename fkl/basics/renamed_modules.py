"""Modules that authors import, or saved files name, by a path of 1.0.0rc1: the old path goes on to work."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

RENAMED = {
    "fkl.api": "fkl.runs.api",
    "fkl.comparison": "fkl.report.compare",
    "fkl.contract.samples": "fkl.contract.held_samples",
    "fkl.errors": "fkl.basics.errors",
    "fkl.kernels.flow": "fkl.kernels.traceable",
    "fkl.losses": "fkl.kernels.pointwise_losses",
    "fkl.network.channel": "fkl.wire.channel",
    "fkl.network.inbox": "fkl.wire.inbox",
    "fkl.network.ledger": "fkl.wire.ledger",
    "fkl.network.letters": "fkl.wire.letters",
    "fkl.network.messages": "fkl.wire.payloads",
    "fkl.results.collect": "fkl.results.finished_runs",
    "fkl.streams": "fkl.basics.random_streams",
}


class OldPaths(MetaPathFinder, Loader):
    """Gives the module of today to whoever imports an old path."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Say that this loads the old paths, and no others."""
        return ModuleSpec(name, self) if name in RENAMED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module of today."""
        module = import_module(RENAMED[spec.name])
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is: the import system has put the old path's spec into it."""
        module.__spec__ = self.spec


def install() -> None:
    """Let the old paths be imported."""
    if not any(isinstance(finder, OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(OldPaths())
