"""Compare the numbers of two commits: every algorithm's small scenario, and a full run of each paper's main table.

Usage: compare_commits.py [OLD [NEW]], commits of this repository or folders that hold one; by default the last commit
before methods became parties, and HEAD. Each commit is laid out in a temporary folder and runs with this Python, every
scenario in float64 and float32; of the papers' runs the latter is the full one, the former has two replicates. Tables
are compared column by column with all digits of a float64, times excepted. Two float64 values agree where they differ
by at most 1e-9 of the larger one; a difference below 1e-12 of the column's largest value is rounding of what cancels,
such as a regret near 0, and is let pass. Runs in float32 are information.

The exit code is 1 where a column of a float64 run differs by more, is missing, or a scenario could not run in both.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
from play_runs import TABLES as FILES
from scenarios import BY_BANK, DIFFICULT, REPLICATES, SIZED, SMALL, TABLES
from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parent.parent
BEFORE = "6f383d8"
RELATIVE, CANCELS = 1e-9, 1e-12
TIMES = ("runtime_s", "runtime_per_client_s")
ROWS = ("replicate", "round", "client", "site")
"""What rows are known by."""
PARTS = ("fkl", "conf")
"""What of a commit decides numbers."""
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Tree:
    """A commit laid out in a folder.

    Parameters
    ----------
    name : str
        As it was asked for, with the commit's hash.
    folder : Path
    """

    name: str
    folder: Path

    @cached_property
    def digest(self) -> str:
        """Hash of all that decides numbers: the code and the configuration."""
        files = sorted(file for part in PARTS for file in (self.folder / part).rglob("*"))
        joined = hashlib.sha256()
        for file in files:
            if file.suffix in (".py", ".yaml"):
                joined.update(
                    f"{file.relative_to(self.folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
                )
        return joined.hexdigest()[:12]

    @property
    def algorithms(self) -> set[str]:
        """Names in conf/algo."""
        return {file.stem for file in (self.folder / "conf" / "algo").glob("*.yaml")}


@dataclass(frozen=True)
class Scenario:
    """A name, and words of `fkl run`."""

    name: str
    words: tuple[str, ...]

    def kept_in(self, folder: Path, tree: Tree) -> Path:
        """Where its tables lie: named after all that decides them."""
        words = hashlib.sha256(json.dumps(self.words).encode()).hexdigest()[:12]
        return folder / tree.digest / words

    def renamed(self, renames: list[tuple[str, str]]) -> "Scenario":
        """The same in the new commit's words."""
        words = list(self.words)
        for old, new in renames:
            words = [changed for word in words for changed in _renamed(word, old, new)]
        return replace(self, words=tuple(words))


def _renamed(word: str, old: str, new: str) -> list[str]:
    """What a word of the old commit is in the new one's."""
    key, _, value = word.partition("=")
    if old not in (key, word):
        return [word]
    is_key = old == key and new and "=" not in new
    return [f"{new}={value}"] if is_key else new.split()


class Difference(NamedTuple):
    """How two columns differ.

    Parameters
    ----------
    same_bits : bool
    relative : float
        Largest difference relative to the larger of the two values.
    beyond : float
        The same of values whose difference is more than what is lost when numbers cancel.
    """

    same_bits: bool
    relative: float
    beyond: float


def difference(old: pd.Series, new: pd.Series) -> Difference:
    """Compare two columns of printed numbers, or of words, row by row."""
    if len(old) == len(new) and (old == new).all():
        return Difference(True, 0.0, 0.0)
    try:
        a, b = (np.array([float(value or "nan") for value in column]) for column in (old, new))
    except ValueError:
        a = b = np.zeros(0)
    if not len(a) == len(b) == len(old):
        return Difference(False, np.inf, np.inf)
    largest = np.maximum(np.abs(a), np.abs(b))
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        relative = np.where(off == 0, 0.0, off / largest)
    relative = np.where(np.isfinite(relative), relative, np.inf)
    scale = float(largest[np.isfinite(largest)].max(initial=0.0))
    return Difference(False, float(relative.max()), float(relative[~(off <= CANCELS * scale)].max(initial=0.0)))


@dataclass(frozen=True)
class Comparison:
    """What became of one scenario.

    Parameters
    ----------
    scenario : Scenario
    columns : dict of str to Difference
        By "table.column".
    trouble : str
        Why there is nothing to compare.
    """

    scenario: Scenario
    columns: dict[str, Difference]
    trouble: str = ""

    @property
    def binding(self) -> bool:
        """Whether a difference is a failure."""
        return "precision=float32" not in self.scenario.words

    def failed(self, changed: set[str]) -> bool:
        """Whether it is not as it was, but for columns that were changed on purpose."""
        return bool(self.trouble) or (self.binding and bool(self.off(changed)))

    def off(self, changed: set[str]) -> list[str]:
        """Columns that differ by more than they may."""
        differ = [name for name, found in self.columns.items() if found.beyond > RELATIVE]
        return [name for name in differ if name.partition(".")[2] not in changed]

    def row(self, changed: set[str]) -> list[str]:
        """A line of the closing table."""
        if self.trouble:
            return [self.scenario.name, "", "", "", f"NOT COMPARED: {self.trouble}"]
        same = sum(found.same_bits for found in self.columns.values())
        kept = {name: found for name, found in self.columns.items() if name.partition(".")[2] not in changed}
        worst = max(kept, key=lambda name: kept[name].relative, default="")
        relative = kept[worst].relative if worst else 0.0
        beyond = max((found.beyond for found in kept.values()), default=0.0)
        off = self.off(changed)
        verdict = "same bits" if relative == 0 else f"within {RELATIVE:g}" if not off else f"DIFFERS: {', '.join(off)}"
        if on_purpose := sorted(name for name in self.columns.keys() - kept.keys() if not self.columns[name].same_bits):
            verdict += f"; on purpose: {', '.join(on_purpose)}"
        figures = [f"{relative:.1e} {worst}", f"{beyond:.1e}"] if relative else ["0", "0"]
        return [self.scenario.name, f"{same} of {len(self.columns)}", *figures, verdict]


def compare(scenario: Scenario, old: Path, new: Path, column_names: dict[str, str]) -> Comparison:
    """Compare the tables that two commits left of a scenario."""
    for folder, which in ((old, "old"), (new, "new")):
        if (folder / "failed.txt").exists():
            last = (folder / "failed.txt").read_text().strip().rpartition("\n")[2]
            return Comparison(scenario, {}, f"{which}: {last}")
    columns: dict[str, Difference] = {}
    for file in FILES:
        before, after = (pd.read_csv(folder / file, dtype=str, keep_default_na=False) for folder in (old, new))
        before = before.rename(columns=column_names)
        for name in [*before, *(name for name in after if name not in before)]:
            there = name in before and name in after
            found = difference(before[name], after[name]) if there else Difference(False, np.inf, np.inf)
            if name not in TIMES and not (name in ROWS and found.same_bits):
                columns[f"{file.removesuffix('.csv')}.{name}"] = found
    return Comparison(scenario, columns)


def play(tree: Tree, scenarios: list[Scenario], keep: Path) -> None:
    """Run the scenarios whose tables are not there yet."""
    missing = [one for one in scenarios if not (one.kept_in(keep, tree) / "notes.json").exists()]
    print(f"{tree.name}: {len(missing)} of {len(scenarios)} scenarios to run", file=sys.stderr, flush=True)
    if not missing:
        return
    jobs = keep / f"jobs-{tree.digest}-{os.getpid()}.json"
    listed = [{"words": one.words, "folder": str(one.kept_in(keep, tree).resolve())} for one in missing]
    jobs.write_text(json.dumps(listed))
    worker = [sys.executable, str(Path(__file__).with_name("play_runs.py")), str(jobs)]
    try:
        subprocess.run(worker, env={**os.environ, "PYTHONPATH": str(tree.folder)}, check=True)
    finally:
        jobs.unlink()


@contextmanager
def laid_out(name: str, parts: tuple[str, ...] = PARTS) -> Iterator[Tree]:
    """A commit, or what lies in a folder now, in a temporary folder, which goes when the block ends."""
    with TemporaryDirectory() as scratch:
        if (Path(name) / "fkl").is_dir():
            for part in parts:  # with what numba compiled, which is known by the files' times
                shutil.copytree(Path(name) / part, Path(scratch) / part)
            name, commit = Path(name).resolve().name, _git("describe", "--always", "--dirty", folder=Path(name))
        else:
            commit = _git("rev-parse", "--short=12", f"{name}^{{commit}}")
            packed = subprocess.run(["git", "archive", commit, *parts], cwd=REPOSITORY, check=True, capture_output=True)
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
                files.extractall(scratch, filter="data")
        yield Tree(f"{name} ({commit})", Path(scratch).resolve())


def _git(*words: str, folder: Path = REPOSITORY) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare_commits.py: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def in_numpy(scenario: Scenario) -> Scenario:
    """The same on the numpy engine, where that is what float64 was before."""
    algorithms = {word.removeprefix("algo=") for word in scenario.words if word.startswith("algo=")}
    fits = algorithms <= set(BY_BANK) and "precision=float64" in scenario.words
    return replace(scenario, words=(*scenario.words, "engine=numpy")) if fits else scenario


def scenarios_of(arguments: Namespace, algorithms: set[str]) -> list[Scenario]:
    """What to run: small and difficult scenarios, and tables; or what checkpoints are weighed of."""
    if missing := algorithms - SMALL.keys():
        sys.exit(f"compare_commits.py: say in scenarios.py what the small scenario is of {', '.join(sorted(missing))}")
    if arguments.checkpoints:
        named = {
            name: (*words, "replicates=1", "checkpoint_s=0") for name, words in SIZED.items() if name in algorithms
        }
        return [Scenario(name, words) for name, words in named.items() if _wanted(name, arguments.only)]
    small = {name: (f"algo={name}", *SMALL[name]) for name in sorted(algorithms)} | DIFFICULT
    named = {name: (*words, REPLICATES, "chunk=3") for name, words in small.items()}
    runs = [(name, precision, words) for precision in PRECISIONS for name, words in named.items()]
    if not arguments.small:
        runs += [(name, "float32", words) for name, words in TABLES.items()]
        runs += [(name, "float64", ("replicates=2", *words)) for name, words in TABLES.items()]
    wanted = [run for run in runs if _wanted(run[0], arguments.only)]
    return [Scenario(f"{name}, {precision}", (*words, f"precision={precision}")) for name, precision, words in wanted]


def _wanted(name: str, only: str | None) -> bool:
    return only is None or any(part in name for part in only.split(","))


def weigh(old: Tree, new: Tree, pairs: list[tuple[Scenario, Scenario]], keep: Path) -> int:
    """Print how large the checkpoints of both commits are."""
    rows = []
    for before, after in pairs:
        sizes = []
        for tree, scenario in ((old, before), (new, after)):
            folder = scenario.kept_in(keep, tree)
            failed = (folder / "failed.txt").exists()
            sizes.append(None if failed else json.loads((folder / "notes.json").read_text())["checkpoint_bytes"])
        rows.append([before.name, *("failed" if size is None else f"{size:,}" if size else "-" for size in sizes)])
    print(
        tabulate(
            rows,
            headers=["checkpoint, bytes", "old", "new"],
            disable_numparse=True,
            colalign=("left", "right", "right"),
        )
    )
    return int(any("failed" in row for row in rows))


def report(comparisons: list[Comparison], changed: set[str]) -> int:
    """Print the table and what it comes to; 1 where numbers are not as they were."""
    headers = ["scenario", "columns of same bits", "largest relative difference", "without what cancels", "verdict"]
    print(tabulate([one.row(changed) for one in comparisons], headers=headers, disable_numparse=True))
    failed = [one.scenario.name for one in comparisons if one.failed(changed)]
    same = sum(all(found.same_bits for found in one.columns.values()) and not one.trouble for one in comparisons)
    print(f"{len(comparisons)} runs: {same} the same to the bit, {len(failed)} not as they were")
    print(*(f"  {name}" for name in failed), sep="\n")
    return int(bool(failed))


def main() -> int:
    """Compare what the command line names."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", nargs="?", default=BEFORE, help="a commit, or a folder with fkl and conf")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--small", action="store_true", help="without the papers' tables")
    parser.add_argument("--only", metavar="PART,...", help="scenarios whose name has one of these in it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep tables there, and use those that are there")
    parser.add_argument("--changed", default="", metavar="COLUMN,...", help="columns that were changed on purpose")
    rename = "a key, or a whole KEY=VALUE, and the new commit's key, or words, for it; '' where it has none"
    parser.add_argument("--rename", nargs=2, action="append", default=[], metavar=("OLD", "NEW"), help=rename)
    parser.add_argument("--column", nargs=2, action="append", default=[], metavar=("OLD", "NEW"), help="renamed column")
    numpy_engine = "let the new commit play float64 by numpy, as commits before the key `engine` did, where it can"
    parser.add_argument("--numpy", action="store_true", help=numpy_engine)
    parser.add_argument("--checkpoints", action="store_true", help="weigh checkpoints instead")
    arguments = parser.parse_args()
    with laid_out(arguments.old) as old, laid_out(arguments.new) as new, TemporaryDirectory() as scratch:
        keep = arguments.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        before = scenarios_of(arguments, old.algorithms)
        after = [scenario.renamed([tuple(pair) for pair in arguments.rename]) for scenario in before]
        if arguments.numpy:
            after = [in_numpy(scenario) for scenario in after]
        play(old, before, keep)
        play(new, after, keep)
        for which, tree in (("old", old), ("new", new)):
            print(f"{which}: {tree.name}, code and configuration {tree.digest}")
        if arguments.checkpoints:
            return weigh(old, new, list(zip(before, after, strict=True)), keep)
        names, changed = dict(arguments.column), set(filter(None, arguments.changed.split(",")))
        found = [
            compare(b, b.kept_in(keep, old), a.kept_in(keep, new), names) for b, a in zip(before, after, strict=True)
        ]
        return report(found, changed)


if __name__ == "__main__":
    sys.exit(main())
