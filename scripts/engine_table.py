"""Print the differences of each engine from the reference, for each method.

    OPENBLAS_NUM_THREADS=1 python scripts/engine_table.py [METHOD ...]

Every method plays the small scenario of `python -m fkl.conformance`, in float64 with every engine that can play it. A
figure is the largest difference of a column from that of engine=numpy, or of numba if numpy cannot play it, divided by
the larger of that column's value and 1. The column before the last compares float32 on jax with float32 on numba after
500 rounds or iterations of 4 clients. If an engine cannot play a method, its `can_play` gives the reason.
"""

import argparse
import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

from fkl.config.choices import Choices
from fkl.config.loading import Run, load_engine
from fkl.conformance import quick_run
from fkl.engines.base import why_not_at_sites
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import TIMING_COLUMNS
from fkl.tasks import task_of
from fkl.tasks.batch import BatchTask

NOTES: list[str] = []
"""Why engines cannot play methods: the footnotes of the table."""
LONG = ("dataset=synthetic", "dataset.rows=2000", "precision=float32")
ENGINES = ("numpy", "numba", "jax")
CLIP = ("privacy.clip=1", "privacy.noise=1")
CONDITIONS = [
    *(
        ("algo=pof_mkl", *more)
        for more in (["participation=share"], [*CLIP, "privacy=central"], [*CLIP, "privacy=local"])
    ),
    *(("algo=pof_mkl", one) for one in ("compression=uniform", "secure=pairwise", "late=labels", "late=updates")),
    *(("algo=pof_mkl", one) for one in ("aggregate=median", "attack=sign_flip", "attack=alie")),
    *(("algo=pof_mkl", one) for one in ("network.compute_s=1", "save_model=true")),
    *(
        ("algo=odkla", one)
        for one in ("participation=share", "compression=uniform", "links=failing", "network.loss=0.1")
    ),
]
"""Of which the last word is in the table."""
PARTITION = ("partition.clients=4", "partition.rounds=500")


def shown(run: Run) -> dict[str, Any]:
    """All columns of a run, and its ledger's counts, by name."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        experiment = prepare_run(run)
        chunks = list(simulate_run(experiment, 1, None, id))
    found: dict[str, Any] = {}
    for chunk in chunks:
        for part, columns in experiment.task.columns(chunk.judge, chunk.seconds_per_replicate())._asdict().items():
            told = {name: values for name, values in columns.items() if name not in TIMING_COLUMNS}
            found |= {f"{chunk.first} {part} {name}": np.asarray(values, float) for name, values in told.items()}
        for direction, tally in chunk.ledger.tallies.items():
            found[f"{chunk.first} {direction}"] = tally.by_round
    return found


def apart(found: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """The largest difference, divided by the larger of a value and 1; infinite if NaN, or counts, differ."""
    largest = 0.0
    for name, values in expected.items():
        if values.dtype.kind == "i" or not np.array_equal(np.isnan(found[name]), np.isnan(values)):
            largest = max(largest, 0.0 if np.array_equal(found[name], values, equal_nan=True) else np.inf)
            continue
        room = np.maximum(1, np.abs(values))
        largest = max(largest, float(np.nanmax(np.abs(found[name] - values) / room, initial=0.0)))
    return largest


def cells(algo: str) -> list[str]:
    """numpy, numba, jax in float64 and in float32, of one method, and why Flower cannot play it."""
    words = (f"algo={algo}", "precision=float64")
    run, reference = quick_run(*words), None
    row = [f"{run.algo.label} (`{algo}`)"]
    for name in ENGINES:
        if (why := load_engine(name).can_play(run)) is not None:
            row.append(noted(why))
        else:
            found = shown(quick_run(*words, f"engine={name}"))
            row.append("✓" if reference is None else f"✓ {apart(found, reference):.1e}")
            reference = found if reference is None else reference
    row.append(in_float32(algo) if row[-1].startswith("✓") else "")
    why = why_not_at_sites(run.algo)
    return [*row, "✓" if why is None else noted(why)]


def noted(why: str) -> str:
    """The mark of an engine that cannot play a method, with a footnote."""
    if why not in NOTES:
        NOTES.append(why)
    return f"— [^{NOTES.index(why) + 1}]"


def in_float32(algo: str) -> str:
    """Difference of 500 rounds in float32 from those of numba, if the stream, or the iterations, are long enough."""
    kind = type(quick_run(f"algo={algo}").algo)
    alone = getattr(kind, "alone", False)
    streams = ("partition=stream", "partition.clients=1", "partition.rounds=500") if alone else PARTITION
    iterations = ("algo.iterations=500",) if issubclass(task_of(kind), BatchTask) else ()
    words = (f"algo={algo}", *LONG, *streams, *iterations)
    found, expected = (shown(quick_run(*words, f"engine={engine}")) for engine in ("jax", "numba"))
    return f"{apart(found, expected):.1e}"


def conditions() -> None:
    """Print which engine can play which condition, of POF-MKL and, on a graph, of ODKLA."""
    print("\n| condition |", " | ".join(ENGINES), "|\n|---|" + "---|" * len(ENGINES))
    for words in CONDITIONS:
        run = quick_run(*words)
        marks = ["—" if load_engine(name).can_play(run) else "✓" for name in ENGINES]
        print(f"| {run.algo.label}, `{words[-1]}` |", " | ".join(marks), "|")


def main() -> None:
    """Print the table, then its footnotes, then the table of conditions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="METHOD")
    jax = "jax, float64 | jax, float32, 500 rounds, compared with numba"
    print(f"| method | {' | '.join(ENGINES[:-1])} | {jax} | Flower |")
    print("|---|---|---:|---|---|---:|---:|---|")
    for algo in parser.parse_args().methods or Choices().names("algo"):
        print("|", " | ".join(cells(algo)), "|", flush=True)
    print()
    for number, why in enumerate(NOTES, 1):
        print(f"[^{number}]: Not possible: {why}.")
    conditions()


if __name__ == "__main__":
    main()
