"""Plays turns of benchmarks for `benchmarks.against`, with the fkl that PYTHONPATH names: this one or an older one.

It reads lines from stdin and answers each with a line of JSON. A name of a benchmark is answered with the methods and
shapes of its cases; the number of a case is played, and answered with its seconds and with those of the processor.
"""

import json
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def main() -> None:
    """Answer until stdin ends."""
    cases: list[Any] = []
    answer: list[Any]
    for line in sys.stdin:
        asked = line.strip()
        if asked.isdecimal():
            before = time.process_time()
            seconds = cases[int(asked)].ours()
            answer = [seconds, time.process_time() - before]
        else:
            there = find_spec("benchmarks") and find_spec(f"benchmarks.{asked}")
            cases = import_module(f"benchmarks.{asked}").cases() if there else []
            answer = [[case.name, case.shape] for case in cases]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
