"""A plain stream of JSON lines."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fkl.basics.errors import FklError
from fkl.basics.files import writing
from fkl.config import Run, decisive


@dataclass
class JsonLines:
    """One JSON object per line: one for the run, one per round, one for the end.

    A resumed run continues its file; a repeated run starts a new one. If the file cannot be written, as on a full disk,
    the run ends; the same command continues both. If only the last line could not be written, the run is finished, and
    the line stays missing.

    Parameters
    ----------
    file : str or None
        None for a file in the folder ``logs`` of the outputs, named after the run's folder.
    """

    file: str | None = None

    def begin(self, run: Run) -> None:
        """Open the file, which may have this run's first part."""
        path = Path(run.paths.outputs) / "logs" / f"{run.folder.name}.jsonl" if self.file is None else Path(self.file)
        begun = {"event": "begin", "run": run.digest, "config": decisive(run.resolved)}
        self._path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as stream:
                stream.seek(0)
                lines = stream.read().splitlines(keepends=True)
                if lines and not _line(begun).startswith(lines[0]):  # the first line may be cut, too
                    raise FklError(f"{path}: not a log of this run")
                whole = [line for line in lines if line.endswith(b"\n")]  # all except one that was truncated
                known = [json.loads(line) for line in whole]
                if known and known[-1]["event"] == "end":
                    whole, known = [], []
                stream.truncate(sum(map(len, whole)))
            self._stream = path.open("ab")
        self._known = {(*event["replicates"], event["round"]) for event in known if event["event"] == "round"}
        if not whole:
            self._write(begun)

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Write a line, unless the file already has it."""
        ends = [replicates[0], replicates[-1]]
        if (*ends, t) not in self._known:
            self._write({"event": "round", "replicates": ends, "round": t, "metrics": metrics})

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """Write the last line."""
        self._write({"event": "end", "folder": folder.name, "summary": summary})
        self._stream.close()

    def fail(self, why: str) -> None:
        """Write the reason, and close."""
        self._write({"event": "fail", "why": why})
        self._stream.close()

    def _write(self, event: dict[str, Any]) -> None:
        with writing(self._path):
            self._stream.write(_line(event))
            self._stream.flush()


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"
