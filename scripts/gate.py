"""Check that a change does not change numbers: compare the tables of two commits, to the last bit.

    python scripts/gate.py OLD [NEW] [--small] [--only PART,...] [--keep FOLDER]

OLD and NEW are commits of this repository, or folders with `fkl` and `conf` in them; NEW is HEAD by default. Each one
plays every method's small scenario and each paper's main table, in float64 and in float32, with this Python. Tables are
compared column by column, with all digits of a float64; only times may differ. The exit code is 1 if anything else
differs, or if a scenario could not be played.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import traceback
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pandas as pd
from gate_scenarios import DIFFICULT, ON_BATCHES, REPLICATES, SMALL, TABLES

REPOSITORY = Path(__file__).resolve().parent.parent
FILES = ("rounds.csv", "clients.csv", "summary.csv")
TIMES = ("runtime_s", "runtime_per_client_s")
SOURCES = ("fkl", "conf")
"""Folders of a commit that decide numbers."""
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Tree:
    """A commit, exported to a folder.

    Parameters
    ----------
    name : str
        The requested name, with the commit's hash.
    folder : Path
    digest : str
        Hash of everything that decides numbers.
    """

    name: str
    folder: Path
    digest: str


@contextmanager
def laid_out(name: str) -> Iterator[Tree]:
    """A commit, or the current content of a folder, in a temporary folder."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if (Path(name) / "fkl").is_dir():
            for part in SOURCES:  # without compiled code: numba does not notice changes in a called function
                shutil.copytree(Path(name) / part, folder / part, ignore=shutil.ignore_patterns("*.nb[ci]"))
            name, commit = Path(name).resolve().name, git("describe", "--always", "--dirty", folder=Path(name))
        else:
            commit = git("rev-parse", "--short=12", f"{name}^{{commit}}")
            packed = subprocess.run(
                ["git", "archive", commit, *SOURCES], cwd=REPOSITORY, check=True, capture_output=True
            )
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
                files.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
                files.extractall(folder)
        joined = hashlib.sha256()
        for file in sorted(file for part in SOURCES for file in (folder / part).rglob("*")):
            if file.suffix in (".py", ".yaml"):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                joined.update(f"{file.relative_to(folder)} {content}\n".encode())
        yield Tree(f"{name} ({commit})", folder.resolve(), joined.hexdigest()[:12])


def git(*words: str, folder: Path = REPOSITORY) -> str:
    """What git prints."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"gate.py: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def scenarios(algorithms: set[str], small_only: bool) -> dict[str, tuple[str, ...]]:
    """Words of `fkl run`, by scenario."""
    if missing := algorithms - SMALL.keys():
        sys.exit(f"gate.py: add a scenario to gate_scenarios.py for {', '.join(sorted(missing))}")
    small = {name: (f"algo={name}", *SMALL[name]) for name in sorted(algorithms | ON_BATCHES.keys())} | DIFFICULT
    played = {
        f"{name}, {precision}": (*words, REPLICATES, "chunk=3", f"precision={precision}")
        for precision in PRECISIONS
        for name, words in small.items()
    }
    if not small_only:
        played |= {f"{name}, float32": (*words, "precision=float32") for name, words in TABLES.items()}
        played |= {f"{name}, float64": ("replicates=2", *words, "precision=float64") for name, words in TABLES.items()}
    return played


def words_of(tree: Tree, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that a tree has for a scenario."""
    name = words[0].removeprefix("algo=")
    old = name not in ON_BATCHES or (tree.folder / "conf" / "algo" / f"{name}.yaml").exists()
    return words if old else (*ON_BATCHES[name], *words[1:])


def tables_folder(keep: Path, tree: Tree, words: tuple[str, ...]) -> Path:
    """Path of a scenario's stored tables, named after everything that decides them."""
    words = words_of(tree, words)
    return keep / tree.digest / hashlib.sha256(json.dumps(words).encode()).hexdigest()[:12]


def play_missing(tree: Tree, played: dict[str, tuple[str, ...]], keep: Path) -> None:
    """Play the scenarios without stored tables, in one process that imports this tree's fkl."""
    missing = [words for words in played.values() if not (tables_folder(keep, tree, words) / "words.json").exists()]
    print(f"{tree.name}: {len(missing)} of {len(played)} scenarios to play", file=sys.stderr, flush=True)
    if missing:
        jobs = [
            {"words": words_of(tree, words), "folder": str(tables_folder(keep, tree, words).resolve())}
            for words in missing
        ]
        environment = {**os.environ, "PYTHONPATH": f"{tree.folder}{os.pathsep}{Path(__file__).parent}"}
        # -P: the current folder, which may hold another fkl, would come before PYTHONPATH.
        worker = [sys.executable, "-P", "-c", "import gate; gate.play_jobs()"]
        subprocess.run(worker, input=json.dumps(jobs), text=True, env=environment, check=True)


def play_jobs() -> None:
    """In the worker: play the jobs listed on stdin, and store their tables with every digit."""
    import fkl
    import fkl.cli

    jobs = json.load(sys.stdin)
    print(f"fkl of {Path(fkl.__file__).parent}", file=sys.stderr, flush=True)
    for number, job in enumerate(jobs, 1):
        words, kept, start = job["words"], Path(job["folder"]), time.perf_counter()
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "failed.txt").unlink(missing_ok=True)
        said = io.StringIO()
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(TemporaryDirectory()))
            argv = ["fkl", "run", *words, f"out={scratch / 'run'}", f"paths.cache={scratch / 'cache'}"]
            stack.enter_context(mock.patch.object(sys, "argv", argv))
            # Every digit reads back as the same bits; runs round to ten digits
            stack.enter_context(mock.patch("fkl.runs.tables.FLOATS", "%.17g"))
            stack.enter_context(mock.patch("matplotlib.figure.Figure.savefig"))  # figures are not used
            stack.enter_context(redirect_stdout(said))
            stack.enter_context(redirect_stderr(said))
            failed = ""
            try:
                fkl.cli.main()
            except SystemExit as end:
                failed = said.getvalue() or f"exit code {end.code}" if end.code else ""
            except Exception:  # an error in one commit is a result; the other scenarios continue
                failed = traceback.format_exc()
            if failed:
                (kept / "failed.txt").write_text(failed)
            else:
                for table in FILES:
                    shutil.copy(scratch / "run" / table, kept / table)
        (kept / "words.json").write_text(json.dumps(words))
        seconds = f"{time.perf_counter() - start:.1f} s"
        print(f"{number} of {len(jobs)}: {' '.join(words)}, {seconds}", file=sys.stderr, flush=True)


def difference(old: Path, new: Path) -> str:
    """Difference of the tables in two folders, in one line; empty if every digit is the same."""
    for folder, which in ((old, "old"), (new, "new")):
        if (folder / "failed.txt").exists():
            return f"{which}: {(folder / 'failed.txt').read_text().strip().splitlines()[-1]}"
    found = []
    for file in FILES:
        before, after = (pd.read_csv(folder / file, dtype=str, keep_default_na=False) for folder in (old, new))
        for name in [*before, *(name for name in after if name not in before)]:
            if name in TIMES:
                continue
            if name not in before or name not in after:
                found.append(f"{file}: {name} is only in the {'old' if name in before else 'new'} table")
            elif len(before) != len(after):
                found.append(f"{file}: {len(before)} rows, then {len(after)}")
                break
            elif (differs := before[name] != after[name]).any():
                row = int(differs.argmax())
                found.append(f"{file}: {name} in row {row + 1}: {before[name][row]}, then {after[name][row]}")
    return "; ".join(found)


def main() -> int:
    """Compare the trees on the command line; 1 if a number differs."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("old", help="a commit, or a folder with fkl and conf")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--small", action="store_true", help="without the papers' tables")
    parser.add_argument("--only", metavar="PART,...", help="scenarios with one of these in their names")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep tables there, and use those that are there")
    arguments = parser.parse_args()
    with laid_out(arguments.old) as old, laid_out(arguments.new) as new, TemporaryDirectory() as scratch:
        keep = arguments.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        algorithms = {file.stem for file in (old.folder / "conf" / "algo").glob("*.yaml")}
        wanted = arguments.only.split(",") if arguments.only else [""]
        every = scenarios(algorithms, arguments.small)
        played = {name: words for name, words in every.items() if any(part in name for part in wanted)}
        for tree in (old, new):
            play_missing(tree, played, keep)
        failed = 0
        for name, words in played.items():
            if found := difference(tables_folder(keep, old, words), tables_folder(keep, new, words)):
                failed += 1
                print(f"DIFFERS  {name}: {found}")
        for which, tree in (("old", old), ("new", new)):
            print(f"{which}: {tree.name}, code and configuration {tree.digest}")
        print(f"{len(played) - failed} of {len(played)} scenarios have the same digits")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
