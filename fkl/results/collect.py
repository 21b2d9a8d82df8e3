"""Finished runs of an outputs folder."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fkl.results.folder import LAST_FILE, read_summary

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one, where there is one, is ten times faster


@dataclass(frozen=True)
class FinishedRun:
    """One finished run.

    Parameters
    ----------
    folder : Path
    config : dict
        Its resolved configuration.
    provenance : dict
        What provenance.json tells.
    """

    folder: Path
    config: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return str(self.provenance["dataset"])

    @property
    def algorithm(self) -> str:
        """Name of the method in its paper."""
        return str(self.provenance["algorithm"])

    @property
    def replicates(self) -> int:
        """How many there are."""
        return int(self.config["replicates"])

    @property
    def ended(self) -> datetime:
        """When its folder was finished."""
        return datetime.fromtimestamp((self.folder / LAST_FILE).stat().st_mtime, UTC)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a replicate."""
        return read_summary(self.folder)

    @cached_property
    def clients(self) -> pd.DataFrame:
        """One row a replicate and client."""
        return pd.read_csv(self.folder / "clients.csv")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row a replicate and round."""
        return pd.read_csv(self.folder / "rounds.csv")


def collect(outputs: Path) -> Iterator[FinishedRun]:
    """All finished runs under `outputs`/runs, oldest first."""
    notes = sorted((outputs / "runs").glob(f"[!.]*/{LAST_FILE}"), key=lambda file: file.stat().st_mtime)
    for note in notes:
        provenance = json.loads(note.read_text())
        config = yaml.load((note.parent / "config.yaml").read_text(), LOADER)
        yield FinishedRun(note.parent, config, provenance)
