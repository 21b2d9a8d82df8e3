"""Modules and names of 1.0.0rc1 that have been renamed; their old import paths still work."""

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


NAMES = {
    "fkl.network.messages": {"Added": "Summable", "Each": "PerClient", "Shared": "SameForAll"},
}
"""Names in such a module that have changed."""


class OldPaths(MetaPathFinder, Loader):
    """Loads an old import path as the module that replaced it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Claim the old paths, and no others."""
        return ModuleSpec(name, self) if name in RENAMED else None

    def exec_module(self, module: ModuleType) -> None:
        """Copy every name from the current module."""
        today, names = import_module(RENAMED[module.__name__]), NAMES.get(module.__name__, {})
        module.__getattr__ = lambda name: getattr(today, names.get(name, name))  # type: ignore[method-assign]


def install() -> None:
    """Make the old paths importable."""
    if not any(isinstance(finder, OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(OldPaths())
