"""Let each change that a command makes to files fail, or kill it there, and repeat the command: nothing is lost.

Changes are opening for writing, write, fsync, rename, mkdir, unlink, rmdir and truncate below the command's folder. If
one fails, the command ends with exit code 2 and one line, or with 0 and all its files. The same command, with a disk
that does not fail, then leads to the files of an undisturbed one, makes no finished run again, and leaves no others.
"""

import errno
import io
import os
import re
import shutil
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from faulty_disk import NONE, Ended, Fault, FaultyDisk, lose_power
from without_hashes import served

from fkl.data.registry import named_dataset
from fkl.runs.folder import FINISHED, find_damage, read_provenance
from fkl.runs.tables import TIMING_COLUMNS

FAULTS = {
    "ENOSPC once": Fault(errno.ENOSPC),
    "ENOSPC from then on": Fault(errno.ENOSPC, later=True, half=True),
    "EIO once": Fault(errno.EIO),
}
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "power": signal.SIGKILL}
RUN = ("run", "dataset=diabetes", "kernels.D=8", "kernels.N=5", "replicates=2", "partition.rounds=20", "chunk=1")
SWEEP = ("run", "-m", *RUN[1:], "seed=1,2,3", "hydra.sweep.dir=sweep")
NINE, THREE = ((*RUN, "seed=9"),), tuple((*RUN, f"seed={seed}") for seed in (1, 2, 3))
STUDY = """
question: Which one?
methods: [ofmkl_avg, vm_kofl]
datasets: [diabetes]
tune: {trials: 2}
judge: {seeds: 3}
set: [kernels.D=4, kernels.N=2, kernels.laplacians=0, "kernels.smallest=0.5", "kernels.largest=2.0"]
"""
ROWS = "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n" + "0.1,0.2,0.1,0,0,0,0,0,0,0\n" * 20
FROM_US = """
import os
from pathlib import Path
from fkl.cli import commands
from fkl.data.store import Store
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
commands._store = lambda: Store(Path("data"), mirror="{}", retries=0)
"""
MINE = {"diary.txt": "mine", "a.failed/diary.txt": "mine", "outputs/diary.txt": "mine"}
"""The user's files."""
DATED = ("provenance.json", "report.html", "jobs.csv", "multirun.yaml")
"""Names of files that tell when they were made."""
TIMES = (*TIMING_COLUMNS, "seconds", "time")
TIME = re.compile(rf'"({"|".join(TIMES)})": [0-9.e-]+|[0-9.]+ m?s\b')
"""Columns and numbers of time."""
ENDS = ('{"event": "fail"', '{"event": "end"')
"""Lines of a log about its ends; the last one is missing if it is all that could not be written."""
LOCK = re.compile(r"study/runs/\.[^/]+\.lock")
"""An empty file that stays if it could not be deleted: a study does not look at a run that it has noted."""
REASONS = ("cannot be written", os.strerror(errno.ENOSPC), os.strerror(errno.EIO))


@dataclass(frozen=True)
class Case:
    """A command.

    Parameters
    ----------
    words : tuple of str
    done : tuple of tuples of str
        Commands that have ended before it.
    rewrites : str
        Beginning of the names of earlier files that it changes.
    """

    words: tuple[str, ...]
    done: tuple[tuple[str, ...], ...] = ()
    rewrites: str = "none"


CASES = {
    "run": Case(RUN, NINE),
    "run, out=a": Case((*RUN, "out=a"), NINE),
    "run, checkpoints": Case((*RUN, "checkpoint_s=0", "partition.rounds=3"), NINE),
    "run, logger=jsonl": Case((*RUN, "logger=jsonl"), NINE),
    "run, save_model": Case((*RUN, "save_model=true"), NINE),
    "run, model added": Case((*NINE[0], "save_model=true"), NINE, rewrites="outputs/runs"),
    "run, diverges": Case((*RUN, "algo.eta=1e30"), NINE),
    "sweep": Case(SWEEP, NINE),
    "study": Case(("study", "study.yaml")),
    "compare": Case(("compare",), THREE),
    "report": Case(("report",), THREE),
    "report --single": Case(("report", "--single"), THREE),
    "predict": Case(("predict", "a", "rows.csv", "--out", "new/table.csv"), ((*RUN, "out=a", "save_model=true"),)),
    "flower init": Case(
        ("flower", "init", "new/sites", "--sites=3", "dataset=file", "dataset.target=y", "kernels=rbf", "replicates=1")
    ),
    "data fetch": Case(("data", "fetch", "wec")),
}
LONG = ("replicates=12", "partition.rounds=100", "checkpoint_s=0.01")
KILLED = {
    "run": Case((*RUN, *LONG), NINE),
    "sweep": Case((*SWEEP, *LONG), NINE),
    "study": CASES["study"],
    "joblib": Case((*SWEEP, *LONG, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), NINE),
}


class Tried:
    """Attempts at one case.

    Parameters
    ----------
    disk : FaultyDisk
    scratch : Path
        A folder that does not exist.
    case : Case
    address : str
        Address of `published`.
    """

    def __init__(self, disk: FaultyDisk, scratch: Path, case: Case, address: str) -> None:
        self._disk, self._case, self._before = disk, case, FROM_US.format(address)
        self._template, self._folder = scratch / "template", scratch / "work"
        for name, text in (*MINE.items(), ("study.yaml", STUDY), ("rows.csv", ROWS)):
            file = self._template / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for words in case.done:
            ended = disk.call(self._template, words)
            assert ended.code == 0, ended.err
        self.undisturbed = self._begin()
        self._paths, self._files = paths(self._folder), contents(self._folder)

    def defects(self, nth: int, fault: Fault) -> list[str]:
        """Errors if there is a fault at the n-th change."""
        first = self._begin(nth, fault)
        found = self._end(first)
        if first.code == 0 and (differ := self._differences()):
            found.append(f"exit code 0, but {differ}")
        return [*found, *self._repeated()]

    def killed(self, name: str, nth: int = 0, after_s: float = 600) -> list[str]:
        """Errors if this signal comes at the n-th change, or after some seconds; power loses what is not synced."""
        number = SIGNALS[name]
        first = self._begin(nth, Fault(signal=number), (after_s, number))
        if name == "power":
            lose_power(self._folder, first.unsynced)
        found = []
        if name == "SIGINT" and (first.code not in (0, 130) or "Traceback" in first.err):
            found.append(f"exit code {first.code}: {first.err[-500:]}")
        return [*found, *self._repeated()]

    def _begin(self, nth: int = 0, fault: Fault = NONE, after_s: tuple[float, int] = (600, 9)) -> Ended:
        if self._folder.exists():
            shutil.rmtree(self._folder)
        shutil.copytree(self._template, self._folder)
        self._had = stamps(self._folder)
        return self._disk.call(self._folder, self._case.words, nth, fault, before=self._before, after_s=after_s)

    def _end(self, ended: Ended) -> list[str]:
        """What is wrong with how the command ended."""
        lines = [line.strip() for line in re.split("[\r\n]", ended.err)]
        errors = [line for line in lines if line.startswith("error: ")]
        about = any(reason in line for line in (*lines, ended.out) for reason in REASONS)
        fine = ended.code == 2 and about and len(errors) <= 1
        fine |= ended.code == self.undisturbed.code and len(errors) <= (ended.code != 0)
        return [] if fine and "Traceback" not in ended.err else [f"exit code {ended.code}: {ended.err[-1000:]}"]

    def _repeated(self) -> list[str]:
        """Errors before and after the same command without a fault."""
        folder, found = self._folder, self._lost()
        runs = [file.parent for file in folder.rglob("[!.]*/provenance.json")]
        runs = [run for run in runs if read_provenance(run).get("state") == FINISHED]
        found += [f"{run.name} looks finished: {error}" for run in runs if (error := find_damage(run))]
        finished = (
            {} if self._case.rewrites == "outputs/runs" else {f: s for run in runs for f, s in stamps(run).items()}
        )
        again = self._disk.call(folder, self._case.words, before=self._before)
        if again.code != self.undisturbed.code:
            found.append(f"again: exit code {again.code}: {again.err[-500:]}")
        now, left = stamps(folder), sorted(paths(folder) - self._paths)
        left = [name for name in left if not LOCK.fullmatch(name)]
        found += [f"made again: {file}" for file, stamp in finished.items() if now.get(file) != stamp][:1]
        found += [f"left: {left}"] * bool(left)
        if differ := self._differences():
            found.append(f"again: {differ}")
        return [*found, *self._lost()]

    def _lost(self) -> list[str]:
        """Earlier files that are no longer as they were."""
        now, folder = stamps(self._folder), self._folder
        other = [str(file.relative_to(folder)) for file, stamp in self._had.items() if now.get(file) != stamp]
        lost = [name for name in other if not name.startswith(self._case.rewrites)]
        return [f"lost: {lost}"] * bool(lost)

    def _differences(self) -> str:
        """Differences from the files of an undisturbed command."""
        found, expected = contents(self._folder), self._files
        both = {name for name in found.keys() & expected.keys() if found[name] != expected[name]}
        told = {"missing": expected.keys() - found.keys(), "added": found.keys() - expected.keys(), "other": both}
        return "; ".join(f"{what}: {', '.join(sorted(names)[:4])}" for what, names in told.items() if names)


def paths(folder: Path) -> set[str]:
    """Everything below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of every file."""
    return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.rglob("*") if file.is_file()}


def contents(folder: Path) -> dict[str, bytes]:
    """Every visible file, without columns and numbers of time, and without ends in logs."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in DATED):
        name, content = str(file.relative_to(folder)), file.read_bytes()
        if file.suffix == ".csv" and content.strip():
            table = pd.read_csv(io.BytesIO(content), dtype=str)
            content = table.drop(columns=[*TIMES], errors="ignore").to_csv(index=False).encode()
        elif file.suffix in (".json", ".jsonl", ".md", ".tex", ".html"):
            lines = [line for line in content.decode().splitlines() if not line.startswith(ENDS)]
            content = "\n".join(re.sub("[ -]{2,}", " ", TIME.sub("", line)) for line in lines).encode()
        if not any(part.startswith(".") for part in Path(name).parts):
            found[name] = content
    return found


@contextmanager
def published() -> Iterator[str]:
    """Address of a web server on this machine with the archive of dataset=wec."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        for site in ("Adelaide", "Perth", "Sydney", "Tasmania"):
            stream.writestr(f"{site}_Data.csv", "1,2\n" * 10_000)
    name = str(named_dataset("wec").data_files[0].archive)
    with served(**{name: archive.getvalue()}) as site:
        yield site.address
