"""Kill fkl at random moments, also with two processes at the same work, and check that nothing is lost.

    python scripts/attack.py --kills 50

Each attack begins in a folder with a user's files and a finished run. It starts a command, most often twice, kills one
of the processes or both, with SIGKILL, at a random moment or just before a random change that it makes to the file
system, and repeats the command. Then all files must exist: those of an undisturbed call, byte for byte (except for
columns of time), the user's files, and the earlier finished run, unchanged. It prints a line for each attack; the exit
code is 1 if something was lost.
"""

import argparse
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fkl.runs.folder import find_damage
from fkl.runs.tables import TIMING_COLUMNS

RUN = ("run", "dataset=diabetes", "kernels.N=5", "kernels.D=200", "replicates=12", "chunk=2", "checkpoint_s=0.01")
COMMANDS = {
    "run": (*RUN, "out=a"),
    "sweep": (*RUN[:1], "-m", *RUN[1:], "seed=1,2,3", "hydra.sweep.dir=sweep"),
    "report": ("report",),
}
FINISHED = (*RUN, "seed=9")
"""A run that is finished before every attack."""
MINE = {"diary.txt": "mine", "a.failed/diary.txt": "mine", ".a.partial-x/diary.txt": "mine", "sweep/job-1.json": "mine"}
"""The user's files."""
LIMIT_S = 300
WATCHED = """
import os, sys
left, folder, writes = int(os.environ["KILL_AT"]), os.getcwd(), os.O_WRONLY | os.O_RDWR | os.O_CREAT
def watch(event, arguments):
    global left
    changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
    changes = changes or (event == "open" and isinstance(arguments[2], int) and arguments[2] & writes)
    changes = changes and isinstance(arguments[0], (str, bytes))
    if changes and os.path.abspath(os.fsdecode(arguments[0])).startswith(folder):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(watch)
from fkl.cli import main
try:
    main()
finally:
    print("changes:", int(os.environ["KILL_AT"]) - left, file=sys.stderr)
"""
"""The command in a process that kills itself before its n-th change to files below its folder."""


@dataclass(frozen=True)
class Attack:
    """An attack on one command.

    Parameters
    ----------
    command : str
        Key of `COMMANDS`.
    processes : int
        Number of processes that do the same at the same time.
    at_change : int or None
        Kill the first process before this change that it makes; None to kill it at `moment_s`.
    moment_s : float
        Otherwise the time at which it is killed.
    both : bool
        Whether the second is also killed.
    """

    command: str
    processes: int
    at_change: int | None
    moment_s: float
    both: bool

    def __str__(self) -> str:
        when = f"change {self.at_change}" if self.at_change is not None else f"{self.moment_s:.2f} s"
        return f"{self.command}, {self.processes} processes, {'both' if self.both else 'one'} killed at {when}"


def start(words: tuple[str, ...], folder: Path, at_change: int = 0) -> "subprocess.Popen[str]":
    """The command in a separate process."""
    environment = {**os.environ, "KILL_AT": str(at_change), "FKL_CACHE": "cache"}
    environment.pop("FKL_DATA", None)
    command = [sys.executable, "-P", "-c", WATCHED, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def prepared(template: Path | None) -> Iterator[Path]:
    """A folder with the user's files and a finished run."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "work"
        if template is not None:
            shutil.copytree(template, folder)
        for name, text in MINE.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        yield folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every visible file of a call, without columns and lines of time."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = str(file.relative_to(folder)), file.read_bytes()
        if name.startswith("cache/") or file.name in ("provenance.json", "report.html", "jobs.csv", "multirun.yaml"):
            continue
        if file.name == "summary.csv":
            table = pd.read_csv(io.BytesIO(content), dtype=str).drop(columns=list(TIMING_COLUMNS))
            content = table.to_csv(index=False).encode()
        if not (file.name.endswith(".lock") and not content):  # locks of a killed process are empty, and hidden
            found[name] = content
    return found


def undisturbed(command: str, template: Path) -> tuple[dict[str, bytes], float, int]:
    """Files of an undisturbed call, its seconds, and its number of changes."""
    with prepared(template) as folder:
        began = time.monotonic()
        _, errors = start(COMMANDS[command], folder).communicate(timeout=LIMIT_S)
        changes = int(errors.rsplit("changes:", 1)[1])
        return contents(folder), time.monotonic() - began, changes


def carry_out(attack: Attack, template: Path, expected: dict[str, bytes]) -> str:
    """Do the attack, and return the losses; empty if there are none."""
    words = COMMANDS[attack.command]
    with prepared(template) as folder:
        stamps = {file: file.stat().st_mtime_ns for file in (folder / "outputs").rglob("*") if file.is_file()}
        processes = [start(words, folder, attack.at_change or 0)]
        processes += [start(words, folder) for _ in range(attack.processes - 1)]
        if attack.at_change is None or attack.both:
            time.sleep(attack.moment_s)
            for process in processes if attack.both else processes[:1]:
                process.send_signal(signal.SIGKILL)
        ended = [process.communicate(timeout=LIMIT_S)[1] for process in processes]
        for process, errors in zip(processes, ended, strict=True):
            if process.returncode not in (0, -signal.SIGKILL):
                refused = attack.command == "sweep" and "no other sweep is running" in errors
                if not refused:
                    return f"a process that was not killed ended with {process.returncode}: {errors[-300:]}"
        page = folder / "outputs" / "report.html"
        if page.exists() and not page.read_text().rstrip().endswith("</html>"):
            return "half a page"
        for run in (folder / "outputs" / "runs").glob("[!.]*"):
            if find_damage(run) is not None:
                return f"{run.name} looks finished: {find_damage(run)}"
        again = start(words, folder)
        _, errors = again.communicate(timeout=LIMIT_S)
        if again.returncode != 0:
            return f"the command, given again, ended with {again.returncode}: {errors[-300:]}"
        return differences(contents(folder), expected, stamps, attack.command == "report")


def differences(found: dict[str, bytes], expected: dict[str, bytes], stamps: dict[Path, int], made_anew: bool) -> str:
    """Missing, additional or changed files."""
    lost = sorted(expected.keys() - found.keys())
    added = sorted(name for name in found.keys() - expected.keys() if ".partial-" not in name)
    other = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    touched = [] if made_anew else [str(file) for file, stamp in stamps.items() if file.stat().st_mtime_ns != stamp]
    told = {"lost": lost, "added": added, "other": other, "touched": touched}
    return "; ".join(f"{what}: {', '.join(names[:4])}" for what, names in told.items() if names)


def drawn(generator: random.Random, length: dict[str, tuple[float, int]]) -> Attack:
    """A random attack."""
    command = generator.choices(list(COMMANDS), (3, 3, 1))[0]
    seconds, changes = length[command]
    at_change = generator.randint(1, changes) if generator.random() < 0.5 else None
    return Attack(
        command, generator.choice((1, 2, 2)), at_change, generator.uniform(0, seconds), generator.random() < 0.3
    )


def main() -> int:
    """Do the requested number of attacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="attacks, of one kill or two each")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator, failed, kills = random.Random(arguments.seed), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        template = Path(scratch) / "template"
        template.mkdir()
        start(FINISHED, template).communicate(timeout=LIMIT_S)
        expected, length = {}, {}
        for command in COMMANDS:
            expected[command], seconds, changes = undisturbed(command, template)
            length[command] = seconds, changes
            print(f"undisturbed {command}: {seconds:.1f} s, {changes} changes to files", flush=True)
        for number in range(1, arguments.kills + 1):
            attack = drawn(generator, length)
            said = carry_out(attack, template, expected[attack.command])
            failed, kills = failed + bool(said), kills + 1 + (attack.both and attack.processes > 1)
            print(f"{number:4} {attack}: {said or 'nothing lost'}", flush=True)
    print(f"{arguments.kills} attacks, {kills} kills: {failed} with a loss")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
