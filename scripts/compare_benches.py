"""Time two commits side by side: the benchmarks of `make bench`, one commit after the other, several times in turn.

Usage: compare_benches.py [OLD [NEW]] [--only NAME,...] [--times N] [--cpu], commits or folders as for
`compare_commits.py`. Each commit runs its own benchmarks, so both are measured against a floor of the same minutes. A
line for each ratio gives both medians and the median of the quotients of neighbours in time; the exit code is 1 where a
time grew by more than 5 %, or is no longer printed.
"""

import os
import re
import subprocess
import sys
from argparse import ArgumentParser

import numpy as np
from compare_commits import BEFORE, PARTS, Tree, laid_out
from tabulate import tabulate

MOST = 1.05
ON_ONE_CORE = """
import os, runpy, sys, time
os.cpu_count = lambda: 1
time.perf_counter = time.process_time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs a script with one thread, and its clocks show the processor's time: nearly the same on a busy machine."""
NAMED = re.compile(r"^\s+(\S.* / .+?):\s+([\d.]+)")
LISTED = re.compile(r"([\w-][\w -]* / [\w -]+?) ([\d.]+)(?=,|;|$| \()")


def ratios(text: str) -> dict[str, float]:
    """All that a benchmark prints of one time over another, by its words; equal words are numbered."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        named = NAMED.match(line)
        for words, number in [named.groups()] if named else LISTED.findall(line):
            label, others = " ".join(words.split()), 1
            while label in found:
                others += 1
                label = f"{' '.join(words.split())} ({others})"
            found[label] = float(number)
    return found


def measured(tree: Tree, bench: str, cpu: bool) -> dict[str, float]:
    """Run one benchmark of a commit."""
    script = str(tree.folder / "scripts" / bench)
    command = [sys.executable, *(["-c", ON_ONE_CORE] if cpu else []), script]
    environment = {**os.environ, "PYTHONPATH": f"{tree.folder}:{tree.folder / 'tests'}"}
    environment |= dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1") if cpu else {}
    done = subprocess.run(command, cwd=tree.folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"compare_benches.py: {tree.name}, {bench}: {done.stderr.strip()}")
    print(f"{tree.name}, {bench}\n{done.stdout}", file=sys.stderr, flush=True)
    return ratios(done.stdout)


def row(bench: str, label: str, pairs: list[tuple[float, float]]) -> list[str]:
    """Both medians, and by how much the commit's own time grew, which is below the line in `literal / ours`."""
    old, new = np.array(pairs).T
    grew = np.median(old / new if label.startswith("literal") else new / old)
    verdict = "yes" if grew <= MOST else "NO"  # also where there is no number
    return [bench, label, f"{np.median(old):.2f}", f"{np.median(new):.2f}", f"{grew:.3f}", verdict]


def main() -> int:
    """Compare what the command line names."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", nargs="?", default=BEFORE, help="a commit, or a folder that holds one")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--only", metavar="NAME,...", help="benchmarks whose name has one of these in it")
    parser.add_argument("--times", type=int, default=3, metavar="N", help="how often both are run in turn")
    parser.add_argument("--cpu", action="store_true", help="one thread, and its own time, for a machine that is busy")
    arguments = parser.parse_args()
    whole = (*PARTS, "scripts", "tests")
    rows = []
    with laid_out(arguments.old, whole) as old, laid_out(arguments.new, whole) as new:
        both = [{file.name for file in (tree.folder / "scripts").glob("bench_*.py")} for tree in (old, new)]
        for bench in sorted(both[0] & both[1]):
            if arguments.only is None or any(part in bench for part in arguments.only.split(",")):
                turns = [
                    tuple(measured(tree, bench, arguments.cpu) for tree in (old, new)) for _ in range(arguments.times)
                ]
                for label in turns[0][0]:
                    pairs = [(before[label], after.get(label, np.nan)) for before, after in turns]
                    rows.append(row(bench, label, pairs))
        print(f"old: {old.name}\nnew: {new.name}")
    print(tabulate(rows, headers=["benchmark", "ratio", "old", "new", "own time, new / old", f"<= {MOST}"]))
    return int(any("NO" in line for line in rows))


if __name__ == "__main__":
    sys.exit(main())
