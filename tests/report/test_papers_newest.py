"""Of finished runs that are one configuration of several versions of the source, the newest is shown."""

import json
import os
from pathlib import Path

import yaml

from fkl.papers.beside import newest
from fkl.results.collect import FinishedRun, collect


def put(outputs: Path, name: str, replicates: int, ended: int) -> None:
    folder = outputs / "runs" / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"replicates": replicates, "algo": {"eta": 0.1}}))
    (folder / "provenance.json").write_text(json.dumps({"digest": name, "dataset": "d", "algorithm": "a"}))
    os.utime(folder / "provenance.json", (ended, ended))


def shown(outputs: Path) -> str:
    def cell(run: FinishedRun) -> tuple[str, str, str]:
        return run.dataset, run.algorithm, ""

    [run] = newest(collect(outputs), cell, lambda run: str(run.config["algo"])).values()
    return run.folder.name


def test_the_newest_of_several_versions_of_the_source_is_shown(tmp_path: Path) -> None:
    """Whatever their folders are called; a later one of fewer replicates is another configuration."""
    put(tmp_path, "b", 20, ended=1000)
    put(tmp_path, "a", 20, ended=2000)
    assert shown(tmp_path) == "a"
    put(tmp_path, "c", 20, ended=3000)
    put(tmp_path, "d", 2, ended=4000)
    assert shown(tmp_path) == "c"
