"""Run every experiment of a paper for which data are at hand, then write its tables and figures.

Usage: reproduce_tables.py PAPER
"""

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from fkl import conf_folder


def main(paper: str) -> int:
    """Keep going past a failure; the exit code tells whether there was one."""
    module = import_module(f"fkl.papers.{paper}")
    experiments = sorted(path.stem for path in (conf_folder() / "experiment" / paper).glob("*.yaml"))
    commands = [["run", "-m", f"+experiment={paper}/{name}"] for name in experiments]
    commands += [["table", f"{paper}/{number}"] for number in module.TABLES]
    commands += [["figure", f"{paper}/{number}"] for number in module.FIGURES]
    failed = []
    for command in commands:
        start = time.perf_counter()
        code = subprocess.run([Path(sys.executable).with_name("fkl"), *command], check=False).returncode
        print(f"== fkl {' '.join(command)}: {time.perf_counter() - start:.0f} s, exit code {code}\n", flush=True)
        if code:
            failed.append(" ".join(command))
    print(f"failed: {'; '.join(failed) or 'nothing'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
